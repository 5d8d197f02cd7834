"""What waits to be sent to a host, so that nobody else waits for a host that does not read."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from statecfg.transport import TransportError

MOST = 4 << 20  # bytes that may wait for a host before it may ask for more
LATEST = 60.0  # seconds within which it has to read them


class Outbox:
    """Sends, one after the other, what many threads leave here for one host.

    :param write: sends bytes, and returns when they are sent; raises TransportError
    """

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._changed = threading.Condition()
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._over = False
        self._cut: TransportError | None = None
        threading.Thread(target=self._work, daemon=True).start()

    def put(self, data: bytes) -> None:
        """Leave something to be sent; what comes after the end of the connection is dropped."""
        with self._changed:
            if not self._over:
                self._waiting.append(data)
                self._size += len(data)
                self._changed.notify_all()

    def room(self) -> bool:
        """Wait until less than `MOST` bytes wait to be sent; return False where that takes longer than `LATEST`."""
        with self._changed:
            return self._changed.wait_for(lambda: self._over or self._size < MOST, LATEST)

    def check(self) -> None:
        """Raise TransportError where nothing can be sent any more."""
        if self._cut is not None:
            raise self._cut

    def close(self) -> None:
        """Send nothing more."""
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
                self._cut = problem
                self.close()
            with self._changed:
                self._size -= len(data)
                self._changed.notify_all()
