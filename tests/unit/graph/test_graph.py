"""Nodes, graphs and merging: the Borg document's rules and what statecfg adds to them."""

from __future__ import annotations

import pytest

from statecfg.graph.graph import EMPTY, Graph, merge_graphs
from statecfg.graph.nodes import Node, same
from statecfg.problems import InvalidInput
from statecfg.remote.graph.model import Keyword
from tests.unit.graph.node_types import chain, of_edges, refused, t_plain


def names(graph: Graph) -> set[str]:
    return set(graph.nodemap)


def test_calling_a_type_gives_a_graph_of_node_and_nodemap() -> None:
    graph = t_plain("/bin/x", {"provides": "svc", "text": "t"})
    assert graph["node"] is graph.node and graph["nodemap"] == {"svc": graph.node}
    assert dict(graph.node["attrs"]) == {"type": "t_plain", "name": "/bin/x", "text": "t"}
    assert list(graph.keys()) == ["node", "nodemap"]


def test_fields_are_read_by_name_attribute_and_keyword() -> None:
    node = t_plain("x").node
    assert node["provides"] == node.provides == Keyword("provides")(node) == "t_plain:x"
    assert node["produces-ops"] == node.produces_ops
    with pytest.raises(KeyError):
        node["colour"]


def test_required_graph_joins_and_leaves_its_name() -> None:
    d = t_plain("d", provides=":some-directory")
    f = t_plain("f", provides=":some-file", requires=[d])
    assert list(f.node.requires) == ["some-directory"]
    assert names(f) == {"some-directory", "some-file"}


def test_required_name_joins_nothing() -> None:
    f = t_plain("f", provides=":some-file", requires=[Keyword("some-directory")])
    assert list(f.node.requires) == ["some-directory"] and names(f) == {"some-file"}


@pytest.mark.parametrize("turned", [False, True])
def test_of_two_merged_graphs_the_one_that_requires_is_the_node(turned: bool) -> None:
    f, d = t_plain("f", requires=["d"]), t_plain("d", provides="d")
    assert merge_graphs(*((d, f) if turned else (f, d))).node is f.node


def test_requiring_through_others_counts_as_well() -> None:
    c, a = t_plain("c", provides="c"), chain("a", "b")
    b_requires_c = merge_graphs(a, t_plain("x", provides="x"))
    assert (
        merge_graphs(c, merge_graphs(t_plain("a", provides="a", requires=["m"]), t_plain("m", provides="m"))).node
        is c.node
    )
    assert b_requires_c.node is a.node
    deep = t_plain("a", provides="a", requires=[t_plain("b", provides="b", requires=["c"])])
    assert merge_graphs(c, deep).node is deep.node and merge_graphs(deep, c).node is deep.node


def test_unrelated_or_many_graphs_keep_the_first_node() -> None:
    one, two, three = (t_plain(name) for name in "abc")
    assert merge_graphs(one, two).node is one.node
    assert merge_graphs(one, two, three).node is one.node
    assert merge_graphs(one) is one


def test_merging_nothing_is_an_empty_graph() -> None:
    assert names(merge_graphs()) == set() == names(EMPTY)
    with pytest.raises(LookupError, match="empty graph"):
        _ = merge_graphs(EMPTY, merge_graphs()).node
    assert merge_graphs(EMPTY, t_plain("a")).node.provides == "t_plain:a"


def test_merging_what_is_no_graph_is_refused() -> None:
    with refused("SC0109") as found:
        merge_graphs(t_plain("a"), [t_plain("b")])
    assert "got a list" in found[0].detail


def test_nothing_can_be_changed() -> None:
    graph = t_plain("a", after=["x"])
    for thing, field in ((graph, "parts"), (graph.node, "provides")):
        with pytest.raises(AttributeError, match="can't be changed"):
            setattr(thing, field, ())
    with pytest.raises(TypeError):
        graph.node.attrs["name"] = "b"
    with pytest.raises((TypeError, AttributeError)):
        graph.node.attrs["after"].append("y").clear()
    assert list(graph.node.attrs["after"]) == ["x"]


def test_with_attrs_leaves_the_original_alone() -> None:
    node = t_plain("a", text="t", requires=["b"]).node
    other = node.with_attrs(text=None, size=3)
    assert dict(other.attrs) == {"type": "t_plain", "name": "a", "size": 3}
    assert node.attrs["text"] == "t" and other.requires == node.requires and other.position == node.position


def test_same_node_from_the_same_place_is_one() -> None:
    def part() -> Graph:
        return t_plain("shared", text="t")

    one, two = part(), part()
    assert one.node is not two.node and same(one.node, two.node)
    assert names(merge_graphs(one, two)) == {"t_plain:shared"}


def test_same_name_from_two_places_is_a_problem_with_both_places() -> None:
    one = t_plain("a")
    two = t_plain("a")
    with refused("SC0110") as found:
        _ = merge_graphs(one, two).nodemap
    assert [place.line for place in found[0].places] == [one.node.position.line, two.node.position.line]


def test_sharing_deep_and_wide_costs_one_visit_each() -> None:
    shared = t_plain("0")
    for level in range(1, 60):  # 2**59 paths lead to the first node
        shared = t_plain(str(level), requires=[shared, merge_graphs(shared, t_plain("0", provides=f"side{level}"))])
    assert len(shared.nodemap) == 60 + 59


def test_of_edges_is_what_it_says() -> None:
    assert {name: list(node.requires) for name, node in of_edges({"a": ["b"], "b": []}).nodemap.items()} == {
        "a": ["b"],
        "b": [],
    }


def test_names_are_no_identity() -> None:
    assert t_plain("a", provides="x").node != t_plain("b", provides="x").node
    with pytest.raises(TypeError):
        hash(t_plain("a").node)


def test_problem_raised_outside_collecting_is_invalid_input() -> None:
    with pytest.raises(InvalidInput):
        t_plain()
    assert isinstance(t_plain("a").node, Node)
