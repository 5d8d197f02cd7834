"""Sends bytes to a host from several threads, and remembers when that became impossible."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable

from statecfg.run.host.deadlines import DEAD
from statecfg.transport import Stream, TransportError

LINGER = 1.0  # seconds for which a host that no longer listens may still say why


class Sender:
    """The writing side of a stream."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.lock = threading.Lock()
        self.cut: TransportError | None = None  # why nothing can be sent any more
        self.cut_at = 0.0

    def write(self, data: bytes) -> None:
        """Send bytes.

        :raises TransportError: if that is impossible
        """
        with self.lock:
            self.stream.write(data)

    def send(self, pieces: Iterable[bytes]) -> None:
        """Send bytes. If the host no longer listens, what it has sent already may say why: go on reading that."""
        if self.cut is None:
            try:
                for piece in pieces:
                    self.write(piece)
            except TransportError as problem:
                self.break_off(problem)

    def try_to_send(self, data: bytes) -> None:
        """Send bytes from another thread; the reading thread finds out itself if the connection broke."""
        with contextlib.suppress(TransportError):
            self.write(data)

    def break_off(self, problem: TransportError) -> None:
        """Note that nothing can be sent any more."""
        if self.cut is None:
            self.cut, self.cut_at = problem, time.monotonic()

    def check(self, heard: float) -> None:
        """Raise what broke the connection, once the host has had its time to say why.

        :param heard: when bytes arrived last, as of `time.monotonic`
        :raises TransportError: if nothing can be sent
        """
        now = time.monotonic()
        if self.cut is not None and (now - heard > LINGER or now - self.cut_at > DEAD):
            raise self.cut
