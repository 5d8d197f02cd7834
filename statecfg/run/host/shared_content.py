"""Frames with content for the hosts of a run: statecfg reads and compresses content for several hosts once."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator

from statecfg.remote.graph.model import Blob
from statecfg.run.host.outgoing import PIECE, ROUND, content_frames

LIMIT = 32 << 20  # maximum bytes of all frames that a run keeps
LARGEST = ROUND * PIECE  # bytes of content; with more, each connection measures whether to compress


class _Frames:
    """The frames of one content. They are made while the fastest host gets them.

    :ivar size: bytes that the frames take at most
    :ivar users: the number of hosts that get them now
    :ivar complete: whether all frames are made
    """

    def __init__(self, blob: Blob) -> None:
        self.sha256, self.size = blob.sha256, blob.size
        self.users, self.complete = 0, False
        self._made: list[bytes] = []
        self._rest = content_frames(blob)
        self._problem: Exception | None = None
        self._lock = threading.Lock()

    def get(self, number: int) -> bytes | None:
        """Return a frame, None after the last one. Call it with 0, 1, 2 and so on.

        :raises OSError: the content can't be read
        :raises ProtocolError: the file with the content has changed
        """
        with self._lock:
            if self._problem is not None:
                raise self._problem
            if number == len(self._made) and not self.complete:
                self._make()
            return self._made[number] if number < len(self._made) else None

    def _make(self) -> None:
        try:
            frame = next(self._rest, None)
        except Exception as problem:  # every host that gets this content reports it
            self._problem = problem
            raise
        if frame is not None:
            self._made.append(frame)
            return
        self.complete, self.size = True, sum(map(len, self._made))


class SharedContent:
    """The frames of content that hosts of a run have got, as far as they fit into memory.

    :param limit: maximum bytes to keep; 0 to keep nothing, because there is only one host
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._kept: OrderedDict[str, _Frames] = OrderedDict()  # by digest; the last used ones are at the end
        self._lock = threading.RLock()  # the garbage collector may end an iteration at any time, also inside the lock

    @property
    def size(self) -> int:
        """The maximum number of bytes that the kept frames take."""
        return sum(frames.size for frames in list(self._kept.values()))

    def frames(self, blob: Blob, clock: Callable[[], float] = time.monotonic) -> Iterator[bytes]:
        """Yield the frames with the content of a blob; see `content_frames`. Each host of the run may call this.

        :param clock: returns seconds
        :raises OSError: the content can't be read
        :raises ProtocolError: the file with the content has changed
        """
        shared = self._taken(blob)
        if shared is None:
            yield from content_frames(blob, clock)
            return
        try:
            number = 0
            while (frame := shared.get(number)) is not None:
                yield frame
                number += 1
        finally:
            self._leave(shared)

    def _taken(self, blob: Blob) -> _Frames | None:
        """Return the frames of a blob for one more host; None if they must not be kept."""
        with self._lock:
            if blob.sha256 not in self._kept:
                if blob.size > LARGEST or not self._make_room(blob.size):
                    return None
                self._kept[blob.sha256] = _Frames(blob)
            self._kept.move_to_end(blob.sha256)
            shared = self._kept[blob.sha256]
            shared.users += 1
            return shared

    def _make_room(self, size: int) -> bool:
        """Drop frames that no host gets now; return whether the limit allows further bytes."""
        for sha256, frames in list(self._kept.items()):
            if self.size + size <= self._limit:
                break
            if not frames.users:
                self._kept.pop(sha256, None)  # the garbage collector may have ended an iteration that removed it
        return self.size + size <= self._limit

    def _leave(self, shared: _Frames) -> None:
        with self._lock:
            shared.users -= 1
            if not shared.users and not shared.complete:  # its file is still open
                self._kept.pop(shared.sha256, None)
