"""Data from a server, with one deadline for all: the name, the connection, TLS, redirects, headers and content."""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator

from statecfg.remote.machine.process import CHILDREN

STEP = 0.1  # seconds between two looks at the deadline
AHEAD = 4  # pieces that may wait


class Arrival:
    """The way from a server to a reader. A thread fills it, because the reader must never wait for the server.

    :ivar sockets: the open connections
    """

    def __init__(self) -> None:
        self.sockets: list[socket.socket] = []
        self.closed = False
        self._pieces: queue.Queue[bytes | BaseException | None] = queue.Queue(AHEAD)

    def connected(self, opened: socket.socket) -> None:
        """Remember a connection, so that the reader can close it."""
        self.sockets.append(opened.dup())
        if self.closed:
            self.close()

    def close(self) -> None:
        """End all connections. The thread then ends as well."""
        self.closed = True
        while self.sockets:
            with self.sockets.pop() as opened:
                try:
                    opened.shutdown(socket.SHUT_RDWR)
                except OSError:  # it has ended already
                    continue

    def fill(self, produce: Callable[[Arrival], Iterator[bytes]]) -> None:
        """Put what a function yields into the line, then its error or None."""
        end: BaseException | None = None
        try:
            for piece in produce(self):
                if not self._put(piece):
                    return
        except BaseException as problem:  # the reader raises it
            end = problem
        self._put(end)

    def _put(self, piece: bytes | BaseException | None) -> bool:
        while not self.closed:
            try:
                self._pieces.put(piece, timeout=STEP)
            except queue.Full:
                continue
            return True
        return False

    def take(self, until: float) -> bytes | BaseException | None:
        """Return the next piece; None at the end.

        :param until: the deadline
        :raises TimeoutError: if it has passed
        :raises InterruptedError: if the run is stopped
        """
        while True:
            if CHILDREN.stopping or CHILDREN.cancelled:
                raise InterruptedError
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            try:
                return self._pieces.get(timeout=min(left, STEP))
            except queue.Empty:
                continue


def arriving(produce: Callable[[Arrival], Iterator[bytes]], seconds: float, what: str) -> Iterator[bytes]:
    """Yield what a function gets from a server, until the deadline.

    :param produce: tells the line its connections, and yields pieces
    :param seconds: for everything
    :param what: what is fetched, for messages
    :raises LookupError: if it is not complete in time, or the run is stopped; also the errors of the function
    """
    line = Arrival()
    threading.Thread(target=line.fill, args=(produce,), daemon=True).start()
    until = time.monotonic() + seconds
    try:
        while True:
            piece = line.take(until)
            if isinstance(piece, BaseException):
                raise piece
            if piece is None:
                return
            yield piece
    except TimeoutError:
        raise LookupError(f"{what}: not complete after {seconds:g} seconds") from None
    except InterruptedError:
        raise LookupError(f"{what}: the run was interrupted") from None
    finally:
        line.close()
