"""Permissions: roles, owners, tokens, and the access controls of types, entities and behaviors."""

from __future__ import annotations

from typing import Any

import pytest

from statecfg.entities.model import (
    FULL_CONTROL,
    IN_DELETION,
    LEVELS,
    MEMBERSHIP,
    READ_ONLY,
    READ_WRITE,
    Principal,
    Query,
)
from statecfg.entities.problems import ApiError
from tests.each import each
from tests.unit.entities.scenes import ALL, ANN, BEN, EVE, ROOT, VIC, Scene, behavior, refused

GONE = "ACCESS_TO_RESOURCE_IS_FORBIDDEN"


def grant(member: str, level: str) -> dict[str, str]:
    return {"grantType": MEMBERSHIP, "memberId": member, "accessLevelId": level}


def test_grants_on_a_type_decide_who_may_see_and_use_it(scene: Scene) -> None:
    o, kind = scene.operations, scene.type("PreDelete")
    body = {"name": "e", "entity": {}}
    for who in (ANN, EVE, VIC):
        refused(403, GONE, o.get_type, who, kind.id)
        assert o.list_types(who, Query(f"id=={kind.id}")).total == 0
        refused(403, GONE, o.create_entity, who, kind.id, body)
    o.add_grant(ROOT, kind.id, grant(ANN.org_id, READ_ONLY))
    for who in (ANN, BEN, VIC):
        assert o.get_type(who, kind.id) == kind
        assert o.list_types(who, Query(f"id=={kind.id}")).values == [kind]
        refused(403, GONE, o.create_entity, who, kind.id, body)
    refused(403, GONE, o.get_type, EVE, kind.id)
    o.add_grant(ROOT, kind.id, grant(ANN.org_id, READ_WRITE))
    o.create_entity(ANN, kind.id, body)
    refused(403, GONE, o.create_entity, VIC, kind.id, body), "a viewer only reads"
    refused(403, GONE, o.create_entity, ANN, kind.id, body, invoke_hooks=False)
    o.add_grant(ROOT, kind.id, grant(ANN.id, FULL_CONTROL))
    o.create_entity(ANN, kind.id, body, invoke_hooks=False)
    refused(403, GONE, o.create_entity, BEN, kind.id, body, invoke_hooks=False)
    own = {"execution": {"type": "noop"}}
    assert o.override_behavior(ANN, kind.id, behavior("blink"), own).owner == kind.id
    refused(403, GONE, o.override_behavior, BEN, kind.id, behavior("blink"), own)
    refused(403, GONE, o.delete_type, BEN, kind.id)
    refused(403, GONE, o.create_type, ANN, {})


def test_skipping_hooks_needs_full_control_of_the_type(scene: Scene) -> None:
    o, kind = scene.operations, scene.type("PreDelete", "PostUpdate")
    o.add_grant(ROOT, kind.id, grant(ANN.id, READ_WRITE))
    entity = scene.entity(kind)
    o.add_grant(ROOT, entity.id, grant(ANN.id, FULL_CONTROL))
    message = refused(403, GONE, o.update_entity, ANN, entity.id, {"name": "x"}, invoke_hooks=False)
    assert "Full Control" in message
    refused(403, GONE, o.delete_entity, ANN, entity.id, invoke_hooks=False)
    assert o.get_entity(ANN, entity.id) == entity
    o.add_grant(ROOT, kind.id, grant(ANN.id, FULL_CONTROL))
    assert o.update_entity(ANN, entity.id, {"name": "x"}, invoke_hooks=False).task is None
    assert o.delete_entity(ANN, entity.id, invoke_hooks=False).status == "success"


@pytest.mark.parametrize("level", [None, *LEVELS])
@pytest.mark.parametrize("who", [BEN, VIC, EVE], ids=lambda who: who.name)
def test_access_to_an_entity_depends_on_the_granted_level(scene: Scene, who: Principal, level: str | None) -> None:
    """The organization of Ben and Vic has access. Vic is a viewer. Eve belongs to another organization."""
    o, kind = scene.operations, scene.type()
    o.add_grant(ROOT, kind.id, grant(ANN.id, READ_WRITE))
    id = o.create_entity(ANN, kind.id, {"name": "e", "entity": {"foo": "x"}}, resolve=True).entity
    if level is not None:
        o.add_grant(ANN, id, grant(BEN.org_id, level))
    have = 0 if level is None or who == EVE else 1 if who == VIC else LEVELS.index(level) + 1
    listed = Query(f"id=={id}")
    calls: list[tuple[int, Any]] = [
        (1, lambda: o.get_entity(who, id)),
        (1, lambda: o.list_tasks(who, Query(f"owner=={id}")).values[0]),
        (1, lambda: o.list_entities(who, listed).values[0]),
        (2, lambda: o.update_entity(who, id, {"name": "new"})),
        (2, lambda: o.resolve_entity(who, id)),
        (3, lambda: o.list_grants(who, id, ALL)),
        (3, lambda: o.add_grant(who, id, grant(EVE.id, READ_ONLY))),
        (3, lambda: o.replace_grants(who, id, {"values": [grant(BEN.org_id, FULL_CONTROL)]})),
        (3, lambda: o.update_entity(who, id, {"entityState": IN_DELETION})),
        (3, lambda: o.delete_entity(who, id)),
    ]
    for needed, call in calls:
        if have >= needed:
            call()
        else:
            with pytest.raises((ApiError, IndexError)) as found:
                call()
            assert isinstance(found.value, IndexError) or found.value.minor_code == GONE
    assert scene.state(id) == ("gone" if have == 3 else "RESOLVED")


