"""References to many nodes in `requires` and `restart_on`: what they match, and their errors."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from statecfg.graph import globs, references
from statecfg.graph.graph import Graph, merge_graphs
from statecfg.graph.layers import layers
from statecfg.graph.recording import label, recording
from statecfg.playbook.compile import WireContext, compile_graph
from statecfg.problems import InvalidInput
from statecfg.problems.positions import SourceLocation, Written
from tests.each import each
from tests.unit.graph.node_types import refused, t_plain


def resolved(*graphs: Graph) -> dict[str, Any]:
    """Return the compiled nodes by name."""
    return {
        node["provides"]: node for layer in compile_graph(merge_graphs(*graphs), WireContext()).layers for node in layer
    }


def required(*graphs: Graph, of: str = "all") -> list[str]:
    return list(resolved(*graphs)[of].get("requires", ()))


def named(*names: str, **options: Any) -> list[Graph]:
    return [t_plain(name, provides=name, **options) for name in names]


@each(
    ("pattern", "name", "matches"),
    [
        ("file:/etc/*", "file:/etc/a", True),
        ("file:/etc/*", "file:/etc/a/b", False),
        ("file:/etc/*", "file:/etc/", True),
        ("file:/etc/**", "file:/etc/a/b", True),
        ("file:/etc/**.conf", "file:/etc/a/b.conf", True),
        ("file:/etc/*.conf", "file:/etc/a.confx", False),
        ("file:/**/b", "file:/a/c/b", True),
        ("package:php*", "package:php8.2-fpm", True),
        ("package:php*", "package:ph", False),
        ("*:nginx", "service:nginx", True),
        ("**a*b", "a/ab", True),
        ("file:/a?[x]", "file:/ab", False),
        ("a*\nb", "axx\nb", True),
    ],
)
def test_pattern_matches_names(pattern: str, name: str, matches: bool) -> None:
    assert bool(globs.compiled(pattern).match(name)) is matches


def test_patterns_match_the_same_as_a_simple_translation() -> None:
    rng = random.Random(1)
    for _ in range(3000):
        pattern = "".join(rng.choice(["a", "b", "/", "*", "**"]) for _ in range(rng.randint(0, 7)))
        name = "".join(rng.choice("ab/") for _ in range(rng.randint(0, 9)))
        parts = re.split(r"(\*\*+|\*)", pattern)
        simple = "".join(
            ".*" if part.startswith("**") else "[^/]*" if part == "*" else re.escape(part) for part in parts
        )
        assert bool(globs.compiled(pattern).match(name)) == bool(re.fullmatch(simple, name)), (pattern, name)


def test_reference_requires_all_matching_nodes() -> None:
    graphs = named("file:/e/a", "file:/e/b", "file:/e/d/c", "package:p")
    assert required(*graphs, *named("all", requires=["file:/e/*"])) == ["file:/e/a", "file:/e/b"]
    assert required(*graphs, *named("all", requires=["file:/e/**"])) == ["file:/e/a", "file:/e/b", "file:/e/d/c"]
    assert required(*graphs, *named("all", requires=["package:p", "*:p", "file:/e/d/*"])) == [
        "package:p",
        "file:/e/d/c",
    ]


def test_reference_in_restart_on_triggers() -> None:
    graphs = [*named("file:/a", "file:/b"), *named("all", requires=["file:/a"], restart_on=["file:/*b", "file:/*"])]
    node = resolved(*graphs)["all"]
    assert node["requires"] == ["file:/a", "file:/b"] and node["triggers"] == ["file:/b", "file:/a"]


def test_tag_refers_to_all_nodes_with_the_tag() -> None:
    graphs = [*named("a", "b", tags=["web", "x"]), *named("c", tags=["x"]), *named("all", requires=["tag:web"])]
    assert required(*graphs) == ["a", "b"]


def test_label_refers_to_all_nodes_that_the_block_declares() -> None:
    with label("sites"):
        inside = named("a", "b")
        with label("inner"):
            inside += named("c")
    assert required(*inside, *named("d"), *named("all", requires=["loop:sites"])) == ["a", "b", "c"]
    assert required(*inside, *named("all", requires=["loop:inner"])) == ["c"]


def test_label_of_an_empty_block_refers_to_nothing() -> None:
    with recording() as recorded, label("none"):
        pass
    graph = merge_graphs(Graph(None, known=recorded.labels), *named("all", requires=["loop:none"]))
    assert required(graph) == []


def test_label_refuses_what_is_not_a_name() -> None:
    for wrong in ("", 3):
        with refused("SC0108") as found, label(wrong):  # type: ignore[arg-type]  # the test is about this
            pass
        assert found[0].locations[0].file == __file__


def test_merged_declarations_have_the_labels_and_tags_of_all() -> None:
    with label("one"):
        one = t_plain("x", tags=["t1"])
    with label("two"):
        two = t_plain("x", tags=["t2"])
    for reference in ("loop:one", "loop:two", "tag:t1", "tag:t2"):
        assert required(one, two, *named("all", requires=[reference])) == ["t_plain:x"]


def test_node_does_not_match_its_own_reference() -> None:
    graphs = [
        *named("a/1", "a/2", tags=["t"]),
        *named("a/all", requires=["a/*"]),
        *named("b", tags=["t"], requires=["tag:t"]),
    ]
    found = resolved(*graphs)
    assert found["a/all"]["requires"] == ["a/1", "a/2"] and found["b"]["requires"] == ["a/1", "a/2"]


def test_node_whose_name_looks_like_a_reference_is_required_by_name() -> None:
    graphs = named("file:/a*", "file:/ab", "tag:x")
    assert required(*graphs, *named("all", requires=["file:/a*", "tag:x"])) == ["file:/a*", "tag:x"]


def test_reference_to_a_node_that_requires_itself_by_name_stays_an_error() -> None:
    with refused("SC0112"):
        layers(merge_graphs(*named("a", "b"), *named("all", requires=["a*", "all"])))


@each(
    ("reference", "detail", "help"),
    [
        ("tag:wbe", "no node of the graph has the tag wbe", "did you mean `tag:web`?"),
        ("loop:site", "no loop of the playbook has the label site", "did you mean `loop:sites`?"),
        ("include:a", "no `include:` of the playbook names a", "write the name as in the `include:` entry"),
        ("file:/etc/ngnix/*", "no node of the graph has a name like that", "did you mean `file:/etc/nginx/*`?"),
        ("package:*", "no node of the graph has a name like that", "available: "),
        ("al*", "matches only all itself", "refer to other nodes"),
        ("tag:mine", "matches only all itself", "refer to other nodes"),
    ],
)
def test_reference_without_a_match_is_reported(reference: str, detail: str, help: str) -> None:
    with label("sites"):
        graphs = named("file:/etc/nginx/a", "b", tags=["web"])
    place = SourceLocation("play.yml", 3, 5)
    node = t_plain("x", provides="all", tags=["mine"], requires=[Written(reference, place)])
    with refused("SC0111") as found:
        layers(merge_graphs(*graphs, node))
    assert detail in found[0].detail and help in found[0].help and found[0].locations == (place,)


def test_cycle_through_references_names_them_and_their_places() -> None:
    places = [SourceLocation("a.yml", 1, 2), SourceLocation("b.yml", 3, 4)]
    one = t_plain("x", provides="f/a", requires=[Written("f/*", places[0])])
    two = t_plain("x", provides="f/b", requires=[Written("f/**", places[1])])
    with refused("SC0113") as found:
        layers(merge_graphs(one, two))
    assert "f/a requires f/b through f/* (a.yml:1:2)" in found[0].detail
    assert "f/b requires f/a through f/** (b.yml:3:4)" in found[0].detail
    assert found[0].locations == (*places, one.node.position, two.node.position)
    assert "instead of `f/*`" in found[0].help


def test_requirement_by_name_is_reported_instead_of_a_reference() -> None:
    one, two = named("f/a", requires=["f/*", "f/b"]), named("f/b", requires=["f/a"])
    with refused("SC0113") as found:
        layers(merge_graphs(*one, *two))
    assert "through" not in found[0].detail


def test_references_that_stand_for_too_much_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = named(*(f"n{index}" for index in range(40)))
    monkeypatch.setattr(references, "MAX_EXPANDED", 100)
    layers(merge_graphs(*graphs, *named("all", "all2", requires=["n*"])))
    with refused("SC0115") as found:
        layers(merge_graphs(*graphs, *named("all", "all2", "all3", requires=["n*"])))
    assert "more than 100 requirements; one is n*" in found[0].detail
    monkeypatch.setattr(references, "MAX_EXPANDED", 1000)
    monkeypatch.setattr(references, "MAX_COMPARED", 100)
    with refused("SC0115") as found:
        layers(merge_graphs(*graphs, *named("all", requires=["n*1", "n*2", "n*3"])))
    assert "compared with more than 100 names" in found[0].detail


def test_graph_without_references_is_not_copied() -> None:
    nodes = list(merge_graphs(*named("a"), *named("b", requires=["a"])).nodes())
    assert references.expand(nodes, frozenset)[0] is nodes


def test_invalid_input_lists_all_references_without_a_match() -> None:
    with pytest.raises(InvalidInput) as caught:
        layers(merge_graphs(*named("all", requires=["x*", "tag:a"]), *named("b", requires=["y*"])))
    assert [item.code for item in caught.value.problems] == ["SC0111"] * 3
