"""Entities: creation, resolution, changes, hooks, and the invocation of behaviors."""

from __future__ import annotations

from typing import Any

import pytest

from statecfg.entities.model import (
    CREATE,
    EXECUTE,
    IN_DELETION,
    PRE_CREATED,
    RESOLUTION_ERROR,
    RESOLVED,
    Principal,
    Query,
)
from tests.each import each
from tests.unit.entities.scenes import ALL, ANN, FAILED, INTERFACE, ROOT, Scene, behavior, refused

GONE = "ACCESS_TO_RESOURCE_IS_FORBIDDEN"


def test_create_with_resolve_checks_the_content_at_once(scene: Scene) -> None:
    o, kind = scene.operations, scene.type()
    good = o.create_entity(ROOT, kind.id, {"name": "e", "entity": {"foo": "bar"}}, resolve=True)
    assert (good.status, good.reported.progress, scene.state(good.entity)) == ("success", 100, RESOLVED)
    bad = o.create_entity(ROOT, kind.id, {"name": "e", "entity": {"foo": 1}}, resolve=True)
    assert (bad.status, scene.state(bad.entity)) == ("error", RESOLUTION_ERROR)
    assert bad.error == {
        "majorErrorCode": 400,
        "minorErrorCode": "RDE_CANNOT_RESOLVE",
        "message": "foo: 1 is not of type 'string'",
    }


# content | what the hook does | whether the request resolves the entity at once | state after
CREATIONS = [
    ({"foo": "bar"}, "succeeds", False, RESOLVED),
    ({"foo": "bar"}, "succeeds", True, RESOLVED),
    ({}, "succeeds", False, RESOLUTION_ERROR),
    ({"foo": "bar"}, "fails", False, RESOLUTION_ERROR),
    ({"foo": "bar"}, "fails", True, RESOLUTION_ERROR),
]


@pytest.mark.parametrize(("content", "does", "resolve", "after"), CREATIONS)
def test_post_create_hook_decides_the_state_of_an_entity(
    scene: Scene, content: dict[str, Any], does: str, resolve: bool, after: str
) -> None:
    kind = scene.type("PostCreate")
    task = scene.operations.create_entity(ROOT, kind.id, {"name": "e", "entity": content}, resolve=resolve)
    assert (task.name, task.status, task.parent) == (EXECUTE, "queued", "")
    assert task.operation == f"Invoked PostCreate e({task.entity})"
    assert scene.state(task.entity) == PRE_CREATED, "the entity must wait for its hook"
    assert scene.work(*(["PostCreate"] if does == "fails" else [])) == ["PostCreate"]
    found = scene.operations.get_entity(ROOT, task.entity)
    assert found.state == after
    ended = scene.task(task.id)
    if does == "fails":
        assert (ended.status, ended.error) == ("error", FAILED)
        assert found.message == "PostCreate hook failed: the lamp is broken"
        # A later resolution does not restart the task.
        assert scene.operations.resolve_entity(ROOT, task.entity).state == RESOLVED
        assert scene.task(task.id) == ended
    else:
        assert (ended.status, ended.result) == ("success", {"entityId": task.entity})


def test_creation_without_hooks_runs_no_post_create_hook(scene: Scene) -> None:
    kind = scene.type("PostCreate")
    body = {"name": "e", "entity": {"foo": "bar"}}
    task = scene.operations.create_entity(ROOT, kind.id, body, invoke_hooks=False)
    assert (task.name, scene.state(task.entity), scene.work()) == (CREATE, PRE_CREATED, [])
    task = scene.operations.create_entity(ROOT, kind.id, body, resolve=True, invoke_hooks=False)
    assert (task.status, scene.state(task.entity)) == ("success", RESOLVED)


@pytest.mark.parametrize("before", [PRE_CREATED, RESOLVED, RESOLUTION_ERROR])
@pytest.mark.parametrize("failing", [[], ["PostUpdate"]])
def test_post_update_hook_does_not_change_the_state(scene: Scene, before: str, failing: list[str]) -> None:
    entity = scene.entity(scene.type("PostUpdate"), before)
    found = scene.operations.update_entity(ROOT, entity.id, {"name": "new", "entity": {"foo": "new"}})
    assert (found.entity.name, found.entity.state, found.accepted) == ("new", before, False)
    assert found.task is not None
    assert found.task.operation == f"Invoked PostUpdate new({entity.id})"
    assert scene.work(*failing) == ["PostUpdate"]
    assert scene.operations.get_entity(ROOT, entity.id) == found.entity
    assert scene.task(found.task.id).status == ("error" if failing else "success")
    without = scene.operations.update_entity(ROOT, entity.id, {"name": "newer"}, invoke_hooks=False)
    assert (without.task, scene.work()) == (None, [])


