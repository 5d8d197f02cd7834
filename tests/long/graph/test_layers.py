"""Layers of random graphs, compared with networkx, and compiled."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statecfg.graph.graph import merge_graphs
from statecfg.graph.layers import layers
from statecfg.playbook.compile import WireContext, compile_graph
from statecfg.problems import InvalidInput
from statecfg.remote.graph.model import Node
from statecfg.remote.wire.frames import INLINE, decode_value
from tests.unit.graph.node_types import of_edges, t_path
from tests.unit.graph.test_layers import random_edges


def random_chains(rng: random.Random) -> dict[str, list[str]]:
    """Return edges of which most form chains that branch, meet and run side by side."""
    names = [f"n{index}" for index in range(rng.randint(1, 60))]
    near = rng.choice((1, 2, 4))
    edges = {
        name: sorted({rng.choice(names[max(0, i - near) : i]) for _ in range(rng.choice((0, 1, 1, 1, 1, 2)))})
        if i
        else []
        for i, name in enumerate(names)
    }
    return dict(rng.sample(sorted(edges.items()), len(edges)))


@pytest.mark.parametrize("make", [random_edges, random_chains])
@pytest.mark.parametrize("seed", range(0, 1000, 100))
def test_layers_equal_those_of_networkx(seed: int, make: Callable[[random.Random], dict[str, list[str]]]) -> None:
    for number in range(seed, seed + 100):
        edges = make(random.Random(number))
        peer = networkx.DiGraph()
        peer.add_nodes_from(edges)
        peer.add_edges_from((wanted, name) for name, all_wanted in edges.items() for wanted in all_wanted)
        expected = [sorted(layer) for layer in networkx.topological_generations(peer)]
        assert [[node.provides for node in layer] for layer in layers(of_edges(edges))] == expected, number


@pytest.mark.parametrize("seed", range(0, 500, 100))
def test_cycles_are_found_where_networkx_finds_them(seed: int) -> None:
    for number in range(seed, seed + 100):
        rng = random.Random(number)
        edges = random_chains(rng)
        name, other = rng.choice(list(edges)), rng.choice(list(edges))
        edges[name] = sorted({*edges[name], other} - {name})
        peer = networkx.DiGraph((name, wanted) for name, all_wanted in edges.items() for wanted in all_wanted)
        if networkx.is_directed_acyclic_graph(peer):
            layers(of_edges(edges))
            continue
        with pytest.raises(InvalidInput) as caught:
            layers(of_edges(edges))
        (found,) = caught.value.problems
        path = found.detail.partition("\n")[0].split(" → ")
        assert all(after in edges[before] for before, after in itertools.pairwise(path)), (number, path)


def test_deep_chain_does_not_overflow_the_stack() -> None:
    names = [f"n{index:04}" for index in range(10_000)]
    assert len(layers(of_edges({name: names[i + 1 : i + 2] for i, name in enumerate(names)}))) == 10_000


@given(st.integers(0, 10**9))
@settings(max_examples=60, deadline=None)
def test_compiled_layers_contain_every_node_of_the_graph(seed: int) -> None:
    edges = random_edges(random.Random(seed))
    graph = merge_graphs(
        of_edges(edges), t_path("/c", body="x" * (seed % (2 * INLINE)), requires=sorted(edges)[:1]), t_path("/d")
    )
    definition = compile_graph(graph, WireContext())
    blobs = dict(definition.blobs)
    nodes = [
        Node(**{**wire, "attrs": decode_value(wire["attrs"], blobs)}) for layer in definition.layers for wire in layer
    ]
    arrived = {node.provides: node for node in nodes}
    assert set(arrived) == set(graph.nodemap)
    for name, node in graph.nodemap.items():
        other = arrived[name]
        assert (list(other.requires), other.type) == (list(node.requires), node.type)
        sent = {key: value for key, value in node.attrs.items() if key not in ("type", "body")}
        assert {key: value for key, value in other.attrs.items() if key != "body"} == sent
        if "body" in node.attrs:
            assert other.attrs["body"].size == len(node.attrs["body"])
