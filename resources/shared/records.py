"""Data with fixed keys: what the ledger remembers for `undo`, the items of package actions, and entries of facets.

These are plain maps, because actions and the ledger are JSON. Only type checkers read this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # hosts get no annotations, and need no types
    from collections.abc import Mapping, Sequence
    from typing import Any, NotRequired, TypedDict

    from statecfg.remote.graph.model import Blob
    from statecfg.remote.graph.values import Attrs as Attrs
    from statecfg.remote.machine.world import Effect as Effect
    from statecfg.remote.machine.world import Fields as Fields

    Steps = dict[str, str | None]
    """What a package manager does: package → the version that it installs, None for a package that it removes."""

    class PathRecord(TypedDict):
        """A path before a node changed it. Entries of a directory that the node does not touch have only `kind`."""

        kind: str
        mode: NotRequired[int]
        owner: NotRequired[str]
        group: NotRequired[str]
        target: NotRequired[str]
        content: NotRequired[Blob]

    class SourceEntry(TypedDict):
        """An entry of a directory's source: a `directory`, a `file` with its content, or a `symlink`."""

        kind: str
        content: NotRequired[Blob]
        executable: NotRequired[bool]
        target: NotRequired[str]

    class PackedEntry(TypedDict):
        """An entry of an archive. A `file` has its digest and size, a `symlink` its target."""

        kind: str
        sha256: NotRequired[str]
        size: NotRequired[int]
        executable: NotRequired[bool]
        target: NotRequired[str]

    class Backup(TypedDict):
        """The path of a node's backup before the node wrote it."""

        suffix: str
        was: PathRecord | None

    class Memory(TypedDict, total=False):
        """What `remember` returns.

        :ivar lost: messages about what it could not record
        """

        lost: list[str]

    class BackedUp(Memory):
        """The memory of a node that may keep a backup of its file."""

        path: str
        backup: NotRequired[Backup]

    class FileMemory(BackedUp):
        """The memory of a `file`. `written` tells whether the node had content at its first apply."""

        was: PathRecord | None
        written: bool

    class UnitFileMemory(FileMemory):
        """The memory of a `systemd_unit`. `made` tells whether the directory of the file was missing."""

        made: bool

    class HostNameMemory(FileMemory):
        """The memory of a `hostname`. `name` is the name in the running kernel."""

        name: str

    class LinkMemory(Memory):
        """The memory of a `symlink`."""

        path: str
        was: PathRecord | None

    class AclMemory(TypedDict):
        """The memory of an `acl`: the entries for users and groups, such as ``user:deploy:r-x``."""

        entries: list[str]

    class ValueMemory(TypedDict):
        """The memory of an `xattr` or `capabilities`: the former value as text; None if there was none."""

        value: str | None

    class HardLinkMemory(LinkMemory):
        """The memory of a `hard_link`. `linked` tells whether the path was a name of the target already."""

        linked: bool

    class TreeMemory(Memory):
        """A directory and its entries.

        :ivar inside: the former entries: relative path → record
        :ivar source: the entries of the node's source at the first apply
        :ivar complete: whether `inside` has all former entries
        """

        path: str
        inside: Mapping[str, PathRecord]
        source: Sequence[str]
        complete: NotRequired[bool]

    class DirectoryMemory(TreeMemory):
        """The memory of a `directory`. `above` has the missing parent directories, the nearest first."""

        was: PathRecord | None
        above: list[str]

    class RemovedLine(TypedDict):
        """A former line of a file, with its position among the lines that stay.

        :ivar end: its line end
        :ivar at: the number of other lines before it
        :ivar above: the nearest other line before it: its text, and how many lines up to it have this text
        :ivar below: the next other line, in the same form
        """

        text: str
        end: str
        at: int
        above: Sequence[Any] | None
        below: Sequence[Any] | None

    class TextMemory(BackedUp):
        """What the memories of nodes that edit parts of a file have in common.

        :ivar last: the last line of the file, if it had no line end
        :ivar was: mode and owner of the file, if the node sets them
        """

        exists: bool
        empty: bool
        last: str | None
        was: NotRequired[PathRecord]

    class LineMemory(TextMemory):
        """The memory of a `line_in_file`."""

        lines: list[RemovedLine]

    class AuthorizedKeyMemory(LineMemory):
        """The memory of an `authorized_key`. `made` tells whether the directory of the file was missing."""

        made: bool

    class AuthorizedKeysMemory(FileMemory):
        """The memory of an `authorized_key` with `all_keys`. `made` tells whether the directory was missing."""

        made: bool

    class CheckoutMemory(TypedDict):
        """The memory of a `git_checkout`: the former commit, branch and repository; "" for none.

        :ivar exists: whether the directory existed
        """

        path: str
        exists: bool
        commit: str
        branch: str
        url: str

    class VenvContext(TypedDict):
        """The other distributions of a virtual environment."""

        others: list[str]

    class VenvMemory(TypedDict):
        """The memory of a `python_venv`.

        :ivar exists: whether there was an environment
        :ivar directory: whether the directory existed
        :ivar packages: the distributions of the node that were installed: name → version
        """

        path: str
        exists: bool
        directory: bool
        packages: dict[str, str]
        context: VenvContext

    class EntryMemory(TypedDict):
        """The memory of an object that is an entry of a facet."""

        entry: Fields | None

    class RoleMemory(EntryMemory):
        """The memory of a `postgresql_user`. `password` tells whether the node sets the password."""

        password: bool

    class GrantMemory(TypedDict):
        """The memory of a `postgresql_grant`: object → those privileges of the node that the role had."""

        held: dict[str, list[str]]

    class PrivateKeyMemory(TypedDict):
        """The memory of a `tls_key`. `was` has no content, unless the node removes the key."""

        path: str
        was: PathRecord | None

    class SysctlMemory(LineMemory):
        """The memory of a `sysctl`. `value` is the running value."""

        value: str | None

    class MountMemory(LineMemory):
        """The memory of a `mount`. `mounted` tells whether something was mounted there."""

        mounted: bool

    class BlockMemory(TextMemory):
        """The memory of a `block_in_file`. `block` has the former block with its markers; it is empty without one."""

        begin: str
        end: str
        block: list[RemovedLine]

    class Replacement(TypedDict):
        """The attributes of a `replace` that define what it replaces."""

        pattern: str
        replacement: str
        after: str | None
        before: str | None

    class ReplaceContext(TypedDict):
        """The file before a `replace` changed it; None if its content is not recorded."""

        file: PathRecord | None

    class ReplaceMemory(TextMemory):
        """The memory of a `replace`. `lines` has the lines that it changes."""

        lines: list[str]
        context: ReplaceContext

    class KeyMemory(ReplaceMemory):
        """The memory of an `ini_key`, `json_key`, `toml_key` or `yaml_key`."""

    class CommandMemory(TypedDict):
        """The memory of a `command`. `done` tells whether its result existed before; None if it has no `undo`."""

        done: bool | None

    class UnitMemory(TypedDict, total=False):
        """The memory of a `service`. `target` is the unit behind an alias. It is empty if there was no such unit."""

        active: str | None
        enabled: str | None
        target: str
        level: str

    class GroupMemory(TypedDict):
        """The memory of a `group`."""

        entry: Fields | None

    class UserMemory(Memory):
        """The memory of a `user`.

        :ivar own: the group with the user's name
        :ivar password: whether the node sets the password
        :ivar group: the name of the primary group
        :ivar was: the home directory, if the node removes it
        :ivar inside: the entries of this home directory
        """

        entry: Fields | None
        own: Fields | None
        password: bool
        group: NotRequired[str | None]
        home: str
        had_home: bool
        was: NotRequired[PathRecord | None]
        inside: NotRequired[Mapping[str, PathRecord]]

    class LearnedPackages(TypedDict, total=False):
        """What a `package` records after it was installed.

        :ivar brought: the packages that came with it
        :ivar upgraded: the packages that were upgraded for it → former and new version
        """

        brought: list[str]
        upgraded: dict[str, list[str]]

    class PackageMemory(Memory, LearnedPackages):
        """The memory of a `package`.

        :ivar auto: whether it was installed only because other packages needed it
        :ivar context: the other packages, one line each (see `package_snapshot.context`)
        :ivar gone: name and version of each package that the node removes
        :ivar automatic: those of them that were installed only because other packages needed them
        :ivar files: their configuration files
        :ivar replaced: name, version and mark (`auto`) of each package that the node may replace
        """

        entry: Fields | None
        replaced: NotRequired[list[tuple[str, str, bool]]]
        auto: bool
        context: Blob
        gone: NotRequired[list[list[str]]]
        automatic: NotRequired[list[str]]
        files: NotRequired[dict[str, PathRecord | None]]

    ManagedPackage = tuple[Attrs, PackageMemory]
    """The attributes of a managed `package`, and its memory."""

    class WantedPackage(TypedDict, total=False):
        """A package in a transaction and in the facet `asked`: its `version` (None: the newest), or that it is gone.

        :ivar options: options of the manager for the transaction; those of the last package apply
        :ivar replaces: packages that the transaction may remove
        """

        version: str | None
        gone: bool
        options: Sequence[str]
        replaces: Sequence[str]

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
        """

        name: str
        version: str | None
        others: Steps
        update: NotRequired[int]
        replaces: NotRequired[list[str]]
        replaced: NotRequired[list[str]]
        units: NotRequired[list[str]]
        held: NotRequired[bool]

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

    class ProcessFields(TypedDict):
        """A process. statecfg does not know `group`, `env` and `definition` of one that it did not start.

        :ivar env: the names of the variables in its environment
        :ivar definition: a digest of everything that the process was started with
        :ivar running: False for a program that ran once to its end
        """

        pathname: str
        args: list[str]
        user: str
        running: bool
        group: NotRequired[str]
        env: NotRequired[list[str]]
        definition: NotRequired[str]
        pid: NotRequired[int]
