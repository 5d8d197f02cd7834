"""Layers of a graph, and the messages about cycles, missing requirements and nodes that require themselves."""

from __future__ import annotations

import random

import pytest

from statecfg.graph import layers as graph_layers
from statecfg.graph.graph import merge_graphs
from statecfg.graph.layers import layers
from statecfg.graph.recording import recording
from tests.unit.graph.node_types import chain, of_edges, refused, t_plain


def random_edges(rng: random.Random) -> dict[str, list[str]]:
    names = [f"n{index}" for index in range(rng.randint(1, 40))]
    density = rng.choice((0.0, 0.02, 0.1, 0.3))
    edges = {name: [other for other in names[:i] if rng.random() < density] for i, name in enumerate(names)}
    return dict(rng.sample(sorted(edges.items()), len(edges)))


def test_layers_begin_with_nodes_that_require_nothing() -> None:
    assert [[node.provides for node in layer] for layer in layers(chain("A", "B", "C"))] == [["C"], ["B"], ["A"]]


def test_cycle_is_reported_as_a_path_with_all_places() -> None:
    a = t_plain("a", provides="a", requires=["b"])
    b = t_plain("b", provides="b", requires=["c", "free"])
    c = t_plain("c", provides="c", requires=["a"])
    outside = merge_graphs(t_plain("d", requires=["a"]), t_plain("free", provides="free"))
    with refused("SC0113") as found:
        layers(merge_graphs(c, b, a, outside))
    text = found[0].detail
    assert "a → b → c → a" in text
    shown = {node.provides: str(node.position) for node in (a.node, c.node)}
    assert f"a requires b ({shown['a']})" in text and f"c requires a ({shown['c']})" in text
    assert "free" not in text
    assert list(found[0].locations) == [a.node.position, b.node.position, c.node.position]


def test_layers_reports_every_cycle() -> None:
    with refused("SC0113", "SC0113"):
        layers(of_edges({"a": ["b"], "b": ["a"], "c": ["d"], "d": ["c", "a"], "e": ["d"]}))


def test_message_about_a_long_cycle_is_shortened() -> None:
    names = [f"n{index:03}" for index in range(200)]
    with refused("SC0113") as found:
        layers(of_edges({name: [names[(i + 1) % 200]] for i, name in enumerate(names)}))
    assert "a cycle of 200 nodes" in found[0].detail and len(found[0].detail) < 2000


def test_self_requirement_is_reported_with_name_and_place() -> None:
    graph = t_plain("a", requires=["t_plain:a"])
    with refused("SC0112") as found:
        layers(graph)
    assert "t_plain:a requires itself" in found[0].detail and found[0].locations == (graph.node.position,)


def test_missing_requirement_is_reported_with_the_nearest_name() -> None:
    with refused("SC0111") as found:
        layers(merge_graphs(t_plain("nginx"), t_plain("site", requires=["t_plain:ngnix"])))
    assert "t_plain:site requires t_plain:ngnix" in found[0].detail
    assert "did you mean `t_plain:nginx`?" in found[0].help


def test_layers_reports_all_kinds_of_problems_together() -> None:
    with refused("SC0110", "SC0111", "SC0112", "SC0113"):
        layers(
            merge_graphs(
                of_edges({"a": ["b"], "b": ["a"], "c": ["nowhere"], "d": ["d"]}),
                t_plain("e", provides="c", text="other"),
            )
        )


def test_layers_refuses_graphs_beyond_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_layers, "MAX_NODES", 20)
    layers(of_edges({str(index): [] for index in range(20)}))
    with refused("SC0115") as found:
        layers(of_edges({str(index): [] for index in range(21)}))
    assert "21 nodes; the maximum is 20" in found[0].detail
    monkeypatch.setattr(graph_layers, "MAX_LAYERS", 9)
    with refused("SC0115") as found:
        layers(chain(*"abcdefghij"))
    assert "1 nodes remain after 9 layers" in found[0].detail


def test_layers_do_not_depend_on_declaration_order() -> None:
    edges = random_edges(random.Random(7))
    turned = dict(reversed(edges.items()))
    assert [[n.provides for n in layer] for layer in layers(of_edges(edges))] == [
        [n.provides for n in layer] for layer in layers(of_edges(turned))
    ]


@pytest.mark.parametrize("step", [1, -1])
def test_a_chain_that_is_too_long_ends_the_evaluation(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nodes of a chain may be declared before or after the nodes that they require."""
    monkeypatch.setattr(graph_layers, "MAX_LAYERS", 9)
    with recording() as recorded, refused("SC0115") as found:
        for number in range(20):
            t_plain(str(number), requires=[f"t_plain:{number - step}"])
    # With the ninth node and what it requires, the chain has ten nodes.
    assert len(recorded) == 8
    start = "t_plain:8 is in a chain of more than 9 nodes, each of which requires the next"
    assert found[0].detail == f"{start} (the maximum is 9 layers)"
    assert found[0].locations[0].file.endswith("test_layers.py")
