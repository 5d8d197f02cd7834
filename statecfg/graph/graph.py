"""Nodes, graphs and layers: pure values that know nothing of what the nodes are about."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pyrsistent import PMap, PVector, pmap, pvector
from toposort import CircularDependencyError, toposort

from statecfg.problems import InvalidInput, Problem, nearest, problem, suggest
from statecfg.problems.positions import NOWHERE, SourceLocation, Written, of_frame
from statecfg.remote.graph.model import Record
from statecfg.remote.graph.values import kind_of

MAX_NODES = 250_000
MAX_LAYERS = 10_000  # the depth of a graph: nodes of which each requires the one before
# toposort walks all waiting nodes once per layer, so a graph that is wide has fewer layers.
MAX_STEPS = 100_000_000
MAX_PROBLEMS = 20

EMPTY_VECTOR: PVector[str] = pvector()
EMPTY_MAP: PMap[str, Any] = pmap()


class Frozen(Record):
    """A record whose fields can't be set once it is made."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__.lower()} can't be changed; make another")

    def __delattr__(self, name: str) -> None:
        setattr(self, name, None)

    def __copy__(self) -> Frozen:
        return self

    def __deepcopy__(self, memo: object) -> Frozen:
        return self


class Node(Frozen):
    """A vertex of the graph, immutable; its fields are read as attributes, as a map, or by keyword.

    :param provides: its name, such as ``file:/etc/motd``
    :param requires: the names it depends on
    :param triggers: those of `requires` whose change triggers this node as well
    :param produces_ops: names of the ops that it may take
    :param attrs: arguments and attributes by name, and ``type``
    :param options: what every node may be given beside them (``tags``)
    :param position: where it was written
    :ivar type: the name of its node type, which `attrs` holds as well
    :param broken: a problem with it was reported already, so what follows from that need not be
    """

    __slots__ = ("attrs", "broken", "options", "position", "produces_ops", "provides", "requires", "triggers", "type")
    fields = ("provides", "requires", "triggers", "produces_ops", "attrs", "options", "position")

    provides: str
    requires: PVector[str]
    triggers: PVector[str]
    produces_ops: PVector[str]
    attrs: PMap[str, Any]
    options: PMap[str, Any]
    position: SourceLocation
    broken: bool
    type: str

    def __init__(
        self,
        provides: str,
        attrs: PMap[str, Any],
        requires: PVector[str] = EMPTY_VECTOR,
        triggers: PVector[str] = EMPTY_VECTOR,
        produces_ops: PVector[str] = EMPTY_VECTOR,
        options: PMap[str, Any] = EMPTY_MAP,
        position: SourceLocation = NOWHERE,
        broken: bool = False,
    ) -> None:
        put = object.__setattr__
        put(self, "provides", provides)
        put(self, "attrs", attrs)
        put(self, "requires", requires)
        put(self, "triggers", triggers)
        put(self, "produces_ops", produces_ops)
        put(self, "options", options)
        put(self, "position", position)
        put(self, "broken", broken)
        put(self, "type", attrs["type"])

    def replace(self, **fields: Any) -> Node:
        """Return this node with other values in some of its fields."""
        given = {name: getattr(self, name) for name in (*self.fields, "broken")}
        return Node(**{**given, **fields})

    def with_attrs(self, **attrs: Any) -> Node:
        """Return this node with other values of some attributes; None takes an attribute away."""
        kept = dict(self.attrs.iteritems())  # six times as fast as dict(self.attrs)
        kept.update(attrs)
        return Node(
            self.provides,
            pmap({name: value for name, value in kept.items() if value is not None}),
            self.requires,
            self.triggers,
            self.produces_ops,
            self.options,
            self.position,
            self.broken,
        )


