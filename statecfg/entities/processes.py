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
from pathlib import Path
from typing import TYPE_CHECKING, Any

import statecfg
from statecfg.problems.frozen import dataclass
from statecfg.remote.machine.process import environment, kill_marked

if TYPE_CHECKING:
    from statecfg.entities.invocation import Update

MARK = "STATECFG_BEHAVIOR"
KEPT = 64 << 10  # bytes of output to keep, the newest
LARGEST = 4 << 20  # bytes of one message from a child
GRACE = 5.0  # seconds between TERM and KILL


@dataclass(frozen=True)
class EndedChild:
    """How a child ended.

    :param answer: its result (`functions.FunctionResult` or `playbooks.PlaybookResult`); None if it ended without one
    :param output: what it printed, the newest 64 KiB
    :param reason: why the child gave no result; "" if it gave one
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
) -> EndedChild:
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
        return EndedChild(None, "", f"it can't be started in {root}: {problem.strerror}")
    finally:
        os.close(theirs)
    talk = _Talk(child, mine, mark, json.dumps(request).encode() + b"\n", update)
    try:
        return talk.attend(seconds, stop)
    finally:
        talk.close()


class _Pipes:
    """The pipes of a child: they send it the request, keep what it prints, and receive its messages.

    :param frames: the descriptor for its messages
    :param listen: called with each received part of the messages
    :ivar unsent: the rest of the request
    :ivar printed: the newest output
    :ivar cut: whether older output was dropped
    """

    def __init__(
        self, child: subprocess.Popen[bytes], frames: int, request: bytes, listen: Callable[[bytes], None]
    ) -> None:
        assert child.stdin is not None and child.stdout is not None
        self.stdin, self.stdout, self.frames, self.listen = child.stdin, child.stdout, frames, listen
        self.unsent = memoryview(request)
        self.printed, self.cut = bytearray(), False
        self.selector = selectors.DefaultSelector()
        for descriptor, event in (
            (self.stdin.fileno(), selectors.EVENT_WRITE),
            (self.stdout.fileno(), selectors.EVENT_READ),
            (frames, selectors.EVENT_READ),
        ):
            os.set_blocking(descriptor, False)
            self.selector.register(descriptor, event)

    @property
    def output(self) -> str:
        """What the child printed, the newest 64 KiB."""
        text = self.printed.decode("utf-8", "replace")
        return f"[only the last {KEPT} bytes]\n{text}" if self.cut else text

    def exchange(self, wait: float) -> int:
        """Write and read what is possible now; return the number of bytes read."""
        if not self.selector.get_map():
            time.sleep(wait)
            return 0
        got = 0
        for key, _ in self.selector.select(wait):
            if key.events == selectors.EVENT_WRITE:
                self._feed()
                continue
            piece = os.read(key.fd, 1 << 16)
            if not piece:
                self.selector.unregister(key.fd)
            elif key.fd == self.frames:
                self.listen(piece)
            else:
                self.printed += piece
                self.cut = self.cut or len(self.printed) > KEPT
                del self.printed[:-KEPT]
            got += len(piece)
        return got

    def _feed(self) -> None:
        descriptor = self.stdin.fileno()
        try:
            self.unsent = self.unsent[os.write(descriptor, self.unsent[: 1 << 16]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.unsent = memoryview(b"")
        if not self.unsent:
            # Keep the pipe open: the child ends itself when it is closed.
            self.selector.unregister(descriptor)

    def close(self) -> None:
        """Close the pipes."""
        self.selector.close()
        os.close(self.frames)
        self.stdin.close()
        self.stdout.close()


class _Talk:
    """Reads the messages of a child, and enforces its deadline.

    :param mark: the value of the variable `MARK` in its environment
    :ivar answer: its answer; None as long as it has sent none
    :ivar unread: the beginning of its next message
    :ivar reason: why it was told to end; "" if it was not
    :ivar due: when it is killed if it has not ended by then
    """

    def __init__(
        self, child: subprocess.Popen[bytes], frames: int, mark: str, request: bytes, update: Callable[[Update], None]
    ) -> None:
        self.child, self.mark, self.update = child, mark, update
        self.pipes = _Pipes(child, frames, request, self._listen)
        self.answer: Any = None
        self.unread = bytearray()
        self.reason, self.due = "", 0.0

    def attend(self, seconds: float, stop: threading.Event) -> EndedChild:
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
            self.pipes.exchange(0.2)
        self._signal(signal.SIGKILL)  # kill what it left running
        deadline = time.monotonic() + GRACE  # a process that can't be killed may print forever
        while time.monotonic() < deadline and self.pipes.exchange(0.05):
            pass
        if self.answer is not None:
            return EndedChild(self.answer, self.pipes.output)
        return EndedChild(None, self.pipes.output, self.reason or _ending(self.child.returncode), stopped)

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
        self.pipes.close()


def _ending(status: int) -> str:
    if status < 0:
        return f"it was ended by signal {-status}"
    return f"it ended with exit status {status} and without an answer"
