"""What SSH adds to the conformance suite: who is at the other end, the way there, and everything that goes wrong."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from statecfg.transport import (
    AuthenticationFailed,
    ConnectionLost,
    HostKeyRejected,
    Settings,
    Target,
    TransportError,
    Unreachable,
    connect,
)
from tests.transport_sshd import Sshd, free_port, make_key, running_sshd, stop


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("ssh"), kinds=("ed25519", "ecdsa", "rsa")) as sshd:
        yield sshd


def talk(target: Target, settings: Settings) -> str:
    """Connect, echo a word, and return the peer."""
    connection = connect(target, settings)
    try:
        stream = connection.open(["echo", "hi"])
        assert stream.read(10) == b"hi\n"
        return connection.peer
    finally:
        connection.close()


def test_an_unknown_key_is_refused_before_login(server: Sshd, tmp_path: Path) -> None:
    file = tmp_path / "none"
    seen = server.log()
    with pytest.raises(HostKeyRejected) as caught:
        talk(server.target(), server.settings(known_hosts=(str(file),)))
    fingerprint = subprocess.run(
        ["ssh-keygen", "-lf", f"{server.root}/host_ed25519.pub"], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    text = str(caught.value)
    assert f"ssh-ed25519 {fingerprint}" in text
    assert f"ssh-keyscan -p {server.port} 127.0.0.1 >> {file}" in text
    assert "Accepted" not in server.log()[len(seen) :]
    assert not file.exists()


def test_a_changed_key_shows_both_and_the_line(server: Sshd, tmp_path: Path) -> None:
    other = make_key(tmp_path / "other").with_suffix(".pub").read_text().split()
    file = tmp_path / "known"
    file.write_text(f"# a comment\n[127.0.0.1]:{server.port} {other[0]} {other[1]}\n")
    with pytest.raises(HostKeyRejected, match="CHANGED") as caught:
        talk(server.target(), server.settings(known_hosts=(str(file),), accept_new=True))
    assert str(caught.value).count("SHA256:") == 2
    assert f"{file}:2" in str(caught.value)
    assert len(file.read_text().splitlines()) == 2


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_the_known_type_of_key_is_asked_for(server: Sshd, tmp_path: Path, kind: str) -> None:
    file = tmp_path / "known"
    file.write_text(f"[127.0.0.1]:{server.port} {server.public_key(kind)}\n")
    peer = talk(server.target(), server.settings(known_hosts=(str(file),)))
    assert kind in peer


def test_hashed_names_are_found(server: Sshd, tmp_path: Path) -> None:
    file = tmp_path / "known"
    file.write_text(server.known_hosts.read_text())
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(file)], check=True, capture_output=True)
    assert file.read_text().startswith("|1|")
    talk(server.target(), server.settings(known_hosts=(str(file),)))


@pytest.mark.parametrize(("marker", "text"), [("@revoked", "revoked"), ("@cert-authority", "certificate authority")])
def test_markers_are_honoured(server: Sshd, tmp_path: Path, marker: str, text: str) -> None:
    file = tmp_path / "known"
    place = f"[127.0.0.1]:{server.port}"
    good = f"{place} {server.public_key()}\n" if marker == "@revoked" else ""
    file.write_text(f"{good}{marker}  {place} {server.public_key()}\n")
    with pytest.raises(HostKeyRejected, match=text):
        talk(server.target(), server.settings(known_hosts=(str(file),)))


def test_accept_new_adds_the_key_once(server: Sshd, tmp_path: Path) -> None:
    file = tmp_path / "new" / "known"
    settings = server.settings(known_hosts=(str(file),), accept_new=True)
    talk(server.target(), settings)
    talk(server.target(), settings)
    assert file.read_text() == f"[127.0.0.1]:{server.port} {server.public_key()}\n"
    # OpenSSH reads what we wrote.
    found = subprocess.run(
        ["ssh-keygen", "-F", f"[127.0.0.1]:{server.port}", "-f", str(file)], capture_output=True, check=False
    )
    assert found.returncode == 0


def test_only_modern_algorithms_are_offered() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    target = Target("x", "127.0.0.1", listener.getsockname()[1], "u")
    errors: list[BaseException] = []

    def attempt() -> None:
        try:
            connect(target, Settings(ssh_config="none", known_hosts=(), use_agent=False, default_keys=False))
        except TransportError as error:
            errors.append(error)

    thread = threading.Thread(target=attempt)
    thread.start()
    with listener, listener.accept()[0] as sock:
        sock.sendall(b"SSH-2.0-test\r\n")
        data = b""
        while len(data) < 400 or b"\n" not in data:
            data += sock.recv(65536)
        packet = data.partition(b"\n")[2]
        offered = _name_lists(packet[6 + 16 :])
    thread.join(10)
    kex, host_keys, ciphers, macs = offered[0], offered[1], offered[2] + offered[3], offered[4] + offered[5]
    assert set(kex) <= {
        "mlkem768x25519-sha256",
        "curve25519-sha256@libssh.org",
        "ecdh-sha2-nistp256",
        "diffie-hellman-group16-sha512",
        "kex-strict-c-v00@openssh.com",
        "ext-info-c",
    }
    assert "kex-strict-c-v00@openssh.com" in kex
    assert not [k for k in host_keys if "cert" in k or k in ("ssh-rsa", "ssh-dss")]
    assert not [c for c in ciphers if "cbc" in c or "3des" in c or "arcfour" in c]
    assert all(m.startswith("hmac-sha2-") for m in macs)
    assert len(errors) == 1


def _name_lists(data: bytes) -> list[list[str]]:
    lists = []
    for _ in range(8):
        size = int.from_bytes(data[:4], "big")
        lists.append(data[4 : 4 + size].decode().split(","))
        data = data[4 + size :]
    return lists


def test_a_key_that_is_not_accepted_is_named(server: Sshd, tmp_path: Path) -> None:
    wrong = make_key(tmp_path / "wrong")
    with pytest.raises(AuthenticationFailed, match=str(wrong)):
        talk(server.target(identity_files=(str(wrong),)), server.settings())


def test_a_key_that_is_missing_is_named(server: Sshd, tmp_path: Path) -> None:
    with pytest.raises(AuthenticationFailed, match=f"looked at: {tmp_path}/no"):
        talk(server.target(identity_files=(f"{tmp_path}/no",)), server.settings())


def test_a_file_that_is_no_key_is_named(server: Sshd, tmp_path: Path) -> None:
    (tmp_path / "junk").write_text("junk\n")
    with pytest.raises(AuthenticationFailed, match="junk: no private key that can be used"):
        talk(server.target(identity_files=(f"{tmp_path}/junk",)), server.settings())


def test_keys_after_a_wrong_one_are_tried(server: Sshd, tmp_path: Path) -> None:
    wrong = make_key(tmp_path / "wrong")
    talk(server.target(identity_files=(str(wrong), str(server.key))), server.settings())


@contextlib.contextmanager
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    path = tmp_path / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 5
        while not path.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
        yield
    finally:
        process.kill()
        process.wait()


def test_an_encrypted_key_needs_the_agent(server: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked = tmp_path / "locked"
    locked.write_bytes(server.key.read_bytes())
    locked.chmod(0o600)
    (tmp_path / "locked.pub").write_bytes(server.key.with_suffix(".pub").read_bytes())
    subprocess.run(["ssh-keygen", "-q", "-p", "-P", "", "-N", "secret", "-f", str(locked)], check=True)
    target = server.target(identity_files=(str(locked),))
    with pytest.raises(AuthenticationFailed, match=f"{locked} is encrypted and no agent holds it .run: ssh-add"):
        talk(target, server.settings(use_agent=True))
    with agent(tmp_path, monkeypatch):
        subprocess.run(["ssh-add", "-q", str(server.key)], check=True, stderr=subprocess.DEVNULL)
        talk(target, server.settings(use_agent=True))
        talk(server.target(identity_files=()), server.settings(use_agent=True))
        with pytest.raises(AuthenticationFailed):
            talk(target, server.settings(use_agent=False))


def test_a_server_that_wants_passwords_says_so(tmp_path: Path) -> None:
    with (
        running_sshd(tmp_path / "a", "PubkeyAuthentication no", "PasswordAuthentication yes") as server,
        pytest.raises(AuthenticationFailed, match=r"does not accept keys for .*, only: password"),
    ):
        talk(server.target(), server.settings())


def test_refused(tmp_path: Path) -> None:
    port = free_port()
    with pytest.raises(Unreachable, match="Connection refused"):
        talk(Target("x", "127.0.0.1", port, "u"), Settings(ssh_config="none"))


def test_a_name_that_does_not_exist() -> None:
    with pytest.raises(Unreachable, match=r"cannot look up no-such-host\.invalid"):
        talk(Target("x", "no-such-host.invalid", user="u"), Settings(ssh_config="none"))


@pytest.fixture
def silent() -> Iterator[int]:
    """Give the port of a server that accepts, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_no_banner_in_time(silent: int) -> None:
    begun = time.monotonic()
    with pytest.raises(Unreachable, match="no SSH banner"):
        talk(Target("x", "127.0.0.1", silent, "u"), Settings(ssh_config="none", banner_timeout=0.5))
    assert time.monotonic() - begun < 3


