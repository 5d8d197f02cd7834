"""The queue of answers to a host, so that a host that does not read never delays other hosts."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from statecfg.transport import TransportError

MOST = 4 << 20  # bytes; while this many are queued, the host may not ask for more
LATEST = 60.0  # seconds in which the host must have read enough of them


class Outbox:
    """Sends bytes from many threads to one host, in order.

    :param write: sends bytes and returns when they are sent; raises TransportError
    """

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._changed = threading.Condition()
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._over = False
        self.cut: TransportError | None = None  # why sending has become impossible
        threading.Thread(target=self._work, daemon=True).start()

    def put(self, data: bytes) -> None:
        """Queue bytes, or drop them if the connection has ended."""
        with self._changed:
            if not self._over:
                self._waiting.append(data)
                self._size += len(data)
                self._changed.notify_all()

    def room(self) -> bool:
        """Wait until less than `MOST` bytes are queued; return False if that takes longer than `LATEST`."""
        with self._changed:
            return self._changed.wait_for(lambda: self._over or self._size < MOST, LATEST)

    def close(self) -> None:
        """Drop the queue and send nothing more."""
        with self._changed:
            self._over = True
            self._waiting.clear()
            self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._over or self._waiting)
                if self._over:
                    return
                data = self._waiting.popleft()
            try:
                self._write(data)
            except TransportError as problem:
                self.cut = problem
                self.close()
            with self._changed:
                self._size -= len(data)
                self._changed.notify_all()
