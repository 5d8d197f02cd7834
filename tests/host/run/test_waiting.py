"""Hosts that wait without a connection: only some of the hosts of a run may stay connected while they wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from statecfg.run import fleet
from statecfg.run.options import Limits
from tests.host.run import rig
from tests.lab import Host, processes
from tests.lab.fixtures import light_hosts

Json = dict[str, Any]
HOOK: Json = {
    "name": "note", "type": "note", "order": 5, "events": ["pre-reconcile"], "on_failure": "retry", "deadline": 30.0,
    "select": {"types": [], "names": [], "tags": []}, "where": "controller",
}  # fmt: skip


@pytest.fixture(scope="module")
def hosts() -> Iterator[list[Host]]:
    yield from light_hosts(4, "waiting")


def _asked(
    hosts: list[Host], place: str, answer: Callable[[Json], bool], connected: int, **options: Any
) -> tuple[rig.Done, Json]:
    """Apply to the hosts with a question; return the run, and the report that the user saw."""
    shown: Json = {}

    def confirm(report: Any) -> bool:
        shown.update({name: rig.Done(report, [], 0).outcomes(name) for name in report["hosts"]})
        return answer(report)

    limits = Limits(2, connected=connected)
    done = rig.run(hosts, rig.small_files(place, 2), confirm=confirm, limits=limits, **options)
    return done, shown


def _connections(done: rig.Done, hosts: list[Host]) -> list[int]:
    return sorted(done.event_names(host.name).count("connected") for host in hosts)


def test_hosts_without_a_connection_apply_the_plan_that_was_shown(hosts: list[Host], place: str) -> None:
    """During the question, their executors have ended, so nothing holds their locks."""
    before, threads = threading.active_count(), 0

    def answer(report: Json) -> bool:
        nonlocal threads
        processes.wait_until(lambda: sum(bool(rig.executors(host)) for host in hosts) == 1, 60, "the end of three")
        threads = threading.active_count() - before
        return True

    done, shown = _asked(hosts, place, answer, 1)
    assert threads <= 3 + 3, "one host has three threads, and there are few for all hosts together"
    changed = dict.fromkeys([f"directory:{place}", f"file:{place}/f0", f"file:{place}/f1"], "changed")
    assert shown == {host.name: changed for host in hosts}
    assert _connections(done, hosts) == [1, 2, 2, 2]
    for host in hosts:
        report = done.host(host.name)
        assert (report["status"], report["summary"]) == ("ok", {"changed": 3})
        assert "warnings" not in report
        assert done.event_names(host.name).count("finished") == 1
        query = {"run": done.report["run"], "limit": 2}
        history = rig.run(host, rig.define(), "history", query=query).host()["history"]
        assert [past["status"] for past in history] == ["ok"]


def test_a_declined_host_reports_the_same_with_and_without_a_connection(hosts: list[Host], place: str) -> None:
    reports = []
    for connected in (0, len(hosts)):
        done, _ = _asked(hosts, place, lambda report: False, connected)
        assert _connections(done, hosts) == [1, 1, 1, 1]
        reports.append(done.report["hosts"])
    assert all(host["declined"] for host in reports[0].values())
    assert reports[0] == reports[1]
    assert not any(host.path(place).exists() for host in hosts)


def test_a_host_that_changed_during_the_question_is_refused(hosts: list[Host], place: str) -> None:
    def answer(report: Json) -> bool:
        hosts[0].write(f"{place}/f1", "made meanwhile\n")
        return True

    done, _ = _asked(hosts, place, answer, 0)
    report = done.host(hosts[0].name)
    assert (report["status"], report["differs"]) == ("refused", [f"directory:{place}", f"file:{place}/f1"])
    assert hosts[0].read(f"{place}/f1") == "made meanwhile\n"
    assert {done.host(host.name)["status"] for host in hosts[1:]} == {"ok"}


def test_a_host_with_nothing_to_do_keeps_its_connection_and_is_not_planned_again(hosts: list[Host], place: str) -> None:
    """A change that someone makes during the question is not part of what the user saw, so it stays."""
    rig.run(hosts[0], rig.small_files(place, 2))

    def answer(report: Json) -> bool:
        hosts[0].write(f"{place}/f1", "made meanwhile\n")
        time.sleep(1)
        return True

    done, shown = _asked(hosts, place, answer, 0)
    assert set(shown[hosts[0].name].values()) == {"unchanged"}
    assert _connections(done, hosts) == [1, 2, 2, 2]
    assert done.host(hosts[0].name)["summary"] == {"unchanged": 3}
    assert hosts[0].read(f"{place}/f1") == "made meanwhile\n"


@pytest.mark.parametrize("connected", [0, 1])
def test_a_plan_that_only_calls_hooks_is_applied_exactly(hosts: list[Host], place: str, connected: int) -> None:
    host = hosts[0]
    rig.run(host, rig.small_files(place, 2))

    def answer(report: Json) -> bool:
        host.write(f"{place}/f1", "made meanwhile\n")
        return True

    done, _ = _asked([host], place, answer, connected, hooks=fleet.RunHooks(around={host.name: [HOOK]}))
    report = done.host()
    assert (report["status"], report.get("differs")) == ("refused", [f"file:{place}/f1"])
    assert host.read(f"{place}/f1") == "made meanwhile\n"


def test_hooks_that_were_not_shown_are_not_called(hosts: list[Host], place: str) -> None:
    """Another run may record a restart during the question, for example."""
    host = hosts[0]

    def answer(report: Json) -> bool:
        report["hosts"][host.name]["owed"] = [{"node": "service:web", "cause": "file:x", "since": 1.0, "run": "r0"}]
        return True

    report = _asked([host], place, answer, 0)[0].host()
    assert (report["status"], report["differs"]) == ("refused", ["owed restarts"])
    assert not host.path(place).exists()


def test_a_declined_host_without_a_connection_shows_the_warnings_of_its_plan(hosts: list[Host], place: str) -> None:
    found = []
    for connected in (0, 1):
        hosts[0].run(
            ["sqlite3", "/var/lib/statecfg/ledger.db", "UPDATE meta SET value = 'other' WHERE key = 'machine'"]
        )
        done, _ = _asked([hosts[0]], place, lambda report: False, connected)
        found.append(done.host()["warnings"])
    assert "another machine" in found[0][0] and len(found[0]) == len(found[1]) == 1


def test_the_pace_of_connections_does_not_delay_hosts_that_are_not_contacted(hosts: list[Host], place: str) -> None:
    answered = 0.0

    def answer(report: Json) -> bool:
        nonlocal answered
        answered = time.monotonic()
        return False

    limits = Limits(2, connected=0, connect_rate=0.5)
    rig.run(hosts, rig.small_files(place, 2), confirm=answer, limits=limits)
    assert time.monotonic() - answered < 2, "one connection would take two seconds"


@pytest.mark.parametrize("connected", [0, 4])
def test_a_run_that_is_stopped_during_the_question_changes_nothing(
    hosts: list[Host], place: str, connected: int
) -> None:
    """A host reports the same with and without a connection, and as a host whose turn has not come."""
    cancel = threading.Event()
    done, _ = _asked(hosts, place, lambda report: not cancel.set(), connected, cancel=cancel)
    for host in hosts:
        report = done.host(host.name)
        assert (report["status"], report["summary"]) == ("cancelled", {"skipped": 3})
        assert report["error"]["summary"] == "not started: the run was stopped first"
    assert not any(host.path(place).exists() for host in hosts)


def test_a_question_about_removals_is_the_same_without_connections(hosts: list[Host], place: str) -> None:
    done, _ = _asked(hosts, place, lambda report: True, 0)
    assert {host["status"] for host in done.report["hosts"].values()} == {"ok"}
    limits = Limits(2, connected=0)
    gone = rig.run(hosts, rig.define(), "destroy", confirm=lambda report: True, limits=limits, agreed=True)
    assert {host["status"] for host in gone.report["hosts"].values()} == {"ok"}
    assert _connections(gone, hosts) == [2, 2, 2, 2]
    assert not any(host.path(place).exists() for host in hosts)


def test_hooks_are_called_once_for_a_host_without_a_connection(hosts: list[Host], place: str) -> None:
    told: list[str] = []

    class Follower:
        def planned(self, host: str, report: Any) -> None:
            told.append(f"planned {host}")

        def may_go(self, host: str) -> str:
            told.append(f"may go {host}")
            return ""

        def going(self, host: str) -> None:
            told.append(f"going {host}")

        def finished(self, host: str, report: Any) -> None:
            told.append(f"finished {host}")

    follower: Any = Follower()
    name = hosts[0].name
    _asked([hosts[0]], place, lambda report: True, 0, hooks=fleet.RunHooks(events=follower))
    assert told == [f"planned {name}", f"planned {name}", f"going {name}", f"finished {name}"]
