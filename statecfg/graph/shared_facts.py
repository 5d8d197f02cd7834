"""Find facts with two owners, such as the UID of two users, or a member that a group and a user both decide on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from statecfg.graph.host_items import has_sample
from statecfg.graph.nodes import Node
from statecfg.problems import Problem, problem
from statecfg.remote.graph.nodetype import REGISTRY

FILES = "path:"


def check(nodes: Sequence[Node]) -> Iterable[Problem]:
    """Yield a problem for each fact that two nodes own, see `NodeType.owns`."""
    exact: dict[str, Node] = {}
    whole: dict[str, Node] = {}
    items: list[tuple[str, str, Node]] = []
    declaring = {name for name, node_type in REGISTRY.items() if "owns" in node_type.methods}
    for node in nodes:
        if node.broken or node.type not in declaring:
            continue
        for claim in REGISTRY[node.type].owned(node):
            kind, _, name = claim.partition(":")
            if node.attrs.get("absent") and kind != "whole":
                continue
            if kind in ("path", "inside") or name.startswith(FILES):  # several nodes can have files in a directory
                continue
            if "for_each_host" in node.options and has_sample(claim):
                continue
            if kind == "whole":
                whole[name] = node
            elif kind in ("part", "adds"):
                items.append((*name.partition(": ")[::2], node))
            else:
                other = exact.setdefault(claim, node)
                if other.provides != node.provides:
                    detail = f"{other.provides} and {node.provides} have the same {kind}: {name}"
                    yield problem("SC0114", detail, "change it in one of them", *other.positions, *node.positions)
    for name, item, node in items:
        owner = whole.get(name, node)
        if owner.provides == node.provides:
            continue
        detail = f"{owner.provides} manages all of {name}, and {node.provides} adds {item:.60} to them"
        help = "write the list in one of the two nodes, and leave it out of the other"
        if owner.attrs.get("absent"):
            detail = f"{owner.provides} is absent, and {node.provides} adds {item:.60} to {name}"
            help = "keep one of the two nodes"
        yield problem("SC0121", detail, help, *owner.positions, *node.positions)
