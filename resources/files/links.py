"""Symbolic links: the op, the snapshot and its restoration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statecfg.remote.graph.model import ActionSpec, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result, error
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import restore, snapshot

if TYPE_CHECKING:

    class LinkMemory(snapshot.Memory):
        """The memory of a `symlink`."""

        path: str
        was: snapshot.PathRecord | None


@op
def link(
    machine: Machine,
    path: str,
    target: str,
    owner: str | None,
    group: str | None,
    replace: bool | None = None,
) -> Result:
    """Create the link. Replace a link with another target, and with `replace` also a file."""
    now = machine.apparent(path)
    if now is not None and now.file_type == "file" and not replace:
        return error(f"{path} is a file, not a link: this run created it; replace: true replaces it with the link")
    return machine.symlink(path, target, owner=owner, group=group)


def remember(node: HostNode, world: World) -> LinkMemory:
    """Record the link, or the file in its place."""
    path = node.attrs["path"]
    snap = snapshot.Snapshot(world)
    memory: LinkMemory = {"path": path, "was": snap.entry(path)}
    return snap.with_lost(memory)


def undo(node: HostNode, memory: LinkMemory, world: World) -> ActionSpec:
    """Restore what was there before, or remove the link."""
    restoring = restore.Restore(world, memory)
    if not node.attrs.get("absent"):
        restoring.back(memory["path"], memory["was"], ("symlink",), node.attrs)
    elif memory["was"] is not None:
        restoring.back_if_missing(memory["path"], memory["was"])
    return restoring.spec()
