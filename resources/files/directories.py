"""Directories: the ops, the snapshot and its restoration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from statecfg.remote.graph.model import Action, ActionSpec, Blob, CheckError, HostNode, Unknown
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, Stat, World
from statecfg.resources.shared import paths, restore, snapshot

if TYPE_CHECKING:

    class DirectoryMemory(snapshot.TreeMemory):
        """The memory of a `directory`. `above` has the missing parent directories, the nearest first."""

        was: snapshot.PathRecord | None
        above: list[str]


@op
def mkdir(
    machine: Machine,
    path: str,
    mode: int | None = None,
    owner: str | None = None,
    group: str | None = None,
    parents: bool = False,
) -> Result:
    """Create a directory."""
    return machine.mkdir(path, mode, owner, group, parents)


def own_actions(
    world: World, path: str, stat: Stat | None, node: HostNode, nodes: Mapping[str, HostNode]
) -> list[Action]:
    """Return what creates the directory, or sets its mode and owner.

    :raises CheckError: if the path is not a directory, or its parent directory is missing
    """
    mode, parents = paths.mode_bits(node.attrs.get("mode"), stat, True), bool(node.attrs.get("parents"))
    if stat is None:
        if not parents:
            paths.require_parent(world, path, node, nodes)
        owner, group = paths.owners(world, node, nodes)
        return [mkdir(path, mode, owner, group, parents)]
    if stat.file_type != "directory":
        help = "follow: true manages the directory that it points to" if stat.file_type == "symlink" else ""
        paths.refuse(path, stat, "a directory", help)
    return paths.attribute_actions(world, path, stat, mode, node, nodes)


def removal(world: World, path: str, recursive: bool) -> list[Action]:
    """Return what removes the directory.

    :raises CheckError: if it is not a directory, or if it is not empty and `recursive` is false
    """
    stat = world.stat(path)
    if stat is None:
        return []
    if stat.file_type != "directory":
        paths.refuse(path, stat, "a directory", f"a {stat.file_type} node with absent: true removes it")
    inside = [] if recursive else world.listdir(path)
    if inside:
        listed = ", ".join(inside[:3]) + (f" and {len(inside) - 3} more" if len(inside) > 3 else "")
        raise CheckError(f"{path} is not empty ({listed}); recursive: true removes it with its content")
    return [paths.remove(path, recursive)]


def blobs(node: HostNode, world: World) -> list[Blob]:
    """Return the content of the source's files that differ on the host or are missing there."""
    lacking = []
    for name, entry in (node.attrs.get("tree") or {}).items():
        if entry["kind"] == "file":
            try:
                if world.digest(node.attrs["path"] + "/" + name) == entry["content"].sha256:
                    continue
            except (OSError, Unknown):  # missing or not known yet: the content is needed
                pass
            lacking.append(entry["content"])
    return lacking


def remember(node: HostNode, world: World) -> DirectoryMemory:
    """Record the directory and everything in it that the node may replace or remove."""
    attrs = node.attrs
    path = snapshot.followed(world, attrs["path"], bool(attrs.get("follow")))
    snap = snapshot.Snapshot(world)
    was, tree = snap.entry(path), attrs.get("tree") or {}
    inside: dict[str, snapshot.PathRecord] = {}
    complete = was is None
    if was is not None and was["kind"] == "directory":
        try:
            if attrs.get("purge") or attrs.get("recursive"):
                inside = snap.inside(path)
            elif tree:
                inside = snap.inside(path, tree)
            complete = bool(tree or attrs.get("purge") or attrs.get("recursive"))
        except LookupError as problem:
            snap.lost.append(f"{problem}: its content is not recorded")
    memory: DirectoryMemory = {
        "path": path,
        "was": was,
        "above": snapshot.missing_above(world, path),
        "inside": inside,
        "complete": complete,
        "source": sorted(tree),
    }
    return snap.with_lost(memory)


def undo(
    node: HostNode, memory: DirectoryMemory, world: World, to_remove: Mapping[str, HostNode] | None = None
) -> ActionSpec:
    """Restore what was there before, directories first. Then remove what the node created, directories last."""
    earlier = getattr(node, "earlier", ())  # what is left of these stays
    later = {name: each for name, each in (to_remove or {}).items() if name not in earlier}
    restoring = restore.Restore(world, memory, later)
    attrs, path, was = node.attrs, memory["path"], memory["was"]
    now = world.stat(path)
    if attrs.get("absent"):
        if was is not None:
            if attrs.get("recursive") and not memory["complete"]:
                restoring.left.append(f"the content of {path} is not restored: it is unknown")
            restoring.back_if_missing(path, was)
            restore.bring_back(restoring, memory, attrs)
        return restoring.spec()
    if now is not None and now.file_type != "directory":
        restoring.left.append(f"{path} is now {paths.FILE_TYPES[now.file_type]}: it stays")
        return restoring.spec()
    if now is None and was is not None:
        restoring.back_if_missing(path, was)
    restore.bring_back(restoring, memory, attrs)
    if now is not None and was is not None:
        restoring.attributes(path, now, was, restore.managed_attributes(attrs), attrs)
    elif now is not None:
        restoring.remove(path, now)
    restoring.remove_above(path, memory["above"])
    return restoring.spec()
