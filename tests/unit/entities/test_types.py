"""Interfaces, behaviors and types: their contents, allowed changes, and refused requests."""

from __future__ import annotations

from typing import Any

from statecfg.entities import schemas
from statecfg.entities.model import FULL_CONTROL, READ_ONLY, Query
from tests.each import each
from tests.unit.entities.scenes import ALL, ANN, INTERFACE, ROOT, SCHEMA, Scene, behavior, refused

GONE = "ACCESS_TO_RESOURCE_IS_FORBIDDEN"
SCOPE = "RDE_INVALID_BEHAVIOR_SCOPE"


def test_interface_can_be_created_read_updated_and_deleted(scene: Scene) -> None:
    o = scene.operations
    id = "urn:vcloud:interface:acme:fan:1.2.3"
    body = {"name": "fans", "vendor": "acme", "nss": "fan", "version": "1.2.3", "id": id, "readonly": False}
    made = o.create_interface(ROOT, body)
    assert (made.id, made.name, made.readonly) == (id, "fans", False)
    refused(409, "RDE_ALREADY_EXISTS", o.create_interface, ROOT, body)
    refused(403, GONE, o.create_interface, ANN, body | {"nss": "other", "id": None})
    refused(400, "BAD_REQUEST", o.create_interface, ROOT, body | {"nss": "other"})
    assert o.get_interface(ANN, id) == made
    assert o.list_interfaces(ANN, Query("nss==fan;version==1.*")).values == [made]
    assert o.update_interface(ROOT, id, body | {"name": "ventilators"}).name == "ventilators"
    for key, value in (("vendor", "x"), ("nss", "x"), ("version", "2.0.0")):
        refused(409, "RDE_IMMUTABLE", o.update_interface, ROOT, id, {"name": "x", key: value})
    refused(403, GONE, o.update_interface, ANN, id, body)
    o.create_behavior(ROOT, id, {"name": "spin", "execution": {"type": "noop"}})
    o.delete_interface(ROOT, id)
    for call in (o.get_interface, o.delete_interface):
        refused(403, GONE, call, ROOT, id)
    refused(403, GONE, o.list_behaviors, ROOT, id, ALL)


@each(
    "change",
    [
        {"vendor": "a:b"},
        {"vendor": ""},
        {"nss": "a/b"},
        {"nss": None},
        {"version": "1"},
        {"version": "1.0"},
        {"version": "01.0.0"},
        {"version": "1.0.0\n"},
        {"name": None},
        {"nss": "x" * 65},
        {"readonly": "yes"},
    ],
    ids=repr,
)
def test_interfaces_and_types_refuse_invalid_fields(scene: Scene, change: dict[str, Any]) -> None:
    body = {"name": "x", "vendor": "acme", "nss": "wrong", "version": "1.0.0"} | change
    refused(400, "BAD_REQUEST", scene.operations.create_interface, ROOT, body)
    refused(400, "BAD_REQUEST", scene.operations.create_type, ROOT, body | {"schema": SCHEMA})


def test_readonly_interfaces_and_types_refuse_changes(scene: Scene) -> None:
    o = scene.operations
    body = {"name": "x", "vendor": "acme", "nss": "fixed", "version": "1.0.0", "readonly": True}
    id = o.create_interface(ROOT, body).id
    refused(409, "RDE_READONLY", o.update_interface, ROOT, id, {"name": "y"})
    refused(409, "RDE_READONLY", o.delete_interface, ROOT, id)
    kind = o.create_type(ROOT, body | {"schema": SCHEMA})
    refused(409, "RDE_READONLY", o.update_type, ROOT, kind.id, body | {"name": "y", "schema": SCHEMA})
    refused(409, "RDE_READONLY", o.delete_type, ROOT, kind.id)


