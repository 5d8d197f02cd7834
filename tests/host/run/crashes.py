"""Interrupts applies and checks the host, the report and the next run; `script/soak` can do this a thousand times."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.host.run import rig
from tests.lab import Host, processes

FILES = 6
PAUSE = 0.05
SPAN = 0.6  # duration of the apply in seconds, counted from its first action
GONE = 30.0  # seconds after which no process of statecfg may be left on the host


def kill_executor(host: Host, client: rig.Client) -> None:
    """Kill the executor, as the kernel does if memory runs out."""
    for pid in rig.executors(host):
        _kill(pid)


def kill_session(host: Host, client: rig.Client) -> None:
    """Kill the sshd processes of all sessions, but not the listener."""
    for session in host.sessions():
        for pid in [session, *[p for p in processes.descendants(session) if _is_sshd(p)]]:
            _kill(pid)


def kill_client(host: Host, client: rig.Client) -> None:
    """Kill the client."""
    client.process.kill()


def kill_worker(host: Host, client: rig.Client) -> bool:
    """Kill the worker process that is connected to the host, or else any worker process of the client.

    :returns: whether the killed worker was connected to the host
    """
    workers = sorted(pid for pid in processes.descendants(client.process.pid) if _is_worker(pid))
    connected = connection(host, workers)
    for pid in connected or workers[:1]:  # none if the client has just ended
        _kill(pid)
    return bool(connected)


def connection(host: Host, pids: Iterable[int]) -> list[int]:
    """Return the processes that are connected to the host: at most one of the workers of a run with one host."""
    return [pid for pid in pids if processes.connected(pid, host.address, host.port)]


KILLS: dict[str, Callable[[Host, rig.Client], None]] = {
    "client": kill_client, "executor": kill_executor, "session": kill_session
}  # fmt: skip
# The processes that are killed during applies with an engine. The kill of a worker depends on the engine.
ENGINE_KILLS = ("client", "executor", "worker")


@dataclass(frozen=True)
class Through:
    """An engine of the applies.

    :param name: the engine
    :param kill_worker: kills the worker that has the host; returns whether it was connected to it
    :param environ: what the client needs in its environment
    """

    name: str = "threads"
    kill_worker: Callable[[Host, rig.Client], bool] = kill_worker
    environ: Mapping[str, str] = field(default_factory=dict)


THREADS = Through()


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # the process has just ended by itself or with another process
        os.kill(pid, signal.SIGKILL)


def _is_worker(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as argv:
            return b"statecfg.engines.processes" in argv.read()
    except (FileNotFoundError, ProcessLookupError):
        return False


def _is_sshd(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii") as name:
            return name.read().strip() == "sshd"
    except (FileNotFoundError, ProcessLookupError):
        return False


def text(word: str, number: int) -> str:
    """Return the content that `rig.chain` gives a file."""
    return f"{word} {number}\n" * 2000


def cut_off(host: Host, place: str, who: str, delay: float, number: int, through: Through = THREADS) -> dict[str, Any]:
    """Apply, kill the process `who` `delay` seconds after the first action, and check the host and the next run.

    A worker is killed after that time from the connection in every other case: then nothing may have started.

    Returns the outcomes, the number of unchanged files, and the seconds until all processes on the host had ended.
    """
    before = {i: _content(host, place, i) for i in range(FILES)}
    word = f"run{number}"
    arguments = (place, str(FILES), str(PAUSE), word, through.name)
    with rig.client(host, "chain", *arguments, **through.environ) as client:
        client.await_line("connecting" if who == "worker" and number % 2 else "action-started")
        time.sleep(delay)
        connected = False
        if who == "worker":
            connected = through.kill_worker(host, client)
        else:
            KILLS[who](host, client)
        killed = time.monotonic()
        if who == "worker":  # the run may continue with another worker
            client.process.wait(120)
        processes.wait_until(lambda: not rig.everything_ours(host), GONE, "the executor and its children to end")
        gone = time.monotonic() - killed
        said = client.end()
    assert "Traceback" not in said, said
    old = 0
    for i in range(FILES):
        now = _content(host, place, i)
        assert now in (before[i], text(word, i)), f"a torn file: {now!r:.200} is neither old nor new"
        old += now == before[i]
    for i in range(FILES):
        mark = host.path(f"{place}/{word}-{i}")
        assert not mark.exists() or mark.read_text() == "ran\n", f"wait-{i} ran more than once"
    seen: dict[str, Any] = {"gone": gone, "old": old, "repeated": "is repeated" in said, "connected": connected}
    if who != "client":
        report = json.loads(said.splitlines()[-1])
        seen["status"] = report["status"]
        nodes = {node["name"]: node for layer in report["layers"] for node in layer}
        seen["outcomes"] = sorted({node["outcome"] for node in nodes.values()})
        if report["status"] != "ok":
            _account(host, place, word, report, nodes)
    assert rig.lock_is_free(host)
    again = rig.run(host, rig.chain(place, FILES, 0, word))
    assert again.host()["status"] == "ok", again.host()
    for i in range(FILES):
        assert _content(host, place, i) == text(word, i)
    assert not rig.litter(host, place)
    assert not list(host.path("/var/lib/statecfg").glob("spool-*"))
    seen["warned"] = any("was cut off" in warning for warning in again.host().get("warnings", ()))
    assert set(rig.run(host, rig.chain(place, FILES, 0, word)).outcomes().values()) == {"unchanged"}
    return seen


def _account(host: Host, place: str, word: str, report: Any, nodes: dict[str, Any]) -> None:
    """Check that the report matches the host, and that it marks what is unknown."""
    assert report["status"] == "unknown", report
    error = report["error"]
    assert error["summary"]
    assert "Run the command again" in error["hint"], error
    for name, node in nodes.items():
        started = [action for action in node["actions"] if action["status"] in ("ok", "error", "unknown")]
        if node["outcome"] == "skipped":
            assert not started, node
        if node["outcome"] == "changed":
            assert all(action["status"] == "ok" for action in node["actions"]), node
            if name.startswith("file:"):
                assert _content(host, place, int(name.rpartition("f")[2])).startswith(word)
        if any(action["status"] == "unknown" for action in node["actions"]):
            assert node["outcome"] == "unknown", node


def _content(host: Host, place: str, number: int) -> str:
    path = host.path(f"{place}/f{number}")
    return path.read_text() if path.exists() else ""


def at_random(
    host: Host, place: str, who: str, count: int, seed: int, through: Through = THREADS
) -> list[dict[str, Any]]:
    """Interrupt `count` applies at random moments; return the result of each."""
    choose = random.Random(seed)
    seen = []
    for number in range(count):
        delay = choose.uniform(0, SPAN)
        try:
            seen.append({"delay": round(delay, 3), **cut_off(host, place, who, delay, number, through)})
        except BaseException as problem:
            problem.add_note(f"case {who}, seed {seed}, point {number}: {delay:.3f} s after the first action")
            raise
    return seen