def test_post_update_hook_ignores_entities_marked_for_deletion(scene: Scene) -> None:
    o = scene.operations
    marked = scene.entity(scene.type("PostUpdate"), IN_DELETION)
    assert o.update_entity(ROOT, marked.id, {"entity": {"foo": "x"}}).task is None
    entity = scene.entity(scene.type("PostUpdate"))
    waiting = o.update_entity(ROOT, entity.id, {"entity": {"foo": "x"}}).task
    o.update_entity(ROOT, entity.id, {"entityState": IN_DELETION})
    assert scene.work() == []
    assert waiting is not None
    error = scene.task(waiting.id).error
    assert error is not None
    assert error["minorErrorCode"] == "RDE_ENTITY_IN_DELETION"


def test_update_with_invalid_content_sets_resolution_error(scene: Scene) -> None:
    entity = scene.entity(scene.type())
    found = scene.operations.update_entity(ROOT, entity.id, {"entity": {"foo": 7}}).entity
    assert (found.state, found.message) == (RESOLUTION_ERROR, "foo: 7 is not of type 'string'")
    back = scene.operations.update_entity(ROOT, entity.id, {"entity": {"foo": "7"}}).entity
    assert back.state == RESOLUTION_ERROR, "only a resolution may change the state"
    assert scene.operations.resolve_entity(ROOT, entity.id).state == RESOLVED


def test_update_keeps_the_fields_that_it_leaves_out(scene: Scene) -> None:
    entity = scene.entity(scene.type(), externalId="outside")
    o = scene.operations
    found = o.update_entity(ROOT, entity.id, {"state": "RESOLVED"}).entity
    assert (found.name, found.content, found.external_id) == ("e", {"foo": "bar"}, "outside")
    assert o.update_entity(ROOT, entity.id, {"externalId": None}).entity.external_id is None


@pytest.mark.parametrize(
    ("if_match", "matches"),
    [
        (None, True),
        ("*", True),
        ('"{}"', True),
        ('"999", "{}"', True),
        ('"999"', False),
        ('W/"{}"', False),
        ("{}", False),
        ("", False),
    ],
)
def test_if_match_header_allows_or_refuses_a_change(scene: Scene, if_match: str | None, matches: bool) -> None:
    o = scene.operations
    entity = scene.entity(scene.type())
    header = None if if_match is None else if_match.format(entity.revision)
    if matches:
        o.update_entity(ROOT, entity.id, {"name": "x"}, header)
        entity = o.get_entity(ROOT, entity.id)
        o.delete_entity(ROOT, entity.id, None if if_match is None else if_match.format(entity.revision))
        return
    refused(412, "PRECONDITION_FAILED", o.update_entity, ROOT, entity.id, {"name": "x"}, header)
    refused(412, "PRECONDITION_FAILED", o.delete_entity, ROOT, entity.id, header)
    assert o.get_entity(ROOT, entity.id) == entity


WRONG_BODIES: list[Any] = [
    None,
    [],
    "x",
    {},
    {"name": "e"},
    {"name": "", "entity": {}},
    {"name": 7, "entity": {}},
    {"name": "e" * 2000, "entity": {}},
    {"name": "e", "entity": []},
    {"name": "e", "entity": {"foo": "a\0b"}},
    {"name": "e", "entity": {"a\0b": 1}},
    {"name": "e", "entity": {"foo": "\ud800"}},
    {"name": "e", "entity": {"foo": float("nan")}},
    {"name": "e", "entity": {"foo": float("inf")}},
    {"name": "e", "entity": {"foo": eval("[" * 90 + "]" * 90)}},
    {"name": "e", "entity": {"foo": 10**1300}},
    {"name": "e", "entity": {}, "externalId": 7},
]


@each("body", WRONG_BODIES, ids=lambda body: repr(body)[:40])
def test_create_entity_refuses_invalid_bodies(scene: Scene, body: Any) -> None:
    kind = scene.type(nss="wrong", version=f"1.0.{WRONG_BODIES.index(body)}")
    refused(400, "BAD_REQUEST", scene.operations.create_entity, ROOT, kind.id, body)
    assert scene.operations.list_entities(ROOT, Query(f"entityType=={kind.id}")).total == 0


def test_update_entity_refuses_unknown_states_and_other_types(scene: Scene) -> None:
    o, entity = scene.operations, scene.entity(scene.type())
    message = refused(400, "BAD_REQUEST", o.update_entity, ROOT, entity.id, {"entityState": "IN_DELETIN"})
    assert "Did you mean `IN_DELETION`?" in message
    refused(409, "RDE_IMMUTABLE", o.update_entity, ROOT, entity.id, {"entityType": scene.type().id})


