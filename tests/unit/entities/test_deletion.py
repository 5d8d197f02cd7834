"""The deletion of entities as tables: the state and hooks before it, and the state after it. Each row is a test."""

from __future__ import annotations

import re

import pytest

from statecfg.entities.model import CREATE, DELETE, EXECUTE, IN_DELETION, UPDATE, Query, Task
from tests.unit.entities.scenes import ROOT, SCHEMA, Scene, refused

# State before | hooks of the type | hooks that fail | invokeHooks | what ran | state after | status of the task.
# RESOLUTION_ERROR always behaves like RESOLVED, so each row with RESOLVED is a test of both.
DELETIONS = """
RESOLVED    | -                     | -          | yes | -                    | gone        | success
RESOLVED    | -                     | -          | no  | -                    | gone        | success
RESOLVED    | PreDelete             | -          | yes | PreDelete            | gone        | success
RESOLVED    | PreDelete             | PreDelete  | yes | PreDelete            | RESOLVED    | error
RESOLVED    | PreDelete             | PreDelete  | no  | -                    | gone        | success
RESOLVED    | PostDelete            | -          | yes | PostDelete           | gone        | success
RESOLVED    | PostDelete            | PostDelete | yes | PostDelete           | IN_DELETION | error
RESOLVED    | PostDelete            | PostDelete | no  | -                    | gone        | success
RESOLVED    | PreDelete PostDelete  | -          | yes | PreDelete PostDelete | gone        | success
RESOLVED    | PreDelete PostDelete  | PreDelete  | yes | PreDelete            | RESOLVED    | error
RESOLVED    | PreDelete PostDelete  | PostDelete | yes | PreDelete PostDelete | IN_DELETION | error
RESOLVED    | PreDelete PostDelete  | PreDelete  | no  | -                    | gone        | success
RESOLVED    | PostCreate PostUpdate | -          | yes | -                    | gone        | success
IN_DELETION | -                     | -          | yes | -                    | gone        | success
IN_DELETION | -                     | -          | no  | -                    | gone        | success
IN_DELETION | PreDelete             | PreDelete  | yes | -                    | gone        | success
IN_DELETION | PreDelete             | PreDelete  | no  | -                    | gone        | success
IN_DELETION | PostDelete            | -          | yes | PostDelete           | gone        | success
IN_DELETION | PostDelete            | PostDelete | yes | PostDelete           | IN_DELETION | error
IN_DELETION | PostDelete            | PostDelete | no  | -                    | gone        | success
IN_DELETION | PreDelete PostDelete  | PreDelete  | yes | PostDelete           | gone        | success
IN_DELETION | PreDelete PostDelete  | PostDelete | yes | PostDelete           | IN_DELETION | error
IN_DELETION | PreDelete PostDelete  | PostDelete | no  | -                    | gone        | success
"""

# The same columns for a change of the state to IN_DELETION. Status "-": the change is immediate and needs no task.
MARKS = """
RESOLVED    | -                                | -         | yes | -         | IN_DELETION | -
RESOLVED    | PostUpdate PostDelete            | -         | yes | -         | IN_DELETION | -
RESOLVED    | PreDelete                        | -         | yes | PreDelete | IN_DELETION | success
RESOLVED    | PreDelete PostUpdate PostDelete  | -         | yes | PreDelete | IN_DELETION | success
RESOLVED    | PreDelete                        | PreDelete | yes | PreDelete | RESOLVED    | error
RESOLVED    | PreDelete                        | PreDelete | no  | -         | IN_DELETION | -
IN_DELETION | PreDelete                        | PreDelete | yes | -         | IN_DELETION | -
IN_DELETION | PostUpdate                       | -         | yes | -         | IN_DELETION | -
"""

Row = tuple[str, ...]


def rows(table: str) -> list[Row]:
    found = []
    for line in table.strip().splitlines():
        row = tuple(cell.strip().removeprefix("-") for cell in line.split("|"))
        found.append(row)
        if row[0] == "RESOLVED":
            found.append(tuple("RESOLUTION_ERROR" if cell == "RESOLVED" else cell for cell in row))
    return found


def named(row: Row) -> str:
    return "-".join(cell.replace(" ", "+") or "none" for cell in row)


