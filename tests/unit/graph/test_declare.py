"""Declaration of nodes: names, requirements, checks, and messages about mistakes."""

from __future__ import annotations

from typing import Any

import pytest

from statecfg.graph import declare, validators
from statecfg.graph.graph import Graph
from statecfg.problems import InvalidInput, collecting
from statecfg.problems.positions import SourceLocation
from statecfg.remote.graph.model import Keyword
from statecfg.remote.graph.nodetype import NodeType, Schema
from tests.each import each
from tests.unit.graph.node_types import refused, t_path, t_plain, t_rich

HERE = SourceLocation("play.yml", 7, 5)


def attrs(graph: Graph) -> dict[str, Any]:
    return dict(graph.node.attrs)


def line() -> int:
    import sys

    return sys._getframe(1).f_lineno


def test_node_position_is_the_line_and_column_of_its_call() -> None:
    node = t_plain("a").node
    assert (node.position.file, node.position.line, node.position.column) == (__file__, line() - 1, 12)


def test_nodes_from_a_loop_share_one_position() -> None:
    assert len({t_plain(str(index)).node.position for index in range(3)}) == 1


def test_attributes_may_be_keywords_or_a_map_with_any_keys() -> None:
    one = t_rich("/a", owner="web", count=4)
    two = t_rich("/a", {":owner": "web", Keyword("count"): 4})
    three = declare.declare_at(t_rich, (), {"path": "/a", "owner": "web", "count": 4}, HERE)
    assert attrs(one) == attrs(two) == attrs(three)
    assert three.node.position == HERE


def test_node_gets_default_attributes_and_omits_none_values() -> None:
    found = attrs(t_rich("/a", owner="web", port=None))
    assert found["mode"] == 0o644 and found["state"] == "on" and found["flag"] is False
    assert not {"port", "names", "env"} & set(found)


def test_restart_on_adds_to_requires_and_triggers() -> None:
    conf = t_plain("conf")
    node = t_plain("svc", requires=["t_plain:pkg", conf], restart_on=[conf, "t_plain:env"]).node
    assert list(node.requires) == ["t_plain:pkg", "t_plain:conf", "t_plain:env"]
    assert list(node.triggers) == ["t_plain:conf", "t_plain:env"]
    graph = t_plain("svc", restart_on=conf)
    assert set(graph.nodemap) == {"t_plain:svc", "t_plain:conf"} and list(graph.node.requires) == ["t_plain:conf"]


@pytest.mark.parametrize("single", ["t_plain:a", Keyword("t_plain:a"), ":t_plain:a"])
def test_requires_accepts_one_name_or_nested_lists(single: Any) -> None:
    assert list(t_plain("b", requires=single).node.requires) == ["t_plain:a"]
    assert list(t_plain("b", requires=[[single], [[]]]).node.requires) == ["t_plain:a"]
    assert list(t_plain("b", requires=t_plain("a").node).node.requires) == ["t_plain:a"]


def test_node_keeps_options_apart_from_attributes() -> None:
    node = t_plain("a", tags="web").node
    assert dict(node.options) == {"tags": ["web"]} and "tags" not in node.attrs
    assert dict(t_plain("a").node.options) == {}


def test_map_attributes_keep_their_order() -> None:
    env = {key: key for key in "zyxwvutsrqponmlkjihgfedcba"}
    assert list(attrs(t_rich("/a", owner="web", env=env))["env"]) == list(env)


def test_declare_reports_all_mistakes_of_a_node_together() -> None:
    with refused("SC0101", "SC0102", "SC0201", "SC0202", "SC0105") as found:
        t_rich("/a", mode=644, count="3", ownr="web", requires=[3.5])
    by_code = {item.code: item for item in found}
    assert "t_rich has no attribute `ownr` (t_rich:/a)" in by_code["SC0101"].detail
    assert "did you mean `owner`?" in by_code["SC0101"].help
    assert by_code["SC0102"].detail == "t_rich:/a lacks the attribute `owner`, a user name"
    assert by_code["SC0102"].help == "owner: who it belongs to, in one name"
    assert by_code["SC0202"].help.startswith("write '0644'; 644 decimal is 01204")
    assert by_code["SC0201"].detail == "`count` of t_rich:/a: expected an integer, got a string: '3'"
    assert "requires of t_rich:/a contains a number: 3.5" in by_code["SC0105"].detail
    assert {item.locations[0].line for item in found} == {line() - 9}


def test_problem_has_the_place_where_the_attribute_is_written() -> None:
    with refused("SC0202") as found:
        declare.declare_at(t_path, ("a",), {}, HERE, {"path": SourceLocation("play.yml", 9, 11)})
    assert found[0].locations == (SourceLocation("play.yml", 9, 11),)


