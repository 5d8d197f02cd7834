"""Tasks and their workers: leases, order, tasks of dead workers, and restarts."""

from __future__ import annotations

from statecfg.entities.invocation import BehaviorResult, Invocation
from statecfg.entities.model import IN_DELETION, RESOLVED, Query
from statecfg.entities.operations import Operations
from statecfg.entities.tasks import LEASE
from statecfg.store import opened
from tests.unit.entities.scenes import ANN, BEN, EVE, FAILED, INTERFACE, ROOT, Scene, behavior, refused

GONE = "ACCESS_TO_RESOURCE_IS_FORBIDDEN"


def step(operations: Operations, task: str) -> Invocation:
    found = operations.advance(task)
    assert found is not None
    return found


def test_a_task_belongs_to_one_worker_until_its_lease_ends(scene_on_both: Scene) -> None:
    scene = scene_on_both
    o, entity = scene.operations, scene.entity(scene.type("PreDelete", "PostDelete"))
    task = o.delete_entity(ROOT, entity.id)
    assert o.next_due() == 0
    assert o.claim("one") == task.id
    assert o.claim("two") is None
    assert o.next_due() == scene.now + LEASE
    first = step(o, task.id)
    assert (first.hook, first.tasks.claimed, first.tasks.parent) == ("PreDelete", task.id, task.id)
    assert {scene.task(id).status for id in (task.id, first.tasks.own)} == {"running"}
    assert step(o, task.id) == first, "asking again gives the same step"

    scene.now += LEASE - 1
    assert o.renew(task.id, "one")
    assert not o.renew(task.id, "two")
    scene.now += LEASE - 1
    assert o.claim("two") is None
    scene.now += 2
    assert o.claim("two") == task.id, "worker two takes over when the lease of worker one has expired"
    assert not o.renew(task.id, "one")
    assert step(o, task.id) == first, "the step keeps its idempotency key"

    assert o.enter_outcome(task.id, first.id, BehaviorResult(True))
    assert not o.enter_outcome(task.id, first.id, BehaviorResult(False, error=FAILED)), "a late outcome is refused"
    second = step(o, task.id)
    assert (second.hook, second.id != first.id) == ("PostDelete", True)
    assert scene.state(entity.id) == "IN_DELETION"
    assert not o.enter_outcome(task.id, "another", BehaviorResult(True))
    assert o.enter_outcome(task.id, second.id, BehaviorResult(True))
    assert (o.advance(task.id), o.claim("two"), o.next_due()) == (None, None, None)
    assert not o.renew(task.id, "two")
    assert not o.enter_outcome("urn:vcloud:task:none", second.id, BehaviorResult(True))


def test_a_deletion_continues_after_a_restart(scene: Scene) -> None:
    entity = scene.entity(scene.type("PreDelete", "PostDelete"))
    o = scene.operations
    task = o.delete_entity(ROOT, entity.id)
    assert o.claim("one", task.id) == task.id
    o.enter_outcome(task.id, step(o, task.id).id, BehaviorResult(True))
    begun = step(o, task.id)
    scene.now += LEASE + 1
    with opened(url=str(scene.store.address.path)) as store:
        again = Operations(store, lambda: scene.now)
        assert again.claim("two") == task.id
        found = step(again, task.id)
        assert found == begun
        assert found.hook == "PostDelete"
        again.enter_outcome(task.id, found.id, BehaviorResult(True))
    assert (scene.task(task.id).status, scene.state(entity.id)) == ("success", "gone")


