"""The queue of hosts' frames for the coordinator's thread, limited for each host."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any

from statecfg.run.strict import weigh

Json = Mapping[str, Any]
# host, frame, function that sends to the host, its address
Message = tuple[str, Json, Callable[[Json], None] | None, str]

FRAMES = 64  # maximum number of queued frames of one host
MEMORY = 8 << 20  # maximum bytes of memory of one host's queued frames; a single frame may be larger


class Inbox:
    """Frames of all hosts, oldest first."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[tuple[Message, int]] = deque()
        self._frames: Counter[str] = Counter()
        self._memory: Counter[str] = Counter()
        self._closed = False

    def put(self, message: Message) -> None:
        """Queue a frame of a host. Wait while the host has too many in the queue. After `close`, drop the frame."""
        size = weigh(message[1])
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._fits(message[0], size))
            self._add(message, size)

    def put_at_once(self, message: Message) -> None:
        """Queue a frame of the controller, without a limit."""
        with self._changed:
            self._add(message, 0)

    def _fits(self, host: str, size: int) -> bool:
        frames = self._frames[host]
        return not frames or (frames < FRAMES and self._memory[host] + size <= MEMORY)

    def _add(self, message: Message, size: int) -> None:
        if not self._closed:
            self._frames[message[0]] += 1
            self._memory[message[0]] += size
            self._waiting.append((message, size))
            self._changed.notify_all()

    def get(self, timeout: float) -> Message | None:
        """Return the next frame; None if no frame comes within `timeout` seconds."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._waiting, timeout):
                return None
            message, size = self._waiting.popleft()
            self._frames[message[0]] -= 1
            self._memory[message[0]] -= size
            self._changed.notify_all()
            return message

    def close(self) -> None:
        """Drop further frames, and let waiting threads continue."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()
