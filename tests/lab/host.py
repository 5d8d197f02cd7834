"""A test host that runs: how to reach it, look into it and arrange its state."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tests.lab import login, owner, processes

ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
}


@dataclass
class Host:
    """A host with its own files, address, processes and sshd; `identity` and `known_hosts` let `user` log in."""

    name: str
    address: str
    identity: Path
    known_hosts: Path
    log: Path
    process: subprocess.Popen[bytes] = field(repr=False)
    pid: int = 0  # of the host's process 1, as this machine numbers it
    cgroups: list[Path] = field(default_factory=list, repr=False)
    home: Path = field(default=Path(), repr=False)  # what the host's own files are kept in
    port: int = 22
    user: str = "root"

    @property
    def root(self) -> Path:
        """Return the path of the host's file system, seen from this machine, while the host runs.

        An absolute symlink inside it leads to this machine's file when followed from here.
        """
        return Path(f"/proc/{self.pid}/root")

    def path(self, name: str | Path) -> Path:
        """Return where a file of the host is, seen from this machine."""
        return self.root / str(name).lstrip("/")

    def run(
        self, argv: Sequence[str], *, stdin: str = "", check: bool = True, seconds: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as root inside the host, not over SSH; raise `CalledProcessError` with its output's text."""
        command = [*self.enter(), *argv]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, env=ENVIRONMENT, timeout=seconds)
        if check and done.returncode:
            error = subprocess.CalledProcessError(done.returncode, list(argv), done.stdout, done.stderr)
            error.add_note(f"on {self.name}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
            raise error
        return done

    def enter(self) -> list[str]:
        """Return the arguments that, put before a command, run it inside the host."""
        return ["nsenter", "--target", str(self.pid), "-m", "-u", "-i", "-n", "-p", "-r", "-w", "--"]

    def enter_network(self) -> list[str]:
        """Return the arguments that run a program of this machine in the host's network, e.g. `nft` or `ip`."""
        return ["nsenter", "--target", str(self.pid), "-n", "--"]

    def ssh(
        self, argv: Sequence[str], *, user: str | None = None, stdin: str = "", check: bool = True, seconds: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run a command through the real ssh client; `argv` is quoted for the remote shell."""
        return login.ssh(self, argv, user=user, stdin=stdin, check=check, seconds=seconds)

    def read(self, name: str | Path) -> str:
        """Return the text of a file of the host."""
        return self.path(name).read_text(encoding="utf-8")

    def write(self, name: str | Path, text: str, mode: int = 0o644) -> None:
        """Write a file of the host, root's, making the directories above it."""
        target = self.path(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        target.chmod(mode)

    def sessions(self) -> list[int]:
        """Return the process ids of open SSH sessions, as this machine numbers them: the children of the listener."""
        return processes.children(self.listener)

    @property
    def listener(self) -> int:
        """Return the process id of the host's sshd, as this machine numbers it."""
        if not self.cgroups:
            return self.pid
        inside = self.run(["systemctl", "show", "--value", "--property=MainPID", "ssh.service"]).stdout.strip()
        for pid in processes.descendants(self.pid):
            status = Path(f"/proc/{pid}/status").read_text()
            if f"\t{inside}\n" in status.partition("NSpid:")[2].partition("\n")[0] + "\n":
                return pid
        raise RuntimeError(f"{self.name} has no process {inside}")

    def stop(self) -> None:
        """End the host: every process of it; its files and its network link are gone then."""
        processes.end(self.process, ends_after_children=True)
        for directory in self.cgroups:
            owner.remove_cgroup(directory)
        subprocess.run(["rm", "-rf", "--one-file-system", "--", str(self.home)], check=True)
        owner.forget(self)


def add_user(
    host: Host, name: str, *, sudo: Literal["nopasswd", "password"] | None = None, password: str | None = None
) -> None:
    """Make an ordinary user on a host, whom the host's `identity` lets in.

    Parameters: `sudo`, whether sudo lets the user become anyone, asking for the password or not, or not at all;
    `password`, the user's (default: none that works).
    """
    host.run(["useradd", "--create-home", "--shell", "/bin/bash", "--password", "*", name])
    if password is not None:
        host.run(["chpasswd"], stdin=f"{name}:{password}\n")
    keys = f"/home/{name}/.ssh"
    host.write(f"{keys}/authorized_keys", host.identity.with_suffix(".pub").read_text(), 0o600)
    host.run(["chown", "-R", f"{name}:", keys])
    host.run(["chmod", "0700", keys])
    if sudo:
        tag = "NOPASSWD:" if sudo == "nopasswd" else ""
        host.write(f"/etc/sudoers.d/{name}", f"{name} ALL=(ALL:ALL) {tag}ALL\n", 0o440)


def write_known_hosts(path: Path, hosts: Iterable[login.Login]) -> Path:
    """Write one known_hosts file for many hosts; return its path."""
    path.write_text("".join(host.known_hosts.read_text() for host in hosts))
    return path


def write_ssh_config(path: Path, hosts: Iterable[Host]) -> Path:
    """Write an ssh_config that knows hosts by their names; return its path."""
    blocks = [
        f"Host {host.name}\n  HostName {host.address}\n  Port {host.port}\n  User {host.user}\n"
        f"  IdentityFile {host.identity}\n  IdentitiesOnly yes\n  UserKnownHostsFile {host.known_hosts}\n"
        for host in hosts
    ]
    path.write_text("".join(blocks))
    return path
