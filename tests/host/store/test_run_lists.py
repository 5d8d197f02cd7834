"""Lists of runs: the database filters them, and a page starts after the last run of the page before."""

from __future__ import annotations

from typing import Any

import pytest

from statecfg.store import run_lists, runs
from statecfg.store.database import Store
from statecfg.store.run_lists import Cursor, RunFilter


def record(store: Store, id: str, started: float, playbook: str, **statuses: str) -> None:
    said = {
        name: {"status": status, "summary": {"changed": 1}, "layers": [[{"name": f"file:/etc/{name}_é%"}]]}
        for name, status in statuses.items()
    }
    report = {"run": id, "mode": "apply", "playbook": playbook, "hosts": said}
    runs.record(store, report, started, started + 1, "ann@desk")


@pytest.fixture
def filled(store: Store) -> Store:
    record(store, "a", 10.0, "site.yml", web1="ok", web2="failed")
    record(store, "b", 20.0, "site.yml", web2="ok")
    record(store, "c", 20.0, "db_1.yml", DB1="unreachable")
    runs.begin(store, "d", 15.0, "apply", "ann@desk", "site.yml", ["web1", "web2"])
    return store


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        ({}, "bcda"),
        ({"host": "web1"}, "da"),
        ({"host": "WEB*"}, "bda"),
        ({"host": "db1"}, "c"),
        ({"host": "w_b1"}, ""),
        ({"playbook": "db_1.yml"}, "c"),
        ({"playbook": "dbx1.yml"}, ""),
        ({"outcome": "failed"}, "a"),
        ({"outcome": "failed", "host": "web1"}, ""),
        ({"outcome": "trouble"}, "ca"),
        ({"outcome": "ok"}, "b"),
        ({"outcome": "ok", "host": "web1"}, "a"),
        ({"since": 15.0}, "bcd"),
        ({"until": 20.0}, "da"),
        ({"since": 16.0, "until": 20.0}, ""),
    ],
)
def test_filters_select_the_matching_runs(filled: Store, wanted: dict[str, Any], ids: str) -> None:
    assert [run.id for run in run_lists.page(filled, RunFilter(**wanted), 10)] == list(ids)


def test_pages_hold_each_run_once(filled: Store) -> None:
    seen, after = [], None
    while found := run_lists.page(filled, RunFilter(), 1, after):
        seen += [run.id for run in found]
        after = Cursor(found[-1].started, found[-1].id)
    assert seen == ["b", "c", "d", "a"]


def test_a_run_in_progress_is_filtered_by_its_finished_hosts(filled: Store) -> None:
    filled.attempt(lambda connection: runs.host_finished(connection, "d", "web1", "failed", {}))
    assert [run.id for run in run_lists.page(filled, RunFilter(outcome="failed"), 10)] == ["d", "a"]


@pytest.mark.parametrize(
    ("words", "hosts"),
    [
        (["WEB"], {"web1", "web2"}),
        (["etc/web1"], {"web1"}),
        (["web1_é%"], {"web1"}),
        (["e%c"], set()),
        (["web", "2"], {"web2"}),
    ],
)
def test_search_matches_host_names_and_reports(filled: Store, words: list[str], hosts: set[str]) -> None:
    assert set(run_lists.hosts_of_run(filled, "a", words)) == hosts
