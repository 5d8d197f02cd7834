"""Starts processes of `statecfg` that already have its modules.

The suite starts `statecfg` thousands of times, and imports take most of the time of a short command. A server imports
the modules once and forks for each command. The forked process runs `python -m statecfg` with its own arguments,
environment, working directory, standard streams and exit code. Nothing else ran in the server before the fork.

Set STATECFG_TESTS_START=1 to start each command afresh instead.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from tests import ROOT

# These packages are imported by most commands. Hy is not among them, since importing it changes Python's importers.
PACKAGES = ("cli", "graph", "hooks", "playbook", "run", "store", "templates", "transport", "views")
LATE = ("statecfg.dialects.yaml_entries", "paramiko", "sqlalchemy.dialects.sqlite")
LARGEST = 60_000  # maximum length of a request in characters
# The commands of all tests share a cache, also those with an empty home. Otherwise, each of these would prepare the
# executor's source again, which takes up to five seconds.
CACHE = str(ROOT / ".pytest_cache" / "statecfg")


class Server:
    """The server of one test process; it ends with that process."""

    def __init__(self) -> None:
        self.environ = dict(os.environ)
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.host.preloaded", str(theirs.fileno())],
                cwd=ROOT,
                env={**self.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": CACHE},
                pass_fds=[theirs.fileno()],
            )
        atexit.register(self.close)

    def close(self) -> None:
        """End the server."""
        self.channel.close()
        self.process.wait()

    def run(
        self,
        argv: Sequence[str],
        cwd: Path,
        environ: Mapping[str, str],
        stdin: str,
        timeout: float,
        merged: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """Run `statecfg` and return what it wrote; the parameters are those of `subprocess.run`.

        :param merged: write stderr to stdout
        :raises subprocess.TimeoutExpired: the command took longer than `timeout` seconds; it was killed
        """
        command = {"argv": list(argv), "cwd": str(cwd), "environ": dict(environ), "umask": _umask()}
        ours, theirs = socket.socketpair()
        given, typed = os.pipe()
        out, shown = os.pipe()
        err, complained = os.pipe()
        os.write(typed, stdin.encode())  # the input fits into the pipe
        os.close(typed)
        fds = [theirs.detach(), given, shown, shown if merged else complained]
        socket.send_fds(self.channel, [json.dumps(command).encode()], fds)
        for fd in {*fds, complained}:
            os.close(fd)
        with ours:
            parts = _read([ours.fileno(), out, err], time.monotonic() + timeout)
        os.close(out)
        os.close(err)
        pid, _, code = parts[0].decode().partition("\n")
        assert pid, "the server of preloaded processes has ended"
        if len(parts) == 1:
            os.kill(int(pid), signal.SIGKILL)
            raise subprocess.TimeoutExpired(list(argv), timeout)
        return subprocess.CompletedProcess(list(argv), int(code), _text(parts[1]), _text(parts[2]))

    def serves(self, argv: Sequence[str], environ: Mapping[str, str], stdin: str) -> bool:
        """Tell whether the server can start this command.

        Python reads some variables only when it starts.
        """
        size = len(stdin) + sum(map(len, argv)) + sum(len(name) + len(value) for name, value in environ.items())
        return size < LARGEST and _early(environ) == _early({**self.environ, "PYTHONPATH": str(ROOT)})


def _early(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that Python reads when it starts and that make a difference here."""
    names = (name for name in environ if name.startswith(("PYTHON", "LC_", "LANG")) and name != "PYTHONUNBUFFERED")
    return {name: environ[name] for name in names if environ[name] != "C.UTF-8"}  # same as no locale


def _read(fds: Sequence[int], deadline: float) -> list[bytes]:
    """Read all file descriptors to their ends; after the deadline return only the data of the first one."""
    parts = dict.fromkeys(fds, b"")
    with selectors.DefaultSelector() as selector:
        for fd in fds:
            selector.register(fd, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0, deadline - time.monotonic()))
            if not ready:
                return [parts[fds[0]]]
            for key, _ in ready:
                data = os.read(key.fd, 65536)
                parts[key.fd] += data
                if not data:
                    selector.unregister(key.fd)
    return list(parts.values())


def _text(data: bytes) -> str:
    return io.StringIO(data.decode(), newline=None).read()


def _umask() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("Umask:")), 8)


def prepare_executor() -> None:
    """Prepare the executor's source, as commands do. One test process does it, and the others wait and read it."""
    from statecfg.run import host_modules
    from statecfg.run.stripping_cache import cache

    os.makedirs(CACHE, exist_ok=True)
    with open(os.path.join(CACHE, "lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        host_modules.of_types(host_modules.python_types().values())
        for part in host_modules.PARTS:
            host_modules.of_part(part)
        cache().keep()
    host_modules.of_part.cache_clear()  # a project may have its own version of what these import


def main(channel: socket.socket) -> None:
    """Serve requests until the test process has ended."""
    for name in PACKAGES:
        package = importlib.import_module(f"statecfg.{name}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    for name in LATE:
        importlib.import_module(name)
    prepare_executor()
    assert "hy" not in sys.modules
    gc.collect()
    gc.freeze()  # the forked processes share this memory
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        request, fds, _, _ = socket.recv_fds(channel, LARGEST * 10, 4)
        if not request:
            return
        if os.fork() == 0:
            channel.close()
            watch(json.loads(request), fds)
        for fd in fds:
            os.close(fd)


def watch(command: dict[str, object], fds: Sequence[int]) -> NoReturn:
    """Fork the command, and write its process id and exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    reply, *streams = fds
    pid = os.fork()
    if pid == 0:
        os.close(reply)
        become(command, streams)
    os.write(reply, b"%d\n" % pid)
    _, status = os.waitpid(pid, 0)
    os.write(reply, b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def become(command: dict[str, object], streams: Sequence[int]) -> NoReturn:
    """Turn this process into one that was started as `python -m statecfg`."""
    argv, cwd, environ, umask = command["argv"], command["cwd"], command["environ"], command["umask"]
    assert isinstance(argv, list) and isinstance(cwd, str) and isinstance(environ, dict) and isinstance(umask, int)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    for stream, (number, mode) in {"stdin": (0, "r"), "stdout": (1, "w"), "stderr": (2, "w")}.items():
        first = getattr(sys, f"__{stream}__")
        buffering = 1 if stream == "stderr" else -1
        file = open(number, mode, buffering, encoding=first.encoding, errors=first.errors, closefd=False)
        setattr(sys, stream, file)
        setattr(sys, f"__{stream}__", file)
    os.chdir(cwd)
    os.umask(umask)
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()
    sys.argv = ["statecfg", *argv]
    sys.path[0] = cwd
    try:
        runpy.run_module("statecfg", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code
    else:
        code = 0
    sys.stdout.flush()
    os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as suite:
        main(suite)