@pytest.mark.parametrize("row", rows(DELETIONS), ids=named)
def test_deletion_runs_hooks_and_ends_in_the_listed_state(scene: Scene, row: Row) -> None:
    before, hooks, failing, invoke, ran, after, status = row
    entity = scene.entity(scene.type(*hooks.split()), before)
    task = scene.operations.delete_entity(ROOT, entity.id, entity.etag, invoke_hooks=invoke == "yes")
    assert (task.name, task.entity) == (DELETE, entity.id)
    assert scene.work(*failing.split()) == ran.split()
    assert scene.state(entity.id) == after
    task = scene.task(task.id)
    check(scene, task, ran.split(), status)
    if after == before != IN_DELETION:
        assert scene.operations.get_entity(ROOT, entity.id) == entity, "a failed PreDelete hook changed the entity"


@pytest.mark.parametrize("row", rows(MARKS), ids=named)
def test_marking_runs_hooks_and_ends_in_the_listed_state(scene: Scene, row: Row) -> None:
    before, hooks, failing, invoke, ran, after, status = row
    entity = scene.entity(scene.type(*hooks.split()), before)
    body = {"name": "e", "entity": entity.content, "externalId": None, "entityState": IN_DELETION}
    found = scene.operations.update_entity(ROOT, entity.id, body, entity.etag, invoke_hooks=invoke == "yes")
    assert found.accepted == bool(status)
    assert scene.work(*failing.split()) == ran.split()
    assert scene.state(entity.id) == after
    if not status:
        assert found.task is None
        assert found.etag != entity.etag
        return
    assert found.entity == entity, "the entity must not change before the hook succeeds"
    assert found.task is not None
    task = scene.task(found.task.id)
    assert (task.name, task.entity) == (UPDATE, entity.id)
    check(scene, task, ran.split(), status)
    same = scene.operations.get_entity(ROOT, entity.id) == entity
    assert same == (status == "error")


def check(scene: Scene, task: Task, ran: list[str], status: str) -> None:
    """Check a finished task: its text, and the tasks of the hooks in the text."""
    assert (task.status, task.times.ended is not None) == (status, True)
    assert (task.reported.progress == 100) == (status == "success")
    parts = scene.operations.subtasks(ROOT, task.id)
    assert [part.name for part in parts] == [EXECUTE] * len(ran)
    if ran:
        assert task.operation == " ".join(f"{hook} hook: {part.id}." for hook, part in zip(ran, parts, strict=True))
    for hook, part in zip(ran, parts, strict=True):
        assert re.fullmatch(rf"Invoked {hook} e\(urn:vcloud:entity:acme:\w+:[0-9a-f-]{{36}}\)", part.operation)
        assert part.status == (status if hook == ran[-1] else "success")
    if status == "error":
        assert task.error == {
            "majorErrorCode": 400,
            "minorErrorCode": "LAMP_BROKEN",
            "message": f"{ran[-1]} hook failed: the lamp is broken",
        }


def test_deletion_table_covers_every_outcome_of_hooks() -> None:
    """Each set of hooks has rows with and without invokeHooks. Each hook that runs has a row in which it fails."""
    for before in ("RESOLVED", "RESOLUTION_ERROR", "IN_DELETION"):
        for hooks in ("", "PreDelete", "PostDelete", "PreDelete PostDelete"):
            of_type = [row for row in rows(DELETIONS) if row[0] == before and row[1] == hooks]
            assert {row[3] for row in of_type} == {"yes", "no"}
            run = {hook for row in of_type for hook in row[4].split()}
            assert run == set(hooks.split()) - ({"PreDelete"} if before == "IN_DELETION" else set())
            assert {row[2] for row in of_type if row[6] == "error"} == run


@pytest.mark.parametrize("hooks", [(), ("PreDelete", "PostDelete")])
@pytest.mark.parametrize("invoke_hooks", [True, False])
def test_unresolved_entity_is_neither_deleted_nor_marked(
    scene: Scene, hooks: tuple[str, ...], invoke_hooks: bool
) -> None:
    entity = scene.entity(scene.type(*hooks), "PRE_CREATED")
    operations = scene.operations
    code = "RDE_ENTITY_NOT_RESOLVED"
    refused(409, code, operations.delete_entity, ROOT, entity.id, invoke_hooks=invoke_hooks)
    body = {"entityState": IN_DELETION}
    refused(409, code, operations.update_entity, ROOT, entity.id, body, invoke_hooks=invoke_hooks)
    assert scene.work() == []
    assert operations.get_entity(ROOT, entity.id) == entity


