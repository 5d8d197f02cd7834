"""Contents that do not match the schema: no playbook gets them, and the entity can still be deleted."""

from __future__ import annotations

import pytest

from statecfg.entities.invocation import BehaviorResult
from statecfg.entities.model import RESOLUTION_ERROR, RESOLVED, EntityType
from tests.unit.entities.scenes import INTERFACE, ROOT, Scene, behavior

PLAYBOOK = {"type": "Playbook", "id": "playbooks/site.yml"}
CODE = "RDE_CANNOT_RESOLVE"


@pytest.fixture(scope="module")
def kind(scene: Scene) -> EntityType:
    """Return a type with the same playbook for all hooks."""
    o = scene.operations
    o.create_behavior(ROOT, INTERFACE, {"name": "play", "execution": PLAYBOOK})
    hooks = dict.fromkeys(("PostCreate", "PostUpdate", "PreDelete", "PostDelete"), behavior("play"))
    return scene.type(nss="rejected", hooks=hooks)


def test_creation_with_rejected_contents_fails_without_running_hooks(scene: Scene, kind: EntityType) -> None:
    o = scene.operations
    task = o.create_entity(ROOT, kind.id, {"name": "e", "entity": {"foo": 1}})
    assert scene.work() == []
    ended = scene.task(task.id)
    assert ended.status == "error" and ended.error is not None
    assert (ended.error["minorErrorCode"], ended.error["message"]) == (CODE, "foo: 1 is not of type 'string'")
    entity = o.get_entity(ROOT, task.entity)
    assert (entity.state, entity.message) == (RESOLUTION_ERROR, "foo: 1 is not of type 'string'")


def test_update_runs_no_hook_until_the_contents_fit(scene: Scene, kind: EntityType) -> None:
    o = scene.operations
    id = scene.entity(kind).id
    updated = o.update_entity(ROOT, id, {"entity": {"foo": []}})
    assert scene.work() == [] and updated.task is not None
    error = scene.task(updated.task.id).error
    assert error is not None and error["minorErrorCode"] == CODE and scene.state(id) == RESOLUTION_ERROR
    o.update_entity(ROOT, id, {"entity": {"foo": "fits"}})
    assert scene.work() == ["PostUpdate"]


@pytest.mark.parametrize("destroys", [False, True])
def test_an_invoked_playbook_is_applied_only_to_contents_that_fit(
    scene: Scene, kind: EntityType, destroys: bool
) -> None:
    """The contents change between the request and its execution. A playbook that destroys still runs."""
    o = scene.operations
    execution = {**PLAYBOOK, "execution_properties": {"destroy": destroys}}
    made = o.create_behavior(ROOT, INTERFACE, {"name": f"again-{destroys}", "execution": execution})
    o.add_behavior_grant(ROOT, kind.id, {"behaviorId": made.id, "accessLevelId": "ReadOnly"})
    id = scene.entity(kind).id
    task = o.invoke(ROOT, id, made.id)
    o.update_entity(ROOT, id, {"entity": {"foo": 1}}, invoke_hooks=False)
    before = o.get_entity(ROOT, id)
    assert scene.work() == ([""] if destroys else [])
    ended = scene.task(task.id)
    if destroys:
        assert ended.status == "success"
    else:
        assert ended.status == "error" and ended.error is not None
        assert (ended.error["minorErrorCode"], ended.error["message"]) == (CODE, "foo: 1 is not of type 'string'")
    assert o.get_entity(ROOT, id) == before


@pytest.mark.parametrize("content", [{"foo": 1}, {"foo": "fits"}], ids=["rejected", "fitting"])
def test_entity_can_be_deleted_whatever_its_contents(scene: Scene, kind: EntityType, content: dict) -> None:
    o = scene.operations
    body = {"name": "e", "entity": content}
    id = o.create_entity(ROOT, kind.id, body, resolve=True, invoke_hooks=False).entity
    assert scene.state(id) == (RESOLVED if content["foo"] == "fits" else RESOLUTION_ERROR)
    o.delete_entity(ROOT, id)
    claimed = o.claim("worker")
    assert claimed is not None
    steps = []
    while (step := o.advance(claimed)) is not None:
        assert step.destroys and not step.applies
        assert bool(step.rejected) is (content["foo"] == 1)
        steps.append(step.hook)
        assert o.enter_outcome(claimed, step.id, BehaviorResult(True))
    assert steps == ["PreDelete", "PostDelete"] and scene.state(id) == "gone"