def test_hooks_of_one_entity_run_one_by_one_and_other_tasks_in_parallel(scene: Scene) -> None:
    o, kind = scene.operations, scene.type("PostUpdate")
    entity, other = scene.entity(kind), scene.entity(kind)
    o.add_behavior_grant(ROOT, kind.id, {"behaviorId": behavior("blink"), "accessLevelId": "ReadOnly"})
    first = o.update_entity(ROOT, entity.id, {"entity": {"foo": "1"}}).task
    second = o.update_entity(ROOT, entity.id, {"entity": {"foo": "2"}}).task
    third = o.update_entity(ROOT, other.id, {"entity": {"foo": "3"}}).task
    beside = o.invoke(ROOT, entity.id, behavior("blink"))
    assert first is not None
    assert second is not None
    assert third is not None
    assert o.claim("one", second.id) is None
    assert [o.claim("one") for _ in range(4)] == [first.id, third.id, beside.id, None]
    # A hook sees the entity as it is when it runs.
    found = step(o, first.id)
    assert found.entity.content == {"foo": "2"}
    o.enter_outcome(first.id, found.id, BehaviorResult(True))
    assert o.claim("one") == second.id
    for id in (second.id, third.id, beside.id):
        o.enter_outcome(id, step(o, id).id, BehaviorResult(True))


def test_a_released_task_is_due_at_once(scene: Scene) -> None:
    o, entity = scene.operations, scene.entity(scene.type("PreDelete"))
    task = o.delete_entity(ROOT, entity.id)
    assert o.claim("one") == task.id
    o.release(task.id, "two")
    assert o.claim("two") is None
    o.release(task.id, "one")
    assert o.claim("two") == task.id
    o.release(task.id, "two")
    assert scene.work() == ["PreDelete"]


def test_deleting_an_entity_during_its_hook_ends_its_other_tasks(scene: Scene) -> None:
    o, kind = scene.operations, scene.type("PostUpdate", "PostCreate", "PostDelete")
    entity = scene.entity(kind)
    running = o.update_entity(ROOT, entity.id, {"entity": {"foo": "1"}}).task
    waiting = o.update_entity(ROOT, entity.id, {"entity": {"foo": "2"}}).task
    assert running is not None
    assert waiting is not None
    assert o.claim("one") == running.id
    found = step(o, running.id)
    o.delete_entity(ROOT, entity.id, invoke_hooks=False)
    assert o.enter_outcome(running.id, found.id, BehaviorResult(True))
    assert scene.work() == []
    assert scene.task(running.id).status == "success"
    error = scene.task(waiting.id).error
    assert error is not None
    assert error["minorErrorCode"] == "RDE_ENTITY_GONE"
    deleting = scene.entity(kind)
    task = o.delete_entity(ROOT, deleting.id)
    assert o.claim("one") == task.id
    part = step(o, task.id).tasks.own
    o.delete_entity(ROOT, deleting.id, invoke_hooks=False)
    assert o.advance(task.id) is None
    assert (scene.task(task.id).status, scene.task(part).status) == ("success", "error")


def test_a_task_fails_if_its_behavior_was_deleted(scene: Scene) -> None:
    o, kind = scene.operations, scene.type()
    id = o.create_behavior(ROOT, INTERFACE, {"name": "fleeting", "execution": {"type": "noop"}}).id
    o.add_behavior_grant(ROOT, kind.id, {"behaviorId": id, "accessLevelId": "ReadOnly"})
    task = o.invoke(ROOT, scene.entity(kind).id, id)
    o.delete_behavior(ROOT, INTERFACE, id)
    assert scene.work() == []
    error = scene.task(task.id).error
    assert error is not None
    assert error["minorErrorCode"] == "RDE_INVALID_BEHAVIOR_SCOPE"


def test_moving_to_a_version_without_hooks_ends_waiting_hooks(scene: Scene) -> None:
    o, hooks = scene.operations, ("PostUpdate", "PreDelete", "PostDelete")
    old, new = scene.type(*hooks, nss="moves"), scene.type(nss="moves", version="2.0.0")
    entity = scene.entity(old)
    task = o.update_entity(ROOT, entity.id, {"entity": {"foo": "1"}}).task
    assert task is not None
    # PreDelete runs even if the same change moves the entity to a version without that hook.
    marking = o.update_entity(ROOT, entity.id, {"entityType": new.id, "entityState": IN_DELETION})
    assert marking.accepted
    assert scene.work("PreDelete") == ["PostUpdate", "PreDelete"]
    assert scene.state(entity.id) == RESOLVED

    waiting = o.update_entity(ROOT, entity.id, {"entity": {"foo": "2"}}).task
    deleting = o.delete_entity(ROOT, entity.id)
    assert waiting is not None
    assert o.update_entity(ROOT, entity.id, {"entityType": new.id}).task is None
    assert scene.work() == []
    error = scene.task(waiting.id).error
    assert error is not None
    assert error["minorErrorCode"] == "RDE_INVALID_BEHAVIOR_SCOPE"
    assert (scene.task(deleting.id).status, scene.state(entity.id)) == ("success", "gone")


