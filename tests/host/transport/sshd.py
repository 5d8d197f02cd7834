"""Real sshd servers on loopback for tests of the transports. Each has its own keys and port."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from statecfg.transport import SshSettings, Target, connect

SSHD = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") or "/usr/sbin/sshd"


@dataclass
class Sshd:
    """A running sshd with its address and files, and the settings to reach it."""

    process: subprocess.Popen[bytes]
    port: int
    root: Path
    address: str

    @property
    def known_hosts(self) -> Path:
        return self.root / "known_hosts"

    @property
    def key(self) -> Path:
        return self.root / "user_key"

    def target(self, name: str = "box", **changes: object) -> Target:
        values: dict[str, object] = {
            "address": self.address,
            "port": self.port,
            "user": getpass.getuser(),
            "identity_files": (str(self.key),),
        }
        return Target(name, **(values | changes))

    def settings(self, **changes: object) -> SshSettings:
        values: dict[str, object] = {
            "ssh_config": "none",
            "known_hosts": (str(self.known_hosts),),
            "use_agent": False,
            "default_keys": False,
        }
        return SshSettings(**(values | changes))

    def public_key(self, kind: str = "ed25519") -> str:
        return " ".join((self.root / f"host_{kind}.pub").read_text().split()[:2])

    def sessions(self) -> list[int]:
        """Return the process ids of the listener's children."""
        done = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True, check=False)
        return [int(pid) for pid in done.stdout.split()]

    def log(self) -> str:
        return (self.root / "log").read_text(errors="replace")


def free_port(address: str = "127.0.0.1") -> int:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as sock:
        sock.bind((address, 0))
        return int(sock.getsockname()[1])


def make_key(path: Path, kind: str = "ed25519", passphrase: str = "") -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "test", "-f", str(path)], check=True)
    return path


@contextlib.contextmanager
def running_sshd(
    root: Path, *options: str, address: str = "127.0.0.1", kinds: tuple[str, ...] = ("ed25519",)
) -> Iterator[Sshd]:
    """Start an sshd with extra sshd_config lines. Its host key is in `known_hosts`."""
    root.mkdir(parents=True, exist_ok=True)
    os.makedirs("/run/sshd", exist_ok=True)
    port = free_port(address)
    for kind in kinds:
        make_key(root / f"host_{kind}", kind)
    make_key(root / "user_key")
    shutil.copy(root / "user_key.pub", root / "authorized_keys")
    place = f"[{address}]:{port}"
    lines = [
        f"ListenAddress {place}",
        *(f"HostKey {root}/host_{kind}" for kind in kinds),
        f"AuthorizedKeysFile {root}/authorized_keys",
        "UsePAM no",
        "StrictModes no",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "PermitRootLogin yes",
        "MaxStartups 100",
        f"PidFile {root}/pid",
        "SetEnv SHLVL=1",  # so bash does not read ~/.bashrc, which may take longer than a test
    ]
    # sshd uses the first value of an option.
    (root / "sshd_config").write_text("\n".join([*options, *lines]) + "\n")
    words = (root / f"host_{kinds[0]}.pub").read_text().split()
    (root / "known_hosts").write_text(f"{place} {words[0]} {words[1]}\n")
    process = subprocess.Popen(
        [SSHD, "-D", "-f", str(root / "sshd_config"), "-E", str(root / "log")], start_new_session=True
    )
    server = Sshd(process, port, root, address)
    try:
        _wait_until_listening(server)
        yield server
    finally:
        stop(server)


def stop(server: Sshd) -> None:
    """Kill the listener and its sessions."""
    if server.process.poll() is None:
        # A stopped listener can't start new sessions before the kill.
        server.process.send_signal(signal.SIGSTOP)
        for pid in server.sessions():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        server.process.kill()
    server.process.wait(30)


def _wait_until_listening(server: Sshd) -> None:
    deadline = time.monotonic() + 30
    while "Server listening" not in (server.log() if (server.root / "log").exists() else ""):
        if server.process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"sshd did not start: {server.log()}")
        time.sleep(0.02)


def talk(target: Target, settings: SshSettings) -> str:
    """Connect, run echo, and return the peer of the connection."""
    connection = connect(target, settings)
    try:
        stream = connection.open(["echo", "hi"])
        assert stream.read(60) == b"hi\n"  # a busy machine starts shells slowly
        return connection.peer
    finally:
        connection.close()
