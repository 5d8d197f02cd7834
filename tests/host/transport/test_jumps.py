"""Jump hosts: all hosts behind one share a connection, and errors name a jump host that fails or dies."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import paramiko
import pytest

from statecfg.transport import ConnectionLost, HostConnection, SshSettings, Target, TransportError, Unreachable, connect
from statecfg.transport.ssh_connection import SshConnection
from tests.host.transport.sshd import Sshd, running_sshd, stop, talk
from tests.host.transport.test_way import write_config
from tests.lab import processes


@pytest.fixture
def jump(tmp_path: Path) -> Iterator[Sshd]:
    with running_sshd(tmp_path / "jump") as sshd:
        yield sshd


@pytest.fixture
def inner(tmp_path: Path) -> Iterator[Sshd]:
    with running_sshd(tmp_path / "inner") as sshd:
        yield sshd


@pytest.fixture
def settings(tmp_path: Path, jump: Sshd, inner: Sshd) -> SshSettings:
    return SshSettings(ssh_config=str(write_config(tmp_path / "config", jump, inner)))


def at_once(number: int, work: Callable[[int], object]) -> list[object]:
    """Run `work` in `number` threads. Return the results and errors."""
    outcomes: list[object] = []

    def one(index: int) -> None:
        try:
            outcomes.append(work(index))
        except TransportError as error:
            outcomes.append(error)

    threads = [threading.Thread(target=one, args=(index,)) for index in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return outcomes


def echoes(connection: HostConnection) -> bool:
    return connection.open(["echo", "hi"]).read(60) == b"hi\n"


def test_hosts_behind_a_jump_host_share_one_connection_to_it(jump: Sshd, inner: Sshd, settings: SshSettings) -> None:
    together = threading.Barrier(12)

    def one(index: int) -> bool:
        connection = connect(Target("inner"), settings)
        try:
            together.wait(60)
            return echoes(connection)
        finally:
            connection.close()

    assert at_once(12, one) == [True] * 12
    assert jump.log().count("Accepted publickey") == 1
    assert inner.log().count("Accepted publickey") == 12


def test_closing_connections_does_not_disturb_others(jump: Sshd, settings: SshSettings) -> None:
    """Closing a channel during a write must not make sshd end the shared connection."""
    kept = connect(Target("inner"), settings)
    stream = kept.open(["cat"])

    def one(index: int) -> bool:
        for _ in range(4):
            connection = connect(Target("inner"), settings)
            assert echoes(connection)
            busy = connection.open(["cat", "/dev/zero"])
            busy.write(b"x" * 100_000)
            connection.close()
        return True

    assert at_once(6, one) == [True] * 6
    stream.write(b"still here")
    assert stream.read(60) == b"still here"
    kept.close()
    assert jump.log().count("Accepted publickey") == 1
    assert "Disconnecting" not in jump.log()


def test_no_message_is_sent_for_a_closed_channel(jump: Sshd) -> None:
    connection = connect(jump.target(), jump.settings())
    assert isinstance(connection, SshConnection)
    first = connection.transport.open_session()
    late = paramiko.Message()
    late.add_byte(bytes([94]))
    late.add_int(first.remote_chanid)
    late.add_string("late")
    first.close()
    time.sleep(0.5)  # until the server has closed the channel
    connection.transport._send_user_message(late)
    # New channels get the same number. Their messages must be sent again.
    for _ in range(3):
        assert echoes(connection)
    connection.close()
    assert "nonexistent channel" not in jump.log()


def test_the_last_user_closes_the_jump_connection(jump: Sshd, settings: SshSettings) -> None:
    first, second = connect(Target("inner"), settings), connect(Target("inner"), settings)
    first.close()
    first.close()
    assert echoes(second)
    second.close()
    processes.wait_until(lambda: not jump.sessions(), 20, "the session to end")
    talk(Target("inner"), settings)
    assert jump.log().count("Accepted publickey") == 2


def test_a_jump_host_that_dies_is_named_once(jump: Sshd, settings: SshSettings) -> None:
    connection = connect(Target("inner"), settings)
    stream = connection.open(["cat"])
    stream.write(b"x")
    assert stream.read(30) == b"x"
    stop(jump)
    with pytest.raises(ConnectionLost, match="the connection to jump host gate was lost") as caught:
        stream.read(30)
    assert str(caught.value).count("gate") == 1
    connection.close()


def test_a_dying_target_is_not_blamed_on_the_jump_host(inner: Sshd, settings: SshSettings) -> None:
    connection = connect(Target("inner"), settings)
    stream = connection.open(["cat"])
    stop(inner)
    with pytest.raises(ConnectionLost) as caught:
        stream.read(30)
    assert "gate" not in str(caught.value)
    connection.close()


def test_a_lost_jump_connection_is_opened_again(jump: Sshd, settings: SshSettings) -> None:
    kept = connect(Target("inner"), settings)
    for pid in jump.sessions():
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(ConnectionLost):
        kept.open(["cat"]).read(30)
    talk(Target("inner"), settings)
    kept.close()
    assert jump.log().count("Accepted publickey") == 2


def test_a_jump_host_dying_during_the_handshake_is_named_once(
    jump: Sshd, inner: Sshd, settings: SshSettings, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]

        def end() -> None:
            with silent.accept()[0]:
                time.sleep(0.2)
                stop(jump)

        timer = threading.Thread(target=end)
        timer.start()
        with pytest.raises(Unreachable, match="jump host gate: the connection to it was lost") as caught:
            connect(Target("inner", port=port), settings)
        timer.join(10)
    assert str(caught.value).count("gate") == 1


def test_every_waiting_host_learns_that_its_jump_host_is_down(
    tmp_path: Path, inner: Sshd, jump: Sshd, settings: SshSettings
) -> None:
    stop(jump)
    with socket.create_server(("127.0.0.1", jump.port)):
        begun = time.monotonic()
        quick = SshSettings(ssh_config=settings.ssh_config, banner_timeout=1.0)
        outcomes = at_once(20, lambda index: talk(Target(f"h{index}", address="inner"), quick))
        assert time.monotonic() - begun < 16
    assert {str(o).partition(": ")[2] for o in outcomes} == {
        "jump host gate: it sent no SSH banner in time\n  Check that an SSH server listens there."
    }
    assert len({str(o).partition(": ")[0] for o in outcomes}) == 20
