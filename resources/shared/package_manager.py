"""The package manager, as the node type `package` uses it. Every manager provides these functions; so far, only apt.

A manager also loads five facets: `packages` (name → version, state), `automatic` (packages that are installed only
because others need them), `dependencies` (name → the installed packages that it needs), `unit_packages` (name of a
unit's file → the packages that own it) and `asked` (what this run requests).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from statecfg.remote.graph.model import Action, CheckError
from statecfg.remote.graph.ops import Op
from statecfg.remote.machine.world import World
from statecfg.resources.shared import apt, records

if TYPE_CHECKING:  # hosts don't need the protocol

    class Manager(Protocol):
        """The functions of a package manager."""

        GONE: records.WantedPackage
        """An entry of the facet `asked`: the package is to be removed."""
        install: Op
        """Installs, in one transaction; an action of it takes a list of items."""
        remove: Op
        """Removes, in one transaction, and refuses to remove more than it is told."""
        mark_automatic: Op
        """Lets the manager know that a package is there only for others that need it."""

        def first(self, world: World) -> list[Action]:
            """Return the actions that the manager needs before it can do anything."""

        def stale(self, world: World, age: int | None) -> bool | None:
            """Tell whether the package lists are older than `age` seconds; None if this run fetches them before."""

        def together(self, world: World, wanted: records.WantedPackages) -> records.Steps:
            """Return what one transaction would do.

            :raises CheckError: if the manager refuses, or would remove another package
            """

        def transaction(self, world: World, wanted: records.WantedPackages, purge: bool = False) -> records.Steps:
            """Return what one transaction would do, including the removals that follow from it.

            :raises CheckError: if the manager refuses
            """

        def choice(
            self, world: World, name: str, version: str | None, unpacked: str | None, before: records.WantedPackages
        ) -> records.Steps:
            """Return what the installation of one package would do after `before`.

            :raises CheckError: if it is not possible; an unknown name comes with a suggestion
            """

        def excluded(self, problem: CheckError) -> bool:
            """Tell whether the problem is that packages exclude each other, which newer lists would not change."""

        def unneeded(self, world: World, names: Iterable[str]) -> set[str]:
            """Return the automatically installed packages that nothing needs after the removal of these."""

        def conffiles(self, world: World, name: str) -> list[str]:
            """Return the paths of a package's configuration files."""


def manager(world: World) -> Manager:
    """Return the host's package manager."""
    return apt
