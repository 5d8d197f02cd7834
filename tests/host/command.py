"""Runs the real command in a separate process, as a user does, and returns its output and exit code."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import ROOT
from tests.host.preloaded import CACHE, Server, Started
from tests.lab import Host, PlainSshd


@dataclass(frozen=True)
class Ran:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    def json(self) -> dict[str, Any]:
        """Return stdout as JSON."""
        found: dict[str, Any] = json.loads(self.out)
        return found


def run(
    arguments: Sequence[str],
    cwd: Path,
    environ: Mapping[str, str],
    stdin: str = "",
    timeout: float = 60,
    merged: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run `python -m statecfg`, if possible in a process that already has its modules.

    :param merged: write stderr to stdout
    """
    environ = {"XDG_CACHE_HOME": CACHE, **environ}
    if not os.environ.get("STATECFG_TESTS_START"):
        server = preloaded()
        if server.serves(arguments, environ, stdin):
            return server.run(arguments, cwd, environ, stdin, timeout, merged)
    argv = [sys.executable, "-m", "statecfg", *arguments]
    err = subprocess.STDOUT if merged else subprocess.PIPE
    return subprocess.run(
        argv, cwd=cwd, env=environ, input=stdin, stdout=subprocess.PIPE, stderr=err, text=True, timeout=timeout
    )


def shell_start() -> list[str]:
    """Return the arguments with which a shell starts `statecfg`, in a process that already has its modules."""
    if os.environ.get("STATECFG_TESTS_START"):
        return [sys.executable, "-m", "statecfg"]
    return [sys.executable, "-I", "-S", str(ROOT / "tests/host/ask.py"), preloaded().path]


@functools.cache
def preloaded() -> Server:
    """Return this test process's server of preloaded processes."""
    return Server()


def start(
    module: str, arguments: Sequence[str], cwd: Path, environ: Mapping[str, str], output: int
) -> Started | subprocess.Popen[bytes]:
    """Start a module, if possible in a process that already has the modules of `statecfg`.

    :param output: the file descriptor of its stdout and stderr
    """
    if os.environ.get("STATECFG_TESTS_START"):
        argv = [sys.executable, "-u", "-m", module, *arguments]
        return subprocess.Popen(argv, cwd=cwd, env=environ, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    with open(os.devnull, "rb") as empty:
        return preloaded().start(module, arguments, cwd, environ, (empty.fileno(), output, output))


def statecfg(*arguments: str | Path, cwd: Path = ROOT, code: int | None = 0, stdin: str = "", **env: str) -> Ran:
    """Run `statecfg`; `code` is the required exit code, or None for any exit code."""
    # Tests run side by side, and several of them apply to this machine.
    values = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "STATECFG_LOCK_TIMEOUT": "120", **env}
    done = run(list(map(str, arguments)), cwd, values, stdin, timeout=600)
    ran = Ran(done.returncode, done.stdout, done.stderr)
    assert code is None or ran.code == code, f"exit code {ran.code}\n{ran.out}\n{ran.err}"
    assert "Traceback" not in ran.err, ran.err
    return ran


def reach(directory: Path, hosts: Sequence[Host | PlainSshd], **groups: list[str]) -> list[str]:
    """Write an inventory and an ssh_config for the test hosts; return the command's options for them."""
    lines = ["hosts:"]
    for number, host in enumerate(hosts, 1):
        name = getattr(host, "name", f"plain{number}")
        lines.append(
            f"  {name}: {{address: {host.address}, port: {host.port}, user: {host.user}, key: {host.identity}}}"
        )
    if groups:
        lines.append("groups:")
        lines += [f"  {name}: {{hosts: [{', '.join(members)}]}}" for name, members in groups.items()]
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "inventory.yml").write_text("\n".join(lines) + "\n")
    known = "".join(Path(host.known_hosts).read_text() for host in hosts)
    (directory / "known_hosts").write_text(known)
    (directory / "ssh_config").write_text(
        f"Host *\n  UserKnownHostsFile {directory}/known_hosts\n  IdentitiesOnly yes\n"
    )
    return ["-i", str(directory / "inventory.yml"), "--ssh-config", str(directory / "ssh_config")]
