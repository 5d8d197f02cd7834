"""Nodes that can't all be true together although each is about a thing of its own."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping

from statecfg.graph.claims import normal
from statecfg.graph.graph import Node
from statecfg.problems import Problem, problem
from statecfg.remote.graph.values import show

# Node types that give what stands at their `path` a mode, an owner and a group; several of them may share a path.
SHARING = ("file", "line_in_file")
GIVEN = ("mode", "owner", "group")
PRESENT = ("file", "directory", "symlink")


def check(nodes: Iterable[Node]) -> list[Problem]:
    """Return a problem for each pair of nodes that contradict each other."""
    paths: dict[str, list[Node]] = {}
    for node in nodes:
        path = node.attrs.get("path")
        if not node.broken and (node.type in PRESENT or node.type in SHARING) and isinstance(path, str):
            paths.setdefault(normal(path), []).append(node)
    return [*_different(paths), *_inside_absent(paths)]


def _different(paths: Mapping[str, list[Node]]) -> Iterable[Problem]:
    """Yield a problem where nodes give one file different modes, owners or groups."""
    for path, group in paths.items():
        sharing = [node for node in group if node.type in SHARING] if len(group) > 1 else []
        for field in GIVEN:
            given = [node for node in sharing if node.attrs.get(field) is not None]
            other = next((node for node in given if _shown(node, field) != _shown(given[0], field)), None)
            if other is not None:
                one = given[0]
                detail = f"{one.provides} gives {path} the {field} {_shown(one, field)}"
                detail += f", {other.provides} gives it {_shown(other, field)}"
                yield problem("SC0121", detail, f"give the {field} in one of them", one.position, other.position)


def _shown(node: Node, field: str) -> str:
    """Return an attribute for a message, equal values as equal text."""
    value = node.attrs[field]
    return f"{value:04o}" if isinstance(value, int) else show(value)


def _inside_absent(paths: Mapping[str, list[Node]]) -> Iterable[Problem]:
    """Yield a problem where something is to be present in a directory that is to be absent."""
    absent = {
        path: node
        for path, group in paths.items()
        for node in group
        if node.type == "directory" and node.attrs.get("absent")
    }
    for path, group in paths.items() if absent else ():
        present = next((node for node in group if not node.attrs.get("absent")), None)
        above = posixpath.dirname(path)
        while present is not None and above != "/":
            if above in absent:
                detail = f"{present.provides} is to be present in {above}, which {absent[above].provides} removes"
                help = "take `absent: true` out of the directory, or remove what is in it as well"
                yield problem("SC0121", detail, help, present.position, absent[above].position)
                break
            above = posixpath.dirname(above)
