"""Client, executor or session killed during an apply: no torn file, no guessed result, and the next run converges."""

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

from statecfg.run import fleet
from tests.host.run import crashes, lives, rig
from tests.host.run.side_by_side import Found, given, side_by_side
from tests.lab import Host, processes

# `script/soak` can try more.
POINTS = 10
LIVES = 5


@pytest.fixture(scope="module")
def killed() -> Iterator[Found]:
    """Give the results of the interrupted runs."""

    def work(who: str) -> Callable[[Host], Any]:
        return lambda host: crashes.at_random(host, "/srv/killed", who, POINTS, seed=20240601)

    yield from side_by_side("killed", {who: work(who) for who in crashes.KILLS})


@pytest.mark.parametrize("who", list(crashes.KILLS))
def test_the_next_run_converges_after_a_kill_at_a_random_moment(killed: Found, who: str) -> None:
    seen = given(killed, who)
    gone = [each["gone"] for each in seen]
    cut = [each for each in seen if each["old"] or each.get("status") == "unknown"]
    print(f"{who} killed {len(seen)} times: {len(cut)} in mid-run; nothing left after {max(gone):.2f} s at most")
    assert len(cut) >= POINTS // 4
    # A run whose last message did not arrive may still have ended.
    assert all(each["warned"] for each in cut if each["old"])


@pytest.fixture(scope="module")
def lived() -> Iterator[Found]:
    """Give the results of the interrupted runs with hooks."""

    def work(who: str) -> Callable[[Host], Any]:
        return lambda host: lives.at_random(host, "/srv/lived", who, LIVES, seed=20240602)

    yield from side_by_side("lived", {who: work(who) for who in ("client", "executor")})


@pytest.mark.parametrize("who", ["client", "executor"])
def test_the_next_run_recovers_from_a_kill_during_hooks_and_removals(lived: Found, who: str) -> None:
    seen = given(lived, who)
    cut = [each for each in seen if each["warned"]]
    print(f"{who} killed {len(seen)} times: {len(cut)} cut off, {sum(each['owed'] for each in seen)} owed a restart")
    assert len(cut) >= LIVES // 3


def test_the_executor_and_its_children_end_when_the_client_is_killed(target: Host, place: str) -> None:
    with rig.client(target, "chain", place, "1", "600", "word") as client:
        client.await_line("action-started command:wait-0")
        processes.wait_until(lambda: "sleep" in names(target), 30, "the command to run")
        client.process.kill()
        killed = time.monotonic()
        processes.wait_until(lambda: not rig.everything_ours(target), crashes.GONE, "all processes on the host to end")
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
    """An apply in a thread; the test can act while the host performs an action."""

    def __init__(self, host: Host, place: str, seconds: float, files: int = 4, until: str = "") -> None:
        self.acting = threading.Event()
        self.until = until
        self.done: rig.Done | None = None
        definition = rig.chain(place, files, seconds, "word")

        def work() -> None:
            self.done = rig.run(host, definition, listen=self.listen)

        self.thread = threading.Thread(target=work)
        self.thread.start()
        assert self.acting.wait(60)

    def listen(self, event: fleet.Event) -> None:
        if event.name == "action-started" and self.until in event.data["node"]:
            self.acting.set()

    def end(self, seconds: float) -> rig.Done:
        self.thread.join(seconds)
        assert self.done is not None, f"the run did not end within {seconds} s"
        return self.done


def is_unknown(done: rig.Done, place: str) -> None:
    report = done.host()
    assert report["status"] == "unknown"
    assert "Run the command again" in report["error"]["hint"]
    outcomes = done.outcomes()
    assert outcomes["command:wait-0"] == "unknown"
    assert outcomes[f"file:{place}/f3"] == "unknown"  # the host may have continued until it noticed the loss
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
    "executor stopped": stop_executor, "session stopped": stop_session,
    "packets to the host lost": drop("input"), "packets from the host lost": drop("output"),
}  # fmt: skip


