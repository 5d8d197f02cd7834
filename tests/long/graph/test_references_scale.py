"""References of large graphs are expanded in linear time."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

from statecfg.graph import references
from statecfg.graph.graph import Graph
from statecfg.graph.layers import in_layers
from statecfg.graph.nodes import Node
from tests.unit.graph.node_types import t_plain


def graph_of(size: int) -> list[Node]:
    """Return nodes in directories of ten, each with a node that requires the others by pattern, tag and label."""
    node = t_plain("x").node
    nodes: list[Node] = []
    for folder in range(size // 10):
        for index in range(9):
            tagged = t_plain("x", tags=[f"t{folder}"]).node if not index else node
            labels = (f"loop:l{folder}",) if index == 1 else ()
            nodes.append(tagged.replace(provides=f"file:/srv/{folder}/{index}", labels=labels))
        wanted = [f"file:/srv/{folder}/*", f"tag:t{folder}", f"loop:l{folder}"]
        nodes.append(t_plain("x", provides=f"service:{folder}", requires=wanted).node)
    wanted = ["service:*", "file:/srv/**/0"]
    return [*nodes, t_plain("x", provides="last", requires=wanted).node]


def seconds(work: Callable[[], object]) -> float:
    spent = []
    for _ in range(3):
        gc.collect()
        gc.disable()  # the garbage collector would visit all objects of earlier tests
        started = time.process_time()
        work()
        spent.append(time.process_time() - started)
        gc.enable()
    return min(spent)


def test_expansion_takes_linear_time() -> None:
    small, large = graph_of(3_125), graph_of(25_000)
    expanded, problems = references.expand(large, frozenset)
    assert not problems and len(expanded) == 25_001
    assert [len(layer) for layer in in_layers(expanded)] == [22_500, 2_500, 1]
    assert len(expanded[-1].requires) == 5_000 and len(expanded[9].requires) == 9
    fast = seconds(lambda: references.expand(small, frozenset))
    # Linear time gives a factor of 8, quadratic time 64. The limit allows for noise.
    assert seconds(lambda: references.expand(large, frozenset)) < 20 * fast + 0.5


def test_equal_references_of_many_nodes_are_searched_once() -> None:
    nodes = [t_plain("x", provides=f"file:/{index}").node for index in range(1000)]
    every = t_plain("x", requires=["file:/**"]).node
    nodes += [every.replace(provides=f"service:{index}") for index in range(900)]
    expanded, problems = references.expand(nodes, frozenset)
    assert not problems and sum(len(node.requires) for node in expanded) == 900_000
    shared = {id(name) for node in expanded for name in node.requires}
    assert len(shared) == 1000


def test_many_declarations_of_one_node_merge_in_linear_time() -> None:
    def declarations(count: int) -> Graph:
        node = t_plain("x", text="t", requires=["a"]).node
        places = [node.position._replace(line=index) for index in range(count)]
        return Graph(None, [Graph(node.replace(position=place)) for place in places])

    small, large = declarations(2_500), declarations(20_000)
    assert len(next(large.nodes()).positions) == 20_000
    fast = seconds(lambda: list(small.nodes()))
    assert seconds(lambda: list(large.nodes())) < 20 * fast + 0.5
