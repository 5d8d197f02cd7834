"""Declarations of one node: equal ones become one node, and different ones are refused."""

from __future__ import annotations

from pathlib import Path

from statecfg.graph.graph import Graph, merge_graphs
from statecfg.graph.layers import layers
from statecfg.graph.nodes import Node
from statecfg.playbook.compile import WireContext, compile_graph
from statecfg.playbook.secrets import Secret
from statecfg.problems.positions import SourceLocation
from tests.each import each
from tests.unit.graph.node_types import refused, t_path, t_plain, t_rich


def only(*graphs: Graph) -> Node:
    (node,) = merge_graphs(*graphs).nodemap.values()
    return node


def test_equal_declarations_unite_requirements_triggers_tags_and_protection() -> None:
    one = t_plain("a", text="t", requires=["x", "y"], tags=["red"])
    two = t_plain("a", text="t", requires=["y", "z"], restart_on=["w"], tags=["blue", "red"], protect=True)
    node = only(one, two)
    assert list(node.requires) == ["x", "y", "z", "w"] and list(node.triggers) == ["w"]
    assert list(node.options["tags"]) == ["red", "blue"] and node.options["protect"] is True
    assert node.positions == (one.node.position, two.node.position)


def test_merged_declarations_can_be_merged_again() -> None:
    one, two, three = t_plain("a"), t_plain("a"), t_plain("a", requires=["x"])
    whole = Graph(only(one, two))
    node = only(whole, three)
    assert node.positions == (one.node.position, two.node.position, three.node.position)
    assert list(node.requires) == ["x"]


def test_many_declarations_of_a_node_are_merged() -> None:
    graphs = [t_plain("a", requires=[f"n{index}"]) for index in range(500)]
    node = only(*graphs)
    assert len(node.requires) == 500 and len(node.positions) == 1


@each(
    ("one", "other", "words"),
    [
        ({"mode": "0600"}, {}, "`mode` is 0600 in test_merging.py:"),
        ({"flag": True}, {}, "`flag` is True in test_merging.py:"),
        ({"env": {"A": "1"}}, {}, "`env` is {'A': '1'} in test_merging.py:"),
        ({"free": "x" * 100}, {}, "`free` differs"),
        ({"free": "x" * 100 + "y"}, {"free": "x" * 101}, "`free` differs"),
        ({"free": 1}, {"free": True}, "`free` is 1 in test_merging.py:"),
        ({"count": 4, "ratio": 1.5, "port": 80, "state": "off"}, {}, " and 1 more"),
    ],
)
def test_different_attributes_are_named_with_their_values(one: dict, other: dict, words: str) -> None:
    graphs = t_rich("/a", owner="web", **one), t_rich("/a", owner="web", **other)
    with refused("SC0110") as found:
        layers(merge_graphs(*graphs))
    assert "2 declarations of t_rich:/a have different attributes: " in found[0].detail
    assert words in found[0].detail
    assert found[0].locations == tuple({graph.node.position: None for graph in graphs})


def test_message_about_different_secrets_does_not_show_them() -> None:
    graphs = t_plain("a", text=Secret("one", "hunter2")), t_plain("a", text=Secret("two", "swordfish"))
    with refused("SC0110") as found:
        layers(merge_graphs(*graphs))
    assert "`text` differs" in found[0].detail
    assert not any(word in str(found[0]) for word in ("hunter2", "swordfish"))
    assert only(t_plain("a", text=Secret("s", "hunter2")), t_plain("a", text=Secret("s", "hunter2")))


def test_different_types_with_one_name_are_refused() -> None:
    with refused("SC0110") as found:
        layers(merge_graphs(t_plain("a", provides="x"), t_path("/a", provides="x")))
    assert "`type` is 't_plain' in" in found[0].detail


def test_places_of_all_declarations_are_reported() -> None:
    graphs = [
        t_plain("a"),
        t_plain("a"),
        t_plain("a", text="other"),
    ]
    with refused("SC0110") as found:
        layers(merge_graphs(*graphs))
    assert found[0].detail.startswith("3 declarations of t_plain:a")
    assert {place.line for place in found[0].locations} == {graph.node.position.line for graph in graphs}


def test_two_names_for_one_object_remain_an_error_with_all_places() -> None:
    graphs = [
        t_path("/a"),
        t_path("/a"),
        t_path("/a", provides="other"),
    ]
    with refused("SC0114") as found:
        compile_graph(merge_graphs(*graphs), WireContext())
    assert [place.line for place in found[0].locations] == [graph.node.position.line for graph in graphs]


def test_missing_requirement_names_the_places_of_all_declarations() -> None:
    one = t_plain("a")
    two = t_plain("a", requires=["nowhere"])
    with refused("SC0111") as found:
        layers(merge_graphs(one, two))
    assert found[0].locations == (one.node.position, two.node.position)


def test_wire_node_lists_the_places_of_its_other_declarations(tmp_path: Path) -> None:
    one, two = t_plain("a"), t_plain("a")
    ((wire,),) = compile_graph(merge_graphs(one, two), WireContext(base=Path(__file__).parent)).layers
    assert wire["position"] == f"test_merging.py:{one.node.position.line}:{one.node.position.column}"
    assert wire["also"] == [f"test_merging.py:{two.node.position.line}:{two.node.position.column}"]


def test_digest_does_not_depend_on_the_number_of_declarations() -> None:
    one, two = t_plain("a"), t_plain("a")
    assert compile_graph(merge_graphs(one, two), WireContext()).digest == compile_graph(one, WireContext()).digest


def declared_in(folder: Path) -> Graph:
    node = t_path("/x", source="data").node
    return Graph(node.replace(position=SourceLocation(str(folder / "play.yml"), 1)))


def test_equal_paths_of_different_files_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "data").write_text("same" if name != "c" else "other")
    context = WireContext(base=tmp_path)
    a, b, c = (declared_in(tmp_path / name) for name in ("a", "b", "c"))
    assert len(compile_graph(merge_graphs(a, b), context).layers) == 1
    with refused("SC0110") as found:
        compile_graph(merge_graphs(a, b, c), context)
    assert "have the same attributes, but give different results: `body`" in found[0].detail
    assert len(found[0].locations) == 3
    (tmp_path / "c" / "data").unlink()
    with refused("SC0118") as found:
        compile_graph(merge_graphs(a, c), context)
    assert found[0].locations[0].file == str(tmp_path / "c" / "play.yml")
