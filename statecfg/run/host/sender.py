"""Sends bytes to a host from several threads, and remembers when sending became impossible."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable

from statecfg.run.host.deadlines import DEAD
from statecfg.transport import Stream, TransportError

LINGER = 1.0  # seconds to wait for a reason after a host stopped reading


class Sender:
    """The writing side of a stream."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.lock = threading.Lock()
        self.cut: TransportError | None = None  # why sending has become impossible
        self.cut_at = 0.0

    def write(self, data: bytes) -> None:
        """Send bytes.

        :raises TransportError: if the bytes can't be sent
        """
        with self.lock:
            self.stream.write(data)

    def beat(self, data: bytes) -> bool:
        """Send a heartbeat; return whether further ones can be sent.

        The reading thread notices a broken connection itself.
        """
        try:
            self.write(data)
        except TransportError:
            return False
        return True

    def send(self, pieces: Iterable[bytes]) -> None:
        """Send bytes. If the host no longer reads, only note that: its earlier output may contain the reason."""
        if self.cut is None:
            try:
                for piece in pieces:
                    self.write(piece)
            except TransportError as problem:
                self.break_off(problem)

    def try_to_send(self, data: bytes) -> None:
        """Send bytes from another thread. The reading thread notices a broken connection itself."""
        with contextlib.suppress(TransportError):
            self.write(data)

    def break_off(self, problem: TransportError) -> None:
        """Note that sending has become impossible."""
        if self.cut is None:
            self.cut, self.cut_at = problem, time.monotonic()

    def check(self, heard: float) -> None:
        """Raise the error that broke the connection, after the host had time to send a reason.

        :param heard: when bytes last arrived, in seconds of `time.monotonic`
        :raises TransportError: if sending has become impossible
        """
        now = time.monotonic()
        if self.cut is not None and (now - heard > LINGER or now - self.cut_at > DEAD):
            raise self.cut

    def ending(self, greeted: bool) -> tuple[int | None, bytes]:
        """Return the executor's exit status, if it is known, and its output to stderr. Both may arrive late.

        :param greeted: whether the executor has started; if not, stderr should say why
        """
        deadline, errors = time.monotonic() + LINGER, b""
        status: int | None = None
        before: bytes | None = None
        while time.monotonic() < deadline and (before != errors or not (errors or greeted) or status is None):
            before = errors
            time.sleep(0.05)
            status, errors = self.stream.exit_status(), self.stream.stderr().strip()
        return status, errors
