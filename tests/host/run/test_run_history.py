"""The run history of a real host: who ran what and when, for finished and interrupted runs."""

from __future__ import annotations

import getpass
import os
import signal
import socket
import time
from pathlib import Path

import pytest

from statecfg.resources import command, directory, file
from tests.host.run import rig
from tests.host.run.site import Site, names
from tests.host.run.test_prune import listed, text
from tests.lab import Host, processes


@pytest.fixture
def site(tmp_path: Path, light_host: Host, place: str) -> Site:
    found = Site(tmp_path, light_host, place.rpartition("/")[2])
    found.fresh()
    return found


def test_run_history_shows_user_time_and_outcomes_of_every_run(site: Site, light_host: Host, place: str) -> None:
    began = time.time()
    assert "This host has no runs." in site("run-history").out
    site.play(*text(place, "a", "b"))
    site.play(*text(place, "c"), file="two.py")
    site("apply", "site.py", "--yes")
    site("apply", "two.py", "--yes")
    site.play(*text(place, "b"), "command('broken', argv=['sh', '-c', 'echo why; exit 3'])")
    site("apply", "site.py", "--prune", "--yes", code=1)
    site("plan", "site.py")  # leaves nothing behind
    site("destroy", "site.py", "--yes")
    runs = site.report("run-history")["history"]
    assert [(run["mode"], run["playbook"], run["status"]) for run in runs] == [
        ("destroy", f"{site.name}/site.py", "ok"), ("apply", f"{site.name}/site.py", "failed"),
        ("apply", f"{site.name}/two.py", "ok"), ("apply", f"{site.name}/site.py", "ok"),
    ]  # fmt: skip
    assert {run["who"] for run in runs} == {f"{getpass.getuser()}@{socket.gethostname()}"}
    assert all(began <= run["started"] <= run["ended"] <= time.time() for run in runs)
    assert runs[3]["summary"] == {"changed": 3}

    shown = site("run-history", "all", "--playbook", "two.py").out
    assert runs[2]["run"] in shown
    assert runs[3]["run"] not in shown
    assert len(site.report("run-history", "--playbook", f"{site.name}/site.py", "-n", "2")["history"]) == 2

    single = site("run-history", light_host.name, "--run", runs[1]["run"][:6]).out
    assert f"    ✓ file:{place}/a  changed\n        · remove\n" in single
    assert "    ✗ command:broken  failed\n        · run  error\n" in single
    assert "exit" in single
    (run,) = site.report("run-history", "--run", runs[1]["run"])["history"]
    assert run["outcomes"][f"file:{place}/a"] == "changed"
    assert [action["op"] for action in run["actions"] if action["node"] == f"file:{place}/a"] == ["remove"]
    unknown = site("run-history", "--run", "nosuch", code=5)
    assert "This host has no run whose id starts with nosuch." in unknown.out


def slow(place: str, count: int, wait_for: str = "sleep 3") -> rig.Definition:
    """Return a directory, a slow command, and files that require the command."""
    top = directory(place)
    wait = command("wait", argv=["sh", "-c", wait_for], requires=[top], effects={})
    return rig.define(top, wait, *(file(f"{place}/{i}", content="x\n", requires=[wait]) for i in range(count)))


def test_run_history_shows_what_an_interrupted_run_was_doing(site: Site, light_host: Host, place: str) -> None:
    def kill(event: object) -> None:
        if event.name == "action-started" and event.data["node"] == "command:wait":
            for pid in rig.executors(light_host):
                os.kill(pid, signal.SIGKILL)

    cut = rig.run(light_host, slow(place, 3), listen=kill, playbook="cut/site.py")
    assert cut.host()["status"] == "unknown"
    for _ in range(2):  # reading the history changes nothing
        (run,) = site.report("run-history", "--run", cut.report["run"])["history"]
        assert (run["status"], run["mode"], run["playbook"]) == ("cut off", "apply", "cut/site.py")
        assert run["outcomes"] == {f"directory:{place}": "changed", "command:wait": "unknown"}
    shown = site("run-history", "--run", cut.report["run"]).out
    assert "    ? command:wait  was running when the run was cut off\n        · run  its result is unknown\n" in shown
    assert "cut off" in site("run-history").out
    processes.wait_until(lambda: not rig.everything_ours(light_host), 10, "the command to end")
    assert rig.run(light_host, slow(place, 3), playbook="cut/site.py").host()["status"] == "ok"
    assert [run["status"] for run in site.report("run-history")["history"]] == ["ok", "cut off"]


def test_run_history_shows_a_current_run_as_running(site: Site, light_host: Host, place: str) -> None:
    seen: list[str] = []

    def look(event: object) -> None:
        if event.name == "action-started" and event.data["node"] == "command:wait":
            seen.extend(run["status"] for run in site.report("run-history")["history"])
            light_host.write(f"{place}.seen", "")

    looked = slow(place, 1, f"until [ -e {place}.seen ]; do sleep 0.1; done")
    assert rig.run(light_host, looked, listen=look).host()["status"] == "ok"
    assert seen == ["running"]


@pytest.mark.parametrize("after", [1, 7, 20])
def test_the_next_prune_finishes_a_killed_one(site: Site, light_host: Host, place: str, after: int) -> None:
    top = text(place)[0]
    # Each node requires the one before, so each is removed in its own layer. `wait` holds the run where it is killed.
    before, chain, hold = f"directory:{place}", [], f"{place}.hold"
    undo = f"for i in $(seq 1500); do [ -e {hold} ] || exit 0; sleep 0.02; done"
    for i in range(30):
        if i == 30 - after:
            chain.append(f"command('wait', argv=['true'], undo='{undo}', effects={{}}, requires=['{before}'])")
            before = "command:wait"
        chain.append(f"file('{place}/f{i:02}', content='{i}\\n', requires=['{before}'])")
        before = f"file:{place}/f{i:02}"
    site.play(top, *chain)
    site("apply", "site.py", "--yes")
    site.play(top)
    owner = f"{site.name}/site.py"
    light_host.write(hold, "")

    def kill(event: object) -> None:
        if event.name == "action-started" and event.data["node"] == "command:wait":
            for pid in rig.executors(light_host):
                os.kill(pid, signal.SIGKILL)

    cut = rig.run(
        light_host, rig.define(directory(place, mode="0755")), "prune", listen=kill, playbook=owner, agreed=True
    )
    assert cut.host()["status"] == "unknown"
    light_host.run(["rm", hold])
    processes.wait_until(lambda: not rig.everything_ours(light_host), 10, "the command to end")
    assert listed(light_host, place) == [f"f{i:02}" for i in range(30 - after)]
    planned = site.report("plan", "site.py")
    assert set(names(planned["removals"]) + names(planned["left"])) >= {
        f"file:{place}/{name}" for name in listed(light_host, place)
    }
    assert any(f"run {cut.report['run']} by" in text and "was cut off" in text for text in planned["warnings"])
    site("prune", "site.py", "--yes")
    assert listed(light_host, place) == []
    last = site.report("plan", "site.py", "--prune")
    assert names(last["removals"]) == []
    assert "warnings" not in last