class Graph(Frozen):
    """Nodes and, among them, the one that the graph is about: ``{node, nodemap}``. Immutable; parts are shared."""

    __slots__ = ("_map", "_names", "_node", "parts")
    fields = ("node", "nodemap")

    parts: tuple[Graph, ...]
    _node: Node | None
    _map: PMap[str, Node] | None
    _names: PMap[str, Node] | None

    def __init__(self, node: Node | None, parts: Iterable[Graph] = ()) -> None:
        put = object.__setattr__
        put(self, "_node", node)
        put(self, "parts", tuple(parts))
        put(self, "_map", None)
        put(self, "_names", None)

    @property
    def node(self) -> Node:
        """The node that stands for the graph where it is required. Raises LookupError for an empty graph."""
        if self._node is None:
            object.__setattr__(self, "_node", _principal(self))
        assert self._node is not None
        return self._node

    @property
    def nodemap(self) -> PMap[str, Node]:
        """All nodes by name. Raises InvalidInput where two different ones share a name."""
        if self._map is None:
            nodes = list(self.nodes())
            found = duplicates(nodes)
            if found:
                raise InvalidInput(found)
            object.__setattr__(self, "_map", pmap({node.provides: node for node in nodes}))
        assert self._map is not None
        return self._map

    def nodes(self) -> Iterator[Node]:
        """Yield every distinct node once, what is required before what requires it where parts say so."""
        seen: dict[str, Node] = {}
        for node in self._all():
            known = seen.setdefault(node.provides, node)
            if known is node or not same(known, node):
                yield node

    def _all(self) -> Iterator[Node]:
        # Each graph object is visited once, so a part shared by thousands costs nothing.
        visited, given = {id(self)}, set()
        stack: list[tuple[Graph, Iterator[Graph]]] = [(self, iter(self.parts))]
        while stack:
            graph, parts = stack[-1]
            part = next(parts, None)
            if part is None:
                stack.pop()
                node = graph._node
                if node is not None and id(node) not in given:
                    given.add(id(node))
                    yield node
            elif id(part) not in visited:
                visited.add(id(part))
                stack.append((part, iter(part.parts)))

    def __repr__(self) -> str:
        return f"<graph of {self._node.provides}>" if self._node is not None else f"<graph of {len(self.parts)} graphs>"


EMPTY = Graph(None)


def gap(kind: str = "", argument: str = "") -> Graph:
    """Return the graph of a node that could not be read: whoever requires it has made no mistake.

    :param kind: the name of its type; "" where even that is not known
    :param argument: its first argument; "" where that is not known
    """
    return Graph(Node(f"{kind}:{argument}", pmap({"type": kind}), broken=True))


def _may_be_gap(nodes: Iterable[Node]) -> Callable[[str], bool]:
    """Return whether a name may be that of one of the nodes that could not be read."""
    parts = {tuple(node.provides.partition(":")[::2]) for node in nodes if node.broken and ":" in node.provides}
    starts = tuple({f"{kind}:" for kind, argument in parts if kind and not argument})
    ends = tuple({f":{argument}" for kind, argument in parts if argument and not kind})
    anything = ("", "") in parts
    return lambda name: anything or name.startswith(starts) or name.endswith(ends)


def same(one: Node, other: Node) -> bool:
    """Return whether two nodes are one: equal, and written in the same place."""
    return one is other or (one.position == other.position and one == other)


def merge_graphs(*graphs: Graph) -> Graph:
    """Return one graph of all the nodes of several.

    Its `node` is the first graph's; of two graphs, where one's node requires the other's, directly or through
    others, it is that one's, whichever comes first. Source: "Specifying dependencies" of the Borg document.
    Raises InvalidInput for what is not a graph.
    """
    wrong = next((item for item in graphs if not isinstance(item, Graph)), None)
    if wrong is not None:
        raise InvalidInput([_no_graph(wrong, of_frame(sys._getframe(1)))])
    return graphs[0] if len(graphs) == 1 else Graph(None, graphs)


