"""The restoration of what a `remove` has removed."""

from __future__ import annotations

from statecfg.remote.graph.model import ActionSpec, HostNode
from statecfg.remote.machine.world import World
from statecfg.resources.files import directories
from statecfg.resources.shared import restore


def undo(node: HostNode, memory: directories.DirectoryMemory, world: World) -> ActionSpec:
    """Restore what was at the path."""
    was = memory["was"]
    if was is None or was["kind"] == "directory":
        return directories.undo(node, memory, world)
    restoring = restore.Restore(world, memory)
    restoring.back_if_missing(memory["path"], was)
    return restoring.spec()
