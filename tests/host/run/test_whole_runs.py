"""Whole runs: saved plans, many hosts at once, and restarts that a crash must not lose."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

import statecfg.resources
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.resources import command, file
from statecfg.run import bundle
from statecfg.run.options import Expected, Limits
from tests.host.run import rig
from tests.lab import Host, processes
from tests.lab.fixtures import light_hosts


def prints(done: rig.Done, host: Host) -> dict[str, dict[str, str]]:
    return {host.name: done.host()["fingerprints"]}


def test_a_saved_plan_is_applied_to_an_unchanged_host(target: Host, place: str) -> None:
    definition = rig.small_files(place, 5)
    plan = rig.run(target, definition, "plan")
    done = rig.run(target, definition, expected=Expected(prints(plan, target)))
    assert (done.host()["status"], done.host()["summary"]) == ("ok", {"changed": 6})


def test_a_saved_plan_is_refused_on_a_host_that_changed_since(target: Host, place: str) -> None:
    definition = rig.small_files(place, 5)
    assert rig.run(target, definition).host()["status"] == "ok"
    target.write(f"{place}/f1", "drifted\n")
    plan = rig.run(target, definition, "plan")
    target.write(f"{place}/f3", "drifted too\n")
    done = rig.run(target, definition, expected=Expected(prints(plan, target)))
    report = done.host()
    assert (report["status"], report["differs"]) == ("refused", [f"file:{place}/f3"])
    assert "action-started" not in done.event_names()
    assert set(report["summary"]) == {"unchanged", "skipped"}
    assert target.read(f"{place}/f1") == "drifted\n"
    assert target.read(f"{place}/f3") == "drifted too\n"
    target.write(f"{place}/f3", "new 3\n")
    target.write(f"{place}/f1", "new 1\n")
    done = rig.run(target, definition, expected=Expected(prints(plan, target)))
    assert done.host()["differs"] == [f"file:{place}/f1"]


def test_declining_the_plan_changes_nothing_and_accepting_applies_it(target: Host, place: str) -> None:
    definition = rig.small_files(place, 3)
    shown: list[rig.Json] = []

    def no(report: rig.Json) -> bool:
        shown.append(report["hosts"][target.name]["layers"][0][0]["outcome"])
        return False

    done = rig.run(target, definition, confirm=no)
    assert shown == ["changed"]
    assert (done.host()["status"], done.host()["declined"], done.host()["summary"]) == ("ok", True, {"skipped": 4})
    assert not target.path(place).exists()
    assert rig.run(target, definition, confirm=lambda report: True).host()["summary"] == {"changed": 4}
    again = rig.run(target, definition, confirm=lambda report: True)
    assert again.host()["summary"] == {"unchanged": 4}


@pytest.fixture(scope="module")
def fifty() -> Iterator[list[Host]]:
    yield from light_hosts(50, "many")


def under_way(done: rig.Done) -> int:
    """Return the maximum number of hosts that were connected at the same time."""
    now = most = 0
    for name in done.event_names():
        now += {"connecting": 1, "finished": -1}.get(name, 0)
        most = max(most, now)
    return most


def test_one_hanging_host_does_not_block_the_other_hosts(fifty: list[Host]) -> None:
    definition = rig.small_files("/srv/fifty", 5)
    quick = rig.run(fifty, definition, limits=Limits(8))
    assert {host.name for host in fifty if quick.host(host.name)["status"] == "ok"} == {host.name for host in fifty}
    assert under_way(quick) == 8
    hanging = fifty[7]
    os.kill(hanging.pid, signal.SIGSTOP)
    try:
        done = rig.run(fifty, definition, limits=Limits(8))
    finally:
        os.kill(hanging.pid, signal.SIGCONT)
    statuses = {host.name: done.host(host.name)["status"] for host in fifty}
    assert statuses.pop(hanging.name) == "unreachable"
    assert set(statuses.values()) == {"ok"}
    last = max(when for when, event in done.events if event.name == "finished" and event.host != hanging.name)
    print(f"50 hosts, forks 8: {quick.seconds:.1f} s; one hangs: the others {last:.1f} s, it {done.seconds:.1f} s")
    # One of the eight places was blocked. More than eight other hosts used the remaining seven places meanwhile.
    its = [number for number, (_, event) in enumerate(done.events) if event.host == hanging.name]
    meanwhile = [event for _, event in done.events[its[0] : its[-1]] if event.host != hanging.name]
    begun, ended = ({event.host for event in meanwhile if event.name == name} for name in ("connecting", "finished"))
    assert len(begun & ended) > 8


def test_an_apply_to_twenty_hosts_in_parallel_succeeds(fifty: list[Host]) -> None:
    definition = rig.small_files("/srv/twenty", 20)
    done = rig.run(fifty[:20], definition, limits=Limits(20))
    assert {done.host(host.name)["status"] for host in fifty[:20]} == {"ok"}
    again = rig.run(fifty[:20], definition, limits=Limits(20))
    print(f"20 hosts, 20 files: first {done.seconds:.2f} s, converged {again.seconds:.2f} s")


def test_the_forks_limit_also_holds_after_confirmation(fifty: list[Host]) -> None:
    definition = rig.small_files("/srv/asked", 3)
    acting: set[str] = set()
    most = 0

    def listen(event: object) -> None:
        nonlocal most
        name, host = event.name, event.host
        acting.add(host) if name == "action-started" else acting.discard(host) if name == "finished" else None
        most = max(most, len(acting))

    done = rig.run(fifty[:10], definition, limits=Limits(2), confirm=lambda report: True, listen=listen)
    assert {done.host(host.name)["status"] for host in fifty[:10]} == {"ok"}
    assert most <= 2


DAEMON = '''
"""A service that leaves a mark at each restart."""
from __future__ import annotations
from statecfg.remote.graph.nodetype import node_type
from statecfg.remote.graph.ops import op


@node_type
def marking_daemon(name: str, *, mark: str, **options) -> None:
    """A daemon that starts and restarts."""


@op
def begin(machine, mark):
    return machine.run(["sh", "-c", "echo begun >> " + mark], {"files": [mark]})


@op
def again(machine, mark):
    return machine.run(["sh", "-c", "echo again >> " + mark], {"files": [mark]})


@marking_daemon.check
def check(node, world):
    if world.acted:
        return []
    if world.stat(node.attrs["mark"]) is None:
        return [begin(node.attrs["mark"])]
    return [again(node.attrs["mark"])] if world.triggered_by else []
'''


@pytest.fixture(scope="module")
def own_types(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Write a node type into the project's `resources/`."""
    folder = tmp_path_factory.mktemp("resources")
    (folder / "marking_daemon.py").write_text(DAEMON)
    statecfg.resources.add_directory(str(folder))
    yield
    statecfg.resources.__path__.remove(str(folder))
    REGISTRY.pop("marking_daemon", None)
    bundle._build.cache_clear()


