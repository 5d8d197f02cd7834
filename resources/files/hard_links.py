"""Hard links: the op, the checks of the target, the snapshot and its restoration."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import TYPE_CHECKING

from statecfg.remote.graph.model import ActionSpec, CheckError, HostNode, required
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result, error
from statecfg.remote.machine import hard_links
from statecfg.remote.machine.world import Machine, Stat, World
from statecfg.resources.shared import paths, restore, snapshot, tree

if TYPE_CHECKING:
    from statecfg.resources.files import links

    class HardLinkMemory(links.LinkMemory):
        """The memory of a `hard_link`. `linked` tells whether the path was a name of the target already."""

        linked: bool


CREATING = ("file", "download", "hard_link")  # node types that create a file at their path


@op
def hard_link(machine: Machine, path: str, target: str, replace: bool | None = None) -> Result:
    """Create the link. With `replace`, replace another file or a symbolic link."""
    now = machine.apparent(path)
    if now is not None and not replace and not same(now, machine.apparent(target)):
        return error(f"{path} exists: this run created it; replace: true replaces it with the hard link")
    return hard_links.create(machine, path, target)


def target(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> Stat:
    """Return the Stat of the file to link.

    :raises CheckError: if it is not a file, does not exist, or another node creates it that the node does not require
    """
    path = node.attrs["target"]
    stat = world.stat(path)
    if stat is None or stat.identity is None:
        for name, other in sorted(nodes.items()):
            creates = other.attrs.get("path") == path and other.type in CREATING and not other.attrs.get("absent")
            if creates and name not in required(node, nodes):
                raise CheckError(f"{name} creates {path}: add it to requires")
    if stat is None:
        raise CheckError(f"file {path} does not exist; require the node that creates it")
    if stat.file_type != "file":
        help = "name the file that it points to" if stat.file_type == "symlink" else ""
        paths.refuse(path, stat, "a file", help)
    return stat


def same(one: Stat | None, other: Stat | None) -> bool:
    """Return whether two paths are names of one file. A planned path counts as another file."""
    if one is None or other is None or one.identity is None or other.identity is None:
        return False
    return bool(one.identity[:2] == other.identity[:2])


def require_one_device(world: World, path: str, target: str) -> None:
    """Check that two paths are in the same file system, as far as that is known.

    This compares their directories, because files of an overlay may show other devices.

    :raises CheckError: if they are not
    """
    directories = [world.apparent(posixpath.dirname(name)) for name in (path, target)]
    devices = {
        stat.identity[0] for stat in directories if stat is not None and stat.file_type == "directory" and stat.identity
    }
    if len(devices) > 1:
        raise CheckError(f"{path} and its target are on different file systems; use a symlink or a file")


def remember(node: HostNode, world: World) -> HardLinkMemory:
    """Record what is at the path, and whether it is the target already."""
    attrs = node.attrs
    snap = snapshot.Snapshot(world)
    stat, linked = world.stat(attrs["path"]), False
    if stat is not None and attrs.get("target") is not None:
        linked = same(stat, world.stat(attrs["target"]))
    memory: HardLinkMemory = {"path": attrs["path"], "was": snap.entry(attrs["path"]), "linked": linked}
    return snap.with_lost(memory)


def undo(node: HostNode, memory: HardLinkMemory, world: World) -> ActionSpec:
    """Restore what was there before, or remove the link."""
    restoring = restore.Restore(world, memory)
    attrs, path, was = node.attrs, memory["path"], memory["was"]
    if attrs.get("absent"):
        if was is not None:
            restoring.back_if_missing(path, was)
    elif not memory["linked"]:
        now = world.stat(path)
        replaced = same(now, world.stat(attrs["target"])) or (
            now is not None
            and was is not None
            and now.file_type == was["kind"] == "file"
            and restoring.differs(path, was, now)
        )
        if replaced and was is not None and "content" in was:
            # The path must lose its name of the target first: the target keeps its mode and owner, and the restored
            # file does not take over the target's access list.
            restoring.actions += [
                paths.remove(path),
                tree.put(path, was["content"], was["mode"], *restoring.owners(path, was)),
            ]
        else:
            restoring.back(path, was, ("file",))
    return restoring.spec()
