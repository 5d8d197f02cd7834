"""The process type, which is written in Hy, on real processes and in memory."""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from statecfg import problems
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.machine.memory import MemoryMachine
from statecfg.remote.machine.planned import Planned
from statecfg.remote.machine.real import Facets, RealMachine
from statecfg.remote.run.execution import Execution
from statecfg.remote.run.plan import Plan
from statecfg.remote.run.planning import Planner
from statecfg.resources import process
from tests.host.resources.test_cases import Unrecorded
from tests.lab.processes import wait_until
from tests.unit.resources.test_cases import layers

ME = pwd.getpwuid(os.geteuid()).pw_name


class Program:
    """A test program, and the process node that manages it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = f"test:{folder}"
        self.path = folder / "program"
        self.path.write_text(
            f"#!{sys.executable} -IS\nimport os, sys, time\n"
            "open(sys.argv[1], 'a').write(os.environ.get('COLOUR', '') + '\\n')\n"
            "time.sleep(float(sys.argv[2]))\nsys.exit(int(sys.argv[3]))\n"
        )
        self.path.chmod(0o755)
        self.diary = folder / "diary"

    def node(self, seconds: str = "300", colour: str = "red", status: str = "0", **more: Any) -> Any:
        args = [str(self.diary), seconds, status]
        given = {"user": ME, "group": "root" if ME == "root" else ME, "env": {"COLOUR": colour}, "args": args}
        return process(str(self.path), {**given, "provides": self.name, **more})

    def plan(self, facets: Facets | None = None, **attrs: Any) -> Plan:
        nodes = layers([self.node(**attrs)], self.folder)
        return Planner(REGISTRY, Planned(RealMachine(facets))).plan(nodes)

    def apply(self, **attrs: Any) -> dict[str, Any]:
        facets = Facets()
        plan = self.plan(facets, **attrs)
        execution = Execution(plan, REGISTRY, facets, lambda event: None, Unrecorded(), lambda: "")
        ((report,),) = execution.run()
        return report

    def running(self) -> list[int]:
        found = []
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    words = Path("/proc", name, "cmdline").read_bytes()
                except OSError:
                    continue
                if os.fsencode(self.path) in words.split(b"\0"):
                    found.append(int(name))
        return found

    def entries(self) -> list[str]:
        wait_until(lambda: self.diary.exists() and self.diary.read_text().endswith("\n"), 60, "an entry")
        return self.diary.read_text().split()


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    made = Program(tmp_path)
    yield made
    try:
        made.apply(absent=True)
    finally:
        for pid in made.running():
            if str(made.path).startswith(str(tmp_path)):
                os.kill(pid, signal.SIGKILL)


def ops(plan: Plan) -> tuple[str | None, list[str]]:
    """Return the shutdown-first action and the other actions of a plan's only node."""
    ((step,),) = plan.layers
    assert step.outcome != "failed", step.reason
    first = step.spec.shutdown_first
    return first and first.op, [action.op for action in step.spec.actions]


def test_a_process_is_started_once_and_left_running(program: Program) -> None:
    assert ops(program.plan()) == (None, ["ensure-running"])
    assert program.running() == []
    assert program.apply()["outcome"] == "changed"
    (pid,) = program.running()
    assert program.entries() == ["red"]
    assert os.getpgid(pid) == pid
    assert ops(program.plan()) == (None, [])
    assert program.apply()["outcome"] == "unchanged"
    assert program.running() == [pid]


@pytest.mark.parametrize("change", [{"seconds": "301"}, {"colour": "blue"}])
def test_a_process_with_changed_attributes_is_stopped_and_restarted(program: Program, change: dict[str, str]) -> None:
    program.apply()
    (before,) = program.running()
    assert ops(program.plan(**change)) == ("service-down", ["ensure-running"])
    assert program.apply(**change)["outcome"] == "changed"
    (after,) = program.running()
    assert after != before
    assert ops(program.plan(**change)) == (None, [])


def test_a_process_that_died_is_started_again(program: Program) -> None:
    program.apply()
    (pid,) = program.running()
    os.kill(pid, signal.SIGKILL)
    while program.running():
        time.sleep(0.01)
    assert ops(program.plan()) == (None, ["ensure-running"])
    program.apply()
    assert len(program.running()) == 1


def test_an_absent_process_is_stopped_and_forgotten(program: Program) -> None:
    program.apply()
    assert ops(program.plan(absent=True)) == (None, ["service-down"])
    assert program.apply(absent=True)["outcome"] == "changed"
    assert program.running() == []
    assert ops(program.plan(absent=True)) == (None, [])


def test_a_script_started_by_somebody_else_is_not_adopted(program: Program) -> None:
    other = subprocess.Popen([program.path, str(program.diary), "300", "0"])
    try:
        while program.entries() != [""] and not program.running():
            time.sleep(0.01)
        # The command line of a script begins with its interpreter, so its arguments are not compared.
        assert ops(program.plan()) == (None, ["ensure-running"])
    finally:
        other.kill()
        other.wait()