@pytest.mark.usefixtures("own_types")
def test_an_interrupted_restart_is_owed_and_done_once(target: Host, place: str) -> None:
    marking_daemon = statecfg.resources.marking_daemon

    def definition(text: str, seconds: float) -> rig.Definition:
        config = file(f"{place}.conf", content=text)
        wait = command("wait", argv=["sleep", str(seconds)], requires=[config], restart_on=[config], effects={})
        return rig.define(config, marking_daemon("shop", mark=f"{place}.mark", restart_on=[config], requires=[wait]))

    assert rig.run(target, definition("one\n", 0)).host()["status"] == "ok"
    assert target.read(f"{place}.mark") == "begun\n"

    def kill(event: object) -> None:
        if event.name == "action-started" and event.data["node"] == "command:wait":
            for pid in rig.executors(target):
                os.kill(pid, signal.SIGKILL)

    killed_at = time.time()
    cut = rig.run(target, definition("two\n", 3), listen=kill)
    assert cut.host()["status"] == "unknown"
    assert cut.outcomes()["marking_daemon:shop"] == "skipped"
    assert target.read(f"{place}.conf") == "two\n"
    processes.wait_until(lambda: not rig.everything_ours(target), 30, "the command to end")

    plan = rig.run(target, definition("two\n", 0), "plan").host()
    owed = {debt["node"]: debt for debt in plan["owed"]}
    assert owed["marking_daemon:shop"]["cause"] == f"file:{place}.conf"
    assert abs(owed["marking_daemon:shop"]["since"] - killed_at) < 120
    assert owed["marking_daemon:shop"]["run"] == cut.report["run"]
    shop = next(n for layer in plan["layers"] for n in layer if n["name"] == "marking_daemon:shop")
    assert (shop["outcome"], [action["op"] for action in shop["actions"]]) == ("changed", ["again"])
    assert shop["triggered_by"] == [f"file:{place}.conf"]
    assert target.read(f"{place}.mark") == "begun\n"

    done = rig.run(target, definition("two\n", 0))
    assert done.host()["status"] == "ok"
    assert target.read(f"{place}.mark") == "begun\nagain\n"
    last = rig.run(target, definition("two\n", 0))
    assert set(last.outcomes().values()) == {"unchanged"}
    assert not last.host()["owed"]
    assert target.read(f"{place}.mark") == "begun\nagain\n"


@pytest.mark.usefixtures("own_types")
def test_a_node_type_from_the_project_works_on_the_host(target: Host, place: str) -> None:
    definition = rig.define(statecfg.resources.marking_daemon("shop", mark=f"{place}.mark"))
    assert rig.run(target, definition, "plan").host()["summary"] == {"changed": 1}
    assert rig.run(target, definition).host()["summary"] == {"changed": 1}
    assert rig.run(target, definition).host()["summary"] == {"unchanged": 1}


def test_a_host_that_changes_before_confirmation_is_refused(target: Host, place: str) -> None:
    definition = rig.small_files(place, 2)
    assert rig.run(target, definition).host()["status"] == "ok"
    target.write(f"{place}/f1", "drifted\n")

    def read_slowly(report: rig.Json) -> bool:
        target.write(f"{place}/f1", "drifted further\n")
        return True

    report = rig.run(target, definition, confirm=read_slowly).host()
    assert (report["status"], report["differs"]) == ("refused", [f"file:{place}/f1"])
    assert target.read(f"{place}/f1") == "drifted further\n"
