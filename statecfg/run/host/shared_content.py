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

    :ivar counted: bytes that `SharedContent.size` counts for them
    :ivar made_size: bytes of the frames that are made
    :ivar users: the number of hosts that get them now
    :ivar complete: whether all frames are made
    """

    def __init__(self, blob: Blob) -> None:
        self.sha256, self.counted = blob.sha256, blob.size
        self.made_size, self.users, self.complete = 0, 0, False
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
        if frame is None:
            self.complete = True
            return
        self._made.append(frame)
        self.made_size += len(frame)


class SharedContent:
    """The frames of content that hosts of a run have got, as far as they fit into memory.

    :param limit: maximum bytes to keep; 0 to keep nothing, because there is only one host
    :ivar size: bytes that the kept frames take at most
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit, self.size = limit, 0
        self._kept: OrderedDict[str, _Frames] = OrderedDict()  # by digest; the last used ones are at the end
        self._lock = threading.RLock()  # the garbage collector may end an iteration at any time, also inside the lock

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
                shared = self._kept[blob.sha256] = _Frames(blob)
                self.size += shared.counted
            self._kept.move_to_end(blob.sha256)
            shared = self._kept[blob.sha256]
            shared.users += 1
            return shared

    def _make_room(self, size: int) -> bool:
        """Drop frames that no host gets now; return whether the limit allows further bytes."""
        if self.size + size > self._limit:
            for frames in list(self._kept.values()):
                if not frames.users:
                    self._drop(frames)
                if self.size + size <= self._limit:
                    break
        return self.size + size <= self._limit

    def _drop(self, frames: _Frames) -> None:
        if self._kept.pop(frames.sha256, None) is not None:  # the garbage collector may end an iteration that drops it
            self.size -= frames.counted

    def _leave(self, shared: _Frames) -> None:
        with self._lock:
            shared.users -= 1
            if shared.complete:
                self.size += shared.made_size - shared.counted
                shared.counted = shared.made_size
            elif not shared.users:  # its file is still open
                self._drop(shared)
