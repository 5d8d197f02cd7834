"""Workers that die during a run: a host is repeated only if no action has started there, otherwise it is unknown."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from statecfg.engines.engine import WorkerEngine
from statecfg.engines.processes import ProcessWorkers
from statecfg.run import fleet
from statecfg.run.host import repeated as sessions
from tests import ROOT
from tests.host.command import reach
from tests.host.run import rig
from tests.lab import Host, processes
from tests.lab.fixtures import light_hosts


@pytest.fixture(scope="module")
def pair() -> Iterator[list[Host]]:
    yield from light_hosts(2, "lost")


@pytest.fixture
def target(pair: list[Host]) -> Host:
    return pair[0]


@pytest.fixture
def place(request: pytest.FixtureRequest) -> str:
    return f"/srv/{re.sub('[^a-z]+', '-', request.node.name)[5:55]}"


# A fact of the project that is known as soon as the host has a file.
GATE = """\
import os, time

def fact():
    while not os.path.exists("/srv/open"):
        time.sleep(0.05)
    return "open"
"""


class Workers(WorkerEngine):
    """Two worker processes, of which the first one gets the first host."""

    def __init__(self) -> None:
        self.source = ProcessWorkers(2)
        super().__init__(self.source)

    def kill(self, *numbers: int) -> None:
        for number in numbers:
            process = self.source.processes[number][0]
            process.kill()
            process.wait()


@contextmanager
def workers() -> Iterator[Workers]:
    engine = Workers()
    try:
        yield engine
    finally:
        engine.close()


class Killer:
    """Follows the hosts of a run, and kills a worker just before a host gets the permission to apply its plan."""

    def __init__(self, engine: Workers) -> None:
        self.engine, self.told = engine, 0

    def planned(self, host: str, report: Any) -> None:
        assert report["fingerprints"]

    def going(self, host: str) -> None:
        self.told += 1
        if self.told == 1:
            self.engine.kill(0)

    def finished(self, host: str, report: Any) -> None:
        assert report["status"]


def repeated(done: rig.Done) -> None:
    report = done.host()
    assert report["status"] == "ok", report
    (warning,) = report["warnings"]
    assert re.match(r"worker 1 of 2 \(process \d+\) was lost: it was killed by signal 9; .* is repeated$", warning)
    assert done.event_names().count("connecting") == 2
    assert done.event_names().count("finished") == 1


def test_a_host_that_waits_for_the_answer_is_repeated(target: Host, place: str) -> None:
    definition = rig.small_files(place, 3)

    def answer(report: rig.Json) -> bool:
        engine.kill(0)
        return True

    with workers() as engine:
        done = rig.run(target, definition, confirm=answer, engine=engine)
    repeated(done)
    assert done.host()["summary"] == {"changed": 4}
    assert "action-started" in done.event_names()
    assert rig.run(target, definition).host()["summary"] == {"unchanged": 4}


def test_a_repeated_host_is_refused_if_its_plan_differs_from_the_one_that_was_shown(target: Host, place: str) -> None:
    definition = rig.small_files(place, 3)
    rig.run(target, definition)
    target.write(f"{place}/f1", "drifted\n")

    def answer(report: rig.Json) -> bool:
        target.write(f"{place}/f2", "drifted, too\n")
        engine.kill(0)
        return True

    with workers() as engine:
        report = rig.run(target, definition, confirm=answer, engine=engine).host()
    assert (report["status"], report["differs"]) == ("refused", [f"file:{place}/f2"])
    assert target.read(f"{place}/f1") == "drifted\n"


def test_a_host_that_never_got_its_permission_is_repeated(target: Host, place: str) -> None:
    with workers() as engine:
        killer: Any = Killer(engine)
        done = rig.run(target, rig.small_files(place, 3), hooks=fleet.RunHooks(events=killer), engine=engine)
    repeated(done)
    assert killer.told == 2
    history = rig.run(target, rig.define(), "history", query={"run": done.report["run"], "limit": 2}).host()["history"]
    assert [past["status"] for past in history] == ["ok"]


def test_a_host_whose_former_executor_keeps_the_lock_is_unknown(
    target: Host, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "STOPS", 1.0)
    definition, hanging = rig.small_files(place, 3), list[int]()

    class Stopper(Killer):
        def going(self, host: str) -> None:
            hanging.extend(rig.executors(target))
            for pid in hanging:
                os.kill(pid, signal.SIGSTOP)
            super().going(host)

    try:
        with workers() as engine:
            stopper: Any = Stopper(engine)
            done = rig.run(target, definition, hooks=fleet.RunHooks(events=stopper), engine=engine)
        assert hanging and all(map(processes.alive, hanging))
    finally:
        for pid in hanging:
            os.kill(pid, signal.SIGCONT)
    report = done.host()
    assert report["status"] == "unknown", report
    assert "was lost: it was killed by signal 9" in report["error"]["summary"]
    assert done.event_names().count("connecting") == 1
    processes.wait_until(lambda: not rig.executors(target), 60, "the end of the former executor")
    assert not target.path(place).exists()
    assert rig.run(target, definition).host()["status"] == "ok"


def test_a_host_whose_actions_had_started_is_unknown(target: Host, place: str) -> None:
    definition = rig.chain(place, 6, 0.1, "lost")
    killed: list[str] = []

    def listen(event: fleet.Event) -> None:
        if event.name == "action-finished" and not killed:
            killed.append(event.host)
            engine.kill(0)

    with workers() as engine:
        done = rig.run(target, definition, listen=listen, engine=engine)
    report = done.host()
    assert report["status"] == "unknown", report
    assert "was lost: it was killed by signal 9" in report["error"]["summary"]
    assert done.event_names().count("connecting") == 1
    assert rig.run(target, definition).host()["status"] == "ok"


def test_a_host_that_waits_for_the_facts_of_others_is_repeated(pair: list[Host], tmp_path: Path) -> None:
    first, second = pair
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts/gate.py").write_text(GATE)
    (tmp_path / "statecfg.toml").write_text('name = "lost"\n')
    (tmp_path / "site.yml").write_text(
        'hosts: all\nresources:\n  - file: /srv/gated\n    content: "{{ host.facts.own.gate }}\\n"\n'
    )
    argv = [sys.executable, "-m", "statecfg", "apply", "site.yml", "--yes", "--json", "--engine", "processes:2"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(tmp_path / "state")}
    first.write("/srv/open", "")
    with subprocess.Popen(
        [*argv, *reach(tmp_path, pair)], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    ) as command:
        processes.wait_until(lambda: all(map(rig.executors, pair)), 120, "the executors")
        time.sleep(1)  # so that the answer of the first host has arrived; the result is the same if it has not
        os.kill(min(processes.children(command.pid)), signal.SIGKILL)  # it has one host
        second.write("/srv/open", "")
        report = json.loads(command.communicate(timeout=200)[0])["hosts"]
    assert command.returncode == 0
    assert [host["status"] for host in report.values()] == ["ok", "ok"]
    (warning,) = [text for host in report.values() for text in host.get("warnings", ())]
    assert warning.endswith("is repeated")
    assert [host.read("/srv/gated") for host in pair] == ["open\n", "open\n"]


def test_without_workers_a_host_reports_that_and_is_unchanged(target: Host, place: str) -> None:
    def answer(report: rig.Json) -> bool:
        engine.kill(0, 1)
        return True

    with workers() as engine:
        report = rig.run(target, rig.small_files(place, 3), confirm=answer, engine=engine).host()
    assert report["status"] == "unreachable"
    assert report["error"]["summary"].startswith("no worker is left to connect to it: worker 1 of 2")
    assert report["error"]["detail"] == "Nothing was changed."
    assert not target.path(place).exists()
