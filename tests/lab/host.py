"""A running test host: how to log in, read its state and change its state."""

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
    """A host with its own files, address, processes and sshd. `user` logs in with `identity` and `known_hosts`."""

    name: str
    address: str
    identity: Path
    known_hosts: Path
    log: Path
    process: subprocess.Popen[bytes] = field(repr=False)
    pid: int = 0  # the id of the host's process 1 on this machine
    cgroups: list[Path] = field(default_factory=list, repr=False)
    home: Path = field(default=Path(), repr=False)  # the directory with the files of the host
    port: int = 22
    user: str = "root"

    @property
    def root(self) -> Path:
        """Return the path of the host's file system on this machine. It exists while the host runs.

        From here, an absolute symlink in it leads to a file of this machine.
        """
        return Path(f"/proc/{self.pid}/root")

    def path(self, name: str | Path) -> Path:
        """Return the path of a file of the host on this machine."""
        return self.root / str(name).lstrip("/")

    def run(
        self, argv: Sequence[str], *, stdin: str = "", check: bool = True, seconds: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as root on the host, without SSH. Raises `CalledProcessError` with the output."""
        command = [*self.enter(), *argv]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, env=ENVIRONMENT, timeout=seconds)
        if check and done.returncode:
            error = subprocess.CalledProcessError(done.returncode, list(argv), done.stdout, done.stderr)
            error.add_note(f"on {self.name}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
            raise error
        return done

    def enter(self) -> list[str]:
        """Return a command prefix that runs a command inside the host."""
        return ["nsenter", "--target", str(self.pid), "-m", "-u", "-i", "-n", "-p", "-r", "-w", "--"]

    def enter_network(self) -> list[str]:
        """Return a command prefix that runs a program of this machine, such as `nft`, in the network of the host."""
        return ["nsenter", "--target", str(self.pid), "-n", "--"]

    def ssh(
        self, argv: Sequence[str], *, user: str | None = None, stdin: str = "", check: bool = True, seconds: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run a command with the real ssh client. `argv` is quoted for the remote shell."""
        return login.ssh(self, argv, user=user, stdin=stdin, check=check, seconds=seconds)

    def read(self, name: str | Path) -> str:
        """Return the text of a file on the host."""
        return self.path(name).read_text(encoding="utf-8")

    def write(self, name: str | Path, text: str, mode: int = 0o644) -> None:
        """Write a file of root on the host, and create missing parent directories."""
        target = self.path(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        target.chmod(mode)

    def sessions(self) -> list[int]:
        """Return the process ids of open SSH sessions on this machine. They are the children of the listener."""
        return processes.children(self.listener)

    @property
    def listener(self) -> int:
        """Return the process id of the host's sshd on this machine."""
        if not self.cgroups:
            return self.pid
        inside = self.run(["systemctl", "show", "--value", "--property=MainPID", "ssh.service"]).stdout.strip()
        for pid in processes.descendants(self.pid):
            status = Path(f"/proc/{pid}/status").read_text()
            if f"\t{inside}\n" in status.partition("NSpid:")[2].partition("\n")[0] + "\n":
                return pid
        raise RuntimeError(f"{self.name} has no process {inside}")

    def stop(self) -> None:
        """End all processes of the host, and remove its files and its network link."""
        processes.end(self.process, ends_after_children=True)
        for directory in self.cgroups:
            owner.remove_cgroup(directory)
        subprocess.run(["rm", "-rf", "--one-file-system", "--", str(self.home)], check=True)
        owner.forget(self)


def add_user(
    host: Host, name: str, *, sudo: Literal["nopasswd", "password"] | None = None, password: str | None = None
) -> None:
    """Create an ordinary user on a host, who can log in with the host's `identity`.

    Parameters: `sudo`, "password" or "nopasswd" if the user may use sudo with or without a password; `password`, the
    password of the user (default: no valid password).
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
    """Write one known_hosts file for several hosts. Return its path."""
    path.write_text("".join(host.known_hosts.read_text() for host in hosts))
    return path


def write_ssh_config(path: Path, hosts: Iterable[Host]) -> Path:
    """Write an ssh_config that contains hosts by their names. Return its path."""
    blocks = [
        f"Host {host.name}\n  HostName {host.address}\n  Port {host.port}\n  User {host.user}\n"
        f"  IdentityFile {host.identity}\n  IdentitiesOnly yes\n  UserKnownHostsFile {host.known_hosts}\n"
        for host in hosts
    ]
    path.write_text("".join(blocks))
    return path
