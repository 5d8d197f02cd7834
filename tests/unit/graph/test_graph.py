"""Nodes, graphs and merging: the rules of the Borg document and the additional rules of statecfg."""

from __future__ import annotations

import pytest

from statecfg.graph.graph import EMPTY, Graph, merge_graphs
from statecfg.graph.nodes import Node
from statecfg.problems import InvalidInput
from statecfg.remote.graph.model import Keyword
from tests.unit.graph.node_types import chain, of_edges, refused, t_plain


def names(graph: Graph) -> set[str]:
    return set(graph.nodemap)


def test_calling_a_node_type_returns_a_graph_with_one_node() -> None:
    graph = t_plain("/bin/x", {"provides": "svc", "text": "t"})
    assert graph["node"] is graph.node and graph["nodemap"] == {"svc": graph.node}
    assert dict(graph.node["attrs"]) == {"type": "t_plain", "name": "/bin/x", "text": "t"}
    assert list(graph.keys()) == ["node", "nodemap"]


def test_node_fields_can_be_read_by_key_attribute_and_keyword() -> None:
    node = t_plain("x").node
    assert node["provides"] == node.provides == Keyword("provides")(node) == "t_plain:x"
    assert node["produces-ops"] == node.produces_ops
    with pytest.raises(KeyError):
        node["colour"]


def test_required_graph_joins_and_is_required_by_name() -> None:
    d = t_plain("d", provides=":some-directory")
    f = t_plain("f", provides=":some-file", requires=[d])
    assert list(f.node.requires) == ["some-directory"]
    assert names(f) == {"some-directory", "some-file"}


def test_required_name_adds_no_node_to_the_graph() -> None:
    f = t_plain("f", provides=":some-file", requires=[Keyword("some-directory")])
    assert list(f.node.requires) == ["some-directory"] and names(f) == {"some-file"}


@pytest.mark.parametrize("turned", [False, True])
def test_merged_graph_takes_the_node_that_requires_the_other(turned: bool) -> None:
    f, d = t_plain("f", requires=["d"]), t_plain("d", provides="d")
    assert merge_graphs(*((d, f) if turned else (f, d))).node is f.node


def test_merged_graph_counts_indirect_requirements() -> None:
    c, a = t_plain("c", provides="c"), chain("a", "b")
    b_requires_c = merge_graphs(a, t_plain("x", provides="x"))
    assert (
        merge_graphs(c, merge_graphs(t_plain("a", provides="a", requires=["m"]), t_plain("m", provides="m"))).node
        is c.node
    )
    assert b_requires_c.node is a.node
    deep = t_plain("a", provides="a", requires=[t_plain("b", provides="b", requires=["c"])])
    assert merge_graphs(c, deep).node is deep.node and merge_graphs(deep, c).node is deep.node


def test_merging_unrelated_or_many_graphs_keeps_the_first_node() -> None:
    one, two, three = (t_plain(name) for name in "abc")
    assert merge_graphs(one, two).node is one.node
    assert merge_graphs(one, two, three).node is one.node
    assert merge_graphs(one) is one


def test_merging_no_graphs_returns_an_empty_graph() -> None:
    assert names(merge_graphs()) == set() == names(EMPTY)
    with pytest.raises(LookupError, match="empty graph"):
        _ = merge_graphs(EMPTY, merge_graphs()).node
    assert merge_graphs(EMPTY, t_plain("a")).node.provides == "t_plain:a"


def test_merge_refuses_a_value_that_is_not_a_graph() -> None:
    with refused("SC0109") as found:
        merge_graphs(t_plain("a"), [t_plain("b")])
    assert "got a list" in found[0].detail


def test_graphs_nodes_and_attributes_cannot_be_changed() -> None:
    graph = t_plain("a", after=["x"])
    for thing, field in ((graph, "parts"), (graph.node, "provides")):
        with pytest.raises(AttributeError, match="can't be changed"):
            setattr(thing, field, ())
    with pytest.raises(TypeError):
        graph.node.attrs["name"] = "b"
    with pytest.raises((TypeError, AttributeError)):
        graph.node.attrs["after"].append("y").clear()
    assert list(graph.node.attrs["after"]) == ["x"]


def test_with_attrs_does_not_change_the_original_node() -> None:
    node = t_plain("a", text="t", requires=["b"]).node
    other = node.with_attrs(text=None, size=3)
    assert dict(other.attrs) == {"type": "t_plain", "name": "a", "size": 3}
    assert node.attrs["text"] == "t" and other.requires == node.requires and other.position == node.position


def test_equal_nodes_from_the_same_place_merge_into_one() -> None:
    def part() -> Graph:
        return t_plain("shared", text="t")

    one, two = part(), part()
    both = merge_graphs(one, two)
    assert one.node is not two.node and names(both) == {"t_plain:shared"}
    assert both.nodemap["t_plain:shared"].positions == (one.node.position,)


def test_different_attributes_are_reported_with_both_places() -> None:
    one = t_plain("a", text="x")
    two = t_plain("a", text="y")
    with refused("SC0110") as found:
        _ = merge_graphs(one, two).nodemap
    assert [place.line for place in found[0].locations] == [one.node.position.line, two.node.position.line]


def test_nodemap_visits_each_shared_node_only_once() -> None:
    shared = t_plain("0")
    for level in range(1, 60):  # 2**59 paths lead to the first node
        shared = t_plain(str(level), requires=[shared, merge_graphs(shared, t_plain("0", provides=f"side{level}"))])
    assert len(shared.nodemap) == 60 + 59


def test_of_edges_makes_nodes_with_the_given_requirements() -> None:
    assert {name: list(node.requires) for name, node in of_edges({"a": ["b"], "b": []}).nodemap.items()} == {
        "a": ["b"],
        "b": [],
    }


def test_different_nodes_are_unequal_and_unhashable() -> None:
    assert t_plain("a", provides="x").node != t_plain("b", provides="x").node
    with pytest.raises(TypeError):
        hash(t_plain("a").node)


def test_node_without_arguments_raises_invalid_input() -> None:
    with pytest.raises(InvalidInput):
        t_plain()
    assert isinstance(t_plain("a").node, Node)
