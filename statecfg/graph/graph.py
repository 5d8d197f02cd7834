"""Graphs: immutable values that hold nodes and merge cheaply."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping

from pyrsistent import PMap, pmap

from statecfg.graph import merging
from statecfg.graph.nodes import Frozen, Node
from statecfg.problems import InvalidInput, Problem, problem
from statecfg.problems.positions import SourceLocation, of_frame
from statecfg.remote.graph.wrong_values import type_words


class Graph(Frozen):
    """Nodes, and the one node that represents the graph: ``{node, nodemap}``. Immutable; merged graphs share parts.

    :param known: labels that requirements can name although no node of the graph may have them, such as that of a loop
        over an empty list
    """

    __slots__ = ("_map", "_names", "_node", "known", "parts")
    fields = ("node", "nodemap")

    parts: tuple[Graph, ...]
    known: frozenset[str]
    _node: Node | None
    _map: PMap[str, Node] | None
    _names: PMap[str, Node] | None

    def __init__(self, node: Node | None, parts: Iterable[Graph] = (), known: Iterable[str] = ()) -> None:
        put = object.__setattr__
        put(self, "known", frozenset(known))
        put(self, "_node", node)
        put(self, "parts", tuple(parts))
        put(self, "_map", None)
        put(self, "_names", None)

    @property
    def node(self) -> Node:
        """The node that represents the graph in requirements.

        :raises LookupError: the graph is empty
        """
        if self._node is None:
            object.__setattr__(self, "_node", _principal(self))
        assert self._node is not None
        return self._node

    @property
    def nodemap(self) -> PMap[str, Node]:
        """All nodes by name.

        :raises InvalidInput: two different nodes have the same name
        """
        if self._map is None:
            nodes = list(self.nodes())
            problems = merging.duplicates(nodes)
            if problems:
                raise InvalidInput(problems)
            object.__setattr__(self, "_map", pmap({node.provides: node for node in nodes}))
        assert self._map is not None
        return self._map

    def nodes(self) -> Iterator[Node]:
        """Yield every distinct node once; the nodes of a part come before the graph that contains the part.

        Declarations of one node with equal attributes are merged into one node.
        """
        first: dict[str, Node] = {}
        again: dict[str, list[Node]] = {}
        for graph in self._all():
            node = graph._node
            if node is not None and first.setdefault(node.provides, node) is not node:
                again.setdefault(node.provides, []).append(node)
        for name, node in first.items():
            yield from merging.merged([node, *again[name]]) if name in again else (node,)

    def known_labels(self) -> frozenset[str]:
        """Return the labels in `known` of this graph and of all its parts."""
        return frozenset().union(*(graph.known for graph in self._all()))

    def _all(self) -> Iterator[Graph]:
        # Each graph object is visited once, so a part that thousands of graphs share costs nothing.
        visited = {id(self)}
        stack: list[tuple[Graph, Iterator[Graph]]] = [(self, iter(self.parts))]
        while stack:
            graph, parts = stack[-1]
            part = next(parts, None)
            if part is None:
                stack.pop()
                yield graph
            elif id(part) not in visited:
                visited.add(id(part))
                stack.append((part, iter(part.parts)))

    @property
    def is_empty(self) -> bool:
        """Whether the graph has neither a node nor parts."""
        return self._node is None and not self.parts

    def __repr__(self) -> str:
        return f"<graph of {self._node.provides}>" if self._node is not None else f"<graph of {len(self.parts)} graphs>"


EMPTY = Graph(None)


def gap(node_type: str = "", argument: str = "") -> Graph:
    """Return the graph of a node that could not be read. A node that requires it is not reported as wrong.

    :param node_type: the name of its node type; "" if unknown
    :param argument: its first argument; "" if unknown
    """
    return Graph(Node(f"{node_type}:{argument}", pmap({"type": node_type}), broken=True))


def merge_graphs(*graphs: Graph) -> Graph:
    """Return one graph with the nodes of several graphs.

    Its `node` is the node of the first graph. Exception: if two graphs are merged and the second graph's node requires
    the first graph's node, directly or indirectly, it is the second graph's node.
    Nodes with the same name and equal attributes become one node; see `statecfg.graph.merging.merged`.
    Source: "Specifying dependencies" in the Borg document.

    :raises InvalidInput: an argument is not a graph
    """
    wrong = next((item for item in graphs if not isinstance(item, Graph)), None)
    if wrong is not None:
        raise InvalidInput([_not_a_graph(wrong, of_frame(sys._getframe(1)))])
    return graphs[0] if len(graphs) == 1 else Graph(None, graphs)


def _not_a_graph(value: object, location: SourceLocation) -> Problem:
    help = "pass graphs: calling a node type returns one"
    if isinstance(value, (list, tuple)):
        help = "pass the graphs one by one: merge_graphs(*graphs), in Hy (merge-graphs #* graphs)"
    elif isinstance(value, Node):
        help += "; this is the node of a graph"
    return problem("SC0109", f"merge_graphs takes graphs, got {type_words(value)}", help, location)


def _principal(graph: Graph) -> Node:
    # A loop can nest merges deeper than Python allows recursion.
    stack, opened = [graph], set()
    while stack:
        current = stack[-1]
        if id(current) not in opened:
            opened.add(id(current))
            stack.extend(part for part in current.parts if part._node is None and id(part) not in opened)
            continue
        if current._node is None:
            object.__setattr__(current, "_node", _chosen(current))
        stack.pop()
    if graph._node is None:
        raise LookupError("an empty graph has no node")
    return graph._node


def _chosen(graph: Graph) -> Node | None:
    parts = [part for part in graph.parts if part._node is not None]
    if not parts:
        return None
    first = parts[0].node
    if len(graph.parts) != 2 or len(parts) != 2:
        return first
    second = parts[1].node
    names = _names(graph)
    return second if _reaches(names, second, first.provides) and not _reaches(names, first, second.provides) else first


def _names(graph: Graph) -> PMap[str, Node]:
    """Return the nodes by name, one node per name. A merged graph's map shares the structure of its parts' maps."""
    if graph._names is None:
        if graph._node is None and len(graph.parts) == 2:
            small, large = sorted(map(_names, graph.parts), key=len)
            names = large.update(small)
        else:
            names = pmap({node.provides: node for node in graph.nodes()})
        object.__setattr__(graph, "_names", names)
    assert graph._names is not None
    return graph._names


def _reaches(names: Mapping[str, Node], node: Node, name: str) -> bool:
    """Return whether `node` requires the node called `name`, directly or indirectly."""
    seen, waiting = {node.provides}, [node]
    while waiting:
        required = waiting.pop().requires
        if name in required:
            return True
        unseen = [item for item in required if item in names and item not in seen]
        seen.update(unseen)
        waiting.extend(names[item] for item in unseen)
    return False
