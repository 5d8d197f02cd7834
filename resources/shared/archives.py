"""Archives: read tar and zip files, refuse unsafe ones, and unpack them as a tree of files."""

from __future__ import annotations

import hashlib
import io
import posixpath
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from statecfg.remote.graph.model import Action, ActionSpec, Blob, CheckError, HostNode
from statecfg.remote.machine.world import World
from statecfg.resources.shared import directories, paths, records, restore, tree

if TYPE_CHECKING:
    from typing import NotRequired, TypedDict

    class PackedEntry(TypedDict):
        """An entry of an archive. A `file` has its digest and size, a `symlink` its target."""

        kind: str
        sha256: NotRequired[str]
        size: NotRequired[int]
        executable: NotRequired[bool]
        target: NotRequired[str]


MOST_BYTES = 4 << 30  # of all unpacked files
MOST_ENTRIES = 50_000
MOST_PACKED = 512 << 20  # bytes of an archive that is read on the host


class Archive:
    """An archive. It is opened when its content is needed.

    :param opened: returns the file as a stream
    :param strip: the number of leading components of each name to leave out
    """

    def __init__(self, opened: Callable[[], Any], strip: int) -> None:
        self.opened, self.strip = opened, strip
        self._file: Any = None
        self._members: dict[str, Any] = {}

    def members(self) -> Mapping[str, Any]:
        """Return name → member, in the order of the archive.

        :raises ValueError: if it is not an archive, or not a safe one
        """
        if self._file is None:
            stream = self.opened()
            import tarfile
            import zipfile

            try:
                self._file = zipfile.ZipFile(stream) if _is_zip(stream) else tarfile.open(fileobj=stream)
                listed = self._file.infolist() if hasattr(self._file, "infolist") else self._file.getmembers()
            except _failures() as problem:
                raise ValueError(f"it is not a readable tar or zip archive: {problem}") from None
            for member in listed:
                self._add(member)
            self._check_parents()
        return self._members

    def _add(self, member: Any) -> None:
        name = getattr(member, "filename", None) or member.name
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if name.startswith("/") or ".." in parts:
            raise ValueError(f"the name {name!r} leads out of the directory")
        if not _utf8(name):
            raise ValueError(f"the name {name!r} is not UTF-8")
        if len(self._members) >= MOST_ENTRIES:
            raise ValueError(f"it has more than {MOST_ENTRIES} entries")
        parts = parts[self.strip :]
        if parts:
            name = "/".join(parts)
            self._members.pop(name, None)  # a later entry replaces an earlier one, as in tar
            self._members[name] = member
            if _file_type(member) == "symlink":
                self._check_link(name, member)

    def _check_link(self, name: str, member: Any) -> None:
        target = self.target(member)
        inside = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
        if target.startswith("/") or not _utf8(target) or inside == ".." or inside.startswith("../"):
            raise ValueError(f"the link {name!r} to {target!r} leads out of the directory")

    def _check_parents(self) -> None:
        for name in list(self._members):
            above = posixpath.dirname(name)
            while above:
                member = self._members.get(above)
                if member is not None and _file_type(member) != "directory":
                    raise ValueError(f"{name!r} is inside {above!r}, which is not a directory")
                above = posixpath.dirname(above)

    def file_type(self, name: str) -> str:
        """Return the file type of a member."""
        return _file_type(self.members()[name])

    def target(self, member: Any) -> str:
        """Return the target of a symbolic link."""
        linked = getattr(member, "linkname", None)
        return str(linked) if linked is not None else self._file.read(member).decode("utf-8", "surrogateescape")

    def entries(self) -> dict[str, PackedEntry]:
        """Return what the archive contains: name → entry, with the digests of files.

        :raises ValueError: see `members`
        """
        found: dict[str, PackedEntry] = {}
        total = 0
        for name, member in self.members().items():
            above = posixpath.dirname(name)
            while above and above not in found:  # some archives do not list directories
                found[above] = {"kind": "directory"}
                above = posixpath.dirname(above)
            file_type = _file_type(member)
            found[name] = {"kind": file_type}
            if file_type == "symlink":
                found[name]["target"] = self.target(member)
            elif file_type == "file":
                digest, size = hashlib.sha256(), 0
                try:
                    for piece in self.chunks(name):
                        digest.update(piece)
                        size += len(piece)
                        if total + size > MOST_BYTES:
                            raise ValueError(f"its files have more than {MOST_BYTES} bytes")
                except LookupError as problem:
                    raise ValueError(str(problem)) from None
                total += size
                found[name]["sha256"], found[name]["size"] = digest.hexdigest(), size
                if _executable(member):
                    found[name]["executable"] = True
        return found

    def chunks(self, name: str, size: int = 1 << 18) -> Iterator[bytes]:
        """Yield the content of a file in pieces.

        :raises LookupError: if the archive is damaged
        """
        member = self.members()[name]
        read = self._file.open if hasattr(self._file, "infolist") else self._file.extractfile
        try:
            with read(member) as stream:
                piece = stream.read(size)
                while piece:
                    yield piece
                    piece = stream.read(size)
        except _failures() as problem:
            raise LookupError(f"{name!r} can't be read: {problem}") from None


