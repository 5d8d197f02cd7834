"""What the ledger remembers for `undo` of nodes that manage software and its servers. Only for type checkers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # hosts get no annotations, and need no types
    from typing import NotRequired, TypedDict

    from statecfg.remote.graph.model import Blob
    from statecfg.resources.shared import records

    Step = tuple[list[str], records.Effect]  # a program, and what it changes

    class ReleaseMemory(records.Memory):
        """The memory of a `release_binary`.

        :ivar former: what was at the path of its first version: path → record
        :ivar installed: the files of the versions to which it linked
        :ivar ours: the programs that it installed: path → `new` or `replaced`, and the checksum
        """

        path: str
        was: records.PathRecord | None
        former: dict[str, records.PathRecord | None]
        installed: list[str]
        ours: NotRequired[dict[str, str]]

    class MariadbUserMemory(records.EntryMemory):
        """The memory of a `mariadb_user`. `login` tells whether the node sets how the user logs in."""

        login: bool

    class RedisMemory(records.LineMemory):
        """The memory of a `redis_setting`. `value` is the running value; None if it is unknown or a password."""

        value: str | None

    class RpmRepositoryMemory(TypedDict):
        """The memory of a repository of dnf or zypper: its files, and the keys that rpm accepted already."""

        file: records.FileMemory
        key: records.FileMemory | None
        keys: list[str]

    class PacmanRepositoryMemory(TypedDict):
        """The memory of a `pacman_repository`.

        :ivar included: whether pacman.conf included its file
        :ivar lists: whether pacman had its lists
        """

        file: records.FileMemory
        included: bool
        lists: bool

    class DnfModuleMemory(TypedDict):
        """The memory of a `dnf_module`. `was` is its state and stream; None if there was no choice.

        :ivar context: all packages, one a line, if the node has profiles
        """

        was: records.Fields | None
        context: NotRequired[Blob]

    class DnfGroupMemory(TypedDict):
        """The memory of a `dnf_group`. `context` lists all packages, one a line."""

        installed: bool
        context: Blob

    class NpmMemory(TypedDict):
        """The memory of an `npm_package`. `version` is the installed version; None if it was missing."""

        version: str | None

    class GemMemory(TypedDict):
        """The memory of a `gem`.

        :ivar versions: the versions that were installed before
        :ivar installed: the versions that the node installed
        """

        versions: list[str]
        installed: list[str]

    class ImageMemory(TypedDict):
        """The memory of a `container_image`.

        :ivar id: the image that had the name before
        :ivar new: the image that the node brought
        """

        id: str | None
        new: str | None

    class ContainerMemory(TypedDict):
        """The memory of a `container`.

        :ivar state: `running` or `stopped`; None if there was none
        :ivar foreign: whether statecfg had not created it
        """

        state: str | None
        foreign: bool

    class ComposeMemory(TypedDict):
        """The memory of a `compose_project`. `services` had containers before."""

        services: list[str]
