"""Runs on many hosts: a limited number of threads, a limited rate of connections, and reports that share memory."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from statecfg.playbook.inventory import Host
from statecfg.run import fleet
from statecfg.run.job import Job
from statecfg.run.options import Limits
from statecfg.run.report_model import HostData
from statecfg.store import StoreError
from statecfg.transport import SshSettings, dial
from tests import lab
from tests.host.run import rig
from tests.lab import PlainSshd, plain

ACCESS = fleet.Access(SshSettings(ssh_config="none", known_hosts=(), use_agent=False, default_keys=False))


def _closed(count: int) -> list[Job]:
    """Return jobs for hosts that refuse the connection."""
    port, definition = plain.free_port(), rig.small_files("/srv/never", 3)
    return [Job(Host(f"host{n}", address="127.0.0.1", port=port), definition, "p.yml") for n in range(count)]


def _run(jobs: Sequence[Job], options: fleet.Options) -> tuple[fleet.Report, list[tuple[fleet.Event, float, int]]]:
    """Run; return the report, and each event with its time and the number of threads."""
    events: list[tuple[fleet.Event, float, int]] = []
    report = fleet.run(jobs, options, lambda event: events.append((event, time.monotonic(), threading.active_count())))
    return report, events


def test_hosts_that_wait_need_no_thread() -> None:
    before = threading.active_count()
    report, events = _run(_closed(300), fleet.Options(access=ACCESS, limits=Limits(4)))
    assert list(report["hosts"]) == [f"host{n}" for n in range(300)], "in the order of the jobs"
    assert Counter(host["status"] for host in report["hosts"].values()) == {"unreachable": 300}
    # A session that ends releases its slot before its thread ends.
    assert max(threads for _, _, threads in events) < before + 60


def test_connections_are_not_opened_faster_than_the_rate() -> None:
    began = time.monotonic()
    _, events = _run(_closed(6), fleet.Options(access=ACCESS, limits=Limits(6, connect_rate=20)))
    starts = sorted(at for event, at, _ in events if event.name == "connecting")
    assert len(starts) == 6
    assert starts[-1] - began >= 5 / 20


def test_a_stopped_run_starts_no_further_session() -> None:
    cancel = threading.Event()
    cancel.set()
    report, events = _run(_closed(50), fleet.Options(access=ACCESS, limits=Limits(2, connect_rate=0.1), cancel=cancel))
    assert Counter(host["status"] for host in report["hosts"].values()) == {"cancelled": 50}
    assert not [event for event, _, _ in events if event.name == "connecting"]


def test_a_store_that_can_not_be_opened_ends_the_run() -> None:
    def join(options: fleet.Options, jobs: Sequence[Job]) -> tuple[fleet.Options, Sequence[Job]]:
        raise StoreError("no store")

    seen: list[str] = []
    with pytest.raises(StoreError, match="no store"):
        fleet.run(
            _closed(2000),
            fleet.Options("apply", access=ACCESS, limits=Limits(2), join=join),
            lambda event: seen.append(event.name),
        )
    assert "finished" not in seen
    assert seen.count("connecting") < 2000


def test_the_question_comes_when_every_host_waits_or_has_ended() -> None:
    asked: list[fleet.Report] = []

    def confirm(report: fleet.Report) -> bool:
        asked.append(report)
        return False

    report, _ = _run(_closed(20), fleet.Options("apply", access=ACCESS, limits=Limits(3), confirm=confirm))
    assert [len(each["hosts"]) for each in asked] == [20]
    assert Counter(host["status"] for host in report["hosts"].values()) == {"unreachable": 20}


def test_a_host_that_waits_for_the_answer_needs_three_threads(
    tmp_path: Path, make_sshd: Callable[..., PlainSshd]
) -> None:
    before, hosts, threads = threading.active_count(), 6, 0
    sshd = make_sshd()

    def job(number: int) -> Job:
        state, python = tmp_path / f"state{number}", tmp_path / f"python{number}"
        state.mkdir(mode=0o700)
        python.write_text(f'#!/bin/sh\nexport STATECFG_STATE_DIR="{state}"\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
        host = rig.inventoried(sshd, f"host{number}", python=str(python))
        return Job(host, rig.small_files(f"{tmp_path}/new", 1), "p.yml")

    def confirm(report: fleet.Report) -> bool:
        nonlocal threads
        threads = threading.active_count() - before
        assert all("fingerprints" in host for host in report["hosts"].values()), "all hosts wait"
        return False

    access = fleet.Access(rig.settings(sshd))
    _run([job(number) for number in range(hosts)], fleet.Options("apply", access=access, confirm=confirm))
    assert threads <= 3 * hosts + 3, "a driver, heartbeats and a connection per host, and few for all hosts together"


def test_a_run_without_hosts_ends() -> None:
    assert _run([], fleet.Options(access=ACCESS, confirm=lambda report: True))[0]["hosts"] == {}


@pytest.mark.parametrize("raises", ["every", "finished"])
def test_a_listener_that_raises_ends_the_run_with_its_error(raises: str) -> None:
    finished: list[str] = []

    def listen(event: fleet.Event) -> None:
        if event.name == "finished":
            finished.append(event.host)
        if raises == "every" or event.name == raises:
            raise ValueError(f"bug {event.name}")

    with pytest.raises(ValueError, match="bug connecting" if raises == "every" else "bug finished"):
        _bounded(_closed(8), fleet.Options(access=ACCESS, limits=Limits(2)), listen)
    assert sorted(finished) == [f"host{n}" for n in range(8)], "each host ends once"


class _Broken:
    """Reads reports, and has a bug."""

    def begin(self) -> None:
        """Do nothing."""

    def finished(self, name: str, report: HostData) -> None:
        """Fail."""
        raise ValueError(f"bug {name}")


def test_a_reader_that_raises_ends_the_run_with_its_error(target: lab.Host, place: str) -> None:
    jobs = [fleet.Job(rig.inventoried(target), rig.small_files(place, 1), rig.PLAYBOOK)]
    seen: list[fleet.Event] = []
    options = fleet.Options("apply", access=fleet.Access(rig.settings(target)))
    with pytest.raises(ValueError, match="bug"):
        _bounded(jobs, options, seen.append, _Broken())
    assert [event.data["status"] for event in seen if event.name == "finished"] == ["ok"]


def _bounded(
    jobs: Sequence[Job],
    options: fleet.Options,
    listen: Callable[[fleet.Event], None],
    readers: fleet.Readers | None = None,
) -> fleet.Report:
    """Run with a time limit; return the report, or raise the error of the run."""
    return dial.within(60, lambda: fleet.run(jobs, options, listen, readers=readers))
