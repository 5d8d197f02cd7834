"""Search with the patterns of types' schemas, under a time limit: some patterns take years on a short text.

Python's `re` can't be interrupted and blocks all other threads. So a search that might be slow runs in its own process,
which the kernel ends when it exceeds its CPU time.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import queue
import re
import select
import subprocess
import sys
import threading
from collections.abc import Iterator

from statecfg.remote.graph.errors import StatecfgError

WORK = 2.0  # seconds of CPU time for all patterns of one entity
WAIT = 30.0  # seconds to wait for one answer, even on a busy machine
SHORT = 2000  # characters; a simple pattern is fast in a string up to this length
MOST = 4  # processes; further entities wait for one
_REPEATED = re.compile(r"[*+?{]")
# A group or an alternative can be tried in many ways, so one repetition of it may take years.
_BRANCHES = re.compile(r"[(|]")
_CHILD = """
import json, re, signal, sys
for line in sys.stdin:
    message = json.loads(line)
    if isinstance(message, float):
        signal.setitimer(signal.ITIMER_PROF, message)
    else:
        print(int(re.search(*message) is not None), flush=True)
"""


class TooSlow(StatecfgError):
    """A pattern exceeded its time limit."""


class Searches:
    """Searches patterns in strings, for a few entities at a time."""

    def __init__(self) -> None:
        self._free: queue.LifoQueue[_Process] = queue.LifoQueue()
        for _ in range(MOST):
            self._free.put(_Process())
        self._own = threading.local()

    @contextlib.contextmanager
    def bounded(self) -> Iterator[None]:
        """Share the time limit of one entity between all calls of `matches` inside."""
        process = self._free.get()
        self._own.process = process
        try:
            process.begun = False
            yield
        finally:
            self._own.process = None
            self._free.put(process)

    def matches(self, pattern: str, text: str) -> bool:
        """Return whether a pattern matches somewhere in a string.

        :raises TooSlow: the search exceeded the time limit
        """
        if len(text) <= SHORT and len(_REPEATED.findall(pattern)) <= 1 and not _BRANCHES.search(pattern):
            return re.search(pattern, text) is not None
        process: _Process = self._own.process
        return process.matches(pattern, text)


class _Process:
    """A process that searches, started when it is first needed."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self.begun = False
        atexit.register(self.close)

    def matches(self, pattern: str, text: str) -> bool:
        """Return whether a pattern matches somewhere in a string.

        :raises TooSlow: the search exceeded the time limit
        """
        message = json.dumps([pattern, text]) + "\n"
        if not self.begun:
            message = f"{WORK}\n{message}"
        child = self._running()
        self.begun = True
        assert child.stdin is not None and child.stdout is not None
        answer = b""
        with contextlib.suppress(BrokenPipeError):  # the process has ended without an answer
            child.stdin.write(message.encode())
            waiting = select.poll()
            waiting.register(child.stdout, select.POLLIN)
            answer = child.stdout.readline() if waiting.poll(WAIT * 1000) else b""
        if not answer:
            self.close()
            raise TooSlow
        return answer == b"1\n"

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is not None and self._child.poll() is not None and not self.begun:
            self.close()
        if self._child is None:
            self._child = subprocess.Popen(
                [sys.executable, "-ISXutf8", "-c", _CHILD],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,  # Ctrl-C must not reach the child
            )
        return self._child

    def close(self) -> None:
        """End the process."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.communicate()


SEARCHES = Searches()