def fall_silent(host: Host, how: str) -> tuple[Host, rig.Done, float]:
    """Silence the host during an action; return the host, the run, and the seconds until the controller gave up."""
    # A stopped executor can't end its child, so the child itself ends after 3 s.
    cut = Cut(host, "/srv/silent", 3 if how == "executor stopped" else 60, until="wait-0")
    heal = SILENCES[how](host)
    begun = time.monotonic()
    try:
        done = cut.end(90)
        seconds = time.monotonic() - begun
        if "lost" in how:
            processes.wait_until(lambda: not rig.executors(host), 50, f"the executor to end: {how}")
    finally:
        heal()
    processes.wait_until(lambda: not rig.everything_ours(host), 30, f"all processes on the host to end: {how}")
    return host, done, seconds


def stop_client(host: Host) -> dict[str, Any]:
    """Suspend the client until the executor gives it up, then resume it; return the client's report."""
    with rig.client(host, "chain", "/srv/stopped", "4", "6", "word") as client:
        client.await_line("action-started command:wait-0")
        os.kill(client.process.pid, signal.SIGSTOP)
        stopped = time.monotonic()
        processes.wait_until(lambda: not rig.everything_ours(host), 60, "the executor to end")
        print(f"client stopped: executor gone after {time.monotonic() - stopped:.1f} s")
        os.kill(client.process.pid, signal.SIGCONT)
        report: dict[str, Any] = json.loads(client.end().splitlines()[-1])
    assert rig.lock_is_free(host)
    assert not host.path("/srv/stopped/f3").exists()
    again = rig.run(host, rig.chain("/srv/stopped", 4, 0, "word")).host()
    assert again["status"] == "ok"
    return report


def lose_all_before(host: Host) -> rig.Done:
    """Start a run while no packet reaches the host."""
    nft(host, DROP)
    try:
        done = rig.run(host, rig.small_files("/srv/before", 3))
    finally:
        nft(host, "delete table inet t")
    assert not host.path("/srv/before").exists()
    return done


def lose_all_for_a_while(host: Host) -> rig.Done:
    """Drop all packets to the host for 6 s during an action."""
    cut = Cut(host, "/srv/heals", 2, files=2, until="wait-0")
    nft(host, DROP)
    time.sleep(6)
    nft(host, "delete table inet t")
    return cut.end(60)


@pytest.fixture(scope="module")
def silenced() -> Iterator[Found]:
    """Give the results of all runs in which one side does not hear the other for some time."""

    def work(how: str) -> Callable[[Host], Any]:
        return lambda host: fall_silent(host, how)

    more = {"client stopped": stop_client, "lost before the run": lose_all_before, "lost for 6 s": lose_all_for_a_while}
    yield from side_by_side("silent", {**{how: work(how) for how in SILENCES}, **more})


@pytest.mark.parametrize("how", list(SILENCES))
def test_a_host_that_falls_silent_stops_and_is_reported_as_unknown(silenced: Found, how: str) -> None:
    host, done, seconds = given(silenced, how)
    print(f"{how}: given up after {seconds:.1f} s: {done.host()['error']['summary']}")
    assert seconds < 45  # the host may still send for some seconds although it receives nothing
    is_unknown(done, "/srv/silent")
    assert not list(host.path("/srv/silent").glob("f*")), "the executor continued"
    assert rig.lock_is_free(host)
    again = rig.run(host, rig.chain("/srv/silent", 4, 0, "word")).host()
    assert again["status"] == "ok"
    assert any("was cut off" in text for text in again["warnings"])


def test_a_suspended_client_does_not_report_success(silenced: Found) -> None:
    report = given(silenced, "client stopped")
    assert report["status"] in ("unknown", "failed"), report
    assert report["error"] if report["status"] == "unknown" else report["halted"]


def test_a_partition_before_any_action_makes_the_host_unreachable(silenced: Found) -> None:
    done = given(silenced, "lost before the run")
    report = done.host()
    print(f"partition before: {done.seconds:.1f} s: {report['error']}")
    assert report["status"] == "unreachable"
    assert report["error"]["hint"]
    assert done.seconds < 30


def test_a_run_survives_a_short_network_partition(silenced: Found) -> None:
    done = given(silenced, "lost for 6 s")
    assert done.host()["status"] == "ok", done.host()
