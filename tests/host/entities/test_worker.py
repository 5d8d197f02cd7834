"""Workers: claimed, renewed, returned and taken-over tasks, their progress, and several workers at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from statecfg.entities.model import Query, Task
from statecfg.entities.worker import Worker
from statecfg.playbook import project
from statecfg.store import records
from statecfg.store.entities import tables
from tests.host.entities.sites import ME, Sites, behavior
from tests.lab import processes

FUNCTIONS = """
import os, time

def wait(entity, arguments, context):
    context.update(10, "begun")
    with open(entity["title"], "a") as stream:
        stream.write(f"{context.invocation_id}\\n")
    if not os.path.exists(entity["title"] + ".go"):
        time.sleep(60)
    return "done"

def quick(entity, arguments, context):
    return len(entity["title"])
"""


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[Sites]:
    found = Sites(tmp_path, ())
    found.write("behaviors/doing.py", FUNCTIONS)
    for name in ("wait", "quick"):
        found.behavior(name, {"type": "Function", "id": f"doing:{name}"})
        found.type(name, PostCreate=behavior(name))
    yield found
    found.close()


def begin(sites: Sites, kind: str, title: str, name: str = "x") -> str:
    body = {"name": name, "entity": {"title": title}}
    return sites.calls.create_entity(ME, f"urn:vcloud:type:acme:{kind}:1.0.0", body).id


def task(sites: Sites, id: str) -> Task:
    return sites.calls.get_task(ME, id)


def test_workers_run_each_task_once(sites: Sites) -> None:
    ids = [begin(sites, "quick", "t" * number, f"e{number}") for number in range(8)]
    with sites.working(), sites.working() as worker:
        ended = [worker.finish(id, 60, ME) for id in ids]
    assert [each.result for each in ended] == list(range(8))
    executed = sites.calls.list_tasks(ME, Query("operationName==executeBehavior", page_size=100)).values
    assert len(executed) == 8


def test_a_woken_worker_runs_a_new_task_at_once(sites: Sites) -> None:
    with sites.working() as worker:
        time.sleep(0.3)
        id = begin(sites, "quick", "ab")
        worker.wake()
        processes.wait_until(lambda: task(sites, id).is_finished, 20, "the task to end")


def test_a_stopping_worker_returns_its_task_for_another(sites: Sites) -> None:
    note = sites.root / "note"
    id = begin(sites, "wait", str(note))
    with sites.working():
        processes.wait_until(lambda: note.exists() and bool(note.read_text()), 60, "the function to start")
        processes.wait_until(lambda: task(sites, id).reported.details == "begun", 20, "the details of the task")
        assert (task(sites, id).status, task(sites, id).reported.progress) == ("running", 10)
        begun = time.monotonic()
    assert time.monotonic() - begun < 14  # a worker gives up its behavior only after 15 s
    assert task(sites, id).status == "running"
    note.with_suffix(".go").touch()
    with sites.working() as worker:
        ended = worker.finish(id, 60, ME)
    assert (ended.status, ended.result) == ("success", "done")
    first, second = note.read_text().split()
    assert first == second  # the same invocation, tried again


def test_a_worker_that_lost_its_lease_stores_no_result(sites: Sites) -> None:
    note = sites.root / "note"
    id = begin(sites, "wait", str(note))
    with sites.working():
        processes.wait_until(lambda: note.exists() and bool(note.read_text()), 60, "the function to start")
        note.with_suffix(".go").touch()
        # The clock of this worker is 31 s ahead, so it sees an expired lease.
        with sites.working(later=31) as other:
            ended = other.finish(id, 60, ME)
        assert (ended.status, ended.result) == ("success", "done")
    assert task(sites, id) == ended
    assert len(note.read_text().split()) == 2


def test_waiting_for_a_task_runs_it_without_other_workers(sites: Sites) -> None:
    id = begin(sites, "quick", "abc")
    worker = Worker(sites.calls, project.find(sites.root))
    assert worker.finish(id, 60, ME).result == 3
    assert worker.finish(id, 0, ME).result == 3
    before = threading.active_count()
    worker.stop()
    assert threading.active_count() <= before


def test_an_unreadable_task_does_not_end_the_worker(sites: Sites, caplog: pytest.LogCaptureFixture) -> None:
    """Another program wrote a task to the store that the worker can't read."""
    broken, right = begin(sites, "quick", "abc"), begin(sites, "quick", "abcd", "y")
    sites.store.attempt(lambda connection: records.change(connection, tables.task, {"work": {"do": "x"}}, id=broken))
    worker = Worker(sites.calls, project.find(sites.root), 1)
    worker.start()
    try:
        processes.wait_until(lambda: task(sites, right).is_finished, 20, "the next task to end")
    finally:
        worker.stop()
    assert "statecfg has a bug" in caplog.text
    assert not task(sites, broken).is_finished


def test_an_outcome_that_cannot_be_stored_is_not_run_again(sites: Sites, caplog: pytest.LogCaptureFixture) -> None:
    """Another program changed the type, so the outcome of the finished behavior can't be stored."""
    wrong = {"schema": {"$schema": "none"}}
    kind = "urn:vcloud:type:acme:quick:1.0.0"
    id = begin(sites, "quick", "abc")
    sites.store.attempt(lambda connection: records.change(connection, tables.entity_type, wrong, id=kind))
    ended = Worker(sites.calls, project.find(sites.root)).finish(id, 60, ME)
    assert ended.error is not None
    assert (ended.error["minorErrorCode"], sites.state("x")) == ("INTERNAL_SERVER_ERROR", "RESOLUTION_ERROR")
    assert "statecfg has a bug" in caplog.text