def test_behavior_can_be_created_read_updated_and_deleted(scene: Scene) -> None:
    o = scene.operations
    execution = {"type": "MQTT", "id": "1", "_internal_key": "s3cret", "execution_properties": {"_secure_a": 1}}
    made = o.create_behavior(ROOT, INTERFACE, {"name": "warm", "description": "d", "execution": execution})
    assert made.id == made.ref == behavior("warm")
    refused(
        409,
        "RDE_BEHAVIOR_ALREADY_EXISTS",
        o.create_behavior,
        ROOT,
        INTERFACE,
        {"name": "warm", "execution": {"type": "x"}},
    )
    assert o.get_behavior(ANN, INTERFACE, made.id) == made
    assert made in o.list_behaviors(ANN, INTERFACE, Query("name==w*")).values
    # A client cannot read secrets, so it need not send them back.
    body = {"name": "warm", "execution": {"type": "MQTT", "id": "2", "execution_properties": {"x": 1}}}
    found = o.update_behavior(ROOT, INTERFACE, made.id, body)
    assert (found.id, found.ref, found.name, found.description) == (made.id, made.ref, "warm", None)
    assert found.execution == {
        "type": "MQTT",
        "id": "2",
        "_internal_key": "s3cret",
        "execution_properties": {"x": 1, "_secure_a": 1},
    }
    other = o.update_behavior(ROOT, INTERFACE, made.id, {"execution": {"type": "noop"}})
    assert other.execution == {"type": "noop"}, "a new kind of execution must not keep the old secrets"
    other = o.update_behavior(ROOT, INTERFACE, made.id, {"name": "hot", "ref": "x", "execution": {"type": "noop"}})
    assert (other.name, other.ref, other.id) == (made.name, made.id, made.id), "these fields must not change"
    for execution in (None, {}, {"type": 7}, {"type": "a b"}):
        refused(400, "BAD_REQUEST", o.update_behavior, ROOT, INTERFACE, made.id, {"execution": execution})
    wrong = {"type": "noop", "execution_properties": 7}
    refused(400, "RDE_INVALID_BEHAVIOR_EXECUTION", o.update_behavior, ROOT, INTERFACE, made.id, {"execution": wrong})
    for call in (o.create_behavior, o.delete_behavior):
        refused(403, GONE, call, ANN, INTERFACE, made.id)
    o.delete_behavior(ROOT, INTERFACE, made.id)
    refused(403, GONE, o.get_behavior, ROOT, INTERFACE, made.id)


def test_a_limit_from_the_entity_requires_declared_hosts(scene: Scene) -> None:
    o, wrong = scene.operations, "RDE_INVALID_BEHAVIOR_EXECUTION"

    def body(name: str, **properties: str) -> dict[str, Any]:
        execution = {"type": "Playbook", "id": "playbooks/site.yml", "execution_properties": properties}
        return {"name": name, "execution": execution}

    loose = body("bounded", limit="{{ entity.host }}")
    said = refused(400, wrong, o.create_behavior, ROOT, INTERFACE, loose)
    assert "declare in `hosts` which hosts the playbook may reach" in said
    made = o.create_behavior(ROOT, INTERFACE, body("bounded", limit="{{ entity.host }}", hosts="web*"))
    refused(400, wrong, o.update_behavior, ROOT, INTERFACE, made.id, loose)
    assert o.get_behavior(ROOT, INTERFACE, made.id).execution["execution_properties"]["hosts"] == "web*"
    assert o.create_behavior(ROOT, INTERFACE, body("fixed", limit="web1")).execution


def test_type_can_override_a_behavior_and_undo_it(scene: Scene) -> None:
    o = scene.operations
    id = "urn:vcloud:interface:acme:one:1.0.0"
    o.create_interface(ROOT, {"name": "one", "vendor": "acme", "nss": "one", "version": "1.0.0"})
    plain = o.create_behavior(ROOT, id, {"name": "act", "execution": {"type": "Activity", "id": "x"}})
    kind = scene.type(interfaces=[id], nss="over")
    assert o.list_type_behaviors(ROOT, kind.id, ALL).values == [plain]
    body = {"name": "act", "description": "own", "execution": {"type": "noop", "_internal_key": "k"}}
    own = o.override_behavior(ROOT, kind.id, plain.ref, body)
    assert own.id == "urn:vcloud:behavior-type:act:acme:over:1.0.0:acme:one:1.0.0"
    assert (own.ref, own.name, own.description) == (plain.id, "act", "own")
    for named in (own.id, own.ref):
        assert o.get_type_behavior(ROOT, kind.id, named) == own
        changed = o.override_behavior(ROOT, kind.id, named, {"description": "own", "execution": {"type": "noop"}})
        assert changed == own
    assert o.list_type_behaviors(ROOT, kind.id, ALL).values == [own]
    assert o.get_behavior(ROOT, id, plain.id) == plain
    o.delete_override(ROOT, kind.id, plain.id)
    assert o.list_type_behaviors(ROOT, kind.id, ALL).values == [plain]
    refused(404, SCOPE, o.delete_override, ROOT, kind.id, plain.id)
    for call in (o.get_type_behavior, o.delete_override):
        refused(404, SCOPE, call, ROOT, kind.id, behavior("blink"))
    refused(404, SCOPE, o.override_behavior, ROOT, kind.id, behavior("blink"), body)
    o.override_behavior(ROOT, kind.id, plain.ref, body)
    o.update_type(ROOT, kind.id, {"name": "over", "schema": {}, "interfaces": []})
    assert o.list_type_behaviors(ROOT, kind.id, ALL).values == []


