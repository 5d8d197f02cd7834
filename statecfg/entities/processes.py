"""Processes that run behaviors with the project's code. Their time and output are limited, and they end with us."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import statecfg
from statecfg.remote.machine.process import environment, kill_marked

if TYPE_CHECKING:
    from statecfg.entities.invocation import Update

MARK = "STATECFG_BEHAVIOR"
KEPT = 64 << 10  # bytes of output to keep, the newest
LARGEST = 4 << 20  # bytes of one message from a child
GRACE = 5.0  # seconds between TERM and KILL


@dataclass(frozen=True)
class Ended:
    """How a child ended.

    :param answer: its answer, JSON (see `functions.Answer` and `playbooks.Answer`); None if it ended without one
    :param output: what it printed, the newest 64 KiB
    :param reason: why there is no answer; "" if there is one
    :param stopped: whether it was stopped because this process stops
    """

    answer: Any
    output: str
    reason: str = ""
    stopped: bool = False


def run(
    request: Mapping[str, Any],
    root: Path,
    seconds: float,
    stop: threading.Event,
    update: Callable[[Update], None],
    closed: bool = True,
) -> Ended:
    """Run a request in a child; return how it ended.

    :param request: input of `statecfg.entities.child`; sent through a pipe, so it may contain secrets
    :param root: the working directory
    :param seconds: time limit; after it, the child and everything it started get TERM, and KILL 5 s later
    :param stop: set to stop it early
    :param update: receives its progress
    :param closed: give it a minimal environment; otherwise ours, for example for ssh's agent
    """
    mine, theirs = os.pipe()
    mark = uuid.uuid4().hex
    home = os.path.expanduser("~")
    values = environment({}, home) if closed else dict(os.environ)
    ours = str(Path(statecfg.__file__).parent.parent)
    values["PYTHONPATH"] = os.pathsep.join(filter(None, (ours, values.get("PYTHONPATH"))))
    values[MARK] = mark
    argv = [sys.executable, "-P", "-m", "statecfg.entities.child", str(theirs)]
    try:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=root,
            env=values,
            pass_fds=(theirs,),
            start_new_session=True,
        )
    except OSError as problem:
        os.close(mine)
        return Ended(None, "", f"it can't be started in {root}: {problem.strerror}")
    finally:
        os.close(theirs)
    talk = _Talk(child, mine, mark, json.dumps(request).encode() + b"\n", update)
    try:
        return talk.attend(seconds, stop)
    finally:
        talk.close()


class _Talk:
    """Sends a child its request, reads its messages, and enforces its deadline."""

    def __init__(
        self, child: subprocess.Popen[bytes], frames: int, mark: str, request: bytes, update: Callable[[Update], None]
    ) -> None:
        assert child.stdin is not None and child.stdout is not None
        self.child, self.frames, self.mark, self.update = child, frames, mark, update
        self.stdin, self.output = child.stdin.fileno(), child.stdout.fileno()
        self.unsent = memoryview(request)
        self.answer: Any = None
        self.printed, self.unread = bytearray(), bytearray()
        self.cut = False
        self.reason, self.killed, self.due = "", 0, 0.0
        self.selector = selectors.DefaultSelector()
        for descriptor, event in (
            (self.stdin, selectors.EVENT_WRITE), (self.output, selectors.EVENT_READ), (frames, selectors.EVENT_READ)
        ):  # fmt: skip
            os.set_blocking(descriptor, False)
            self.selector.register(descriptor, event)

    def attend(self, seconds: float, stop: threading.Event) -> Ended:
        """Wait until the child ends; return how it ended."""
        deadline = time.monotonic() + seconds
        stopped = False
        while self.child.poll() is None:
            now = time.monotonic()
            if self.reason:
                self._harder(now)
            elif self.answer is not None:
                deadline = min(deadline, now + GRACE)  # it has answered: don't wait longer for it
                if now >= deadline:
                    self._end("it did not end after its answer", now)
            elif stop.is_set():
                stopped = True
                self._end("stopped", now)
            elif now >= deadline:
                self._end(f"it was still running after {seconds:g} s, and was stopped", now)
            self._exchange(0.2)
        self._signal(signal.SIGKILL)  # kill what it left running
        deadline = time.monotonic() + GRACE  # a process that can't be killed may print forever
        while time.monotonic() < deadline and self._exchange(0.05):
            pass
        output = self.printed.decode("utf-8", "replace")
        if self.cut:
            output = f"[only the last {KEPT} bytes]\n{output}"
        if self.answer is not None:
            return Ended(self.answer, output)
        return Ended(None, output, self.reason or _ending(self.child.returncode), stopped)

    def _end(self, reason: str, now: float) -> None:
        self.reason, self.due = reason, now + GRACE
        self._signal(signal.SIGTERM)

    def _harder(self, now: float) -> None:
        if now >= self.due:
            self.due = now + GRACE
            self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self.child.pid, number)
        except (ProcessLookupError, PermissionError):
            pass  # the group has ended, except processes of other users, which sudo may have started
        if number == signal.SIGKILL:
            kill_marked(MARK, self.mark, number)  # its processes may have left the group

    def _exchange(self, wait: float) -> int:
        """Write and read what is possible now; return the number of bytes read."""
        if not self.selector.get_map():
            time.sleep(wait)
            return 0
        got = 0
        for key, _ in self.selector.select(wait):
            if key.fd == self.stdin:
                self._feed()
                continue
            piece = os.read(key.fd, 1 << 16)
            if not piece:
                self.selector.unregister(key.fd)
            elif key.fd == self.output:
                self.printed += piece
                self.cut = self.cut or len(self.printed) > KEPT
                del self.printed[:-KEPT]
            else:
                self._listen(piece)
            got += len(piece)
        return got

    def _feed(self) -> None:
        try:
            self.unsent = self.unsent[os.write(self.stdin, self.unsent[: 1 << 16]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.unsent = memoryview(b"")
        if not self.unsent:
            # Keep the pipe open: the child ends itself when it is closed.
            self.selector.unregister(self.stdin)

    def _listen(self, piece: bytes) -> None:
        self.unread += piece
        *lines, rest = self.unread.split(b"\n")
        self.unread = bytearray(rest)
        if len(rest) > LARGEST:
            self._end(f"it sent a message of more than {LARGEST} bytes", time.monotonic())
            self.unread.clear()
        for line in lines:
            message = json.loads(line)
            if "answer" in message:
                self.answer = self.answer or message["answer"]
            elif self.answer is None:
                self.update(message["update"])

    def close(self) -> None:
        """Close the child's pipes, and kill the child if it still runs."""
        if self.child.poll() is None:
            self._signal(signal.SIGKILL)
            self.child.wait()
        self.selector.close()
        os.close(self.frames)
        for stream in (self.child.stdin, self.child.stdout):
            if stream is not None:
                stream.close()


def _ending(status: int) -> str:
    if status < 0:
        return f"it was ended by signal {-status}"
    return f"it ended with exit status {status} and without an answer"
