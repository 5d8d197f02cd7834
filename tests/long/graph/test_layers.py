"""Layers of random graphs, compared with networkx."""

from __future__ import annotations

import random

import networkx
import pytest

from statecfg.graph.layers import layers
from tests.unit.graph.node_types import of_edges
from tests.unit.graph.test_layers import random_edges


@pytest.mark.parametrize("seed", range(0, 1000, 100))
def test_layers_equal_those_of_networkx(seed: int) -> None:
    for number in range(seed, seed + 100):
        edges = random_edges(random.Random(number))
        peer = networkx.DiGraph()
        peer.add_nodes_from(edges)
        peer.add_edges_from((wanted, name) for name, all_wanted in edges.items() for wanted in all_wanted)
        expected = [sorted(layer) for layer in networkx.topological_generations(peer)]
        assert [[node.provides for node in layer] for layer in layers(of_edges(edges))] == expected, number


def test_deep_chain_does_not_overflow_the_stack() -> None:
    names = [f"n{index:04}" for index in range(1200)]
    assert len(layers(of_edges({name: names[i + 1 : i + 2] for i, name in enumerate(names)}))) == 1200
