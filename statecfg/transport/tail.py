"""Keep the newest bytes of an endless stream."""

from __future__ import annotations

from collections import deque
from threading import Lock


class Tail:
    """Keep the last `limit` bytes that were added. Safe for one writer and many readers."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.chunks: deque[bytes] = deque()
        self.size = 0
        self.lock = Lock()

    def add(self, data: bytes) -> None:
        """Append `data`, and drop old chunks that are no longer needed."""
        with self.lock:
            self.chunks.append(data)
            self.size += len(data)
            while self.size - len(self.chunks[0]) >= self.limit:
                self.size -= len(self.chunks.popleft())

    def bytes(self) -> bytes:
        """Return the newest bytes, at most `limit`."""
        with self.lock:
            return b"".join(self.chunks)[-self.limit :]