def test_skipping_hooks_needs_full_control_of_both_versions(scene: Scene) -> None:
    o = scene.operations
    old, new = scene.type(nss="both"), scene.type("PostUpdate", nss="both", version="2.0.0")
    for kind, level in ((old, "FullControl"), (new, "ReadWrite")):
        o.add_grant(ROOT, kind.id, {"memberId": BEN.id, "accessLevelId": level})
    entity = scene.entity(old, who=BEN)
    body = {"entityType": new.id}
    refused(403, GONE, o.update_entity, BEN, entity.id, body, None, False)
    assert o.update_entity(BEN, entity.id, body).task is not None
    assert scene.work() == ["PostUpdate"]


def test_progress_and_details_of_a_task_are_bounded_and_cleaned(scene: Scene) -> None:
    o, entity = scene.operations, scene.entity(scene.type("PreDelete"))
    task = o.delete_entity(ROOT, entity.id)
    assert o.claim("one") == task.id
    found = step(o, task.id)
    o.update_task(found.id, progress=140, details="half\0way \ud800", operation="x" * 5000)
    shown = scene.task(found.tasks.own)
    assert (shown.reported.progress, shown.reported.details, len(shown.operation)) == (100, "halfway ?", 4097)
    o.update_task(found.id, details="a" * 70_000 + "the newest")
    details = scene.task(found.tasks.own).reported.details
    assert (details[:2], details[-10:], len(details)) == ("…a", "the newest", 65_537)
    o.update_task(found.id)
    error = {"message": "no\0 \ud800", "minorErrorCode": "X"}
    o.enter_outcome(task.id, found.id, BehaviorResult(False, error=error))
    ended = scene.task(task.id)
    assert ended.error == {"majorErrorCode": 400, "minorErrorCode": "X", "message": "PreDelete hook failed: no ?"}
    o.update_task(found.id, progress=5)
    assert scene.task(found.tasks.own).reported.progress == 100, "a task does not change after its end"


def test_tasks_are_visible_to_their_starter_and_users_of_the_entity(scene: Scene) -> None:
    o, kind = scene.operations, scene.type()
    o.add_grant(ROOT, kind.id, {"memberId": ANN.id, "accessLevelId": "ReadWrite"})
    task = o.create_entity(ANN, kind.id, {"name": "e", "entity": {"foo": "x"}}, resolve=True)
    for id in (task.id, task.id.rpartition(":")[2], task.id.rpartition(":")[2].upper()):
        assert o.get_task(ANN, id) == o.get_task(ROOT, id) == task
    for id in (task.id, "", "urn:vcloud:task:x", task.entity):
        refused(403, GONE, o.get_task, EVE, id)
    assert o.list_tasks(EVE, Query()).total == 0
    assert o.list_tasks(ANN, Query()).values == [task]
    o.add_grant(ROOT, task.entity, {"memberId": EVE.id, "accessLevelId": "ReadOnly"})
    assert o.get_task(EVE, task.id) == task
    o.delete_entity(ROOT, task.entity)
    refused(403, GONE, o.get_task, EVE, task.id)
    assert o.get_task(ANN, task.id) == task
    newest = o.list_tasks(ROOT, Query(f"owner=={task.entity}")).values
    assert [item.name for item in newest] == ["deleteDefinedEntity", "createDefinedEntity"]
    assert o.list_tasks(ROOT, Query("status==success;progress=lt=100")).total == 0
