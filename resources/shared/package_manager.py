"""The package manager, as the node type `package` sees it. Every manager provides these functions; so far, only apt.

A manager also loads four facets: `packages` (name → version, state), `automatic` (what is installed only because
other packages need it), `dependencies` (name → the installed packages that it needs) and `asked` (what this run
requests).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from statecfg.remote.graph.model import Action, CheckError
from statecfg.remote.graph.ops import Op
from statecfg.remote.machine.world import World
from statecfg.resources.shared import apt

if TYPE_CHECKING:  # hosts need no protocol
    Entry = dict[str, Any]
    Steps = dict[str, str | None]  # name → the version installed, None for removed

    class Manager(Protocol):
        """What a package manager can be asked."""

        GONE: Entry
        """An entry of the facet `asked`: the package is to be removed."""
        install: Op
        """Installs, in one transaction; an action of it takes a list of items."""
        remove: Op
        """Removes, in one transaction, and refuses to remove more than it is told."""
        mark_automatic: Op
        """Lets the manager know that a package is there only for others that need it."""

        def first(self, world: World) -> list[Action]:
            """Return what has to be done before the manager can do anything."""

        def stale(self, world: World, age: int | None) -> bool | None:
            """Tell whether the lists are older than `age` seconds; None if they are going to be fetched before."""

        def together(self, world: World, wanted: Mapping[str, Entry]) -> Steps:
            """Return what one transaction would do. Raises CheckError if it can't, or would remove another package."""

        def transaction(self, world: World, wanted: Mapping[str, Entry], purge: bool = False) -> Steps:
            """Return what one transaction would do, with the removals that follow from it. Raises CheckError."""

        def choice(
            self, world: World, name: str, version: str | None, unpacked: str | None, before: Mapping[str, Entry]
        ) -> Steps:
            """Return what installing one package would do, after `before`. Raises CheckError with help on the name."""

        def excluded(self, problem: CheckError) -> bool:
            """Tell whether packages exclude each other, whatever newer lists say."""

        def unneeded(self, world: World, names: Iterable[str]) -> set[str]:
            """Return the automatic packages that nothing needs once these are gone."""

        def conffiles(self, world: World, name: str) -> list[str]:
            """Return the paths of a package's configuration files."""


def manager(world: World) -> Manager:
    """Return the host's package manager."""
    return apt
