"""What the ledger remembers for `undo` of nodes that manage parts of the system. Only for type checkers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # hosts get no annotations, and need no types
    from typing import NotRequired, TypedDict

    from statecfg.remote.graph.model import Blob
    from statecfg.resources.shared import records

    class LocaleMemory(TypedDict):
        """The memory of a `locale`: whether the host had it, its line in the list, and the lines of the default."""

        present: bool
        charset: str
        listing: records.LineMemory | None
        defaults: dict[str, records.LineMemory]

    class KernelModuleMemory(TypedDict):
        """The memory of a `kernel_module`: whether it was loaded, and its two files."""

        loaded: bool
        boot: records.FileMemory
        options: records.FileMemory

    class FilesystemMemory(TypedDict):
        """The memory of a `filesystem`: the device, with links followed, and what it contained ("": nothing)."""

        path: str
        fstype: str

    class SwapMemory(TypedDict):
        """The memory of a `swap`. `megabytes` is the size of its file in MiB; None for a device, or without a file."""

        path: str
        megabytes: int | None
        exists: bool
        used: records.Fields | None
        line: records.LineMemory

    class PasswordAgeMemory(TypedDict):
        """The memory of a `password_aging`: the former rules; None without a user."""

        entry: records.Fields | None

    class AlternativeMemory(TypedDict):
        """The memory of an `alternative`."""

        entry: records.Fields | None

    class DiversionMemory(TypedDict):
        """The memory of a `diversion`."""

        entry: records.Fields | None

    class ZoneMemory(records.Memory):
        """The memory of a `timezone`: the link /etc/localtime, and the file /etc/timezone."""

        link: records.PathRecord | None
        name: records.PathRecord | None

    class DebconfMemory(TypedDict):
        """The memory of a `debconf`: question → its entry in the facet `debconf`; None if there was none."""

        answers: dict[str, records.Fields | None]

    class UpgradeMemory(TypedDict):
        """The memory of a `package_upgrade`: the installed packages, one line each (see `package_snapshot.context`).

        :ivar own: what the node changed: package → former version ("" for none) and new version ("" for none)
        :ivar changed: the same with changes of others, in ledgers of earlier versions
        """

        before: Blob
        own: NotRequired[dict[str, list[str]]]
        changed: NotRequired[dict[str, list[str]]]
