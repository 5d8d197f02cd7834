"""Keep checks and planned steps read-only: refuse everything in them that would change the host."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, List, Optional, Tuple

from statecfg.remote.graph.errors import StatecfgError

_here = threading.local()
_installed = False

# Names of CPython's audit events (PEP 578; the table of audit events in the library reference).
_CHANGES = frozenset(
    [
        *("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.chmod", "os.chown", "os.link", "os.symlink"),
        *("os.truncate", "os.utime", "os.setxattr", "os.removexattr", "os.chflags", "os.killpg", "os.putenv"),
        *("os.unsetenv", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "pty.spawn"),
        *("subprocess.Popen", "shutil.rmtree", "shutil.move", "shutil.copyfile", "shutil.chown", "signal.pthread_kill"),
        *("socket.connect", "socket.bind", "socket.sendto", "socket.sethostname", "ctypes.dlopen"),
        # The guard cannot see what a new thread does.
        *("_thread.start_new_thread", "_thread.start_joinable_thread"),
    ]
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class WriteAttempt(StatecfgError):
    """Code that must only read tried to change the host."""


class reading_only:
    """Make changes on this thread raise `WriteAttempt`: opening for writing, starting programs and so on.

    If the code swallows the exception, the end of the block raises it again.
    """

    def __enter__(self) -> None:
        _install()
        self.depth = getattr(_here, "depth", 0)
        self.before: List[str] = getattr(_here, "attempts", [])
        _here.depth, _here.attempts = self.depth + 1, []

    def __exit__(self, problem_type: object, problem: Optional[BaseException], trace: object) -> None:
        attempts = _here.attempts
        _here.depth, _here.attempts = self.depth, self.before
        if attempts and not isinstance(problem, WriteAttempt):
            raise WriteAttempt(attempts[0]) from problem


class allowed:
    """Switch the guard off on this thread, for the read-only programs of the reading side."""

    def __enter__(self) -> None:
        self.depth = getattr(_here, "depth", 0)
        _here.depth = 0

    def __exit__(self, *problem: object) -> None:
        _here.depth = self.depth


def _install() -> None:
    global _installed
    if not _installed:
        _installed = True
        # If a check imports a module late, Python must not write its bytecode during the check.
        sys.dont_write_bytecode = True
        sys.addaudithook(_audit)


def _audit(event: str, arguments: Tuple[Any, ...]) -> None:
    if not getattr(_here, "depth", 0):
        return
    if event == "open":
        flags = arguments[2]
        if isinstance(flags, int) and flags & _WRITING:
            _refuse(f"tried to open {arguments[0]} for writing")
    elif event in _CHANGES or (event == "os.kill" and arguments[1] != 0):
        _refuse(f"tried {event}({', '.join((repr(value) for value in arguments[:2]))})")
    elif event == "sqlite3.connect" and "mode=ro" not in str(arguments[0]):
        _refuse(f"tried to open the database {arguments[0]} for writing")


def _refuse(what: str) -> None:
    _here.attempts.append(what)
    raise WriteAttempt(what)
