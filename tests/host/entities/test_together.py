"""Concurrent processes change one entity. Workers share the tasks, and are killed."""

from __future__ import annotations

import signal
import time

import pytest

from statecfg.entities.invocation import BehaviorResult
from statecfg.entities.model import Query
from statecfg.entities.operations import Operations
from statecfg.entities.tasks import LEASE
from statecfg.store import opened
from statecfg.store.database import Store
from tests.host.entities import racing
from tests.host.store import workers
from tests.unit.entities.scenes import ROOT, Scene


def test_only_one_change_with_the_same_etag_wins(store: Store, url: str) -> None:
    scene = Scene(store)
    entity = scene.entity(scene.type())
    with workers.started(*[(racing.change, (url, entity.id))] * 3) as running:
        pipes = [pipe for _, pipe in running]
        assert [workers.heard(pipe) for pipe in pipes] == ["ready"] * 3
        for _ in range(5):
            before = scene.operations.get_entity(ROOT, entity.id)
            for pipe in pipes:
                pipe.send(before.etag)
            said = [workers.heard(pipe) for pipe in pipes]
            assert sorted(map(str, said)) == ["412", "412", "ok"]
            after = scene.operations.get_entity(ROOT, entity.id)
            winner = running[said.index("ok")][0]
            assert (after.revision, after.name) == (before.revision + 1, f"by {winner.pid}")
        for pipe in pipes:
            pipe.send(None)
        assert workers.finish(running) == [0] * 3


def test_workers_share_tasks_and_run_each_once(store: Store, url: str) -> None:
    scene = Scene(store)
    kind = scene.type("PostCreate", "PreDelete", "PostDelete")
    o = scene.operations
    tasks = [o.create_entity(ROOT, kind.id, {"name": f"e{n}", "entity": {"foo": "x"}}) for n in range(6)]
    with workers.started(*[(racing.work, (url,))] * 3) as running:
        assert workers.finish(running) == [0] * 3
        ran = [id for _, pipe in running for id in workers.everything(pipe)]
    assert len(ran) == len(set(ran)) == 6
    assert {scene.task(task.id).status for task in tasks} == {"success"}
    assert o.list_entities(ROOT, Query("state==RESOLVED")).total == 6


@pytest.mark.parametrize("step", [0, 1])
def test_another_worker_continues_the_deletion_of_a_killed_worker(store: Store, url: str, step: int) -> None:
    scene = Scene(store)
    entity = scene.entity(scene.type("PreDelete", "PostDelete"))
    task = scene.operations.delete_entity(ROOT, entity.id)
    with workers.started((racing.die, (url, step))) as running:
        said = workers.heard(running[0][1])
        assert workers.finish(running) == [-signal.SIGKILL]
    late = time.time() + LEASE
    with opened(url=url) as again:
        operations = Operations(again, lambda: late)
        assert Operations(again).claim("next") is None, "the lease of the killed worker has not expired"
        assert operations.claim("next") == task.id
        found = operations.advance(task.id)
        assert found is not None
        assert (said, found.hook) == ((task.id, found.id), ("PreDelete", "PostDelete")[step])
        while found is not None:
            operations.enter_outcome(task.id, found.id, BehaviorResult(True))
            found = operations.advance(task.id)
    assert (scene.task(task.id).status, scene.state(entity.id)) == ("success", "gone")
    assert len(scene.operations.subtasks(ROOT, task.id)) == 2
