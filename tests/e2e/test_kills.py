"""Client, executor or session killed in mid-apply: nothing torn, nothing guessed, and the next run converges."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from statecfg import fleet
from tests import hosts
from tests.e2e import crashes, lives, rig
from tests.e2e.conftest import or_skip
from tests.hosts import Host, processes

POINTS = 20
LIVES = 8


@pytest.fixture(scope="module")
def killed() -> Iterator[dict[str, list[dict[str, Any]] | BaseException]]:
    """Give what was seen of the runs that were cut off, side by side on a host each."""
    with or_skip():
        machines = hosts.light_hosts(len(crashes.KILLS), prefix="killed")
    found: dict[str, list[dict[str, Any]] | BaseException] = {}

    def work(who: str, host: Host) -> None:
        try:
            found[who] = crashes.at_random(host, "/srv/killed", who, POINTS, seed=20240601)
        except BaseException as problem:
            found[who] = problem

    side_by_side([threading.Thread(target=work, args=pair) for pair in zip(crashes.KILLS, machines, strict=True)])
    yield found
    for host in machines:
        host.stop()


def side_by_side(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("who", list(crashes.KILLS))
def test_killed_at_random_moments(killed: dict[str, Any], who: str) -> None:
    seen = killed[who]
    if isinstance(seen, BaseException):
        raise seen
    gone = [each["gone"] for each in seen]
    cut = [each for each in seen if each["old"] or each.get("status") == "unknown"]
    print(f"{who} killed {len(seen)} times: {len(cut)} in mid-run; nothing left after {max(gone):.2f} s at most")
    assert len(cut) >= POINTS // 4
    # A run whose last word did not arrive may have come to its end all the same.
    assert all(each["warned"] for each in cut if each["old"])


@pytest.fixture(scope="module")
def lived() -> Iterator[dict[str, list[dict[str, Any]] | BaseException]]:
    """Give what was seen of runs with hooks that were cut off."""
    with or_skip():
        machines = hosts.light_hosts(2, prefix="lived")
    found: dict[str, list[dict[str, Any]] | BaseException] = {}

    def work(who: str, host: Host) -> None:
        try:
            found[who] = lives.at_random(host, "/srv/lived", who, LIVES, seed=20240602)
        except BaseException as problem:
            found[who] = problem

    side_by_side(
        [threading.Thread(target=work, args=pair) for pair in zip(("client", "executor"), machines, strict=True)]
    )
    yield found
    for host in machines:
        host.stop()


@pytest.mark.parametrize("who", ["client", "executor"])
def test_killed_while_hooks_fire_and_nodes_go(lived: dict[str, Any], who: str) -> None:
    seen = lived[who]
    if isinstance(seen, BaseException):
        raise seen
    cut = [each for each in seen if each["warned"]]
    print(f"{who} killed {len(seen)} times: {len(cut)} cut off, {sum(each['owed'] for each in seen)} owed a restart")
    assert len(cut) >= LIVES // 3


def test_children_end_with_the_controller(target: Host, place: str) -> None:
    with rig.client(target, "chain", place, "1", "600", "word") as client:
        client.await_line("action-started command:wait-0")
        processes.wait_until(lambda: "sleep" in names(target), 5, "the command to run")
        client.process.kill()
        killed = time.monotonic()
        processes.wait_until(lambda: not rig.everything_ours(target), crashes.GONE, "all to end")
    print(f"executor and its child gone {time.monotonic() - killed:.2f} s after the client was killed")


def names(host: Host) -> list[str]:
    found = []
    for pid in rig.everything_ours(host):
        try:
            with open(f"/proc/{pid}/comm", encoding="ascii") as name:
                found.append(name.read().strip())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


class Cut:
    """Applies in a thread, and lets the test act while the host does."""

    def __init__(self, host: Host, place: str, seconds: float, files: int = 4, until: str = "") -> None:
        self.acting = threading.Event()
        self.until = until
        self.done: rig.Done | None = None
        definition = rig.chain(place, files, seconds, "word")

        def work() -> None:
            self.done = rig.run(host, definition, listen=self.listen)

        self.thread = threading.Thread(target=work)
        self.thread.start()
        assert self.acting.wait(20)

    def listen(self, event: fleet.Event) -> None:
        if event.kind == "action-started" and self.until in event.data["node"]:
            self.acting.set()

    def end(self, seconds: float) -> rig.Done:
        self.thread.join(seconds)
        assert self.done is not None, f"no end within {seconds} s"
        return self.done


def is_unknown(done: rig.Done, place: str) -> None:
    report = done.host()
    assert report["status"] == "unknown"
    assert "Run it again" in report["error"]["hint"]
    outcomes = done.outcomes()
    assert outcomes["command:wait-0"] == "unknown"
    assert outcomes[f"file:{place}/f3"] == "skipped"
    assert "ok" not in [
        action["status"] for layer in report["layers"][1:] for node in layer for action in node["actions"]
    ]


DROP = "add table inet t; add chain inet t c { type filter hook input priority 0; policy drop; }"


def nft(host: Host, rules: str) -> None:
    subprocess.run([*host.enter_network(), "nft", "-f", "-"], input=rules, text=True, check=True)


def silence_by_signal(host: Host, pids: list[int]) -> Callable[[], None]:
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    return lambda: [os.kill(pid, signal.SIGCONT) for pid in pids] and None


def stop_executor(host: Host) -> Callable[[], None]:
    return silence_by_signal(host, rig.executors(host))


def stop_session(host: Host) -> Callable[[], None]:
    below = [pid for session in host.sessions() for pid in [session, *processes.descendants(session)]]
    return silence_by_signal(host, [pid for pid in below if crashes._is_sshd(pid)])


def drop(hook: str) -> Callable[[Host], Callable[[], None]]:
    def act(host: Host) -> Callable[[], None]:
        nft(host, DROP.replace("input", hook))
        return lambda: nft(host, "delete table inet t")

    return act


SILENCES = {
    "executor stopped": stop_executor, "session stopped": stop_session, "all to it lost": drop("input"),
    "all from it lost": drop("output"),
}  # fmt: skip


@pytest.fixture(scope="module")
def silenced() -> Iterator[dict[str, tuple[Host, rig.Done, float]]]:
    """Give, for each way to fall silent in mid-action, the host, the run, and how long it took to be given up."""
    with or_skip():
        machines = hosts.light_hosts(len(SILENCES), prefix="silent")
    found: dict[str, tuple[Host, rig.Done, float]] = {}

    def work(how: str, host: Host) -> None:
        # With the executor itself stopped nothing ends its child; its 3 s are over before anybody is given up.
        cut = Cut(host, "/srv/silent", 3 if how == "executor stopped" else 60, until="wait-0")
        heal = SILENCES[how](host)
        begun = time.monotonic()
        try:
            done = cut.end(40)
            seconds = time.monotonic() - begun
            if "lost" in how:
                processes.wait_until(lambda: not rig.executors(host), 30, f"the executor to end: {how}")
        finally:
            heal()
        processes.wait_until(lambda: not rig.everything_ours(host), 20, f"all to end: {how}")
        found[how] = (host, done, seconds)

    side_by_side([threading.Thread(target=work, args=pair) for pair in zip(SILENCES, machines, strict=True)])
    yield found
    for host in machines:
        host.stop()


@pytest.mark.parametrize("how", list(SILENCES))
def test_a_host_that_falls_silent_is_given_up_and_does_nothing_more(silenced: dict[str, Any], how: str) -> None:
    host, done, seconds = silenced[how]
    print(f"{how}: given up after {seconds:.1f} s: {done.host()['error']['summary']}")
    assert seconds < 25  # what the host still says, hearing nothing, keeps it alive for some seconds
    is_unknown(done, "/srv/silent")
    assert not list(host.path("/srv/silent").glob("f*")), "it went on"
    assert rig.lock_is_free(host)
    again = rig.run(host, rig.chain("/srv/silent", 4, 0, "word")).host()
    assert again["status"] == "ok"
    assert any("was cut off" in text for text in again["warnings"])


def test_a_client_that_was_stopped_knows_that_it_knows_nothing(target: Host, place: str) -> None:
    with rig.client(target, "chain", place, "4", "6", "word") as client:
        client.await_line("action-started command:wait-0")
        os.kill(client.process.pid, signal.SIGSTOP)
        stopped = time.monotonic()
        processes.wait_until(lambda: not rig.everything_ours(target), 30, "the executor to end")
        print(f"client stopped: executor gone after {time.monotonic() - stopped:.1f} s")
        os.kill(client.process.pid, signal.SIGCONT)
        report = json.loads(client.end().splitlines()[-1])
    assert report["status"] in ("unknown", "failed"), report
    assert report["error"] if report["status"] == "unknown" else report["halted"]
    assert rig.lock_is_free(target)
    assert not target.path(f"{place}/f3").exists()
    again = rig.run(target, rig.chain(place, 4, 0, "word")).host()
    assert again["status"] == "ok"


def test_a_partition_before_any_action(target: Host, place: str) -> None:
    nft(target, DROP)
    try:
        done = rig.run(target, rig.small_files(place, 3))
    finally:
        nft(target, "delete table inet t")
    report = done.host()
    print(f"partition before: {done.seconds:.1f} s: {report['error']}")
    assert report["status"] == "unreachable"
    assert report["error"]["hint"]
    assert done.seconds < 12
    assert not target.path(place).exists()


def test_a_partition_that_heals_is_no_fault(target: Host, place: str) -> None:
    cut = Cut(target, place, 2, files=2, until="wait-0")
    nft(target, DROP)
    time.sleep(6)
    nft(target, "delete table inet t")
    done = cut.end(30)
    assert done.host()["status"] == "ok", done.host()