def _no_graph(given: object, place: SourceLocation) -> Problem:
    help = "a graph is what calling a node type returns"
    if isinstance(given, (list, tuple)):
        help = "give the graphs one by one: merge_graphs(*graphs), in Hy (merge-graphs #* graphs)"
    elif isinstance(given, Node):
        help += "; this is the node in one"
    return problem("SC0109", f"merge_graphs takes graphs, got {kind_of(given)}", help, place)


def _principal(graph: Graph) -> Node:
    # Merges of merges may be nested as deep as a loop made them: no recursion.
    stack, opened = [graph], set()
    while stack:
        here = stack[-1]
        if id(here) not in opened:
            opened.add(id(here))
            stack.extend(part for part in here.parts if part._node is None and id(part) not in opened)
            continue
        if here._node is None:
            object.__setattr__(here, "_node", _chosen(here))
        stack.pop()
    if graph._node is None:
        raise LookupError("an empty graph has no node")
    return graph._node


def _chosen(graph: Graph) -> Node | None:
    filled = [part for part in graph.parts if part._node is not None]
    if not filled:
        return None
    first = filled[0].node
    if len(graph.parts) != 2 or len(filled) != 2:
        return first
    second = filled[1].node
    names = _names(graph)
    return second if _reaches(names, second, first.provides) and not _reaches(names, first, second.provides) else first


def _names(graph: Graph) -> PMap[str, Node]:
    """Return the nodes by name, of two with one name either; that of a merge shares what that of its parts holds."""
    if graph._names is None:
        if graph._node is None and len(graph.parts) == 2:
            small, large = sorted(map(_names, graph.parts), key=len)
            found = large.update(small)
        else:
            found = pmap({node.provides: node for node in graph.nodes()})
        object.__setattr__(graph, "_names", found)
    assert graph._names is not None
    return graph._names


def _reaches(names: Mapping[str, Node], node: Node, name: str) -> bool:
    """Return whether `node` requires the node called `name`, directly or through others."""
    seen, waiting = {node.provides}, [node]
    while waiting:
        required = waiting.pop().requires
        if name in required:
            return True
        new = [item for item in required if item in names and item not in seen]
        seen.update(new)
        waiting.extend(names[item] for item in new)
    return False


def layers(graph: Graph) -> list[list[Node]]:
    """Return the nodes in layers, each as early as its requirements let it be, sorted by name.

    Raises InvalidInput for duplicate names, missing requirements and circles: all of them at once.
    """
    nodes = list(graph.nodes())
    found = check(nodes)
    if found:
        raise InvalidInput(found)
    return in_layers(nodes)


def in_layers(nodes: Iterable[Node]) -> list[list[Node]]:
    """Return the layers of nodes whose requirements are all among them. Raises InvalidInput for a circle."""
    names = {node.provides: node for node in nodes}
    made: list[list[Node]] = []
    steps, waiting = 0, len(names)
    try:
        for layer in toposort({name: set(node.requires) for name, node in names.items()}):
            made.append([names[name] for name in sorted(layer) if name in names])
            steps, waiting = steps + waiting, waiting - len(layer)
            if steps > MAX_STEPS or (len(made) >= MAX_LAYERS and waiting):
                raise InvalidInput([_too_deep(len(made), waiting)])
    except CircularDependencyError as error:
        raise InvalidInput(circles(names, error.data)) from None
    return made


def _too_deep(depth: int, waiting: int) -> Problem:
    return problem(
        "SC0115",
        f"after {depth:,} layers {waiting:,} nodes still wait for others (at most {MAX_LAYERS:,} layers are possible)",
        "let nodes require only what they need, so that more of them stand side by side",
    )


def check(nodes: list[Node]) -> list[Problem]:
    """Return what is wrong with the names and requirements of nodes.

    Circles are looked for only where something else is wrong: making the layers finds them anyway.
    """
    if len(nodes) > MAX_NODES:
        return [too_many(len(nodes))]
    found = duplicates(nodes)
    names = {node.provides: node for node in nodes}
    excused = _may_be_gap(nodes)
    for node in nodes:
        for name in node.requires:
            if name == node.provides:
                help_text = "remove it from requires"
                found.append(problem("SC0112", f"{name} requires itself", help_text, _written(node, name)))
            elif name not in names and not excused(name):
                found.append(_missing(node, name, names, len(found)))
    return found + _circles(nodes, names) if found else found