def test_entity_marked_for_deletion_keeps_its_mark(scene: Scene) -> None:
    entity = scene.entity(scene.type(), IN_DELETION)
    operations = scene.operations
    code = "RDE_ENTITY_IN_DELETION"
    refused(409, code, operations.update_entity, ROOT, entity.id, {"entityState": "RESOLVED"})
    refused(409, code, operations.update_entity, ROOT, entity.id, {"state": "RESOLVED"})
    refused(409, code, operations.resolve_entity, ROOT, entity.id)
    found = operations.update_entity(ROOT, entity.id, {"entity": {"foo": "released"}}).entity
    assert (found.state, found.content) == (IN_DELETION, {"foo": "released"})
    vendor, nss = entity.type.split(":")[3:5]
    listed = operations.list_entities_of_type(ROOT, vendor, nss, "1", Query("entityState==IN_DELETION"))
    assert [item.id for item in listed.values] == [entity.id]


def test_content_sent_with_a_mark_needs_a_successful_hook(scene: Scene) -> None:
    body = {"name": "new", "entity": {"foo": "new"}, "state": IN_DELETION}
    for failing in ([], ["PreDelete"]):
        entity = scene.entity(scene.type("PreDelete", "PostUpdate"))
        assert scene.operations.update_entity(ROOT, entity.id, body).accepted
        assert scene.work(*failing) == ["PreDelete"]
        found = scene.operations.get_entity(ROOT, entity.id)
        assert (found.name, found.content) == (("e", {"foo": "bar"}) if failing else ("new", {"foo": "new"}))


def test_content_changed_before_the_hook_ends_is_not_lost(scene: Scene) -> None:
    operations = scene.operations
    entity = scene.entity(scene.type("PreDelete"))
    operations.update_entity(ROOT, entity.id, {"entity": {"foo": "old"}, "entityState": IN_DELETION})
    operations.update_entity(ROOT, entity.id, {"entity": {"foo": "newer"}})
    scene.work()
    found = operations.get_entity(ROOT, entity.id)
    assert (found.state, found.content) == (IN_DELETION, {"foo": "newer"})


def test_repeated_deletion_continues_the_pending_one(scene: Scene) -> None:
    entity = scene.entity(scene.type("PreDelete", "PostDelete"))
    first = scene.operations.delete_entity(ROOT, entity.id)
    assert scene.operations.delete_entity(ROOT, entity.id).id == first.id
    assert scene.work("PostDelete") == ["PreDelete", "PostDelete"]
    again = scene.operations.delete_entity(ROOT, entity.id)
    assert again.id != first.id
    assert scene.work() == ["PostDelete"]
    assert scene.state(entity.id) == "gone"


def test_deletion_without_hooks_ends_a_waiting_deletion(scene: Scene) -> None:
    entity = scene.entity(scene.type("PreDelete"))
    waiting = scene.operations.delete_entity(ROOT, entity.id)
    scene.operations.delete_entity(ROOT, entity.id, invoke_hooks=False)
    assert scene.work() == []
    assert (scene.task(waiting.id).status, scene.state(entity.id)) == ("success", "gone")


def test_deletion_after_a_mark_runs_pre_delete_only_once(scene: Scene) -> None:
    entity = scene.entity(scene.type("PreDelete", "PostDelete"))
    scene.operations.update_entity(ROOT, entity.id, {"entityState": IN_DELETION})
    scene.operations.delete_entity(ROOT, entity.id)
    assert scene.work() == ["PreDelete", "PostDelete"]


def test_a_task_outlives_its_entity(scene: Scene) -> None:
    kind = scene.type(schema=SCHEMA)
    entity = scene.entity(kind)
    scene.operations.delete_entity(ROOT, entity.id)
    names = [task.name for task in scene.operations.list_tasks(ROOT, Query(f"owner=={entity.id}")).values]
    assert names == [DELETE, CREATE]
    scene.operations.delete_type(ROOT, kind.id)