def test_invoking_a_behavior_needs_its_access_level(scene: Scene) -> None:
    o, kind = scene.operations, scene.type()
    entity = scene.entity(kind)
    blink = behavior("blink")
    o.add_grant(ROOT, entity.id, grant(BEN.id, READ_WRITE))
    for level, allowed in ((READ_ONLY, True), (READ_WRITE, True), (FULL_CONTROL, False)):
        values = [{"behaviorId": blink, "accessLevelId": level}]
        assert [item.level for item in o.replace_behavior_grants(ROOT, kind.id, {"values": values}).values] == [level]
        if allowed:
            o.invoke(BEN, entity.id, blink)
        else:
            refused(403, GONE, o.invoke, BEN, entity.id, blink)
        o.invoke(ROOT, entity.id, blink)
    both = [{"behaviorId": blink, "accessLevelId": level} for level in (FULL_CONTROL, READ_ONLY)]
    assert len(o.replace_behavior_grants(ROOT, kind.id, {"values": both}).values) == 2
    o.invoke(BEN, entity.id, blink)
    refused(403, GONE, o.invoke, EVE, entity.id, blink)
    assert o.replace_behavior_grants(ROOT, kind.id, {"values": []}).values == []
    refused(403, GONE, o.invoke, ROOT, entity.id, blink), "without a grant, nobody may invoke it"
    added = o.add_behavior_grant(ROOT, kind.id, {"behaviorId": blink, "accessLevelId": "ReadWrite"})
    assert o.list_behavior_grants(ROOT, kind.id, ALL).values == [added]
    for values in ([{"behaviorId": "x"}], [{}], [7], None, {}):
        with pytest.raises(Exception, match=r"values|behaviorId|is not a behavior"):
            o.replace_behavior_grants(ROOT, kind.id, {"values": values})
    assert o.list_behavior_grants(ROOT, kind.id, ALL).values == [added]
    scene.work()


def test_grants_can_be_added_changed_replaced_and_deleted(scene: Scene) -> None:
    o, kind = scene.operations, scene.type()
    creator = o.list_grants(ROOT, kind.id, ALL).values
    assert [(item.member, item.level) for item in creator] == [(ROOT.id, FULL_CONTROL)]
    made = o.add_grant(ROOT, kind.id, grant("urn:vcloud:user:1", READ_ONLY))
    assert o.get_grant(ROOT, kind.id, made.id) == made
    again = o.add_grant(ROOT, kind.id, grant("urn:vcloud:user:1", READ_WRITE))
    assert (again.id, again.level) == (made.id, READ_WRITE)
    assert o.update_grant(ROOT, kind.id, made.id, {"accessLevelId": FULL_CONTROL}).level == FULL_CONTROL
    refused(409, "RDE_IMMUTABLE", o.update_grant, ROOT, kind.id, made.id, grant(EVE.id, READ_ONLY))
    found = o.replace_grants(ROOT, kind.id, {"values": [grant(EVE.id, READ_ONLY), grant(made.member, READ_ONLY)]})
    assert {(item.member, item.level) for item in found.values} == {(EVE.id, READ_ONLY), (made.member, READ_ONLY)}
    assert made.id in {item.id for item in found.values}
    o.delete_grant(ROOT, kind.id, made.id)
    for call in (o.get_grant, o.delete_grant):
        refused(403, GONE, call, ROOT, kind.id, made.id)
    entity = scene.entity(kind)
    refused(403, GONE, o.get_grant, ROOT, entity.id, found.values[0].id), "of another object"
    for wrong in ({}, grant("ann", READ_ONLY), grant(ANN.id, "All"), grant(ANN.id, READ_ONLY) | {"grantType": "x"}):
        refused(400, "BAD_REQUEST", o.add_grant, ROOT, kind.id, wrong)
    refused(403, GONE, o.add_grant, ROOT, "urn:vcloud:entity:a:b:none", grant(ANN.id, READ_ONLY))


def test_token_identifies_its_user_until_it_expires_or_is_deleted(scene: Scene) -> None:
    o = scene.operations
    secret = o.add_token("ann", "sales", "author")
    assert o.principal_of(secret) == ANN
    assert len(secret) == 43
    raw = o.store.address.path
    assert raw is not None
    assert secret.encode() not in raw.read_bytes(), "the store must contain only the SHA-256 of a token"
    short = o.add_token("ben", "sales", "viewer", lasting=60)
    assert o.principal_of(short) == Principal("ben", "sales", "viewer")
    scene.now += 61
    assert o.principal_of(short) is None
    assert [(token.name, token.role) for token in o.list_tokens()] == [("ann", "author")]
    assert o.delete_token(o.list_tokens()[0].id)
    assert o.principal_of(secret) is None
    gone = o.add_token("root", "System", "administrator")
    assert o.revoke(gone)
    assert not o.revoke(gone)
    for nobody in (gone, "", "x", "ä" * 43, "\ud800"):
        assert o.principal_of(nobody) is None


@each(
    ("name", "org", "role"),
    [
        ("a", "b", "owner"),
        ("", "b", "author"),
        ("a b", "b", "author"),
        ("a", "", "author"),
        ("a\n", "b", "author"),
        ("a", "b", "administrator"),
        ("a", "System", "author"),
    ],
)
def test_add_token_refuses_invalid_names_and_roles(scene: Scene, name: str, org: str, role: str) -> None:
    refused(400, "BAD_REQUEST", scene.operations.add_token, name, org, role)
