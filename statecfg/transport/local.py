"""Start programs on this machine, each in its own session and process group."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Sequence

from . import CHUNK, STDERR_KEPT, WRITE_DEADLINE, SshSettings, Target
from .errors import ConnectionLost, TransportError
from .tail import Tail

# Seconds for a program to end after its stdin is closed, and after SIGTERM.
LEAVE_GRACE = 0.2
TERM_GRACE = 5.0
POLL = 0.005
# Seconds of one wait for a pipe, after which a close in another thread is noticed.
SLICE = 0.1


def connect(target: Target, settings: SshSettings) -> LocalConnection:
    """Return a connection to this machine; see `statecfg.transport.connect`."""
    return LocalConnection(target.name)


class LocalConnection:
    """Start programs as the current user."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.warnings: tuple[str, ...] = ()
        self.peer = "local"
        self.address = "127.0.0.1"
        self.login = ("", "")
        self.streams: list[LocalStream] = []

    def open(self, command: Sequence[str]) -> LocalStream:
        """Start a program.

        :raises TransportError: the program cannot be executed
        """
        try:
            process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                close_fds=True,
                start_new_session=True,
            )
        except OSError as error:
            raise TransportError(self.host, f"cannot start {command[0]}: {error.strerror}") from error
        stream = LocalStream(self.host, process)
        self.streams.append(stream)
        return stream

    def close(self) -> None:
        """Close every stream."""
        for stream in self.streams:
            stream.close()


class LocalStream:
    """One child process. Only `close` reaps it, so no other process group can get its number before."""

    def __init__(self, host: str, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin and process.stdout and process.stderr
        self.host = host
        self.process = process
        self.stdin, self.stdout = process.stdin, process.stdout
        os.set_blocking(self.stdin.fileno(), False)
        self.tail = Tail(STDERR_KEPT)
        self.closing, self.writing, self.reading = threading.Lock(), threading.Lock(), threading.Lock()
        self.closed = False
        self.drain = threading.Thread(target=self._drain_stderr, args=(process.stderr.fileno(),), daemon=True)
        self.drain.start()

    def write(self, data: bytes) -> None:
        """Send all of `data`.

        :raises ConnectionLost: the program ended, or has read nothing for 60 s
        """
        rest = memoryview(data)
        deadline = time.monotonic() + WRITE_DEADLINE
        with self.writing:
            while rest:
                if self.closed:
                    raise ConnectionLost(self.host, "the stream is closed")
                sent = self._send(rest[:CHUNK])
                rest = rest[sent:]
                if sent:
                    deadline = time.monotonic() + WRITE_DEADLINE
                elif time.monotonic() > deadline:
                    raise ConnectionLost(self.host, f"the program has read nothing for {WRITE_DEADLINE:.0f} s")

    def _send(self, data: memoryview) -> int:
        if not _ready(self.stdin.fileno(), select.POLLOUT, SLICE):
            return 0
        try:
            return os.write(self.stdin.fileno(), data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise ConnectionLost(self.host, "the program ended before it read everything") from error

    def read(self, timeout: float) -> bytes | None:
        """Return the next bytes; b"" at the end; None after `timeout` seconds without any."""
        with self.reading:
            if self.closed:
                raise ConnectionLost(self.host, "the stream is closed")
            if not _ready(self.stdout.fileno(), select.POLLIN, timeout):
                return None
            return os.read(self.stdout.fileno(), CHUNK)

    def stderr(self) -> bytes:
        """Return the newest 64 KiB of stderr."""
        return self.tail.bytes()

    def exit_status(self) -> int | None:
        """Return the exit status, or None while the program runs."""
        if self.process.returncode is not None:
            return self.process.returncode
        try:
            info = os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            # A close in another thread reaped it between the two calls.
            return self.process.returncode
        if info is None:
            return None
        return info.si_status if info.si_code == os.CLD_EXITED else -info.si_status

    def close(self) -> None:
        """Close the pipes. If the program does not end, send SIGTERM and then SIGKILL to its process group."""
        with self.closing:
            if self.closed:
                return
            self.closed = True
            with self.writing:
                self.stdin.close()
            if not self._wait(LEAVE_GRACE):
                self._signal(signal.SIGTERM)
                self._wait(TERM_GRACE)
            self._signal(signal.SIGKILL)
            self.process.wait()
            self.drain.join(SLICE)
            # Another thread may still read, because a daemon keeps the pipe open. Then that thread keeps the pipe.
            if self.reading.acquire(timeout=1.0):
                self.stdout.close()
                self.reading.release()

    def _wait(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self.exit_status() is None:
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL)
        return True

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            # All processes of the group ended; only the zombie remains, which close reaps next.
            return

    def _drain_stderr(self, fd: int) -> None:
        stream = self.process.stderr
        assert stream is not None
        with stream:
            while chunk := os.read(fd, CHUNK):
                self.tail.add(chunk)


def _ready(fd: int, event: int, timeout: float) -> bool:
    poll = select.poll()
    poll.register(fd, event)
    return bool(poll.poll(max(0.0, timeout) * 1000))
