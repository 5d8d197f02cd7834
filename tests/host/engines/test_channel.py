"""The channel between controller and worker: large data, slow streams, many streams, and hostile peers."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from statecfg.engines import channel, identity
from statecfg.engines.channel import CONTROL, DATA, WINDOW, EngineChannel
from statecfg.engines.engine import WorkerEngine
from statecfg.engines.link import Link
from statecfg.engines.processes import ProcessWorkers
from statecfg.engines.relay import serve
from statecfg.problems import InvalidInput
from statecfg.transport import ConnectionLost, HostKeyRejected, Unreachable, WorkerLost
from tests.each import each
from tests.host.transport.sshd import Sshd, free_port, make_key, running_sshd, talk
from tests.lab.processes import wait_until

MEGABYTE = 1024 * 1024


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("channel")) as sshd:
        yield sshd


@pytest.fixture(scope="module")
def engine() -> Iterator[WorkerEngine]:
    workers = WorkerEngine(ProcessWorkers(1))
    yield workers
    workers.close()


def test_a_slow_program_neither_fills_memory_nor_delays_other_streams(engine: WorkerEngine, server: Sshd) -> None:
    connection = engine.connect(server.target(), server.settings())
    stuck, unread = connection.open(["sleep", "300"]), connection.open(["cat", "/dev/zero"])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def pour() -> None:
        with pytest.raises(ConnectionLost):
            stuck.write(bytes(256 * MEGABYTE))

    pouring = threading.Thread(target=pour)
    pouring.start()
    quick = connection.open(["cat"])
    for number in range(50):
        quick.write(b"%d" % number)
        assert quick.read(30) == b"%d" % number
    # 256 MiB are the test's own.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < (256 + 64) * 1024
    assert unread.read(30)
    connection.close()
    stuck.close()
    pouring.join(30)
    assert not pouring.is_alive()


def test_errors_of_the_worker_are_those_of_the_transport(engine: WorkerEngine, server: Sshd, tmp_path: Path) -> None:
    seen = []
    port = free_port()
    make_key(tmp_path / "other")
    other = (tmp_path / "other.pub").read_text().split()
    (tmp_path / "known").write_text(f"[{server.address}]:{server.port} {other[0]} {other[1]}\n")
    for target, settings, kind in (
        (server.target(port=port), server.settings(), Unreachable),
        (server.target(), server.settings(known_hosts=(str(tmp_path / "known"),)), HostKeyRejected),
    ):
        for connect in (talk, engine.connect):
            with pytest.raises(kind) as caught:
                connect(target, settings)
            seen.append((type(caught.value), caught.value.host, caught.value.summary, caught.value.hint))
    assert seen[0] == seen[1]
    assert seen[2] == seen[3]


class Peer:
    """The other end of a link, which sends what a test wants."""

    def __init__(self, *frames: bytes) -> None:
        self.socket, ours = socket.socketpair()
        self.links = [Link("odd", ours, lambda: "")]
        hello = json.dumps({"is": "worker", **identity.identity()}).encode()
        self.socket.sendall(b"".join(frames or [frame(CONTROL, 0, hello)]))

    def start(self) -> list[Link]:
        return self.links

    def close(self) -> None:
        self.socket.close()


def frame(kind: int, stream: int, payload: bytes, length: int | None = None) -> bytes:
    return struct.pack("!BII", kind, stream, len(payload) if length is None else length) + payload


WRONG = {
    "another type": (frame(9, 1, b""), "it sent an invalid frame: type 9, 0 bytes"),
    "a length of 4 GiB": (frame(DATA, 1, b"", 0xFFFFFFFF), "it sent an invalid frame: type 2, 4294967295 bytes"),
    "no JSON": (frame(CONTROL, 1, b"{"), "it sent a control frame that is not a JSON object"),
    "deep JSON": (frame(CONTROL, 1, b"[" * 100_000), "it sent a control frame that is not a JSON object"),
    "its end": (b"", "it closed the connection"),
}


@each("what", WRONG)
def test_a_worker_that_sends_invalid_frames_is_lost(what: str) -> None:
    sent, why = WRONG[what]
    peer = Peer()
    engine = WorkerEngine(peer)
    failures: list[Any] = []

    def connect() -> None:
        with pytest.raises(WorkerLost) as caught:
            engine._workers[0].connect(Sshd.target(SERVER, "host"), Sshd.settings(SERVER))
        failures.append(caught.value)

    thread = threading.Thread(target=connect)
    thread.start()
    assert peer.socket.recv(65536)
    peer.socket.sendall(sent) if sent else peer.close()
    thread.join(30)
    engine.close()
    assert failures[0].summary == f"worker odd was lost: {why}"


class _Server:
    address, port, key, known_hosts = "192.0.2.1", 22, Path("/key"), Path("/known_hosts")


SERVER: Any = _Server()


@each("what", WRONG)
def test_a_controller_that_sends_invalid_frames_loses_its_worker(what: str) -> None:
    sent, why = WRONG[what]
    ours, theirs = socket.socketpair()
    ends: list[str] = []
    thread = threading.Thread(target=lambda: ends.append(serve(theirs)))
    thread.start()
    assert ours.recv(65536)
    ours.sendall(sent) if sent else ours.shutdown(socket.SHUT_WR)
    thread.join(30)
    ours.close()
    assert ends == [why]


def test_a_worker_that_ignores_the_window_is_lost(server: Sshd) -> None:
    peer = Peer()
    engine = WorkerEngine(peer)
    theirs = EngineChannel(peer.socket)
    answers = theirs.frames()

    def play() -> None:
        number = next(one.stream for one in answers if b"connect" in one.payload)
        theirs.tell(number, {"is": "connected", "peer": "p", "address": "a", "login": ["u", "k"], "warnings": []})
        number = next(one.stream for one in answers if b"open" in one.payload)
        theirs.tell(number, {"is": "opened"})
        for _ in range(WINDOW // 65536 + 1):
            theirs.send(DATA, number, bytes(65536))

    thread = threading.Thread(target=play)
    thread.start()
    stream = engine.connect(server.target(), server.settings()).open(["anything"])
    thread.join(30)
    with pytest.raises(WorkerLost, match="it sends more than the window allows"):
        while stream.read(30):
            wait_until(lambda: bool(engine._workers[0].gone), 30, "the end of the worker")
    engine.close()
    theirs.close()


MINE = identity.identity()
# What a worker says first, and what is wrong with it.
UNFIT = {
    "an older version": (
        {"is": "worker", "version": "0.1.0", "digest": "1"},
        "worker odd has statecfg 0.1.0 (code 1), and this controller has "
        f"statecfg {MINE['version']} (code {MINE['digest']})",
    ),
    "another program": ({"is": "ready"}, "worker odd was lost: it is not a worker of statecfg"),
}


@each("what", UNFIT)
def test_a_worker_of_another_version_is_refused_and_sent_nothing(what: str) -> None:
    hello, detail = UNFIT[what]
    peer = Peer(frame(CONTROL, 0, json.dumps(hello).encode()))
    kept = peer.socket.dup()
    with pytest.raises(InvalidInput) as caught:
        WorkerEngine(peer)
    assert caught.value.problems[0].detail == detail
    with kept:
        assert kept.recv(65536) == b""


def test_workers_have_no_secrets_in_arguments_or_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATECFG_EXTRA_VARS", "word=canary-7f3a")
    workers = ProcessWorkers(1)
    engine = WorkerEngine(workers)
    pid = workers.processes[0][0].pid
    seen = b"".join(Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ"))
    engine.close()
    assert b"statecfg.engines.processes" in seen
    assert b"canary" not in seen


def test_a_stopped_worker_is_lost_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "DEAD", 5.0)
    workers = ProcessWorkers(1)
    engine = WorkerEngine(workers)
    process = workers.processes[0][0]
    os.kill(process.pid, signal.SIGSTOP)
    try:
        with pytest.raises(Unreachable, match="it has sent nothing for 5 s"):
            engine.connect(Sshd.target(SERVER, "host"), Sshd.settings(SERVER))
    finally:
        process.kill()
        engine.close()
