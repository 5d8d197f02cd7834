"""Merge declarations of one node, and describe why declarations can't be merged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from pyrsistent import PVector, pvector

from statecfg.graph import opaque
from statecfg.graph.nodes import Node, RoleUse
from statecfg.problems import Problem, SourceLocation, problem
from statecfg.remote.graph.wrong_values import show

FLAGS = ("protect", "allow_lockout", "take_over")
UNITED = ("tags", *FLAGS)  # the options of several declarations that are combined; other options must be equal
MAX_COMPARED = 3  # differing attributes that a message lists with their values
MAX_VALUE = 40  # characters; a message names an attribute with a longer value without the value


def differing(one: Node, other: Node) -> list[str]:
    """Return the names of the attributes and options that differ between two declarations of one node."""
    if one.attrs is other.attrs and one.options is other.options:
        return []
    pairs = ((one.attrs, other.attrs), (one.options, other.options))
    return [
        name
        for mine, theirs in pairs
        for name in sorted({*mine, *theirs})
        if not (mine is one.options and name in UNITED) and not _equal(mine.get(name), theirs.get(name))
    ]


def _equal(one: Any, other: Any) -> bool:
    if any(isinstance(item, opaque.Value) and item.on_host for item in (one, other)):
        return repr(one) == repr(other)  # each name has one value, which is unknown here
    # Python considers 1 and True equal.
    return one is other or (isinstance(one, bool) == isinstance(other, bool) and bool(one == other))


def merged(declarations: Sequence[Node]) -> list[Node]:
    """Return one node for all declarations that are like the first one, and then each of the others.

    Their requirements, triggers, tags and labels are united. The node has `protect` or `take_over` if one of the
    declarations has it.

    :param declarations: nodes with the same name
    """
    first = declarations[0]
    alike: list[Node] = []
    others: list[Node] = []
    for node in declarations:
        (alike if node.broken == first.broken and not differing(first, node) else others).append(node)
    return [_united(alike), *others]


def _united(nodes: Sequence[Node]) -> Node:
    first = nodes[0]
    positions = dict.fromkeys(chain.from_iterable(node.positions for node in nodes))
    positions.pop(first.position)
    options = first.options
    tags = _vector(nodes, lambda node: node.options.get("tags") or ())
    if tags:
        options = options.set("tags", tags)
    for option in FLAGS:
        if any(node.options.get(option) for node in nodes):
            options = options.set(option, True)
    return first.replace(
        requires=_vector(nodes, lambda node: node.requires),
        triggers=_vector(nodes, lambda node: node.triggers),
        options=options,
        others=tuple(positions),
        labels=tuple(_vector(nodes, lambda node: node.labels)),
        uses=_uses(nodes),
    )


def _uses(nodes: Sequence[Node]) -> tuple[tuple[SourceLocation, RoleUse | None], ...]:
    """Return the source location and the role of each declaration; nothing if no role contains any of them."""
    if not any(role for node in nodes for _, role in node.declarations):
        return ()
    return tuple(dict.fromkeys(chain.from_iterable(node.declarations for node in nodes)))


def _vector(nodes: Sequence[Node], names: Callable[[Node], Iterable[str]]) -> PVector[str]:
    return pvector(dict.fromkeys(chain.from_iterable(map(names, nodes))))


class Contained:
    """Tells whether declarations are part of a node, which may be the result of a merge.

    :param nodes: the nodes by name; several nodes of one name can't be merged
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._nodes: dict[str, list[Node]] = {}
        self._sets: dict[int, tuple[frozenset[SourceLocation], frozenset[str]]] = {}
        for node in nodes:
            self._nodes.setdefault(node.provides, []).append(node)

    def __contains__(self, node: Node) -> bool:
        return any(
            item is node or item.broken or self._holds(item, node) for item in self._nodes.get(node.provides, ())
        )

    def _holds(self, whole: Node, node: Node) -> bool:
        if id(whole) not in self._sets:
            self._sets[id(whole)] = frozenset(whole.positions), frozenset(chain(*_united_in(whole)))
        positions, united = self._sets[id(whole)]
        return node.position in positions and united.issuperset(chain(*_united_in(node))) and not differing(whole, node)


def _united_in(node: Node) -> Iterable[Iterable[str]]:
    """Return what `merged` unites, apart from labels. Each text begins with the name of its field."""
    yield (f"requires {name}" for name in node.requires)
    yield (f"triggers {name}" for name in node.triggers)
    yield (f"tags {name}" for name in node.options.get("tags") or ())
    yield (option for option in FLAGS if node.options.get(option))


def duplicates(nodes: Iterable[Node]) -> list[Problem]:
    """Return a problem for each name that several different nodes have, with their source locations."""
    nodes = list(nodes)
    if len({node.provides for node in nodes}) == len(nodes):
        return []
    by_name: dict[str, list[Node]] = {}
    for node in nodes:
        by_name.setdefault(node.provides, []).append(node)
    return [
        _duplicate(name, group)
        for name, group in by_name.items()
        if len(group) > 1 and not any(node.broken for node in group)
    ]


def _duplicate(name: str, group: Sequence[Node]) -> Problem:
    one = group[0]
    other, names = next(((node, found) for node in group if (found := differing(one, node))), (group[1], []))
    detail = f"{len(group)} nodes are called {name}"
    if names:
        names = ["type"] if "type" in names else names
        count = len({position for node in group for position in node.positions})
        listed = [_difference(attribute, one, other) for attribute in names[:MAX_COMPARED]]
        more = f" and {len(names) - MAX_COMPARED} more" if len(names) > MAX_COMPARED else ""
        detail = f"{max(count, len(group))} declarations of {name} have different attributes: {', '.join(listed)}{more}"
    help_text = "write the same attributes in all of them, which makes them one node; or give one of them another name "
    help_text += "with `provides`"
    return problem("SC0110", detail, help_text, one.position, other.position, *_all_positions(group))


def _difference(attribute: str, one: Node, other: Node) -> str:
    values = [_value(node, attribute) for node in (one, other)]
    if "" in values or values[0] == values[1]:
        return f"`{attribute}` differs"
    return f"`{attribute}` is {values[0]} in {one.position.short()} and {values[1]} in {other.position.short()}"


def _value(node: Node, attribute: str) -> str:
    """Return an attribute as messages show it; "" if it is too long, or secret."""
    value = node.attrs.get(attribute, node.options.get(attribute))
    if value is None:
        return "not given"
    if opaque.contains_secret(value):
        return ""
    text = f"{value:04o}" if attribute == "mode" and type(value) is int else show(value)
    return text if len(text) <= MAX_VALUE else ""


def _all_positions(nodes: Iterable[Node]) -> Iterable[SourceLocation]:
    return chain.from_iterable(node.positions for node in nodes)
