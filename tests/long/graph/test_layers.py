"""Layers of random graphs, compared with networkx, and compiled."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statecfg.graph import depths
from statecfg.graph.graph import merge_graphs
from statecfg.graph.layers import MAX_LAYERS, layers
from statecfg.playbook.compile import WireContext, compile_graph
from statecfg.problems import InvalidInput
from statecfg.remote.graph.model import HostNode
from statecfg.remote.wire.frames import INLINE, decode_value
from tests.unit.graph.node_types import of_edges, refused, t_path
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


def random_comb(rng: random.Random) -> dict[str, list[str]]:
    """Return the edges of a chain, and of shorter chains that start at its nodes and may meet at one node."""
    edges: dict[str, list[str]] = {}
    for tooth in range(rng.randint(1, 12)):
        above = [f"t{tooth - 1}.0"] if tooth else []
        for index in range(rng.randint(1, 12)):
            name = f"t{tooth}.{index}"
            edges[name], above = above, [name]
    last = [name for name in edges if rng.random() < 0.5]
    return {**edges, "last": last} if rng.random() < 0.5 else edges


def random_ladder(rng: random.Random) -> dict[str, list[str]]:
    """Return the edges of rows of nodes, each of which requires most nodes of the row above."""
    width, density = rng.randint(2, 4), rng.choice((0.5, 0.9, 1.0))
    return {
        f"{row}.{column}": [f"{row - 1}.{other}" for other in range(width) if row and rng.random() < density]
        for row in range(rng.randint(2, 30))
        for column in range(width)
    }


def random_width(rng: random.Random) -> dict[str, list[str]]:
    """Return the edges of many nodes that require few others."""
    first = [f"a{index}" for index in range(rng.randint(1, 5))]
    edges: dict[str, list[str]] = {name: [] for name in first}
    edges |= {f"b{index}": rng.sample(first, rng.randint(0, len(first))) for index in range(rng.randint(20, 100))}
    return {**edges, "last": sorted(edges)}


MAKERS = (random_edges, random_chains, random_comb, random_ladder, random_width)


@pytest.fixture(params=[0, 1, depths.VISITS])
def visits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let toposort find no layer but the first, some of them, or all layers of small graphs."""
    monkeypatch.setattr(depths, "VISITS", request.param)


def peer_of(edges: dict[str, list[str]]) -> networkx.DiGraph:
    peer = networkx.DiGraph()
    peer.add_nodes_from(edges)
    peer.add_edges_from((wanted, name) for name, all_wanted in edges.items() for wanted in all_wanted)
    return peer


@pytest.mark.usefixtures("visits")
@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("seed", range(0, 300, 100))
def test_layers_equal_those_of_networkx(seed: int, make: Callable[[random.Random], dict[str, list[str]]]) -> None:
    for number in range(seed, seed + 100):
        edges = make(random.Random(number))
        expected = [sorted(layer) for layer in networkx.topological_generations(peer_of(edges))]
        assert [[node.provides for node in layer] for layer in layers(of_edges(edges))] == expected, number


@pytest.mark.usefixtures("visits")
@pytest.mark.parametrize("make", MAKERS)
def test_cycles_are_found_where_networkx_finds_them(make: Callable[[random.Random], dict[str, list[str]]]) -> None:
    for number in range(100):
        rng = random.Random(number)
        edges = make(rng)
        name, other = rng.choice(list(edges)), rng.choice(list(edges))
        edges[name] = sorted({*edges[name], other} - {name})
        if networkx.is_directed_acyclic_graph(peer_of(edges)):
            layers(of_edges(edges))
            continue
        with pytest.raises(InvalidInput) as caught:
            layers(of_edges(edges))
        (found,) = caught.value.problems
        if not found.detail.startswith("a cycle of"):
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
        HostNode(**{**wire, "attrs": decode_value(wire["attrs"], blobs)})
        for layer in definition.layers
        for wire in layer
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


def test_deep_ladder_takes_linear_time() -> None:
    # toposort would visit the waiting nodes 80 million times.
    edges = {
        f"{row}.{side}": [f"{row - 1}.{each}" for each in range(10) if row]
        for row in range(4_000)
        for side in range(10)
    }
    assert [len(layer) for layer in depths.layers({name: set(names) for name, names in edges.items()})] == [10] * 4_000


def test_long_chain_is_refused_or_its_cycle_is_found() -> None:
    names = [f"n{index:06}" for index in range(20_000)]
    edges = {name: names[i + 1 : i + 2] for i, name in enumerate(names)}
    with refused("SC0115") as found:
        layers(of_edges(edges))
    assert f"10,000 nodes remain after {MAX_LAYERS:,} layers" in found[0].detail
    with refused("SC0113") as found:
        layers(of_edges({**edges, names[-1]: names[:1]}))
    assert "a cycle of 20000 nodes" in found[0].detail


def test_cycle_below_a_long_chain_takes_linear_time() -> None:
    names = [f"n{index:06}" for index in range(20_000)]
    edges = {name: names[i + 1 : i + 2] for i, name in enumerate(names)}
    with refused("SC0113") as found:
        layers(of_edges({**edges, names[-1]: names[-2:-1]}))
    assert "n019998 → n019999 → n019998" in found[0].detail