def test_a_black_hole_ends_within_the_timeout() -> None:
    # A full backlog: the kernel drops further SYNs, as a black hole does.
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
            talk(Target("x", "127.0.0.1", port, "u"), Settings(ssh_config="none", connect_timeout=1))
        assert time.monotonic() - begun < 3
        for sock in fill:
            sock.close()


def hostile(answer: Callable[[socket.socket], None]) -> Unreachable:
    """Connect to a server that answers in its own way, and return what we make of it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError), listener.accept()[0] as sock:
                sock.settimeout(10)
                answer(sock)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(Unreachable) as caught:
            talk(Target("x", "127.0.0.1", listener.getsockname()[1], "u"), Settings(ssh_config="none"))
        thread.join(10)
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


def test_what_a_host_says_is_printed_without_control_characters() -> None:
    error = hostile(lambda sock: sock.sendall(b"SSH-9.9-\x1b]0;owned\x07\r\n"))
    assert "\x1b" not in str(error)
    assert "\x07" not in str(error)


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


def test_ssh_config_leads_through_a_jump_host(jump_and_inner: tuple[Sshd, Sshd], tmp_path: Path) -> None:
    jump, inner = jump_and_inner
    config = write_config(tmp_path / "config", jump, inner)
    connection = connect(Target("inner"), Settings(ssh_config=str(config)))
    stream = connection.open(["sh", "-c", "echo $SSH_CONNECTION"])
    data = stream.read(10)
    assert data is not None
    assert int(data.split()[3]) == inner.port
    # A good deal of data through both, and a quick end.
    big = connection.open(["cat"])
    writer = threading.Thread(target=big.write, args=(b"x" * 3_000_000,))
    writer.start()
    got = 0
    while got < 3_000_000:
        got += len(big.read(10) or b"")
    writer.join()
    begun = time.monotonic()
    connection.close()
    assert time.monotonic() - begun < 1
    assert "Accepted publickey" in jump.log()
    assert "Accepted publickey" in inner.log()


def test_two_jump_hosts(jump_and_inner: tuple[Sshd, Sshd], tmp_path: Path, server: Sshd) -> None:
    jump, inner = jump_and_inner
    config = write_config(tmp_path / "config", jump, inner)
    files = (str(server.known_hosts), str(jump.known_hosts), str(inner.known_hosts))
    target = server.target("far", proxy_jump="gate,inner")
    peer = talk(target, Settings(ssh_config=str(config), known_hosts=files, use_agent=False))
    assert peer.startswith("ssh-ed25519 ")


def test_a_jump_hosts_key_is_checked_too(jump_and_inner: tuple[Sshd, Sshd], tmp_path: Path) -> None:
    jump, inner = jump_and_inner
    config = write_config(tmp_path / "config", jump, inner)
    jump.known_hosts.write_text("")
    with pytest.raises(HostKeyRejected) as caught:
        talk(Target("inner"), Settings(ssh_config=str(config)))
    assert str(caught.value).startswith("inner: jump host gate: its host key is not known")
    assert "Accepted" not in jump.log()


def test_a_target_that_the_jump_host_cannot_reach(jump_and_inner: tuple[Sshd, Sshd], tmp_path: Path) -> None:
    jump, inner = jump_and_inner
    config = write_config(tmp_path / "config", jump, inner)
    stop(inner)
    with pytest.raises(Unreachable) as caught:
        talk(Target("inner"), Settings(ssh_config=str(config)))
    assert f"the jump host could not connect to 127.0.0.1 port {inner.port}" in caught.value.summary


def test_a_jump_host_that_is_down_is_named_once(jump_and_inner: tuple[Sshd, Sshd], tmp_path: Path) -> None:
    jump, inner = jump_and_inner
    config = write_config(tmp_path / "config", jump, inner)
    stop(jump)
    with pytest.raises(Unreachable) as caught:
        talk(Target("inner"), Settings(ssh_config=str(config)))
    assert str(caught.value).count("gate") == 1
    assert "Connection refused" in caught.value.summary


def test_a_jump_host_that_dies_takes_the_connection_along(jump_and_inner: tuple[Sshd, Sshd], tmp_path: Path) -> None:
    jump, inner = jump_and_inner
    connection = connect(Target("inner"), Settings(ssh_config=str(write_config(tmp_path / "c", jump, inner))))
    stream = connection.open(["cat"])
    stream.write(b"x")
    assert stream.read(10) == b"x"
    stop(jump)
    with pytest.raises(ConnectionLost):
        stream.read(10)
    connection.close()


def test_sshd_killed_in_the_middle_is_a_lost_connection(server: Sshd) -> None:
    connection = connect(server.target(), server.settings())
    stream = connection.open(["cat"])
    stream.write(b"x")
    assert stream.read(10) == b"x"
    for pid in server.sessions():
        os.kill(pid, signal.SIGKILL)
    begun = time.monotonic()
    with pytest.raises(ConnectionLost, match="connection was lost"):
        while stream.read(10) is not None:
            pass
    with pytest.raises(ConnectionLost):
        stream.write(b"y")
    with pytest.raises(ConnectionLost):
        connection.open(["true"])
    connection.close()
    assert time.monotonic() - begun < 3


def test_a_stopped_sshd_neither_holds_a_writer_nor_a_close(server: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
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
        assert time.monotonic() - begun < 6
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGKILL)


def test_new_keys_are_negotiated_in_the_middle(server: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_opening_costs_one_round_trip(server: Sshd) -> None:
    """Count the turns of the conversation in a relay: after login, opening and the first bytes both ways are two."""
    turns: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def pump(source: socket.socket, sink: socket.socket, mark: str) -> None:
            with contextlib.suppress(OSError):
                while data := source.recv(65536):
                    if not turns or turns[-1] != mark:
                        turns.append(mark)
                    # Long enough for everything that one side says without waiting to come together.
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
        assert stream.read(10) == b"hello"
        seen = turns.copy()
        connection.close()
        thread.join(10)
    assert seen.count(">") <= 3
    assert seen[:3] == [">", "<", ">"]


def test_many_at_once_survive_a_strict_maxstartups(tmp_path: Path) -> None:
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
            thread.join(90)
    assert len(outcomes) == 50
    assert not [o for o in outcomes if isinstance(o, TransportError)]


def test_ipv6_and_a_dead_ipv6_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from statecfg.transport.dial import dial

    with running_sshd(tmp_path / "six", address="::1") as server:
        talk(server.target(), server.settings())
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        begun = time.monotonic()
        # localhost is ::1 and 127.0.0.1; nobody listens on ::1.
        dial("x", "localhost", port, 5).close()
        assert time.monotonic() - begun < 3


@pytest.mark.parametrize(
    "host", ["-oProxyCommand=id", "a b", "a;id", "$(id)", "a\nb", "", "`id`", "a'b", "a|b", "a\x00"]
)
def test_host_names_that_are_none_are_refused(host: str) -> None:
    with pytest.raises(Unreachable, match="is no host name"):
        connect(Target("x", address=host or " "), Settings(ssh_config="none"))


@pytest.mark.parametrize("user", ["-l", "a b", "a;id", "$(id)", "a\nb", "`id`", "a'b", "a\x7f"])
def test_user_names_that_are_none_are_refused(user: str) -> None:
    with pytest.raises(Unreachable, match="is no user name"):
        connect(Target("x", user=user), Settings(ssh_config="none"))


def test_importing_the_package_loads_no_paramiko() -> None:
    code = "import sys, statecfg.transport, statecfg.transport.become; print('paramiko' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_paramiko_is_loaded_without_invoke() -> None:
    code = "import sys, statecfg.transport.ssh; print('invoke' in sys.modules, 'paramiko' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False True\n"


@pytest.mark.parametrize("silent_server", [True, False])
def test_the_process_ends_at_once_even_unclosed(server: Sshd, silent: int, silent_server: bool) -> None:
    target = Target("x", "127.0.0.1", silent, "u") if silent_server else server.target()
    settings = Settings(ssh_config="none", banner_timeout=0.3) if silent_server else server.settings()
    code = (
        "import time\nfrom statecfg.transport import *\n"
        f"try:\n    c = connect({target!r}, {settings!r}); s = c.open(['sleep', '60'])\n"
        "except TransportError as e: print(e.summary)\n"
        "print(time.time())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=20)
    assert time.time() - float(done.stdout.split()[-1]) < 1.0
    assert done.stderr == ""
