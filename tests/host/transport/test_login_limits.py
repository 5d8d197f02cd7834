"""The number of simultaneous logins is limited, for all hosts and for each jump host."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from statecfg.engines.engine import WorkerEngine
from statecfg.engines.processes import ProcessWorkers
from statecfg.transport import HostConnection, SshSettings, Target, Unreachable, connect
from statecfg.transport.dial import HANDSHAKES_PER_ADDRESS
from statecfg.transport.ssh_connection import LOGINS, LOGINS_PER_JUMP
from tests.host.transport.sshd import Sshd, running_sshd

Connect = Callable[[Target, SshSettings], HostConnection]
PATIENCE = 60.0  # seconds for the logins to begin on a busy machine
MORE = 0.3  # seconds in which more logins than the limit would begin
JUMPS = 5  # more than the limit for all hosts allows
HOSTS, PER_HOST = 3, 6  # of each jump host; at most 8 logins at a time go to one address


class Logins:
    """A server at all addresses of loopback that ends logins after as many have begun as the limit allows."""

    def __init__(self, listener: socket.socket, limit: int) -> None:
        self.limit, self.port = limit, int(listener.getsockname()[1])
        self.inside = self.most = self.begun = 0
        self.lock, self.full = threading.Lock(), threading.Event()
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):  # the test is over
            while True:
                threading.Thread(target=self._serve, args=(listener.accept()[0],), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError), sock:
            if not sock.recv(4):  # a login begins with the banner
                return
            with self.lock:
                self.begun += 1
                self.inside += 1
                self.most = max(self.most, self.inside)
                if self.inside == self.limit:
                    self.full.set()
            self.full.wait(PATIENCE)
            time.sleep(MORE)
            with self.lock:
                self.inside -= 1
            sock.sendall(b"not SSH\r\n" * 100)  # ends the login without another attempt
            sock.recv(1 << 16)


@contextlib.contextmanager
def logins(limit: int) -> Iterator[Logins]:
    with socket.create_server(("0.0.0.0", 0), backlog=256) as listener:  # all addresses of loopback
        yield Logins(listener, limit)


def at_once(targets: list[Target], settings: SshSettings, through: Connect = connect) -> None:
    """Log in to all targets at the same time, which fails."""

    def one(target: Target) -> None:
        with pytest.raises(Unreachable, match="lines before the SSH banner"):
            through(target, settings).close()
        failed.append(target)

    failed: list[Target] = []
    threads = [threading.Thread(target=one, args=(target,)) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * PATIENCE)
    assert len(failed) == len(targets)


@pytest.fixture(scope="module")
def jumps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Sshd]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(running_sshd(tmp_path_factory.mktemp("jump"))) for _ in range(JUMPS)]


def behind(jumps: list[Sshd], config: Path, server: Logins) -> list[Target]:
    """Return hosts behind each jump host, more than may log in through it at a time."""
    config.write_text(
        "".join(
            f"Host gate{number}\n  HostName 127.0.0.1\n  Port {jump.port}\n  IdentityFile {jump.key}\n"
            f"  UserKnownHostsFile {jump.known_hosts}\n"
            for number, jump in enumerate(jumps)
        )
        + "Host *\n  IdentitiesOnly yes\n  GlobalKnownHostsFile none\n"
    )
    places = [(number, host) for number in range(len(jumps)) for host in range(HOSTS) for _ in range(PER_HOST)]
    return [
        Target(f"h{index}", f"127.0.1.{host + 1}", server.port, "me", proxy_jump=f"gate{number}")
        for index, (number, host) in enumerate(places)
    ]


def test_all_hosts_share_one_limit() -> None:
    with logins(LOGINS) as server:
        targets = [Target(f"h{n}", f"127.0.1.{n // PER_HOST + 1}", server.port, "me") for n in range(LOGINS + 8)]
        at_once(targets, SshSettings(ssh_config="none"))
    assert (server.most, server.begun) == (LOGINS, len(targets))


def test_the_hosts_behind_a_jump_host_share_another_limit(jumps: list[Sshd], tmp_path: Path) -> None:
    with logins(LOGINS_PER_JUMP) as server:
        targets = behind(jumps[:1], tmp_path / "config", server)
        at_once(targets, SshSettings(ssh_config=str(tmp_path / "config")))
    assert len(targets) > LOGINS_PER_JUMP
    assert (server.most, server.begun) == (LOGINS_PER_JUMP, len(targets))


def test_hosts_behind_many_jump_hosts_share_the_limit_of_all_hosts(jumps: list[Sshd], tmp_path: Path) -> None:
    with logins(LOGINS) as server:
        targets = behind(jumps, tmp_path / "config", server)
        at_once(targets, SshSettings(ssh_config=str(tmp_path / "config")))
    assert LOGINS < JUMPS * LOGINS_PER_JUMP
    assert (server.most, server.begun) == (LOGINS, len(targets))


def test_workers_divide_the_limits() -> None:
    """So sshd drops no login of a run with workers, either (MaxStartups)."""
    workers = 4
    with logins(HANDSHAKES_PER_ADDRESS) as server, contextlib.closing(WorkerEngine(ProcessWorkers(workers))) as engine:
        targets = [Target(f"h{n}", "127.0.1.1", server.port, "me") for n in range(3 * HANDSHAKES_PER_ADDRESS)]
        at_once(targets, SshSettings(ssh_config="none"), engine.connect)
    assert (server.most, server.begun) == (HANDSHAKES_PER_ADDRESS, len(targets))