def test_entity_can_move_to_another_version_of_its_type(scene: Scene) -> None:
    old = scene.type(nss="moving")
    new = scene.type(nss="moving", version="2.0.0", schema={"required": ["bar"]})
    entity = scene.entity(old)
    found = scene.operations.update_entity(ROOT, entity.id, {"entityType": new.id, "entity": {"bar": 1}}).entity
    assert (found.id, found.type, found.state) == (entity.id, new.id, RESOLVED)


def test_invoke_runs_a_behavior_with_its_arguments(scene: Scene) -> None:
    o, kind = scene.operations, scene.type()
    entity = scene.entity(kind)
    blink = behavior("blink")
    refused(403, GONE, o.invoke, ROOT, entity.id, blink)
    o.replace_behavior_grants(ROOT, kind.id, {"values": [{"behaviorId": blink, "accessLevelId": "ReadOnly"}]})
    task = o.invoke(ROOT, entity.id, blink, {"arguments": {"often": 3}, "metadata": {"m": 1}})
    assert (task.name, task.operation) == (EXECUTE, f"Invoked blink e({entity.id})")
    assert o.claim("worker") == task.id
    found = o.advance(task.id)
    assert found is not None
    assert (found.hook, found.arguments, found.metadata) == ("", {"often": 3}, {"m": 1})
    assert (found.tasks.own, found.tasks.parent, found.tasks.claimed) == (task.id, "", task.id)
    assert (found.entity.content, found.user, found.behavior.id) == ({"foo": "bar"}, ROOT, blink)
    o.release(task.id, "worker")
    assert scene.work() == [""]
    assert scene.task(task.id).result == {"entityId": entity.id}
    refused(404, "RDE_INVALID_BEHAVIOR_SCOPE", o.invoke, ROOT, entity.id, behavior("none"))
    refused(400, "BAD_REQUEST", o.invoke, ROOT, entity.id, blink, {"arguments": 7})
    unresolved = scene.entity(kind, PRE_CREATED)
    refused(409, "RDE_ENTITY_NOT_RESOLVED", o.invoke, ROOT, unresolved.id, blink)


def test_update_made_by_a_hook_runs_no_hooks(scene: Scene) -> None:
    o = scene.operations
    entity = scene.entity(scene.type("PostUpdate", "PreDelete"), who=ROOT)
    o.update_entity(ROOT, entity.id, {"entity": {"foo": "x"}})
    claimed = o.claim("worker")
    assert claimed is not None
    hook = o.advance(claimed)
    assert hook is not None
    secret = o.invocation_token(hook.id)
    itself = o.principal_of(secret)
    assert itself == Principal("root", "System", "administrator", hook.id)
    found = o.update_entity(itself, entity.id, {"entity": {"foo": "from the hook"}})
    assert found.task is None
    o.release(claimed, "worker")
    assert scene.work() == ["PostUpdate"]
    assert o.principal_of(secret) is None, "the token must expire with the hook"
    refused(400, "BAD_REQUEST", o.invocation_token, hook.id)


def test_hook_runs_the_override_of_its_type(scene: Scene) -> None:
    o, kind = scene.operations, scene.type("PreDelete")
    entity = scene.entity(kind)
    own = o.override_behavior(ROOT, kind.id, behavior("PreDelete"), {"execution": {"type": "noop", "id": "own"}})
    o.delete_entity(ROOT, entity.id)
    claimed = o.claim("worker")
    assert claimed is not None
    found = o.advance(claimed)
    assert found is not None
    assert (found.behavior, found.execution["id"], found.hook) == (own, "own", "PreDelete")
    assert own.id.startswith("urn:vcloud:behavior-type:PreDelete:acme:")
    o.release(claimed, "worker")
    scene.work()


def test_entities_can_be_listed_by_type_version_and_interface(scene: Scene) -> None:
    o = scene.operations
    kinds = [scene.type(nss="listed", version=version) for version in ("1.0.0", "1.1.0", "2.0.0-rc.1", "10.0.0")]
    ids = [scene.entity(kind, PRE_CREATED).id for kind in kinds]
    for version, expected in (
        ("1.0.0", ids[:1]),
        ("1", ids[:2]),
        ("1.1", ids[1:2]),
        ("2", ids[2:3]),
        ("2.0.0-rc", []),
        ("3", []),
    ):
        found = o.list_entities_of_type(ROOT, "acme", "listed", version, ALL)
        assert ([item.id for item in found.values], found.total) == (expected, len(expected)), version
    of_interface = Query("entityType==urn:vcloud:type:acme:listed:*")
    assert o.list_entities_of_interface(ROOT, "acme", "lamp", "1.0.0", of_interface).total == 4
    assert o.list_entities_of_interface(ROOT, "acme", "other", "1.0.0", ALL).total == 0
    assert o.list_entities(ANN, of_interface).total == 0, "ann must not have access"
    assert INTERFACE in o.get_type(ROOT, kinds[0].id).interfaces
