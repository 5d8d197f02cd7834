"""Frames of hosts that wait for the thread which leads the units: a few of each host, so that none costs much."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from statecfg.run.strict import weigh

Json = dict[str, Any]
Said = tuple[str, Json, Callable[[Json], None] | None, str]  # host, frame, what tells the host, its address

FRAMES = 64  # of one host that may wait
MEMORY = 8 << 20  # bytes of memory that they may take; one alone may take more


class Inbox:
    """Frames of all hosts, in the order in which they came."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[tuple[Said, int]] = deque()
        self._frames: Counter[str] = Counter()
        self._memory: Counter[str] = Counter()
        self._closed = False

    def put(self, said: Said) -> None:
        """Leave a frame of a host; wait while too many of that host are here. After `close` it is dropped."""
        size = weigh(said[1])
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._fits(said[0], size))
            self._add(said, size)

    def put_at_once(self, said: Said) -> None:
        """Leave a frame of our own."""
        with self._changed:
            self._add(said, 0)

    def _fits(self, host: str, size: int) -> bool:
        frames = self._frames[host]
        return not frames or (frames < FRAMES and self._memory[host] + size <= MEMORY)

    def _add(self, said: Said, size: int) -> None:
        if not self._closed:
            self._frames[said[0]] += 1
            self._memory[said[0]] += size
            self._waiting.append((said, size))
            self._changed.notify_all()

    def get(self, timeout: float) -> Said | None:
        """Return the next frame, None where none comes in `timeout` seconds."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._waiting, timeout):
                return None
            said, size = self._waiting.popleft()
            self._frames[said[0]] -= 1
            self._memory[said[0]] -= size
            self._changed.notify_all()
            return said

    def close(self) -> None:
        """Take nothing in any more, and let those go that wait."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()
