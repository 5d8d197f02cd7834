"""The way to a host: names, addresses, ssh_config and jump hosts, and the time that connecting takes."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from statecfg.transport import ConnectionLost, HostKeyRejected, SshSettings, Target, Unreachable, connect, dial
from tests.host.transport.sshd import Sshd, free_port, running_sshd, stop, talk


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("ssh"), kinds=("ed25519", "ecdsa", "rsa")) as sshd:
        yield sshd


def test_a_refused_connection_is_reported(tmp_path: Path) -> None:
    port = free_port()
    with pytest.raises(Unreachable, match="Connection refused"):
        talk(Target("x", "127.0.0.1", port, "u"), SshSettings(ssh_config="none"))


def test_an_unknown_host_name_is_reported() -> None:
    with pytest.raises(Unreachable, match=r"cannot look up no-such-host\.invalid"):
        talk(Target("x", "no-such-host.invalid", user="u"), SshSettings(ssh_config="none"))


@pytest.fixture
def jump_and_inner(tmp_path: Path) -> Iterator[tuple[Sshd, Sshd]]:
    with running_sshd(tmp_path / "jump") as jump, running_sshd(tmp_path / "inner") as inner:
        yield jump, inner


def write_config(path: Path, jump: Sshd, inner: Sshd) -> Path:
    path.write_text(
        f"Host gate\n  HostName 127.0.0.1\n  Port {jump.port}\n  IdentityFile {jump.key}\n"
        f"  UserKnownHostsFile {jump.known_hosts}\n"
        f"Host inner\n  HostName 127.0.0.1\n  Port {inner.port}\n  IdentityFile {inner.key}\n"
        f"  UserKnownHostsFile {inner.known_hosts}\n  ProxyJump gate\n"
        "Host *\n  IdentitiesOnly yes\n  GlobalKnownHostsFile none\n"
    )
    return path


def test_ssh_config_connects_through_a_jump_host(jump_and_inner: tuple[Sshd, Sshd], tmp_path: Path) -> None:
    jump, inner = jump_and_inner
    config = write_config(tmp_path / "config", jump, inner)
    connection = connect(Target("inner"), SshSettings(ssh_config=str(config)))
    stream = connection.open(["sh", "-c", "echo $SSH_CONNECTION"])
    data = stream.read(30)
    assert data is not None
    assert int(data.split()[3]) == inner.port
    # Much data passes through both hosts, and closing is quick.
    big = connection.open(["cat"])
    writer = threading.Thread(target=big.write, args=(b"x" * 3_000_000,))
    writer.start()
    got = 0
    while got < 3_000_000:
        got += len(big.read(30) or b"")
    writer.join()
    begun = time.monotonic()
    connection.close()
    assert time.monotonic() - begun < 1
    assert "Accepted publickey" in jump.log()
    assert "Accepted publickey" in inner.log()


def test_a_connection_can_use_two_jump_hosts(jump_and_inner: tuple[Sshd, Sshd], tmp_path: Path, server: Sshd) -> None:
    jump, inner = jump_and_inner
    config = write_config(tmp_path / "config", jump, inner)
    files = (str(server.known_hosts), str(jump.known_hosts), str(inner.known_hosts))
    target = server.target("far", proxy_jump="gate,inner")
    peer = talk(target, SshSettings(ssh_config=str(config), known_hosts=files, use_agent=False))
    assert peer.startswith("ssh-ed25519 ")


def test_an_unknown_key_of_the_jump_host_is_refused(jump_and_inner: tuple[Sshd, Sshd], tmp_path: Path) -> None:
    jump, inner = jump_and_inner
    config = write_config(tmp_path / "config", jump, inner)
    jump.known_hosts.write_text("")
    with pytest.raises(HostKeyRejected) as caught:
        talk(Target("inner"), SshSettings(ssh_config=str(config)))
    assert str(caught.value).startswith("inner: jump host gate: its host key is not known")
    assert "Accepted" not in jump.log()


def test_a_target_that_the_jump_host_cannot_reach_is_reported(
    jump_and_inner: tuple[Sshd, Sshd], tmp_path: Path
) -> None:
    jump, inner = jump_and_inner
    config = write_config(tmp_path / "config", jump, inner)
    stop(inner)
    with pytest.raises(Unreachable) as caught:
        talk(Target("inner"), SshSettings(ssh_config=str(config)))
    assert f"the jump host could not connect to 127.0.0.1 port {inner.port}" in caught.value.summary


def test_a_jump_host_that_is_down_is_named_once(jump_and_inner: tuple[Sshd, Sshd], tmp_path: Path) -> None:
    jump, inner = jump_and_inner
    config = write_config(tmp_path / "config", jump, inner)
    stop(jump)
    with pytest.raises(Unreachable) as caught:
        talk(Target("inner"), SshSettings(ssh_config=str(config)))
    assert str(caught.value).count("gate") == 1
    assert "Connection refused" in caught.value.summary


def test_a_dying_jump_host_ends_the_connection(jump_and_inner: tuple[Sshd, Sshd], tmp_path: Path) -> None:
    jump, inner = jump_and_inner
    connection = connect(Target("inner"), SshSettings(ssh_config=str(write_config(tmp_path / "c", jump, inner))))
    stream = connection.open(["cat"])
    stream.write(b"x")
    assert stream.read(30) == b"x"
    stop(jump)
    with pytest.raises(ConnectionLost):
        stream.read(30)
    connection.close()


def test_opening_a_stream_takes_one_round_trip(server: Sshd) -> None:
    """A relay counts the turns: after login, opening a stream and the first bytes in both directions take two."""
    turns: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def pump(source: socket.socket, sink: socket.socket, mark: str) -> None:
            with contextlib.suppress(OSError):
                while data := source.recv(65536):
                    if not turns or turns[-1] != mark:
                        turns.append(mark)
                    # Long enough to collect everything that one side sends without waiting.
                    time.sleep(0.05)
                    sink.sendall(data)

        def relay() -> None:
            with listener.accept()[0] as near, socket.create_connection(("127.0.0.1", server.port)) as far:
                back = threading.Thread(target=pump, args=(far, near, "<"))
                back.start()
                pump(near, far, ">")
                far.shutdown(socket.SHUT_RDWR)
                back.join()

        thread = threading.Thread(target=relay)
        thread.start()
        target = server.target(port=listener.getsockname()[1])
        known = server.root / "relayed"
        known.write_text(f"[127.0.0.1]:{target.port} {server.public_key()}\n")
        connection = connect(target, server.settings(known_hosts=(str(known),)))
        time.sleep(0.5)
        turns.clear()
        stream = connection.open(["cat"])
        stream.write(b"hello")
        assert stream.read(30) == b"hello"
        seen = turns.copy()
        connection.close()
        thread.join(10)
    assert seen.count(">") <= 3
    assert seen[:3] == [">", "<", ">"]


def test_ipv6_works_and_a_dead_ipv6_address_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_sshd(tmp_path / "six", address="::1") as server:
        talk(server.target(), server.settings())
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        begun = time.monotonic()
        # localhost is ::1 and 127.0.0.1; nobody listens on ::1.
        dial.dial("x", "localhost", port, 5).close()
        assert time.monotonic() - begun < 3


@pytest.mark.parametrize(
    "host", ["-oProxyCommand=id", "a b", "a;id", "$(id)", "a\nb", "", "`id`", "a'b", "a|b", "a\x00"]
)
def test_invalid_host_names_are_refused(host: str) -> None:
    with pytest.raises(Unreachable, match="is not a host name"):
        connect(Target("x", address=host or " "), SshSettings(ssh_config="none"))


@pytest.mark.parametrize("user", ["-l", "a b", "a;id", "$(id)", "a\nb", "`id`", "a'b", "a\x7f"])
def test_invalid_user_names_are_refused(user: str) -> None:
    with pytest.raises(Unreachable, match="is not a user name"):
        connect(Target("x", user=user), SshSettings(ssh_config="none"))


def test_importing_the_package_loads_no_paramiko() -> None:
    code = "import sys, statecfg.transport, statecfg.transport.become; print('paramiko' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_paramiko_is_loaded_without_invoke() -> None:
    code = "import sys, statecfg.transport.ssh; print('invoke' in sys.modules, 'paramiko' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False True\n"


@pytest.mark.parametrize("silent_server", [True, False])
def test_a_process_with_an_open_connection_exits_at_once(server: Sshd, silent: int, silent_server: bool) -> None:
    target = Target("x", "127.0.0.1", silent, "u") if silent_server else server.target()
    settings = SshSettings(ssh_config="none", banner_timeout=0.3) if silent_server else server.settings()
    code = (
        "import time\nfrom statecfg.transport import *\n"
        f"try:\n    c = connect({target!r}, {settings!r}); s = c.open(['sleep', '60'])\n"
        "except TransportError as e: print(e.summary)\n"
        "print(time.time())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert time.time() - float(done.stdout.split()[-1]) < 20
    assert done.stderr == ""
