"""Servers that flood us and name servers that stall: time and memory are limited, and errors are clear."""

from __future__ import annotations

import contextlib
import resource
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import paramiko
import pytest
from paramiko.common import AUTH_FAILED

from statecfg.transport import AuthenticationFailed, ConnectionLost, SshSettings, Target, Unreachable, connect
from tests.host.transport.sshd import make_key, running_sshd, talk
from tests.host.transport.test_faults import Flooding

USERAUTH_BANNER, DEBUG = 53, 4
MOST_MEMORY = 64 * 1024  # KiB


class Server:
    """A server in this process that calls `evil` with its transport when a client connects."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.host_key = paramiko.PKey.from_path(make_key(root / "host"))
        self.user_key = make_key(root / "user")
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        (root / "known").write_text(f"[127.0.0.1]:{self.port} ssh-ed25519 {self.host_key.get_base64()}\n")
        self.ends = threading.Event()
        self.sent = 0

    def serve(self, rules: paramiko.ServerInterface, evil: Callable[[paramiko.Transport], None]) -> threading.Thread:
        def run() -> None:
            with self.listener.accept()[0] as sock, paramiko.Transport(sock) as transport:
                transport.add_server_key(self.host_key)
                with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
                    transport.start_server(server=rules)
                    evil(transport)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def pour(self, transport: paramiko.Transport, message: paramiko.Message, most: int) -> None:
        while transport.is_active() and self.sent < most and not self.ends.is_set():
            transport._send_message(message)
            self.sent += len(message.asbytes())

    def target(self) -> Target:
        return Target("evil", "127.0.0.1", self.port, "u", (str(self.user_key),))

    def settings(self, **changes: float) -> SshSettings:
        known = (str(self.root / "known"),)
        return SshSettings(ssh_config="none", known_hosts=known, use_agent=False, **changes)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path)
    yield made
    made.ends.set()
    made.listener.close()


class Undecided(Flooding):
    """A server that delays the answer to a login."""

    def __init__(self, ends: threading.Event, asked: threading.Event) -> None:
        self.ends = ends
        self.asked = asked

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        self.asked.set()
        self.ends.wait(20)
        return AUTH_FAILED


def message(kind: int, *fields: str | bool) -> paramiko.Message:
    made = paramiko.Message()
    made.add_byte(bytes([kind]))
    for each in fields:
        if isinstance(each, bool):
            made.add_boolean(each)
        else:
            made.add_string(each)
    return made


@pytest.mark.parametrize(
    "flood",
    [message(USERAUTH_BANNER, "welcome\n" * 3000, "en"), message(DEBUG, False, "d" * 30_000, "en")],
    ids=["banners", "debug"],
)
def test_a_flood_before_login_is_cut_off(server: Server, flood: paramiko.Message) -> None:
    asked = threading.Event()

    def evil(transport: paramiko.Transport) -> None:
        asked.wait(60)
        server.pour(transport, flood, 300_000_000)
        server.ends.set()

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.monotonic()
    thread = server.serve(Undecided(server.ends, asked), evil)
    with pytest.raises(AuthenticationFailed, match="more than 1048576 bytes before login") as caught:
        connect(server.target(), server.settings())
    assert "\n" not in str(caught.value)
    assert time.monotonic() - begun < 40
    thread.join(60)
    assert not thread.is_alive()
    assert server.sent < 20_000_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_MEMORY


def test_an_endless_identification_line_uses_little_memory() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def pour() -> None:
            with contextlib.suppress(OSError), listener.accept()[0] as sock:
                for _ in range(3000):
                    sock.sendall(b"SSH" * 30_000)

        thread = threading.Thread(target=pour)
        thread.start()
        begun = time.monotonic()
        with pytest.raises(Unreachable, match="it sent a banner line longer than 255 bytes"):
            talk(Target("x", "127.0.0.1", listener.getsockname()[1], "u"), SshSettings(ssh_config="none"))
        assert time.monotonic() - begun < 20
        thread.join(60)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_MEMORY


def test_a_trickling_identification_line_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def trickle() -> None:
            with contextlib.suppress(OSError), listener.accept()[0] as sock:
                for _ in range(600):
                    sock.sendall(b"x")
                    time.sleep(0.1)

        thread = threading.Thread(target=trickle)
        thread.start()
        begun = time.monotonic()
        with pytest.raises(Unreachable, match="it sent no SSH banner in time"):
            settings = SshSettings(ssh_config="none", banner_timeout=1.0)
            talk(Target("x", "127.0.0.1", listener.getsockname()[1], "u"), settings)
        assert time.monotonic() - begun < 20
        thread.join(60)


def test_a_flood_of_key_exchanges_blocks_neither_read_nor_close(tmp_path: Path) -> None:
    with running_sshd(tmp_path, "RekeyLimit 1K", "LogLevel DEBUG1") as sshd:
        connection = connect(sshd.target(), sshd.settings())
        stream = connection.open(["cat", "/dev/zero"])
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        begun = time.monotonic()
        # Each key exchange takes some time, and more on a busy machine.
        while time.monotonic() - begun < 2 or (
            sshd.log().count("SSH2_MSG_NEWKEYS received") <= 10 and time.monotonic() - begun < 60
        ):
            asked = time.monotonic()
            assert stream.read(0.2) != b""
            assert time.monotonic() - asked < 15
        begun = time.monotonic()
        connection.close()
        assert time.monotonic() - begun < 20
        with pytest.raises(ConnectionLost):
            while stream.read(1):
                pass
        assert sshd.log().count("SSH2_MSG_NEWKEYS received") > 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_MEMORY


LOOKUP = """\
import socket, sys, threading, time
from statecfg.transport import SshSettings, Target, TransportError, connect

