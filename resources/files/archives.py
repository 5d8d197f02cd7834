"""Archives as trees of files: their check, and the undo."""

from __future__ import annotations

import hashlib
import io
import posixpath
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from statecfg.remote.graph.model import Action, ActionSpec, Blob, CheckError, HostNode
from statecfg.remote.machine.world import World
from statecfg.resources.files import directories
from statecfg.resources.files.unpacking import Archive
from statecfg.resources.shared import paths, records, restore, tree

if TYPE_CHECKING:
    from typing import NotRequired, TypedDict

    class PackedEntry(TypedDict):
        """An entry of an archive. A `file` has its digest and size, a `symlink` its target."""

        kind: str
        sha256: NotRequired[str]
        size: NotRequired[int]
        executable: NotRequired[bool]
        target: NotRequired[str]


MOST_PACKED = 512 << 20  # bytes of an archive that is read on the host


class Packed(Blob):
    """A file in an archive."""

    __slots__ = ("archive", "name")

    def __init__(self, entry: PackedEntry, archive: Archive, name: str) -> None:
        Blob.__init__(self, entry["sha256"], entry["size"])
        self.archive, self.name = archive, name

    def chunks(self, size: int = 1 << 18) -> Iterator[bytes]:
        """Yield the content in pieces.

        :raises LookupError: if the archive is damaged, or has changed
        """
        digest = hashlib.sha256()
        for piece in self.archive.chunks(self.name, size):
            digest.update(piece)
            yield piece
        if digest.hexdigest() != self.sha256:
            raise LookupError(f"{self.name!r} has other content by now")

    def read(self) -> bytes:
        """Return the content."""
        return b"".join(self.chunks())


def entries(archive: Archive) -> dict[str, PackedEntry]:
    """Return the entries of an archive by name, with the digests of files.

    :raises ValueError: see `Archive.members`
    """
    found: dict[str, PackedEntry] = {}
    for name, member in archive.members(digests=True).items():
        above = posixpath.dirname(name)
        while above and above not in found:  # some archives do not list directories
            found[above] = {"kind": "directory"}
            above = posixpath.dirname(above)
        found[name] = {"kind": member.kind}
        if member.kind == "symlink":
            found[name]["target"] = member.target
        elif member.kind == "file":
            found[name]["sha256"], found[name]["size"] = member.digest, member.size
            if member.executable:
                found[name]["executable"] = True
    return found


def packed(content: Blob, strip: int) -> dict[str, PackedEntry]:
    """Return what an archive of the project contains.

    :raises ValueError: if it can't be unpacked
    """
    return entries(Archive(lambda: _opened(content), strip))


def _opened(content: Blob) -> Any:
    return open(content.path, "rb") if content.data is None and content.path else io.BytesIO(content.read())


def read(attrs: records.Attrs, world: World) -> dict[str, tree.SourceEntry]:
    """Return the tree of a node's archive.

    :raises CheckError: if the archive can't be unpacked
    """
    content, listed, strip = attrs.get("content"), attrs.get("tree"), attrs.get("strip_components") or 0
    if content is not None:
        archive = Archive(lambda: _opened(content), strip)
    else:
        path = paths.followed(world, attrs["host_source"])
        stat = world.stat(path)
        if stat is None or stat.file_type != "file":
            raise CheckError(f"file {path} does not exist; require the node that creates it")
        if stat.size > MOST_PACKED:
            raise CheckError(f"{path} has {stat.size} bytes; statecfg reads at most {MOST_PACKED}")
        archive = Archive(lambda: world.open(path), strip)
        try:
            listed = entries(archive)
        except ValueError as problem:
            raise CheckError(f"{path}: {problem}") from None
    found: dict[str, tree.SourceEntry] = {}
    for name, entry in (listed or {}).items():
        found[name] = {"kind": entry["kind"]}
        if entry["kind"] == "file":
            found[name]["content"] = Packed(entry, archive, name)
            found[name]["executable"] = bool(entry.get("executable"))
        elif entry["kind"] == "symlink":
            found[name]["target"] = entry["target"]
    return found


def with_tree(node: HostNode, world: World) -> HostNode:
    """Return the node of a `directory` whose source is the content of the archive. It follows a link at its path."""
    more = {"tree": read(node.attrs, world), "follow": True}
    return HostNode(node.provides, node.type, node.requires, {**node.attrs, **more})


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