def test_declare_refuses_extra_missing_and_repeated_arguments() -> None:
    with refused("SC0104") as found:
        t_plain("a", "b")
    assert found[0].detail == "t_plain takes 1 positional argument (name), got 2"
    with refused("SC0102") as found:
        t_plain()
    assert "lacks the argument `name`, a name" in found[0].detail
    with refused("SC0103") as found:
        t_plain("a", {"text": "x"}, text="y")
    assert found[0].detail == "`text` of t_plain 'a' is given twice"
    with refused("SC0103"):
        t_plain("a", name="b")


@each("name", ["", "a\nb", "x" * 5000, "\0"])
def test_declare_refuses_invalid_values_of_provides(name: str) -> None:
    with refused("SC0108") as found:
        t_plain("a", provides=name)
    assert len(found[0].detail) < 120
    with refused("SC0108"):
        t_plain("a", provides=3)


def test_declare_refuses_invalid_tags_and_requires() -> None:
    with refused("SC0201"):
        t_plain("a", tags=[1])
    with refused("SC0105") as found:
        t_plain("a", requires={"b"})
    assert "a set" in found[0].detail


def test_contradiction_shows_the_message_of_the_types_validator() -> None:
    with refused("SC0107") as found:
        t_rich("/a", owner="web", flag=True, count=0)
    assert found[0].detail == "t_rich:/a: flag needs a count"


def test_broken_node_causes_no_further_problems() -> None:
    with collecting() as found:
        graph = t_path("a", body="x")
        user = t_plain("b", requires=[graph, "t_path:a"])
    assert [item.code for item in found] == ["SC0202"]
    assert graph.node.broken and not user.node.broken
    from statecfg.playbook.compile import WireContext, compile_graph

    assert compile_graph(user, WireContext())


def test_nameless_node_causes_no_problem_in_nodes_that_require_it() -> None:
    with refused("SC0102"):
        graph = t_path()
        from statecfg.graph.graph import merge_graphs
        from statecfg.graph.layers import layers

        layers(merge_graphs(graph, t_plain("b", requires=["t_path:/etc/x"])))


def test_secret_counts_as_text_and_stays_hidden_in_messages() -> None:
    from statecfg.playbook.secrets import Secret

    secret = Secret("token", "hunter2 hunter2")
    assert attrs(t_plain("a", text=secret))["text"] is secret
    with refused("SC0425", "SC0201") as found:
        t_rich("/a", owner=secret, count=secret)
    assert not any("hunter" in str(item) for item in found)
    assert any("`owner` of t_rich contains a secret: <secret token>" in item.detail for item in found)


def process(module: str) -> NodeType:
    """The process of the Borg document, as the Hy dialect declares it."""
    return NodeType("process", schema=Schema(["pathname"], ["user", "env"], {"block?": None}), module=module)


def is_name(value: Any) -> bool:
    return isinstance(value, (str, Keyword)) or type(value).__name__ == "Keyword"


def test_validators_of_the_borg_document_check_and_transform_values() -> None:
    module = "tests.borg"
    validators.forget(module)
    validators.add_validators(module, {"env": [(lambda value: isinstance(value, dict),)]})
    validators.add_validators(module, {"user": [(is_name, str, str.lower)], "block?": [(lambda v: v in (True, None),)]})
    kind = process(module)
    node = kind("/bin/x", {"user": "WEB", "env": {"A": "1"}, "provides": "svc", ":block?": True}).node
    assert dict(node.attrs) == {
        "type": "process", "pathname": "/bin/x", "user": "web", "env": {"A": "1"}, "block?": True
    }  # fmt: skip
    with refused("SC0202", "SC0202", "SC0101", "SC0102") as found:
        kind("/bin/x", {"env": [], "block?": 1.5, "blok?": True})
    text = "\n".join(map(str, found))
    assert "did you mean `block?`?" in text and "lacks the attribute `user`" in text
    with refused("SC0202") as found:
        kind("/bin/x", {"user": 3, "env": {}})
    assert "3 is not accepted by is_name" in found[0].detail


def test_declare_refuses_a_validator_that_returns_none() -> None:
    from typing import Annotated

    def kind(name: Annotated[str, print]) -> None: ...

    kind.__annotations__["name"] = Annotated[str, lambda value: None]
    with refused("SC0202") as found:
        NodeType("k", function=kind, module=__name__)("a")
    assert "returned None" in found[0].detail


def test_mistake_outside_collecting_raises_invalid_input() -> None:
    with pytest.raises(InvalidInput, match="relative path"):
        t_path("a")


def test_unknown_node_type_is_reported_with_a_suggestion() -> None:
    from statecfg.graph import registry

    with refused("SC0106") as found:
        assert registry.find("fiel", HERE) is None
    assert "did you mean `file`?" in found[0].help and "resources/fiel.py" in found[0].help
    assert found[0].locations == (HERE,)
    with refused("SC0106") as found:
        from statecfg.resources import pakage  # noqa: F401  # the import is the test
    assert "did you mean `package`?" in found[0].help
    assert found[0].locations[0].line == line() - 2 and found[0].locations[0].file == __file__