def test_hooks_must_be_behaviors_of_the_types_interfaces(scene: Scene) -> None:
    o = scene.operations
    body = {"name": "x", "vendor": "acme", "nss": "hooked", "version": "1.0.0", "schema": SCHEMA}
    for interfaces, hooks, code in (
        ([], {"PreDelete": behavior("PreDelete")}, SCOPE),
        ([INTERFACE], {"PreDelete": behavior("none")}, SCOPE),
        ([INTERFACE], {"PreDelete": "urn:vcloud:behavior-type:PreDelete:a:b:1.0.0:acme:lamp:1.0.0"}, SCOPE),
        ([INTERFACE], {"PreDelete": 7}, "BAD_REQUEST"),
        ([INTERFACE], {"OnCreate": behavior("PostCreate")}, "BAD_REQUEST"),
    ):
        status = 404 if code == SCOPE else 400
        refused(status, code, o.create_type, ROOT, body | {"interfaces": interfaces, "hooks": hooks})
    message = refused(400, "BAD_REQUEST", o.create_type, ROOT, body | {"hooks": {"PostCrate": "x"}})
    assert "Did you mean `PostCreate`?" in message
    refused(403, GONE, o.create_type, ROOT, body | {"interfaces": ["urn:vcloud:interface:a:b:1.0.0"]})
    kind = o.create_type(ROOT, body | {"interfaces": [INTERFACE], "hooks": {"PreDelete": behavior("PreDelete")}})
    refused(409, "RDE_IN_USE", o.delete_behavior, ROOT, INTERFACE, behavior("PreDelete"))
    refused(409, "RDE_IN_USE", o.delete_interface, ROOT, INTERFACE)
    assert kind.hooks == {"PreDelete": behavior("PreDelete")}


def test_type_in_use_refuses_changes(scene: Scene) -> None:
    o, kind = scene.operations, scene.type("PreDelete")
    same = {"name": "lamp", "schema": SCHEMA, "interfaces": [INTERFACE], "hooks": dict(kind.hooks)}
    assert o.update_type(ROOT, kind.id, same | {"description": "d"}).description == "d"
    for key in ("vendor", "nss", "version"):
        refused(409, "RDE_IMMUTABLE", o.update_type, ROOT, kind.id, same | {key: "9.9.9"})
    entity = scene.entity(kind)
    assert o.update_type(ROOT, kind.id, same | {"description": "d"}).description == "d", "allowed without changes"
    for change in ({"name": "x"}, {"schema": {}}, {"hooks": {}}, {"interfaces": [], "hooks": {}}, {"description": "x"}):
        refused(409, "RDE_IN_USE", o.update_type, ROOT, kind.id, same | {"description": "d"} | change)
    refused(409, "RDE_IN_USE", o.delete_type, ROOT, kind.id)
    refused(409, "RDE_IN_USE", o.update_interface, ROOT, INTERFACE, {"name": "x"})
    o.delete_entity(ROOT, entity.id, invoke_hooks=False)
    assert o.update_type(ROOT, kind.id, same | {"schema": {}}).schema == {}
    o.delete_type(ROOT, kind.id)
    refused(403, GONE, o.get_type, ROOT, kind.id)


