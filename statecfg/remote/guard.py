"""Holds checks and planned steps to reading: whatever would change the host from within them is refused."""

from __future__ import annotations

import os
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Optional, Tuple, Type

_here = threading.local()
_installed = False

# Names of CPython's audit events (PEP 578; the table of audit events in the library reference).
_CHANGES = frozenset(
    "os.remove os.rename os.mkdir os.rmdir os.chmod os.chown os.link os.symlink os.truncate os.utime os.setxattr "
    "os.removexattr os.kill os.killpg os.putenv os.system os.exec os.posix_spawn os.fork os.forkpty os.startfile subprocess.Popen "
    "shutil.rmtree shutil.move shutil.copyfile shutil.chown socket.connect socket.bind socket.sendto".split()
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class WriteAttempt(Exception):
    """Code that may only look tried to change the host."""


class reading_only:
    """Within it, on this thread, opening for writing, starting programs and the like raise `WriteAttempt`."""

    def __enter__(self) -> None:
        _install()
        _here.depth = getattr(_here, "depth", 0) + 1

    def __exit__(
        self, kind: Optional[Type[BaseException]], problem: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        _here.depth -= 1


class allowed:
    """Within it, on this thread, the guard is off: for the reading side's own read-only programs."""

    def __enter__(self) -> None:
        self.depth = getattr(_here, "depth", 0)
        _here.depth = 0

    def __exit__(
        self, kind: Optional[Type[BaseException]], problem: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        _here.depth = self.depth


def _install() -> None:
    global _installed
    if not _installed:
        _installed = True
        sys.addaudithook(_audit)


def _audit(event: str, arguments: Tuple[Any, ...]) -> None:
    if not getattr(_here, "depth", 0):
        return
    if event == "open":
        path, mode, flags = arguments
        if isinstance(flags, int) and flags & _WRITING and not str(path).endswith(".pyc"):
            raise WriteAttempt("tried to open %s for writing" % (path,))
    elif event in _CHANGES:
        raise WriteAttempt("tried %s(%s)" % (event, ", ".join(repr(value) for value in arguments[:2])))
