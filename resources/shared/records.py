"""Types that many modules share: attributes, effects and facets, and the items of package actions.

What a node remembers for `undo` has its type in the module that records it. These are plain maps, because actions and
the ledger are JSON. Only type checkers read this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # hosts get no annotations, and need no types
    from collections.abc import Mapping, Sequence
    from typing import NotRequired, TypedDict

    from statecfg.remote.graph.values import Attrs as Attrs
    from statecfg.remote.machine.world import Effect as Effect
    from statecfg.remote.machine.world import Fields as Fields

    Steps = dict[str, str | None]
    """What a package manager does: package → the version that it installs, None for a package that it removes."""

    class WantedPackage(TypedDict, total=False):
        """A package in a transaction and in the facet `asked`: its `version` (None: the newest), or that it is gone.

        :ivar options: options of the manager for the transaction; those of the last package apply
        :ivar replaces: packages that the transaction may remove
        :ivar file: the file of the host with the package
        """

        version: str | None
        gone: bool
        options: Sequence[str]
        replaces: Sequence[str]
        file: str

    WantedPackages = Mapping[str, WantedPackage]

    class InstallItem(TypedDict):
        """A package that an action installs.

        :ivar version: None lets apt choose
        :ivar others: the packages that apt installs with it: name → version
        :ivar update: the maximum age of apt's lists in seconds; without it, any age is fine
        :ivar replaces: the packages that it may replace
        :ivar replaced: those that are removed because this one replaces them
        :ivar units: their running units, to stop first
        :ivar held: whether the package is on hold, which must be released first
        :ivar file: the file of the host with the package
        """

        name: str
        version: str | None
        others: Steps
        update: NotRequired[int]
        replaces: NotRequired[list[str]]
        replaced: NotRequired[list[str]]
        units: NotRequired[list[str]]
        held: NotRequired[bool]
        file: NotRequired[str]

    class RemoveItem(TypedDict):
        """A package that an action removes.

        :ivar purge: whether its configuration is removed, too
        :ivar others: the packages that are removed with it
        :ivar instead: packages that apt installs as a replacement because remaining packages need one: name → version
        :ivar back: packages that this one had replaced and that are installed again: name → version
        :ivar units: running units to stop first
        :ivar held: packages of this item that are on hold, which must be released first
        """

        name: str
        purge: bool
        others: list[str]
        instead: NotRequired[dict[str, str]]
        back: NotRequired[dict[str, str]]
        units: NotRequired[list[str]]
        held: NotRequired[list[str]]