def test_new_version_of_a_type_inherits_access(scene: Scene) -> None:
    o = scene.operations
    old = scene.type(nss="heir")
    o.add_grant(ROOT, old.id, {"memberId": ANN.id, "accessLevelId": FULL_CONTROL})
    o.add_behavior_grant(ROOT, old.id, {"behaviorId": behavior("blink"), "accessLevelId": READ_ONLY})
    new = scene.type(nss="heir", version="2.0.0", inheritedVersion="1.0.0")
    assert o.get_type(ANN, new.id) == new
    assert o.list_behavior_grants(ROOT, new.id, ALL).values == o.list_behavior_grants(ROOT, old.id, ALL).values
    alone = scene.type(nss="heir", version="3.0.0", inheritedVersion="0")
    refused(403, GONE, o.get_type, ANN, alone.id)
    body = {"name": "x", "vendor": "acme", "nss": "heir", "version": "4.0.0", "schema": {}, "inheritedVersion": "7.0.0"}
    refused(404, "RDE_NO_SUCH_VERSION", o.create_type, ROOT, body)


@each(
    "schema",
    [
        {"type": "nonsense"},
        {"properties": []},
        {"$schema": "https://json-schema.org/draft/2020-12/schema"},
        {"$schema": 7},
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"properties": {"a": [{"$ref": "file:///etc/passwd"}]}},
        {"description": "x" * (1 << 20)},
    ],
    ids=lambda schema: repr(schema)[:40],
)
def test_create_type_refuses_invalid_schemas(scene: Scene, schema: dict[str, Any]) -> None:
    body = {"name": "x", "vendor": "acme", "nss": "schema", "version": "1.0.0", "schema": schema}
    refused(400, "RDE_INVALID_SCHEMA", scene.operations.create_type, ROOT, body)


@each(
    ("schema", "content", "wrong"),
    [
        ({}, {"a": 1}, ""),
        ({"properties": {"a": {"$ref": "#/definitions/n"}}, "definitions": {"n": {"type": "number"}}}, {"a": 1}, ""),
        ({"properties": {"a": {"type": "number"}}}, {"a": "x"}, "a: 'x' is not of type 'number'"),
        # In draft 4, false is not a schema. A type of container-service-extension uses it, and entities resolve.
        ({"properties": {"additionalproperties": False}}, {"a": 1}, ""),
        ({"properties": {"a": False, "b": True}}, {"a": 1, "b": 1}, "False schema does not allow 1"),
        # In draft 4, exclusiveMinimum is a boolean; from draft 6 on, a number.
        ({"properties": {"a": {"minimum": 1, "exclusiveMinimum": True}}}, {"a": 1}, "a: 1 is less than"),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "if": {}, "then": {"required": ["b"]}}, {}, "'b' is a"),
        (
            {"$schema": "http://json-schema.org/draft-06/schema#", "properties": {"a": {"const": 1}}},
            {"a": 2},
            "a: 1 was",
        ),
        # Clients write null for a field that has no value yet. The field counts as present.
        ({"properties": {"a": {"type": "string", "enum": ["x"]}}, "required": ["a"]}, {"a": None}, ""),
        ({"properties": {"a": {"items": {"type": "object"}}}, "required": ["b"]}, {"a": [None]}, "'b' is a required"),
        ({"properties": {"a": {"oneOf": [{"type": "null"}, {"type": "string"}]}}}, {"a": None}, ""),
        ({"$ref": "#/definitions/none"}, {}, "the type's schema refers to something that it does not contain"),
        ({"$ref": "#"}, {}, "the type's schema refers to itself endlessly"),
        ({"$ref": "#/required", "required": ["foo"]}, {}, "a reference in the schema does not point to a schema"),
        ({"$ref": "#/enum/x", "enum": [1]}, {}, "a reference in the schema does not point to a schema"),
        ({"properties": {"foo": {"$ref": 5}}}, {"foo": 1}, "a reference in the schema does not point to a schema"),
    ],
)
def test_contents_are_checked_against_the_schema_of_the_type(schema: dict[str, Any], content: Any, wrong: str) -> None:
    schemas.check_schema(schema)
    found = schemas.error(schema, content, nulls=True)
    assert found.startswith(wrong)
    assert bool(found) == bool(wrong)