class Packed(Blob):
    """A file in an archive."""

    __slots__ = ("archive", "name")

    def __init__(self, entry: PackedEntry, archive: Archive, name: str) -> None:
        Blob.__init__(self, entry["sha256"], entry["size"])
        self.archive, self.name = archive, name

    def chunks(self, size: int = 1 << 18) -> Iterator[bytes]:
        """Yield the content in pieces."""
        return self.archive.chunks(self.name, size)

    def read(self) -> bytes:
        """Return the content."""
        return b"".join(self.chunks())


def _failures() -> tuple[type[Exception], ...]:
    """Return the exceptions with which the standard library refuses an archive."""
    import tarfile
    import zipfile
    import zlib

    found = (OSError, EOFError, KeyError, RuntimeError, zlib.error, tarfile.TarError, zipfile.BadZipFile)
    try:
        from lzma import LZMAError
    except ImportError:  # a Python without xz
        return found
    return (*found, LZMAError)


def _is_zip(stream: Any) -> bool:
    start = stream.read(4)
    stream.seek(0)
    return bool(start in (b"PK\x03\x04", b"PK\x05\x06"))


def _utf8(name: str) -> bool:
    try:
        return bool(name.encode("utf-8"))
    except UnicodeEncodeError:
        return False


def _file_type(member: Any) -> str:
    """Return the file type of a member. A hard link is a file with the content of its target.

    :raises ValueError: for a device or pipe
    """
    if hasattr(member, "filename"):
        if member.filename.endswith("/"):
            return "directory"
        return "symlink" if member.external_attr >> 28 == 0o12 else "file"
    if member.isdir():
        return "directory"
    if member.issym():
        return "symlink"
    if member.isreg() or member.islnk():
        return "file"
    raise ValueError(f"{member.name!r} is neither a file, a directory nor a link")


def _executable(member: Any) -> bool:
    mode = member.external_attr >> 16 if hasattr(member, "filename") else member.mode
    return bool(mode & 0o100)


def packed(content: Blob, strip: int) -> dict[str, PackedEntry]:
    """Return what an archive of the project contains.

    :raises ValueError: if it can't be unpacked
    """
    return Archive(lambda: _opened(content), strip).entries()


def _opened(content: Blob) -> Any:
    return open(content.path, "rb") if content.data is None and content.path else io.BytesIO(content.read())


