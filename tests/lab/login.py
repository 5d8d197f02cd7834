"""Logins to test hosts with the real ssh client: make keys, wait for the server, run a command."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tests.lab import processes


class Login(Protocol):
    """The address, user and keys for a login."""

    @property
    def address(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def user(self) -> str: ...
    @property
    def identity(self) -> Path: ...
    @property
    def known_hosts(self) -> Path: ...


def make_key(path: Path) -> None:
    """Create an ed25519 key pair without a passphrase: `path` and `path`.pub."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "statecfg-tests", "-f", str(path)], check=True)


def ssh_argv(login: Login, user: str | None = None) -> list[str]:
    """Return the ssh command that logs in to a host. It ignores all configuration files."""
    return [
        "ssh", "-F", "/dev/null", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-o", "LogLevel=ERROR",
        "-o", f"UserKnownHostsFile={login.known_hosts}", "-o", "StrictHostKeyChecking=yes",
        "-o", "KexAlgorithms=curve25519-sha256",  # the default one takes most of the CPU time of a login
        "-i", str(login.identity), "-p", str(login.port), f"{user or login.user}@{login.address}",
    ]  # fmt: skip


def ssh(
    login: Login,
    argv: Sequence[str],
    *,
    user: str | None = None,
    stdin: str = "",
    check: bool = True,
    seconds: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Run a command on a host with the ssh client.

    Parameters: `argv`, the command, which is quoted for the remote shell; `user`, the user (default: that of `login`);
    `stdin`, text for standard input; `check`, whether to raise `CalledProcessError` if the exit code is not 0.
    """
    command = [*ssh_argv(login, user), shlex.join(argv)]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=seconds)
    if check and done.returncode:
        error = subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
        error.add_note(f"{done.stdout[-2000:]}{done.stderr[-2000:]}")
        raise error
    return done


def await_ssh(login: Login, process: subprocess.Popen[bytes], log: Path, seconds: float = 30) -> None:
    """Wait until the SSH server of a host answers. Raises RuntimeError with its log if it ends."""

    def answered() -> bool:
        if process.poll() is not None:
            said = log.read_text(errors="replace") if log.exists() else ""
            raise RuntimeError(f"the host at {login.address} ended with {process.returncode}:\n{said[-4000:]}")
        return processes.ssh_answers(login.address, login.port)

    processes.wait_until(answered, seconds, f"SSH on {login.address}:{login.port}, see {log}")
