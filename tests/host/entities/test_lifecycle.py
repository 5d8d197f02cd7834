"""The life of an entity, the same on SQLite and PostgreSQL."""

from __future__ import annotations

import re

from statecfg.entities.model import CREATE, PRE_CREATED, RESOLUTION_ERROR, RESOLVED
from tests.unit.entities.scenes import ROOT, Scene, refused

GONE = "ACCESS_TO_RESOURCE_IS_FORBIDDEN"


def test_an_entity_is_created_resolved_changed_and_deleted(scene_on_both: Scene) -> None:
    scene = scene_on_both
    o, kind = scene.operations, scene.type()
    task = o.create_entity(ROOT, kind.id, {"name": "lamp", "entity": {}, "externalId": None})
    id = task.entity
    assert (task.name, task.status, task.reported.progress) == (CREATE, "running", 1)
    assert re.fullmatch(r"urn:vcloud:entity:acme:\w+:[0-9a-f-]{36}", id)
    made = o.get_entity(ROOT, id)
    assert (made.state, made.ownership.owner, made.ownership.org) == (PRE_CREATED, "root", "System")
    refused(409, "RDE_ENTITY_NOT_RESOLVED", o.delete_entity, ROOT, id)

    wrong = o.resolve_entity(ROOT, id)
    assert (wrong.state, wrong.message) == (RESOLUTION_ERROR, "'foo' is a required property")
    assert wrong.etag not in ("", made.etag)
    ended = scene.task(task.id)
    assert (ended.status, ended.error and ended.error["message"]) == ("error", wrong.message)

    changed = o.update_entity(ROOT, id, {"name": "lamp", "entity": {"foo": "bar"}}, wrong.etag)
    assert (changed.entity.state, changed.task, changed.accepted) == (RESOLUTION_ERROR, None, False)
    assert changed.etag != wrong.etag
    found = o.resolve_entity(ROOT, id)
    assert (found.state, found.message) == (RESOLVED, "")
    assert found.etag != changed.etag
    assert o.resolve_entity(ROOT, id).etag == found.etag, "resolving an unchanged entity keeps its ETag"
    assert o.get_entity(ROOT, id) == found

    assert o.delete_entity(ROOT, id).status == "success"
    for call in (o.get_entity, o.resolve_entity, o.delete_entity):
        refused(403, GONE, call, ROOT, id)
    refused(403, GONE, o.update_entity, ROOT, id, {})
    refused(403, GONE, o.create_entity, ROOT, "urn:vcloud:type:acme:none:1.0.0", {"name": "x", "entity": {}})
