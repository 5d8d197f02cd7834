"""Faults of connections: refusals, floods, stalls, killed servers and network partitions."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import paramiko
import pytest

from statecfg.transport import ConnectionLost, SshSettings, Target, TransportError, Unreachable, connect, dial
from tests.host.transport.sshd import Sshd, make_key, running_sshd, talk
from tests.lab import Host


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("ssh"), kinds=("ed25519", "ecdsa", "rsa")) as sshd:
        yield sshd


def test_a_server_without_a_banner_fails_in_time(silent: int) -> None:
    begun = time.monotonic()
    with pytest.raises(Unreachable, match="no SSH banner"):
        talk(Target("x", "127.0.0.1", silent, "u"), SshSettings(ssh_config="none", banner_timeout=0.5))
    assert time.monotonic() - begun < 9  # shorter than the default of 10 s


def test_connecting_to_a_silent_address_fails_within_the_timeout() -> None:
    # The backlog is full, so the kernel drops further connections without an answer.
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        fill = [socket.socket() for _ in range(4)]
        for sock in fill:
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", port))
        time.sleep(0.1)
        begun = time.monotonic()
        with pytest.raises(Unreachable, match=r"no answer from 127.0.0.1 port .* within 1 s"):
            talk(Target("x", "127.0.0.1", port, "u"), SshSettings(ssh_config="none", connect_timeout=1))
        assert time.monotonic() - begun < 9
        for sock in fill:
            sock.close()


def hostile(answer: Callable[[socket.socket], None]) -> Unreachable:
    """Connect to a server with a bad answer. Return the resulting error."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError), listener.accept()[0] as sock:
                sock.settimeout(30)
                answer(sock)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(Unreachable) as caught:
            talk(Target("x", "127.0.0.1", listener.getsockname()[1], "u"), SshSettings(ssh_config="none"))
        thread.join(60)
    return caught.value


def test_an_endless_banner_line_is_cut_off() -> None:
    error = hostile(lambda sock: sock.sendall(b"x" * 3_000_000))
    assert "a banner line longer than 255 bytes" in error.summary


def test_endless_banner_lines_are_cut_off() -> None:
    error = hostile(lambda sock: sock.sendall(b"hello\r\n" * 100_000))
    assert "more than 64 lines" in error.summary


def test_an_oversized_packet_is_refused_before_it_is_read() -> None:
    def answer(sock: socket.socket) -> None:
        sock.sendall(b"SSH-2.0-evil\r\n" + ((1 << 30) + 4).to_bytes(4, "big") + b"\x00" * 1000)
        time.sleep(0.5)

    error = hostile(answer)
    assert "the limit is 262144" in error.summary


def test_error_messages_contain_no_control_characters_of_the_host() -> None:
    error = hostile(lambda sock: sock.sendall(b"SSH-9.9-\x1b]0;owned\x07\r\n"))
    assert "\x1b" not in str(error)
    assert "\x07" not in str(error)


def test_killing_sshd_loses_the_connection(server: Sshd) -> None:
    connection = connect(server.target(), server.settings())
    stream = connection.open(["cat"])
    stream.write(b"x")
    assert stream.read(30) == b"x"
    for pid in server.sessions():
        os.kill(pid, signal.SIGKILL)
    begun = time.monotonic()
    with pytest.raises(ConnectionLost, match="connection was lost"):
        while stream.read(30) is not None:
            pass
    with pytest.raises(ConnectionLost):
        stream.write(b"y")
    with pytest.raises(ConnectionLost):
        connection.open(["true"])
    connection.close()
    assert time.monotonic() - begun < 20


def test_a_stopped_sshd_blocks_neither_write_nor_close(server: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    from statecfg.transport import ssh_stream
    from statecfg.transport.limits import LimitedPackets

    monkeypatch.setattr(ssh_stream, "WRITE_DEADLINE", 1.0)
    monkeypatch.setattr(LimitedPackets, "stall", 1.0)
    connection = connect(server.target(), server.settings())
    stream = connection.open(["cat"])
    stopped = server.sessions()
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        assert stream.read(0.2) is None
        begun = time.monotonic()
        with pytest.raises(ConnectionLost):
            stream.write(b"x" * 64_000_000)
        stream.close()
        connection.close()
        assert time.monotonic() - begun < 20
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGKILL)


