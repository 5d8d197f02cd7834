"""Starts processes of `statecfg` that already have its modules.

The suite starts `statecfg` thousands of times, and imports take most of the time of a short command. A server imports
the modules once and forks for each command. The forked process runs `python -m statecfg` with its own arguments,
environment, working directory, standard streams and exit code. Nothing else ran in the server before the fork. The
server can run other modules, too.

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
import select
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from tests import ROOT

# These packages and modules are imported by most commands. Hy and what loads it are not among them, since importing it
# changes Python's importers.
PACKAGES = ("cli", "graph", "hooks", "playbook", "run", "store", "templates", "transport", "views")
LATE = (
    "encodings.idna", "paramiko", "sqlalchemy.dialects.sqlite", "statecfg.dialects.inventories.foreign_yaml",
    "statecfg.dialects.inventories.variable_files", "statecfg.dialects.python", "statecfg.dialects.yaml",
    "statecfg.dialects.yaml_services", "statecfg.engines.engine", "statecfg.facts.own",
)  # fmt: skip
LARGEST = 60_000  # maximum length of a request in characters
# The commands of all tests share a cache, also those with an empty home. Otherwise, each of these would prepare the
# executor's source again, which takes up to five seconds.
CACHE = str(ROOT / ".pytest_cache" / "statecfg")


class Started:
    """A process that the server started, with some methods of `subprocess.Popen`."""

    def __init__(self, reply: socket.socket) -> None:
        self._reply = reply
        first = reply.recv(32)
        assert first, "the server of preloaded processes has ended"
        self.pid = int(first)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, or None if the process still runs."""
        if self.returncode is None and select.select([self._reply], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the process ends, and return its exit code.

        :raises TimeoutError: it did not end within `timeout` seconds
        """
        if self.returncode is None:
            self._reply.settimeout(timeout)
            self.returncode = int(self._reply.recv(32))
            self._reply.close()
        return self.returncode

    def kill(self) -> None:
        """Kill the process if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


class Server:
    """The server of one test process; it ends with that process."""

    def __init__(self) -> None:
        self.environ = dict(os.environ)
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.directory = tempfile.mkdtemp(prefix="statecfg-preloaded-")
        self.path = os.path.join(self.directory, "socket")
        with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(self.path)
            listener.listen()
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.host.preloaded", str(theirs.fileno()), str(listener.fileno())],
                cwd=ROOT,
                env={**self.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": CACHE},
                pass_fds=[theirs.fileno(), listener.fileno()],
            )
        atexit.register(self.close)

    def close(self) -> None:
        """End the server."""
        self.channel.close()
        self.process.wait()
        shutil.rmtree(self.directory)

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
        given, typed = os.pipe()
        out, shown = os.pipe()
        err, complained = os.pipe()
        os.write(typed, stdin.encode())  # the input fits into the pipe
        os.close(typed)
        end = time.monotonic() + timeout
        started = self.start("statecfg", argv, cwd, environ, (given, shown, shown if merged else complained))
        for fd in (given, shown, complained):
            os.close(fd)
        try:
            said, complaints = _read([out, err], end)
            code = started.wait(max(0.01, end - time.monotonic()))
        except TimeoutError:
            started.kill()
            started.wait()
            raise subprocess.TimeoutExpired(list(argv), timeout) from None
        finally:
            os.close(out)
            os.close(err)
        return subprocess.CompletedProcess(list(argv), code, _text(said), _text(complaints))

    def start(
        self, module: str, argv: Sequence[str], cwd: Path, environ: Mapping[str, str], streams: Sequence[int]
    ) -> Started:
        """Start a module; `streams` are the file descriptors of its stdin, stdout and stderr."""
        command = {"module": module, "argv": list(argv), "cwd": str(cwd), "environ": dict(environ), "umask": _umask()}
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self.channel, [json.dumps(command).encode()], [theirs.fileno(), *streams])
        return Started(ours)

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
    """Read all file descriptors to their ends; raise `TimeoutError` after the deadline."""
    parts = dict.fromkeys(fds, b"")
    with selectors.DefaultSelector() as selector:
        for fd in fds:
            selector.register(fd, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError
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


def main(channel: socket.socket, listener: socket.socket) -> None:
    """Serve requests of the test process until it has ended, and those of `ask.py`."""
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
        ready = select.select([channel, listener], [], [])[0]
        if channel in ready:
            request, fds, _, _ = socket.recv_fds(channel, LARGEST * 10, 4)
            if not request:
                return
        else:
            with listener.accept()[0] as asker:
                request, fds, _, _ = socket.recv_fds(asker, LARGEST * 10, 4)
        if os.fork() == 0:
            channel.close()
            listener.close()
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
    os.write(reply, b"%32d" % pid)
    _, status = os.waitpid(pid, 0)
    os.write(reply, b"%32d" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def become(command: dict[str, object], streams: Sequence[int]) -> NoReturn:
    """Turn this process into one that was started as `python -m MODULE`."""
    module, argv, cwd = command["module"], command["argv"], command["cwd"]
    environ, umask = command["environ"], command["umask"]
    assert isinstance(module, str) and isinstance(argv, list) and isinstance(cwd, str)
    assert isinstance(environ, dict) and isinstance(umask, int)
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
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code
    else:
        code = 0
    sys.stdout.flush()
    os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as suite, socket.socket(fileno=int(sys.argv[2])) as others:
        main(suite, others)
