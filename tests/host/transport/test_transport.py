"""The conformance suite of the transports: over a real sshd, on this machine, and through workers."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from statecfg.engines.engine import Engine, WorkerEngine, opened
from statecfg.engines.processes import ProcessWorkers
from statecfg.transport import (
    CHUNK,
    STDERR_KEPT,
    ConnectionLost,
    HostConnection,
    Stream,
    Target,
    TransportError,
    connect,
)
from tests.host.engines import cluster
from tests.host.transport.sshd import Sshd, running_sshd

MEGABYTE = 1024 * 1024


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("conformance")) as sshd:
        yield sshd


@pytest.fixture(scope="module")
def engine() -> Iterator[WorkerEngine]:
    workers = WorkerEngine(ProcessWorkers(1))
    try:
        yield workers
    finally:
        workers.close()


@pytest.fixture(scope="module")
def dask_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    directory = tmp_path_factory.mktemp("dask") / "cluster"
    with cluster.running(directory, 1, tls=False) as running, contextlib.closing(opened(running.url)) as workers:
        yield workers


@pytest.fixture(params=["local", "ssh", "worker", "dask"])
def connection(request: pytest.FixtureRequest) -> Iterator[HostConnection]:
    if request.param == "local":
        reached = connect(Target("@local"))
    else:
        server = request.getfixturevalue("server")
        engines = {"worker": "engine", "dask": "dask_engine"}
        reach = connect if request.param == "ssh" else request.getfixturevalue(engines[request.param]).connect
        reached = reach(server.target(), server.settings())
    try:
        yield reached
    finally:
        reached.close()


def python(code: str, *args: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code, *args]


def read_all(stream: Stream, seconds: float = 60) -> bytes:
    parts = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        data = stream.read(1.0)
        if data == b"":
            return b"".join(parts)
        if data is not None:
            assert len(data) <= CHUNK
            parts.append(data)
    raise AssertionError(f"the stream did not end within {seconds} s, after {sum(map(len, parts))} bytes")


def read_some(stream: Stream, seconds: float = 30) -> bytes:
    data = stream.read(seconds)
    assert data is not None, f"no data within {seconds} s"
    return data


def wait_until(true: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"the condition was not true within {seconds} s"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_program_echoes_what_it_is_sent(connection: HostConnection) -> None:
    stream = connection.open(["cat"])
    for text in (b"hello", bytes(range(256)), b"\xff\x00\n"):
        stream.write(text)
        assert read_some(stream) == text


def test_the_connection_names_its_peer(connection: HostConnection) -> None:
    assert connection.peer == "local" or connection.peer.startswith("ssh-ed25519 SHA256:")


@pytest.mark.parametrize(
    "word", ["plain", "two words", "$HOME", "`id`", "it's", 'say "x"', "a;b", "*", "!x", "", "\\", "-n", "ä", "a\nb"]
)
def test_arguments_reach_the_program_unchanged(connection: HostConnection, word: str) -> None:
    stream = connection.open(["printf", "%s", word])
    assert read_all(stream) == word.encode()


def test_read_returns_none_without_data_and_empty_at_the_end(connection: HostConnection) -> None:
    stream = connection.open(["sh", "-c", "read x; echo $x"])
    begun = time.monotonic()
    assert stream.read(0.1) is None
    assert stream.read(0) is None
    assert time.monotonic() - begun < 20
    stream.write(b"go\n")
    assert read_all(stream) == b"go\n"
    assert stream.read(1) == b""


@pytest.mark.parametrize("status", [0, 3, 255])
def test_the_exit_status_is_known_only_after_the_end(connection: HostConnection, status: int) -> None:
    stream = connection.open(["sh", "-c", f"read x; exit {status}"])
    assert stream.exit_status() is None
    stream.write(b"\n")
    read_all(stream)
    wait_until(lambda: stream.exit_status() is not None)
    assert stream.exit_status() == status


def test_a_killed_program_has_no_successful_exit_status(connection: HostConnection) -> None:
    stream = connection.open(["sh", "-c", "kill -9 $$"])
    assert read_all(stream) == b""
    time.sleep(0.1)
    status = stream.exit_status()
    assert status is None or status < 0


def test_output_ends_when_the_program_is_killed(connection: HostConnection) -> None:
    stream = connection.open(["sh", "-c", "echo $$; exec cat"])
    os.kill(int(read_some(stream)), 9)
    assert read_all(stream) == b""


def test_stderr_is_kept_separate_from_stdout(connection: HostConnection) -> None:
    stream = connection.open(["sh", "-c", "echo out; echo err >&2"])
    assert read_all(stream) == b"out\n"
    wait_until(lambda: stream.stderr() == b"err\n")


def test_closing_a_stream_with_unread_output_is_quick(connection: HostConnection) -> None:
    stream = connection.open(python("import os; b = b'x' * 3145728\nos.write(2, b); os.write(1, b)"))
    time.sleep(0.5)
    assert stream.exit_status() is None
    begun = time.monotonic()
    stream.close()
    assert time.monotonic() - begun < 20


def test_a_flood_on_stderr_does_not_block_stdout(connection: HostConnection) -> None:
    stream = connection.open(python("import os\nfor _ in range(96): os.write(2, b'e' * 32768)\nos.write(1, b'done')"))
    assert read_all(stream) == b"done"


def test_reading_100_megabytes_from_both_outputs_uses_little_memory(connection: HostConnection) -> None:
    code = (
        "import os, threading\n"
        "def pour(fd, letter):\n"
        "    piece = letter * 65536\n"
        "    for _ in range(1600):\n"
        "        rest = piece\n"
        "        while rest: rest = rest[os.write(fd, rest):]\n"
        "t = threading.Thread(target=pour, args=(2, b'e')); t.start(); pour(1, b'o'); t.join()\n"
        "os.write(2, b'the last words')\n"
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    stream = connection.open(python(code))
    size = 0
    while data := read_some(stream, 30):
        size += len(data)
    assert size == 1600 * 65536
    wait_until(lambda: stream.stderr().endswith(b"the last words"))
    assert len(stream.stderr()) == STDERR_KEPT
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


def test_large_input_is_echoed_while_output_is_read(connection: HostConnection) -> None:
    stream = connection.open(["cat"])
    data = os.urandom(MEGABYTE) * 8
    writer = threading.Thread(target=stream.write, args=(data,))
    writer.start()
    got = bytearray()
    while len(got) < len(data):
        got += read_some(stream)
    writer.join(60)
    assert bytes(got) == data


def test_a_background_child_holding_stdout_does_not_delay_data(connection: HostConnection) -> None:
    stream = connection.open(["sh", "-c", "sleep 90 & echo $!; echo END"])
    begun = time.monotonic()
    got = b""
    while b"END\n" not in got:
        got += read_some(stream)
    assert time.monotonic() - begun < 30
    pid = int(got.split()[0])
    stream.close()
    if connection.peer == "local":
        wait_until(lambda: not alive(pid))
    else:
        os.kill(pid, 9)
    assert time.monotonic() - begun < 60


def test_writing_to_a_program_that_never_reads_times_out(
    connection: HostConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = connection.open(["sleep", "60"])
    monkeypatch.setattr(sys.modules[type(stream).__module__], "WRITE_DEADLINE", 1.0)
    begun = time.monotonic()
    with pytest.raises(ConnectionLost, match="has read nothing for 1 s"):
        stream.write(b"x" * (16 * MEGABYTE))
    assert 1.0 <= time.monotonic() - begun < 20


def test_writing_to_a_program_that_has_ended_fails(connection: HostConnection) -> None:
    stream = connection.open(["true"])
    assert read_all(stream) == b""
    wait_until(lambda: stream.exit_status() == 0)
    with pytest.raises(ConnectionLost):
        for _ in range(100):
            stream.write(b"x" * MEGABYTE)


def test_closing_a_stream_ends_its_program(connection: HostConnection) -> None:
    stream = connection.open(["sh", "-c", "echo $$; exec cat"])
    pid = int(read_some(stream))
    assert alive(pid)
    stream.close()
    stream.close()
    wait_until(lambda: not alive(pid))
    with pytest.raises(ConnectionLost):
        stream.read(1)
    with pytest.raises(ConnectionLost):
        stream.write(b"x")


def test_closing_wakes_a_reader_in_another_thread(connection: HostConnection) -> None:
    stream = connection.open(["cat"])
    ends: list[object] = []

    def read() -> None:
        try:
            ends.append(stream.read(60))
        except TransportError as error:
            ends.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    time.sleep(0.2)
    stream.close()
    reader.join(20)
    assert ends, "the reader ends when the stream is closed"


def test_streams_of_one_connection_do_not_disturb_each_other(connection: HostConnection) -> None:
    first, second = connection.open(["cat"]), connection.open(["cat"])
    first.write(b"1")
    second.write(b"2")
    assert (read_some(first), read_some(second)) == (b"1", b"2")
    first.close()
    second.write(b"3")
    assert read_some(second) == b"3"


def test_a_missing_program_is_reported(connection: HostConnection) -> None:
    if connection.peer == "local":
        with pytest.raises(TransportError, match="cannot start /no/such/program"):
            connection.open(["/no/such/program"])
    else:
        stream = connection.open(["/no/such/program"])
        assert read_all(stream) == b""
        wait_until(lambda: stream.exit_status() == 127)


def test_closed_streams_leave_no_threads_behind(connection: HostConnection) -> None:
    threads = threading.active_count()
    for _ in range(3):
        stream = connection.open(["echo", "x"])
        read_all(stream)
        stream.close()
    wait_until(lambda: threading.active_count() <= threads)


def test_a_local_program_gets_no_extra_files_and_its_own_session() -> None:
    connection = connect(Target("@local"))
    leak, _ = os.pipe()
    os.set_inheritable(leak, True)
    stream = connection.open(
        python("import os; print(sorted(os.listdir('/proc/self/fd'))[:5], os.getsid(0) == os.getpid())")
    )
    text = read_all(stream).decode()
    connection.close()
    os.close(leak)
    os.close(_)
    assert text == "['0', '1', '2', '3'] True\n"


def test_a_local_program_that_ignores_sigterm_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    from statecfg.transport import local

    monkeypatch.setattr(local, "TERM_GRACE", 0.3)
    connection = connect(Target("@local"))
    stream = connection.open(["sh", "-c", "trap '' TERM; echo $$; while :; do sleep 1; done"])
    pid = int(read_some(stream))
    begun = time.monotonic()
    connection.close()
    assert time.monotonic() - begun < 20
    assert not alive(pid)
    assert stream.exit_status() == -9