def test_data_survives_an_exchange_of_new_keys(server: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    from statecfg.transport.ssh import LimitedPacketizer

    monkeypatch.setattr(LimitedPacketizer, "REKEY_BYTES", 1_000_000)
    connection = connect(server.target(), server.settings())
    stream = connection.open(["cat"])
    data = os.urandom(1000) * 10_000
    writer = threading.Thread(target=stream.write, args=(data,))
    writer.start()
    got = b""
    while len(got) < len(data):
        got += stream.read(10) or b""
    writer.join()
    connection.close()
    assert got == data


def test_fifty_connections_succeed_despite_a_strict_maxstartups(tmp_path: Path) -> None:
    with running_sshd(tmp_path / "a", "MaxStartups 2:100:2") as server:
        outcomes: list[object] = []

        def one(number: int) -> None:
            try:
                outcomes.append(talk(server.target(f"h{number}"), server.settings()))
            except TransportError as error:
                outcomes.append(error)

        threads = [threading.Thread(target=one, args=(n,)) for n in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    assert len(outcomes) == 50
    assert not [o for o in outcomes if isinstance(o, TransportError)]


DROP = "add table inet t; " + "".join(
    f"add chain inet t {hook} {{ type filter hook {hook} priority 0; policy %s; }}; " for hook in ("input", "output")
)


@pytest.mark.parametrize("both_ways", [True, False])
def test_a_silent_partition_is_noticed(
    make_light_hosts: Callable[[int], list[Host]], monkeypatch: pytest.MonkeyPatch, both_ways: bool
) -> None:
    """One case is idle and loses data both ways. The other sends heartbeats, and only these are lost."""
    monkeypatch.setattr(dial, "DEAD_AFTER", 6)
    (host,) = make_light_hosts(1)
    target = Target(host.name, host.address, host.port, host.user, (str(host.identity),))
    settings = SshSettings(ssh_config="none", known_hosts=(str(host.known_hosts),), use_agent=False)
    connection = connect(target, settings)
    stream = connection.open(["cat"])
    stream.write(b"x")
    assert stream.read(30) == b"x"
    rules = DROP % ("drop", "drop" if both_ways else "accept")
    subprocess.run([*host.enter_network(), "nft", rules], check=True)
    begun = time.monotonic()
    with pytest.raises(ConnectionLost, match="connection was lost"):
        while time.monotonic() - begun < 60:
            if not both_ways:
                stream.write(b"heartbeat")
            assert stream.read(1) is None
    assert time.monotonic() - begun < 40
    connection.close()


class Flooding(paramiko.ServerInterface):
    """A server that accepts every login and every command."""

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return paramiko.AUTH_SUCCESSFUL

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        return True


def test_a_server_that_ignores_the_window_is_cut_off(tmp_path: Path) -> None:
    host_key = paramiko.PKey.from_path(make_key(tmp_path / "host"))
    user_key = make_key(tmp_path / "user")
    sent = 0
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        (tmp_path / "known").write_text(f"[127.0.0.1]:{port} ssh-ed25519 {host_key.get_base64()}\n")

        def serve() -> None:
            nonlocal sent
            with listener.accept()[0] as sock, paramiko.Transport(sock) as transport:
                transport.add_server_key(host_key)
                transport.start_server(server=Flooding())
                channel = transport.accept(30)
                time.sleep(0.2)
                channel.out_window_size = 1 << 40
                with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
                    while transport.is_active() and sent < 200_000_000:
                        sent += channel.send(b"x" * 32_000)

        thread = threading.Thread(target=serve)
        thread.start()
        target = Target("x", "127.0.0.1", port, "u", (str(user_key),))
        settings = SshSettings(ssh_config="none", known_hosts=(str(tmp_path / "known"),), use_agent=False)
        connection = connect(target, settings)
        stream = connection.open(["anything"])
        thread.join(60)
        assert not thread.is_alive()
        with pytest.raises(ConnectionLost):
            while stream.read(30):
                pass
        connection.close()
    assert sent < 30_000_000
