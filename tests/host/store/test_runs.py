"""The history of runs in the store."""

from __future__ import annotations

import time
from typing import Any

import pytest

from statecfg.store import runs
from statecfg.store.database import Store


def report(number: int, *hosts: str, playbook: str = "playbooks/web.yml") -> dict[str, Any]:
    said = {"status": "ok", "summary": {"changed": number}, "layers": [[{"name": "file:/etc/motd", "text": "\0é"}]]}
    return {
        "format": 1,
        "run": f"r{number:04}",
        "mode": "apply",
        "playbook": playbook,
        "hosts": {name: {**said, "facts": {"hostname": name}} for name in hosts},
    }


def test_a_run_is_kept_as_it_was_reported(store: Store) -> None:
    given = report(1, "web1", "db1")
    runs.record(store, given, 10.0, 12.5, "ann@desk")
    (found,) = runs.recent(store)
    assert (found.id, found.started, found.ended, found.mode, found.who) == ("r0001", 10.0, 12.5, "apply", "ann@desk")
    assert found.hosts == dict.fromkeys(("db1", "web1"), runs.HostResult("ok", {"changed": 1}))
    assert {host: runs.host_report(store, "r0001", host) for host in found.hosts} == given["hosts"]
    assert runs.host_report(store, "r0002", "web1") is None


def test_a_run_without_hosts_or_playbook_is_recorded(store: Store) -> None:
    runs.record(store, {"run": "r1", "mode": "facts", "hosts": {}}, 1.0, 2.0, "ann@desk")
    assert [(run.playbook, run.hosts) for run in runs.recent(store)] == [("", {})]


def test_recent_lists_the_newest_runs_first(store: Store) -> None:
    for number in range(5):
        host, playbook = ("web1", "web2")[number % 2], ("a.yml", "b.yml")[number // 3]
        runs.record(store, report(number, host, playbook=playbook), float(number), 9.0, "ann@desk")
    assert [run.id for run in runs.recent(store)] == ["r0004", "r0003", "r0002", "r0001", "r0000"]
    assert [run.id for run in runs.recent(store, 2)] == ["r0004", "r0003"]
    assert [run.id for run in runs.recent(store, host="web2")] == ["r0003", "r0001"]
    assert [run.id for run in runs.recent(store, playbook="a.yml")] == ["r0002", "r0001", "r0000"]


def test_the_oldest_runs_are_removed_beyond_the_limit(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "KEPT", 3)
    for number in (4, 1, 3, 2, 5):
        runs.record(store, report(number, "web1"), float(number), 9.0, "ann@desk")
    assert [run.id for run in runs.recent(store)] == ["r0005", "r0004", "r0003"]
    assert runs.host_report(store, "r0001", "web1") is None


def test_a_run_is_under_way_until_it_is_recorded(store: Store) -> None:
    runs.begin(store, "r0001", 10.0, "apply", "ann@desk", "playbooks/web.yml", ["web1", "db1"])
    (running,) = runs.under_way(store)
    assert (running.id, running.started, running.mode, running.who) == ("r0001", 10.0, "apply", "ann@desk")
    assert running.hosts == dict.fromkeys(("db1", "web1"), runs.HostResult("", {}))
    with store.transaction() as connection:
        runs.host_finished(connection, "r0001", "db1", "failed", {"failed": 1})
    assert runs.under_way(store)[0].hosts["db1"] == runs.HostResult("failed", {"failed": 1})
    assert runs.recent(store) == []
    runs.record(store, report(1, "web1", "db1"), 10.0, 12.0, "ann@desk")
    assert runs.under_way(store) == []
    assert [run.id for run in runs.recent(store)] == ["r0001"]


def test_a_run_without_a_recent_heartbeat_counts_as_cut_off(store: Store) -> None:
    now = time.time()
    for number in (1, 2):
        runs.begin(store, f"r{number}", float(number), "apply", "ann@desk", "", ["web1"])
    assert [running.cut_off(now) for running in runs.under_way(store)] == [False, False]
    later = now + runs.CUT_OFF + 5
    assert all(running.cut_off(later) for running in runs.under_way(store))
    runs.beat(store, "r2", over=True)
    assert [running.cut_off(now) for running in runs.under_way(store)] == [True, False]
    runs.beat(store, "r2")
    assert not runs.under_way(store)[0].cut_off(time.time())


def test_the_oldest_unfinished_runs_are_removed_beyond_the_limit(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "KEPT", 2)
    for number in (3, 1, 2):
        runs.begin(store, f"r{number}", float(number), "apply", "ann@desk", "", ["web1"])
    assert [running.id for running in runs.under_way(store)] == ["r3", "r2"]


def test_reports_of_finished_hosts_are_stored_during_the_run(store: Store) -> None:
    """They survive a run that is killed. The record of the run replaces them."""
    given = report(1, "web1", "db1")
    runs.begin(store, "r0001", 10.0, "apply", "ann@desk", "", ["web1", "db1"])
    early = {**given["hosts"]["web1"], "warnings": ["early"]}
    store.attempt(lambda on: runs.host_finished(on, "r0001", "web1", "ok", {"changed": 1}, early))
    assert runs.host_report(store, "r0001", "web1") == early
    assert runs.host_report(store, "r0001", "db1") is None
    store.attempt(lambda on: runs.host_finished(on, "r0001", "db1", "ok", {}))
    assert runs.host_report(store, "r0001", "db1") is None
    runs.record(store, given, 10.0, 12.5, "ann@desk")
    assert runs.host_report(store, "r0001", "web1") == given["hosts"]["web1"]


def test_a_run_head_and_one_hosts_report_can_be_read(store: Store) -> None:
    given = report(1, "web1", "db1")
    runs.record(store, given, 10.0, 12.5, "ann@desk")
    head = runs.head(store, "r0001")
    assert head is not None
    assert (head, runs.head(store, "r0002")) == (runs.recent(store)[0], None)
    assert runs.host_report(store, "r0001", "web1") == given["hosts"]["web1"]
    assert runs.host_report(store, "r0001", "web2") is None


def test_a_large_report_is_kept_without_its_large_parts(store: Store) -> None:
    """A host's report must not fill the store. Differences and logs are dropped first, then the resources."""
    change = {"object": "/f", "field": "content", "before": "a", "after": "b", "diff": "+x\n" * 500_000}
    action = {"op": "write", "args": {}, "status": "ok", "log": "x" * 500_000}
    node = {"name": "file:/f", "type": "file", "outcome": "changed", "changes": [change], "actions": [action]}
    said = {"status": "ok", "summary": {"changed": 5}, "layers": [[node] * 5], "warnings": ["before"]}
    kept = runs.bounded(said)
    assert kept["layers"][0][0]["changes"] == [{key: change[key] for key in ("object", "field", "before", "after")}]
    assert kept["layers"][0][0]["actions"] == [{"op": "write", "args": {}, "status": "ok"}]
    assert kept["warnings"] == [
        "This report takes 11.9 MiB. The store keeps it without differences and logs.", "before",
    ]  # fmt: skip
    error = {"summary": "s" * 10**6, "detail": "", "hint": ""}
    whole = runs.bounded({**said, "layers": [[{**node, "reason": "x" * 10**6}] * 50], "error": error})
    assert whole["layers"] == [] and whole["summary"] == {"changed": 5}
    assert len(whole["error"]["summary"]) == 10_000
    runs.record(store, {"run": "r1", "mode": "apply", "hosts": {"h": said}}, 1.0, 2.0, "ann@desk")
    assert runs.bounded({"status": "ok", "layers": []}) == {"status": "ok", "layers": []}
