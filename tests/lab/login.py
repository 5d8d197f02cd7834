"""Log in to a test host with the real ssh client: keys, waiting for the server, running a command."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tests.lab import processes


class Login(Protocol):
    """Where and as whom to log in."""

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
    """Make an ed25519 key pair without a passphrase at `path` and `path`.pub."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "statecfg-tests", "-f", str(path)], check=True)


def ssh_argv(login: Login, user: str | None = None) -> list[str]:
    """Return the ssh client's arguments that log in to a host, up to and with its address; nobody's settings."""
    return [
        "ssh", "-F", "/dev/null", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-o", "LogLevel=ERROR",
        "-o", f"UserKnownHostsFile={login.known_hosts}", "-o", "StrictHostKeyChecking=yes",
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
    """Run a command on a host through the ssh client.

    Parameters: `argv`, the command, quoted for the remote shell; `user`, who logs in (default: the login's);
    `stdin`, text for its standard input; `check`, whether to raise `CalledProcessError` on an exit code but 0.
    """
    command = [*ssh_argv(login, user), shlex.join(argv)]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=seconds)
    if check and done.returncode:
        error = subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
        error.add_note(f"{done.stdout[-2000:]}{done.stderr[-2000:]}")
        raise error
    return done


def await_ssh(login: Login, process: subprocess.Popen[bytes], log: Path, seconds: float = 30) -> None:
    """Wait until a host's SSH server greets; raise RuntimeError with its log when it ends instead."""

    def answered() -> bool:
        if process.poll() is not None:
            said = log.read_text(errors="replace") if log.exists() else ""
            raise RuntimeError(f"the host at {login.address} ended with {process.returncode}:\n{said[-4000:]}")
        return processes.ssh_answers(login.address, login.port)

    processes.wait_until(answered, seconds, f"SSH on {login.address}:{login.port}, see {log}")
