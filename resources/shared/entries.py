"""One entry in a file that consists of lines, such as a host in /etc/hosts.

A node type defines the line of its node and how to recognize the line that it replaces. Everything else is that of
`line_in_file`: the check, the snapshot and the undo.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from statecfg.remote.graph.model import Action, ActionSpec, HostNode
from statecfg.remote.graph.nodetype import NodeType
from statecfg.remote.machine.world import World
from statecfg.resources.shared import line_edits, paths, text_files

NEW = ("mode", "owner", "group")


def entry(node: HostNode, path: str, line: str, match: str, **attrs: object) -> HostNode:
    """Return a node as `line_in_file` would declare it.

    :param line: the wanted line
    :param match: a regular expression for the line of this entry, with any values
    :param attrs: other attributes of `line_in_file`, such as the mode of a new file
    """
    absent = bool(node.attrs.get("absent"))
    wanted = {"path": path, "line": None if absent else line, "match": match, "absent": absent, "create": True, **attrs}
    return HostNode(node.provides, node.type, node.requires, wanted)


def register(node_type: NodeType[...], wanted: Callable[[HostNode, World], HostNode]) -> None:
    """Let the nodes of a type be entries.

    :param wanted: returns the `entry` of a node
    """
    node_type.check(lambda node, nodes, world: check(wanted(node, world), nodes, world))
    node_type.remember(lambda node, world: remember(wanted(node, world), world))
    node_type.undo(lambda node, memory, world: undo(wanted(node, world), memory, world))


def check(wanted: HostNode, nodes: Mapping[str, HostNode], world: World, made: bool = False) -> list[Action]:
    """Return what puts the entry into its file, or removes it.

    :param wanted: the result of `entry`
    :param made: whether an earlier action of the node creates the directory of the file
    :raises CheckError: if something other than a file is at the path, or its directory does not exist
    """
    path, stat = text_files.target(wanted, nodes, world, "put the line into its content")
    if wanted.attrs["absent"]:
        return line_edits.removal(world, path, wanted.attrs) if stat is not None else []
    if stat is None and not made:
        paths.require_parent(world, path, wanted, nodes)
    # Mode and owner are those of a new file. Of an existing file, they stay.
    attrs = {name: value for name, value in wanted.attrs.items() if stat is None or name not in NEW}
    return line_edits.insertion(
        world, path, stat, HostNode(wanted.provides, wanted.type, wanted.requires, attrs), nodes
    )


def remember(wanted: HostNode, world: World) -> line_edits.LineMemory:
    """Record the lines that the entry may replace."""
    return line_edits.remember(wanted, world)


def undo(wanted: HostNode, memory: line_edits.LineMemory, world: World) -> ActionSpec:
    """Remove the entry, or restore the one that it replaced. Other changes of the file stay."""
    return line_edits.undo(wanted, memory, world)