def too_many(count: int, *places: SourceLocation) -> Problem:
    """Return the problem of a graph with more nodes than are handled."""
    return problem("SC0115", f"{count:,} nodes; at most {MAX_NODES:,} are handled", "split the playbook", *places)


def _circles(nodes: list[Node], names: Mapping[str, Node]) -> list[Problem]:
    among = {node.provides: {name for name in node.requires if name in names} for node in nodes}
    try:
        for _ in toposort(among):
            pass
    except CircularDependencyError as error:
        return circles(names, error.data)
    return []


def _missing(node: Node, name: str, names: Mapping[str, Node], before: int) -> Problem:
    hint = ""
    if before < MAX_PROBLEMS:
        kind = name.partition(":")[0] + ":"
        written = [other for other, there in names.items() if not (there.broken and ":" in (other[0], other[-1]))]
        written = [other for other in written if other != node.provides]
        alike = [other for other in written if other.startswith(kind)] or written
        close = nearest(name, written) if len(alike) <= 20_000 else []
        hint = suggest(name, close + sorted(set(alike) - set(close)), "there are")
    return problem(
        "SC0111", f"{node.provides} requires {name}, and no node of the graph has that name", hint, _written(node, name)
    )


def _written(node: Node, name: str) -> SourceLocation:
    """Return where a requirement is written, if the dialect knows it; otherwise where its node is."""
    return name.place if isinstance(name, Written) else node.position


def duplicates(nodes: Iterable[Node]) -> list[Problem]:
    """Return a problem for each name that several different nodes have, with all their places."""
    nodes = list(nodes)
    if len({node.provides for node in nodes}) == len(nodes):
        return []
    by_name: dict[str, list[Node]] = {}
    for node in nodes:
        by_name.setdefault(node.provides, []).append(node)
    return [
        problem(
            "SC0110",
            f"{len(group)} nodes are called {name}",
            "give one of them another name with `provides`, or declare it once and require it by name",
            *(node.position for node in group),
        )
        for name, group in by_name.items()
        if len(group) > 1 and not any(node.broken for node in group)
    ]


def circles(names: Mapping[str, Node], waiting: Mapping[str, Iterable[str]]) -> list[Problem]:
    """Return a problem for each circle among nodes that wait for each other.

    :param waiting: name → the names it still waits for; every one of them is a key as well
    """
    left = {name: set(required) for name, required in waiting.items()}
    found: list[Problem] = []
    while left and len(found) < MAX_PROBLEMS:
        path = _circle(left)
        steps = [f"{name} requires {path[(i + 1) % len(path)]} ({_short(names[name])})" for i, name in enumerate(path)]
        shown = steps if len(steps) <= 12 else [*steps[:11], f"… {len(steps) - 12} more …", steps[-1]]
        found.append(
            problem(
                "SC0113",
                " → ".join([*path, path[0]]) + "".join(f"\n{step}" for step in shown)
                if len(path) <= 12
                else f"a circle of {len(path)} nodes" + "".join(f"\n{step}" for step in shown),
                "one of these requirements has to go",
                *(names[name].position for name in path[:12]),
            )
        )
        gone = set(path)
        while gone:
            left = {name: required - gone for name, required in left.items() if name not in gone}
            gone = {name for name, required in left.items() if not required}
    return found


def _short(node: Node) -> SourceLocation:
    return node.position._replace(file=node.position.file.rpartition("/")[2])


def _circle(waiting: Mapping[str, set[str]]) -> list[str]:
    order: dict[str, int] = {}
    name = min(waiting)
    while name not in order:
        order[name] = len(order)
        name = min(waiting[name])
    path = list(order)[order[name] :]
    start = path.index(min(path))
    return path[start:] + path[:start]
