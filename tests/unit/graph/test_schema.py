"""A signature or a Hy definition determines the arguments, attributes, defaults and JSON Schema of a node type."""

from __future__ import annotations

from typing import Any

import pytest

from statecfg.graph import schema
from statecfg.problems import InvalidInput
from statecfg.remote.graph.nodetype import OPTIONS, NodeType, Schema
from statecfg.remote.graph.values import NodeOptions
from tests.each import each
from tests.unit.graph.node_types import t_rich


def node_type_of(function: Any) -> NodeType:
    return NodeType("t", function=function, module=__name__, doc=function.__doc__)


def test_schema_comes_from_the_function_signature() -> None:
    found = schema.of(t_rich)
    assert found.arguments == ("path",) and found.required == ("path", "owner")
    assert found.optional["mode"] == 0o644 and found.optional["count"] == 3 and found.optional["port"] is None
    assert found.fields["owner"].doc == "who it belongs to, in one name"
    assert found.fields["owner"].type.expects == "a user name"
    flags = ("protect", "allow_lockout", "take_over")
    options = ("provides", "requires", "restart_on", "tags", *flags, "when_host", "for_each_host")
    assert found.names[-9:] == options


def test_every_list_of_the_options_of_nodes_has_the_same_names() -> None:
    options = set(NodeOptions.__annotations__)
    assert options == set(OPTIONS)
    assert set(schema.json_schema(t_rich)["properties"]) - set(schema.of(t_rich).fields) == options


def test_schema_of_a_type_is_made_only_once() -> None:
    assert schema.of(t_rich) is schema.of(t_rich)


def test_schema_turns_hyphens_in_argument_names_into_underscores() -> None:
    given = Schema(["path-name"], ["user"], {"block?": None})
    found = schema.of(NodeType("t", schema=given, module="nowhere"))
    assert (found.arguments, found.required) == (("path_name",), ("path_name", "user"))
    assert dict(found.optional) == {"block?": None}


def test_json_schema_describes_every_attribute_for_editors() -> None:
    found = schema.json_schema(t_rich)
    assert found["required"] == ["path", "owner"] and found["additionalProperties"] is False
    properties = found["properties"]
    assert properties["path"] == {"type": "string", "pattern": "^/", "description": "where it is"}
    assert properties["mode"]["pattern"] and properties["count"]["default"] == 3
    assert properties["port"] == {"type": "integer", "minimum": 1, "maximum": 65535}
    assert properties["state"] == {"enum": ["on", "off"], "default": "on"}
    assert properties["names"]["items"] == {"type": "string", "minLength": 1, "maxLength": 255}
    assert properties["env"] == {"type": "object", "additionalProperties": {"type": "string"}}
    assert properties["either"] == {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]}
    assert properties["requires"] == {"type": "array", "items": {"type": "string"}}


def star(*names: str) -> None: ...
def option(name: str, *, requires: str) -> None: ...
def own_type(name: str, *, type: str) -> None: ...
def unknown(name: Nowhere) -> None: ...  # noqa: F821  # an unknown type is the test
def default(name: str, *, size: int = "big") -> None: ...


@each(
    ("function", "message"),
    [
        (star, "`*names` would also collect attributes"),
        (option, "`requires` is already an option of every node"),
        (own_type, "`type` is already an option of every node"),
        (unknown, "name 'Nowhere' is not defined"),
        (default, "the default of `size`: expected an integer, got a string: 'big'"),
    ],
)
def test_schema_refuses_a_wrong_definition_at_its_line(function: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        schema.of(node_type_of(function))
    (found,) = caught.value.problems
    assert found.code == "SC0119" and message in found.detail
    assert found.locations[0].line == function.__code__.co_firstlineno


def test_every_shipped_node_type_has_a_schema() -> None:
    from statecfg import resources

    for name in resources.available():
        kind = getattr(resources, name)
        assert schema.of(kind).arguments, name
        assert schema.json_schema(kind)["title"] == name