def test_a_binary_started_by_somebody_else_is_adopted(tmp_path: Path) -> None:
    other = subprocess.Popen(["/bin/sleep", "300.125"])
    try:
        graph = process("/bin/sleep", user=ME, group="root", env={}, args=["300.125"], provides=f"t:{tmp_path}")
        plan = Planner(REGISTRY, Planned(RealMachine())).plan(layers([graph], tmp_path))
        assert ops(plan) == (None, [])
    finally:
        other.kill()
        other.wait()


def test_a_blocking_process_runs_once_to_its_end(program: Program) -> None:
    once = {"seconds": "0.2", "block?": True}
    assert program.apply(**once)["outcome"] == "changed"
    assert program.entries() == ["red"]
    assert program.running() == []
    assert program.apply(**once)["outcome"] == "unchanged"
    assert program.apply(**once, colour="blue")["outcome"] == "changed"
    assert program.entries() == ["red", "blue"]
    program.apply(**once, colour="blue", absent=True)


def test_a_process_that_fails_reports_the_reason(program: Program) -> None:
    report = program.apply(**{"seconds": "0", "status": "3", "block?": True})
    assert report["outcome"] == "failed"
    assert "exit status 3" in report["reason"]
    program.path.write_text("#!/bin/true\n")  # a shell script ends at once, while Python may start slowly
    report = program.apply(seconds="0")
    assert report["outcome"] == "failed"
    assert "ended at once" in report["reason"]
    report = program.apply(user="nobody-at-all")
    assert report["outcome"] == "failed"
    program.path.unlink()
    report = program.apply()
    assert (report["outcome"], report["actions"]) == ("failed", [])
    assert f"program {program.path} is not on this host" in report["reason"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has set-user-id programs")
def test_a_process_with_set_user_id_belongs_to_its_real_user() -> None:
    """For example, any user can start `su` under another program's name while it waits for a password."""
    from statecfg.resources.services import processes

    nobody = pwd.getpwnam("nobody").pw_uid
    code = f"import os, time; os.setresuid({nobody}, 0, 0); print(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-ISc", code], stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout is not None and other.stdout.readline() == b"\n"
            assert os.stat(f"/proc/{other.pid}").st_uid == 0
            running = processes._running(other.pid)
            assert running is not None and running["user"] == "nobody"
        finally:
            other.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may start a program as another user")
def test_a_process_runs_as_its_user_and_group(program: Program) -> None:
    program.path = Path("/bin/sleep")
    program.node = lambda **more: process(
        "/bin/sleep",
        {"user": "nobody", "group": "nogroup", "env": {"COLOUR": "red"}, "args": ["300.25"], "provides": program.name},
        **more,
    )
    report = program.apply()
    assert report["outcome"] == "changed", report
    (pid,) = (int(path.parent.name) for path in Path("/proc").glob("[0-9]*/cmdline") if b"300.25" in path.read_bytes())
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    nobody = pwd.getpwnam("nobody")
    assert status["Uid"].split() == [str(nobody.pw_uid)] * 4
    assert status["Gid"].split() == [str(nobody.pw_gid)] * 4
    environment = dict(pair.split("=", 1) for pair in Path(f"/proc/{pid}/environ").read_text().split("\0") if pair)
    assert set(environment) == {"PATH", "LANG", "HOME", "COLOUR"}


def test_the_memory_machine_runs_a_process_as_planned(tmp_path: Path) -> None:
    machine = MemoryMachine({"/bin/x": ""}, {"processes": {}})
    graph = process("/bin/x", user=":root", group="root", env={"A": 1}, args=["-v", 2], provides="p")
    nodes = layers([graph], tmp_path)
    machine.turn("p")
    plan = Planner(REGISTRY, Planned(machine, root=True)).plan(nodes)
    ((step,),) = plan.layers
    assert {change["field"] for change in step.changes} >= {"pathname", "args", "env", "user", "running"}
    for action in step.spec.actions:
        assert action.perform(machine) == {"status": "ok"}
    assert machine.entry("processes", "p")["args"] == ["-v", "2"]
    assert ops(Planner(REGISTRY, Planned(machine, root=True)).plan(nodes)) == (None, [])


@pytest.mark.parametrize(
    "wrong", [{"env": []}, {"args": "x"}, {"user": 1}, {"block?": "yes"}, {"args": [None]}, {"colour": 1}]
)
def test_invalid_process_attributes_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(problems.InvalidInput):
        process("/bin/x", {"user": "u", "group": "g", "env": {}, "args": [], **wrong})


def test_two_nodes_about_the_same_process_are_refused(tmp_path: Path) -> None:
    same = {"user": "u", "group": "g", "env": {}, "args": ["a"]}
    with pytest.raises(problems.InvalidInput, match="SC0114"):
        layers([process("/bin/x", same, provides="one"), process("/bin/x", same, provides="two")], tmp_path)
    layers([process("/bin/x", same, provides="one"), process("/bin/x", {**same, "args": []}, provides="two")], tmp_path)


def test_the_process_record_contains_no_environment_values(program: Program) -> None:
    from statecfg.resources.services import processes

    program.apply(colour="very-secret")
    files = Path(processes.directory()).glob("*.json")
    kept = [path for path in files if json.loads(path.read_text())["key"] == program.name]
    assert len(kept) == 1
    assert "very-secret" not in kept[0].read_text()
    assert kept[0].stat().st_mode & 0o777 == 0o600
