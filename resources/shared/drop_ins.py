"""Whole files in directories that other programs read, such as /etc/cron.d: their check. The controller has the text.

Node types compute path, content, mode and owner in `to_wire` (see `drop_in_texts`). Snapshot and undo are those of
`files`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from statecfg.remote.graph.model import Action, Blob, HostNode
from statecfg.remote.machine.world import World
from statecfg.resources.shared import files, paths


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the file with the node's content, mode, owner and group.

    :raises CheckError: see `compare`
    """
    return compare(node, nodes, world, files.write)


def compare(node: HostNode, nodes: Mapping[str, HostNode], world: World, write: Callable[..., Action]) -> list[Action]:
    """Compare the file with the node's content, mode, owner and group.

    :param write: the op that writes the file, with the parameters of `files.write`
    :raises CheckError: if something else than a file is at the path, or if its directory does not exist
    """
    attrs, path = node.attrs, node.attrs["path"]
    stat = paths.look(world, path, determined=not attrs.get("absent"))
    files.check_type(path, stat, bool(attrs.get("absent")))
    if attrs.get("absent"):
        return [paths.remove(path)] if stat is not None else []
    if stat is None:
        paths.require_parent(world, path, node, nodes)
    mode, content = paths.mode_bits(attrs.get("mode")), Blob.of(attrs["content"])
    actions = paths.attribute_actions(world, path, stat, mode, node, nodes) if stat is not None else []
    if paths.needs_write(world, path, stat, content, actions, attrs.get("owner")):
        return [write(path, content, mode, attrs.get("owner"), attrs.get("group"), None, attrs.get("validate"))]
    return actions
