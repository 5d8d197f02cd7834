"""The host's end of the exchange: frames in and out, heartbeats, and the watch over whether the controller lives."""

from __future__ import annotations

import os
import select
import threading
import time

from statecfg.remote.machine.process import CHILDREN
from statecfg.remote.wire.frames import Decoder, ProtocolError, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

BEAT = 5.0  # seconds between heartbeats
DEAD = 15.0  # seconds of silence after which the other side is taken for gone
LOOK = 3.0  # seconds after which a listener that looks every second must have been stopped
BACKLOG = 4 << 20  # bytes of content that wait to be taken
LONGEST_LINE = 1 << 20  # characters of a line of output that are waited for
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
        self.heard = self.beaten = self.looked = time.monotonic()
        self.backlog = 0
        self.lost = ""
        self.cancelled = False
        self.closing = False
        self.unended: Dict[str, str] = {}
        self.mask: Optional[Callable[[Any], Any]] = None
        threading.Thread(target=self._listen, daemon=True).start()

    def send(self, header: Mapping[str, Any], exact: bool = False) -> None:
        """Send a frame, secrets masked. What can't be sent because nobody is there any more is dropped.

        :param exact: mask nothing: it holds values that are to be used, and shown to nobody
        """
        if self.mask is not None and not exact:
            for whole in self._whole_lines(dict(header)):
                self._write(encode(self.mask(whole)))
        else:
            self._write(encode(header))

    def _whole_lines(self, header: Dict[str, Any]) -> List[Dict[str, Any]]:
        """Return what is to be sent now: output in whole lines only, or a secret could pass in two halves."""
        if header["type"] == "output":
            text = self.unended.pop(header["node"], "") + header["text"]
            end = len(text) if len(text) > LONGEST_LINE else text.rfind("\n") + 1
            if text[end:]:
                self.unended[header["node"]] = text[end:]
            return [dict(header, text=text[:end])] if end else []
        if header["type"] == "action" and header.get("event") == "finished" and header["node"] in self.unended:
            return [{"type": "output", "node": header["node"], "text": self.unended.pop(header["node"])}, header]
        return [header]

    def _write(self, data: bytes) -> None:
        with self.sending:
            self.beaten = time.monotonic()
            view = memoryview(data)
            while view and not self.lost:
                try:
                    view = view[os.write(self.sink, view[:65536]) :]
                except OSError as problem:
                    self._lose("the connection broke: %s" % problem.strerror)

    def receive(self, *types: str, cancelled: bool = False) -> Tuple[Dict[str, Any], bytes]:
        """Return the next frame of one of these types. Raises ProtocolError where the controller is gone.

        :param cancelled: wait for it although the user stops: it is the end of something that runs
        """
        with self.arrived:
            while True:
                for index, frame in enumerate(self.frames):
                    if frame[0]["type"] in types:
                        self.backlog -= len(frame[1])
                        return self.frames.pop(index)
                if self.lost or (self.cancelled and not cancelled):
                    raise ProtocolError(self.lost or "cancelled")
                self.arrived.wait(1.0)

    def stopped(self) -> str:
        """Say why nothing more may begin, "" while it may.

        Asked before every action: a process that was stopped and goes on finds here that its time is over.
        """
        with self.arrived:
            while not self.lost and time.monotonic() - self.looked > LOOK:
                self.arrived.wait(0.05)
        return self.lost or ("cancelled" if self.cancelled else "")

    def _lose(self, why: str) -> None:
        if not self.lost:
            self.lost = why
            CHILDREN.stop()
            with self.arrived:
                self.arrived.notify_all()

    def _listen(self) -> None:
        decoder = Decoder()
        try:
            while not self.closing and not self.lost:
                if self.backlog > BACKLOG:
                    time.sleep(0.02)
                else:
                    select.select([self.source], [], [], 1.0)
                self._look(decoder)
                self._beat()
        finally:
            if not self.closing:
                self._lose("nobody listens to the controller any more")
                self._last_moments()

    def _look(self, decoder: Decoder) -> None:
        """Take in all that has arrived: only what comes last tells whether the controller is still there."""
        heard = False
        try:
            while self.backlog <= BACKLOG and select.select([self.source], [], [], 0)[0]:
                data = os.read(self.source, 65536)
                if not data:
                    self._lose("the controller is gone")
                    return
                heard = True
                self._take(decoder.feed(data))
        except (OSError, ProtocolError) as problem:
            self._lose("the connection broke: %s" % problem)
        now = time.monotonic()
        if now - self.looked > DEAD:  # we were stopped meanwhile, and the controller has given us up
            self._lose("the executor was stopped for %d s" % (now - self.looked))
        if heard or self.backlog > BACKLOG:
            self.heard = now
        elif now - self.heard > DEAD:
            self._lose("the controller has been silent for %d s" % DEAD)
        with self.arrived:
            self.looked = now
            self.arrived.notify_all()

    def _beat(self) -> None:
        """Show that we live, unless somebody is sending; never wait for room, as listening comes first."""
        if time.monotonic() - self.beaten > BEAT and self.sending.acquire(False):
            try:
                if not self.lost and select.select([], [self.sink], [], 0)[1]:
                    self.beaten = time.monotonic()
                    os.write(self.sink, encode({"type": "beat"}))
            except OSError as problem:
                self._lose("the connection broke: %s" % problem.strerror)
            finally:
                self.sending.release()

    def _take(self, frames: List[Tuple[Dict[str, Any], bytes]]) -> None:
        with self.arrived:
            for header, body in frames:
                if header["type"] == "cancel":
                    self.cancelled = True
                elif header["type"] != "beat":
                    self.backlog += len(body)
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
