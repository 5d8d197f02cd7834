"""The mark of a running run: no report of a host is lost if the store is slow or busy."""

from __future__ import annotations

import time

import pytest

from statecfg.hooks.run_mark import RunMark
from statecfg.store import database, runs
from statecfg.store.database import Store
from tests.lab import processes

OK = {"status": "ok", "summary": {"changed": 1}, "layers": []}


def test_the_report_of_a_host_that_finishes_before_the_mark_exists_is_stored(store: Store) -> None:
    mark = RunMark(store, "r1", "ann@desk")
    mark.mask = dict
    with store.transaction() as connection:
        mark.begin("apply", "site.yml", ["web1", "web2"])  # its thread waits for this transaction
        mark.host_finished(connection, "web1", OK)
    mark.end()
    (running,) = runs.under_way(store)
    assert (running.id, running.started, running.mode, running.playbook) == ("r1", mark.started, "apply", "site.yml")
    assert running.hosts == {"web1": runs.HostResult("ok", {"changed": 1}), "web2": runs.HostResult("", {})}
    assert runs.host_report(store, "r1", "web1") == OK


def test_a_mark_that_could_not_be_created_is_created_later(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY", 0.01)
    monkeypatch.setattr(runs, "BEAT", 0.02)
    mark = RunMark(store, "r1", "ann@desk")
    with store.transaction():
        mark.begin("apply", "site.yml", ["web1"])
        time.sleep(0.5)  # meanwhile, the thread gives up waiting for this transaction
    try:
        processes.wait_until(lambda: bool(runs.under_way(store)), 20, "the mark")
    finally:
        mark.end()