def read(attrs: records.Attrs, world: World) -> dict[str, tree.SourceEntry]:
    """Return the tree of a node's archive.

    :raises CheckError: if the archive can't be unpacked
    """
    content, entries, strip = attrs.get("content"), attrs.get("tree"), attrs.get("strip_components") or 0
    if content is not None:
        archive = Archive(lambda: _opened(content), strip)
    else:
        path = paths.followed(world, attrs["host_source"])
        stat = world.stat(path)
        if stat is None or stat.file_type != "file":
            raise CheckError(f"file {path} does not exist; require the node that creates it")
        if stat.size > MOST_PACKED:
            raise CheckError(f"{path} has {stat.size} bytes; statecfg reads at most {MOST_PACKED}")
        archive = Archive(lambda: io.BytesIO(world.read(path)), strip)
        try:
            entries = archive.entries()
        except ValueError as problem:
            raise CheckError(f"{path}: {problem}") from None
    found: dict[str, tree.SourceEntry] = {}
    for name, entry in (entries or {}).items():
        found[name] = {"kind": entry["kind"]}
        if entry["kind"] == "file":
            found[name]["content"] = Packed(entry, archive, name)
            found[name]["executable"] = bool(entry.get("executable"))
        elif entry["kind"] == "symlink":
            found[name]["target"] = entry["target"]
    return found


def with_tree(node: HostNode, world: World) -> HostNode:
    """Return the node of a `directory` whose source is the content of the archive."""
    return HostNode(node.provides, node.type, node.requires, {**node.attrs, "tree": read(node.attrs, world)})


def actions(world: World, node: HostNode, nodes: Mapping[str, HostNode]) -> list[Action]:
    """Return what unpacks the files that are missing or differ: directories first, then in the order of the archive.

    Compressed archives can only be read from the beginning to the end.
    """
    root = node.attrs["path"]
    for name, other in nodes.items():
        if node.attrs.get("host_source") and other.attrs.get("purge") and other.attrs.get("path") == root:
            message = "%s purges %s, but does not know what is in host_source; use source, or another directory"
            raise CheckError(message % (name, root))
    node = with_tree(node, world)
    found = tree.check(world, root, node, nodes)
    packed = next((action.args["content"] for action in found if action.op == "write"), None)
    if packed is None:
        return found
    try:
        names = packed.archive.members()
    except LookupError:  # the host has no archive, because it has all files: only their owners differ
        return found
    order = {posixpath.join(root, name): at for at, name in enumerate(names)}

    def sort_key(action: Action) -> tuple[bool, int]:
        directory = action.op == "mkdir"
        return not directory, 0 if directory else order.get(action.args["path"], -1)

    return sorted(found, key=sort_key)


def blobs(node: HostNode, world: World) -> list[Blob]:
    """Return the archive, if a file of it differs on the host or is missing there."""
    content = node.attrs.get("content")
    if content is None or not directories.blobs(with_tree(node, world), world):
        return []
    return [content]


def remember(node: HostNode, world: World) -> directories.DirectoryMemory:
    """Record everything that the archive may replace."""
    return directories.remember(with_tree(node, world), world)


def learn(node: HostNode, memory: directories.DirectoryMemory, world: World) -> Mapping[str, Any]:
    """Record what came from the archive, because the node itself has only the archive."""
    entries = read(node.attrs, world)
    ours: dict[str, records.Fields] = {}
    for name, entry in entries.items():
        path = posixpath.join(node.attrs["path"], name)
        stat = world.stat(path)
        if entry["kind"] == "file" and stat is not None and stat.file_type == "file":
            ours[name] = {
                "content": f"sha256:{world.digest(path)} ({stat.size} bytes)",
                "executable": bool(entry.get("executable")),
            }
        elif entry["kind"] == "symlink":
            ours[name] = {"target": entry["target"]}
    return {"source": sorted({*memory["source"], *entries}), "ours": ours}


def undo(
    node: HostNode, memory: directories.DirectoryMemory, world: World, to_remove: Mapping[str, HostNode] | None = None
) -> ActionSpec:
    """Restore what the archive replaced, and remove what it brought."""
    restoring = restore.Restore(world, memory, to_remove)
    restore.bring_back(restoring, memory, node.attrs)
    return restoring.spec()
