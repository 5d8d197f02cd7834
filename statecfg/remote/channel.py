"""The host's end of the exchange: frames in and out, heartbeats, and the watch over whether the controller lives."""

from __future__ import annotations

import os
import select
import threading
import time

from statecfg.remote.process import CHILDREN
from statecfg.remote.wire import Decoder, ProtocolError, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

BEAT = 5.0  # seconds between heartbeats
DEAD = 15.0  # seconds of silence after which the other side is taken for gone
LAST = 10.0  # seconds an action under way is given once the controller is gone


class Channel:
    """Frames from and to the controller.

    One thread listens, so that a lost controller is noticed while the run is busy; any thread may send.

    :param source: descriptor to read from
    :param sink: descriptor to write to
    :param frames: frames that arrived before
    """

    def __init__(self, source: int, sink: int, frames: List[Tuple[Dict[str, Any], bytes]]) -> None:
        self.source, self.sink = source, sink
        self.frames = list(frames)
        self.arrived = threading.Condition()
        self.sending = threading.Lock()
        self.heard = self.beaten = time.monotonic()
        self.lost = ""
        self.cancelled = False
        self.closing = False
        self.mask: Optional[Callable[[Any], Any]] = None
        threading.Thread(target=self._listen, daemon=True).start()

    def send(self, header: Mapping[str, Any]) -> None:
        """Send a frame, secrets masked. What can't be sent because nobody is there any more is dropped."""
        if self.mask is not None:
            header = self.mask(dict(header))
        self._write(encode(header))

    def _write(self, data: bytes) -> None:
        with self.sending:
            self.beaten = time.monotonic()
            view = memoryview(data)
            while view and not self.lost:
                try:
                    view = view[os.write(self.sink, view[:65536]) :]
                except OSError as problem:
                    self._lose("the connection broke: %s" % problem.strerror)

    def receive(self, *types: str) -> Tuple[Dict[str, Any], bytes]:
        """Return the next frame of one of these types. Raises ProtocolError where the controller is gone."""
        with self.arrived:
            while True:
                for index, frame in enumerate(self.frames):
                    if frame[0]["type"] in types:
                        return self.frames.pop(index)
                if self.lost or self.cancelled:
                    raise ProtocolError(self.lost or "cancelled")
                self.arrived.wait(1.0)

    def stopped(self) -> str:
        """Say why nothing more may begin, "" while it may.

        Asked before every action: a process that was stopped and goes on finds here that its time is over.
        """
        if not self.lost and time.monotonic() - self.heard > DEAD:
            self._lose("the controller has been silent for %d s" % DEAD)
        return self.lost or ("cancelled" if self.cancelled else "")

    def _lose(self, why: str) -> None:
        if not self.lost:
            self.lost = why
            CHILDREN.stop()
            with self.arrived:
                self.arrived.notify_all()

    def _listen(self) -> None:
        decoder = Decoder()
        while not self.closing:
            try:
                ready, _, _ = select.select([self.source], [], [], 1.0)
                now = time.monotonic()
                if ready:
                    data = os.read(self.source, 65536)
                    if not data:
                        self._lose("the controller is gone")
                    self.heard = now
                    self._take(decoder.feed(data))
            except (OSError, ProtocolError) as problem:
                self._lose("the connection broke: %s" % problem)
            now = time.monotonic()
            if not self.lost and now - self.heard > DEAD:
                self._lose("the controller has been silent for %d s" % DEAD)
            if self.lost:
                self._last_moments()
                return
            # A separate thread beats only while nobody else is sending: a full pipe must not stop the listening.
            if now - self.beaten > BEAT and self.sending.acquire(False):
                self.sending.release()
                self._write(encode({"type": "beat"}))

    def _take(self, frames: List[Tuple[Dict[str, Any], bytes]]) -> None:
        with self.arrived:
            for header, body in frames:
                if header["type"] == "cancel":
                    self.cancelled = True
                elif header["type"] != "beat":
                    self.frames.append((header, body))
            self.arrived.notify_all()

    def _last_moments(self) -> None:
        """End the process soon after the controller is gone, but never in the midst of what must not be cut off."""
        end = time.monotonic() + LAST
        while time.monotonic() < end or CHILDREN.protected:
            if self.closing:
                return
            time.sleep(0.2)
        os._exit(1)
