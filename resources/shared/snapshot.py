"""Snapshots of paths: record what exists before a node changes it."""

from __future__ import annotations

import posixpath
from collections.abc import Container
from typing import TYPE_CHECKING

from statecfg.remote.graph.model import Blob, CheckError
from statecfg.remote.machine.changes import DIFFED
from statecfg.remote.machine.world import Stat, World
from statecfg.resources.shared import paths

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NotRequired, TypedDict, TypeVar

    class PathRecord(TypedDict):
        """A path before a node changed it. Entries of a directory that the node does not touch have only `kind`."""

        kind: str
        mode: NotRequired[int]
        owner: NotRequired[str]
        group: NotRequired[str]
        target: NotRequired[str]
        content: NotRequired[Blob]

    class Backup(TypedDict):
        """The path of a node's backup before the node wrote it."""

        suffix: str
        was: PathRecord | None

    class Memory(TypedDict, total=False):
        """What `remember` returns.

        :ivar lost: messages about what it could not record
        :ivar untouched: added for an undo: the thing is as after the last apply
        """

        lost: list[str]
        untouched: bool

    M = TypeVar("M", bound=Memory)

    class BackedUp(Memory):
        """The memory of a node that may keep a backup of its file.

        :ivar copy: inode, modification time (ns) and size of the backup after the last apply that changed the node
        """

        path: str
        backup: NotRequired[Backup]
        copy: NotRequired[list[int] | None]

    class TreeMemory(Memory):
        """A directory and its entries.

        :ivar inside: the former entries: relative path → record
        :ivar source: the entries of the node's source at the first apply
        :ivar complete: whether `inside` has all former entries
        :ivar ours: the content and targets that the node wrote, if its attributes don't have them
        """

        path: str
        inside: Mapping[str, PathRecord]
        source: Sequence[str]
        complete: NotRequired[bool]
        ours: NotRequired[Mapping[str, Mapping[str, str]]]


REMEMBERED = 64 << 20  # bytes of content that are kept for one node
SMALL = 1 << 20  # bytes of content that are kept of a file whose content the node does not set
DEEPEST = 200  # levels of directories that are kept for one node
ENTRIES = 10000  # files, directories and links that are kept for one node


class Snapshot:
    """Records what is at paths, up to the limits for one node."""

    def __init__(self, world: World, room: int = REMEMBERED) -> None:
        self.world, self.room, self.entries = world, room, 0
        self.lost: list[str] = []

    def entry(self, path: str) -> PathRecord | None:
        """Return what is at a path, with its content, or None."""
        stat = self.world.stat(path)
        return None if stat is None else self._full(path, stat)

    def _full(self, path: str, stat: Stat) -> PathRecord:
        record: PathRecord = {
            "kind": stat.file_type,
            "mode": stat.mode,
            "owner": stat.owner,
            "group": stat.group,
        }
        if stat.file_type == "symlink":
            record["target"] = stat.target
        elif stat.file_type == "file":
            content = self._content(path, stat.size)
            if content is not None:
                record["content"] = content
        elif stat.file_type == "other":
            self.lost.append(f"{path}, {paths.FILE_TYPES['other']}, is not recorded")
        return record

    def _content(self, path: str, size: int) -> Blob | None:
        if size > self.room:
            self.lost.append(f"the content of {path} is not recorded: {size} bytes are too many")
            return None
        try:
            # A large file is never in memory: it is read again when its content is stored.
            large = size > DIFFED
            content = Blob(self.world.digest(path), size, path=path) if large else Blob.of(self.world.read(path))
        except PermissionError:
            self.lost.append(f"the content of {path} is not recorded: statecfg may not read it")
            return None
        self.room -= content.size
        return content

    def inside(self, root: str, wanted: Container[str] | None = None) -> dict[str, PathRecord]:
        """Return everything below a directory: relative path → record.

        :param wanted: paths to record in full; of the others, only the file type is recorded (None: all in full)
        :raises LookupError: if there are too many entries or levels
        """
        inside: dict[str, PathRecord] = {}
        waiting = [""]
        while waiting:
            above = waiting.pop()
            for name in self._names(posixpath.join(root, above)):
                path = posixpath.join(above, name)
                stat = self.world.stat(posixpath.join(root, path))
                if stat is None:
                    continue
                if path.count("/") > DEEPEST:
                    raise LookupError(f"{root} holds directories more than {DEEPEST} levels deep")
                self.entries += 1
                if self.entries > ENTRIES:
                    raise LookupError(f"{root} holds more than {ENTRIES} files")
                whole = wanted is None or path in wanted
                inside[path] = self._full(posixpath.join(root, path), stat) if whole else {"kind": stat.file_type}
                if stat.file_type == "directory":
                    waiting.append(path)
        return inside

    def _names(self, path: str) -> list[str]:
        try:
            return self.world.listdir(path)
        except PermissionError:
            self.lost.append(f"the content of {path} is not recorded: statecfg may not read it")
            return []

    def kept(self, path: str, suffix: str) -> Backup:
        """Return what is at the path of the node's backup."""
        return {"suffix": suffix, "was": self.entry(path + suffix)}

    def with_lost(self, memory: M) -> M:
        """Add the messages about what could not be recorded to a memory, and return it."""
        if self.lost:
            memory["lost"] = self.lost
        return memory


def missing_above(world: World, path: str) -> list[str]:
    """Return the missing directories above a path, the nearest first."""
    directories = []
    above = posixpath.dirname(path)
    while world.stat(above) is None:
        directories.append(above)
        above = posixpath.dirname(above)
    return directories


def followed(world: World, path: str, follow: bool) -> str:
    """Return the path that a node manages, or the path itself if its link cannot be followed."""
    try:
        return paths.followed(world, path) if follow else path
    except CheckError:
        return path