answers = sys.argv[1] == "nxdomain"
asked = []
stub = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
stub.bind(("127.0.0.1", 53))

def serve():
    while True:
        query, who = stub.recvfrom(4096)
        asked.append(query)
        if answers:
            stub.sendto(query[:2] + b"\\x81\\x83" + query[4:6] + bytes(6) + query[12:], who)

threading.Thread(target=serve, daemon=True).start()
begun = time.monotonic()
try:
    connect(Target("web", "web.example.com", user="u"), SshSettings(ssh_config="none"))
except TransportError as error:
    print(type(error).__name__, error.summary)
assert asked
print(round(time.monotonic() - begun, 1))
"""


@pytest.mark.skipif(
    subprocess.run(["unshare", "-n", "-m", "true"], capture_output=True).returncode != 0
    if shutil.which("unshare")
    else True,
    reason="not run on this machine: unshare can't make namespaces, or is missing (Debian: util-linux)",
)
@pytest.mark.parametrize(
    ("kind", "words", "most"),
    [
        ("stall", "Unreachable resolving web.example.com took more than 10 s", 20),
        ("nxdomain", "Unreachable cannot look up web.example.com: Name or service not known", 20),
    ],
)
def test_a_failing_name_server_is_reported_in_time(tmp_path: Path, kind: str, words: str, most: float) -> None:
    (tmp_path / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:25 attempts:5\n")
    (tmp_path / "nsswitch.conf").write_text("hosts: files dns\n")
    script = (
        'ip link set lo up; mount --bind "$1/resolv.conf" /etc/resolv.conf; '
        'mount --bind "$1/nsswitch.conf" /etc/nsswitch.conf; shift; exec "$@"'
    )
    begun = time.monotonic()
    done = subprocess.run(
        ["unshare", "-n", "-m", "sh", "-ec", script, "sh", str(tmp_path), sys.executable, "-c", LOOKUP, kind],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    said, took = done.stdout.splitlines()
    assert said == words
    assert float(took) <= most
    assert time.monotonic() - begun < most + 20
