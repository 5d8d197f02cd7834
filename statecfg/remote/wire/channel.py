"""The host's end of the connection: send and receive frames and heartbeats, and notice a lost controller."""

from __future__ import annotations

import os
import select
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional

from statecfg.remote.graph.model import JsonMap
from statecfg.remote.machine.changes import STAND_INS
from statecfg.remote.machine.process import CHILDREN
from statecfg.remote.wire.frames import Decoder, Frame, ProtocolError, encode

BEAT = 5.0  # seconds between heartbeats
DEAD = 15.0  # seconds of silence after which the other side counts as lost
READ = 256 << 10  # maximum bytes to read at once
LOOK = 3.0  # seconds; the listener looks every second, so a longer pause means that the process was stopped
BACKLOG = 4 << 20  # maximum bytes of received content that no thread has taken yet
LONGEST_LINE = 1 << 20  # characters of output to wait for until a line ends
LAST = 10.0  # seconds that running actions get after the controller is lost


class Moments:
    """When something happened last, as `time.monotonic()`.

    :ivar heard: data arrived
    :ivar sent: data was sent
    :ivar looked: the listener looked for data
    """

    __slots__ = ("heard", "looked", "sent")

    def __init__(self) -> None:
        self.heard = self.sent = self.looked = time.monotonic()


class Sink:
    """The descriptor to write to.

    :ivar held: what is sent together with the next frame
    :ivar rest: the end of a heartbeat of which the system has written only the beginning
    """

    __slots__ = ("descriptor", "held", "rest")

    def __init__(self, descriptor: int) -> None:
        self.descriptor, self.held, self.rest = descriptor, bytearray(), b""


class Channel:
    """Frames from and to the controller.

    One thread listens, so that a lost controller is noticed while the run is busy; any thread may send.

    :param source: the descriptor to read from
    :param sink: the descriptor to write to
    :param frames: the frames that already arrived
    """

    def __init__(self, source: int, sink: int, frames: List[Frame]) -> None:
        self.source, self.sink = source, Sink(sink)
        self.frames = list(frames)
        self.arrived = threading.Condition()
        self.sending = threading.Lock()
        self.last = Moments()
        self.backlog = 0
        self.lost = ""
        self.cancelled = False
        self.closing = False
        self.unended: Dict[str, str] = {}
        self._mask: Optional[Callable[[Any], Any]] = None
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def mask(self) -> Optional[Callable[[Any], Any]]:
        """What masks the secrets of this run, and shows the masks of earlier secrets in place of their stand-ins."""
        if not STAND_INS:
            return self._mask
        from statecfg.remote.machine.hidden import rendering

        return rendering(self._mask)

    @mask.setter
    def mask(self, function: Optional[Callable[[Any], Any]]) -> None:
        self._mask = function

    def send(self, header: Mapping[str, Any], exact: bool = False) -> None:
        """Send a frame with masked secrets; drop it if the connection is lost.

        The ends of nodes are sent together with the report of their layer, which follows at once.

        :param exact: don't mask secrets, because the controller needs the values and does not show them
        """
        mask = self.mask
        if mask is not None and not exact:
            data = b"".join(encode(mask(whole)) for whole in self._whole_lines(dict(header)))
        else:
            data = encode(header)
        self._write(data, header["type"] == "finished")

    def _whole_lines(self, header: JsonMap) -> List[JsonMap]:
        """Return the frames to send now: output only in whole lines, so that a secret is not split and missed."""
        if header["type"] == "output":
            text = self.unended.pop(header["node"], "") + header["text"]
            end = len(text) if len(text) > LONGEST_LINE else text.rfind("\n") + 1
            if text[end:]:
                self.unended[header["node"]] = text[end:]
            return [dict(header, text=text[:end])] if end else []
        if header["type"] == "action" and header.get("event") == "finished" and header["node"] in self.unended:
            return [{"type": "output", "node": header["node"], "text": self.unended.pop(header["node"])}, header]
        return [header]

    def _write(self, data: bytes, hold: bool) -> None:
        with self.sending:
            self.sink.held += data
            if hold:
                return
            view, self.sink.held = memoryview(self.sink.rest + self.sink.held), bytearray()
            self.sink.rest = b""
            self.last.sent = time.monotonic()
            while view and not self.lost:
                try:
                    view = view[os.write(self.sink.descriptor, view[:65536]) :]
                except OSError as problem:
                    self._lose(f"the connection broke: {problem.strerror}")

    def part(self, sha256: str) -> Iterator[bytes]:
        """Request a part of the executor that only some hosts need; yield its pieces."""
        self.send({"type": "need", "bundle": sha256})
        last = False
        while not last:
            header, body = self.receive("bundle")
            yield body
            last = header["last"]

    def receive(self, *types: str, cancelled: bool = False) -> Frame:
        """Wait for the next frame of one of these types and return it.

        :param cancelled: keep waiting after the user cancels, because the frame ends something that runs
        :raises ProtocolError: if the controller is lost or the user cancels
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
        """Return why nothing new may start, "" if it may.

        Call this before every action. A process that was stopped for too long learns here that it must not continue.
        """
        with self.arrived:
            while not self.lost and time.monotonic() - self.last.looked > LOOK:
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
                self._lose("the executor no longer reads the controller's messages")
                self._last_moments()

    def _look(self, decoder: Decoder) -> None:
        """Read everything that has arrived, because only the end of it shows whether the controller is still there."""
        heard = False
        try:
            while self.backlog <= BACKLOG and select.select([self.source], [], [], 0)[0]:
                data = os.read(self.source, READ)
                if not data:
                    self._lose("the controller closed the connection")
                    return
                heard = True
                self._take(decoder.feed(data))
        except (OSError, ProtocolError) as problem:
            self._lose(f"the connection broke: {problem}")
        now = time.monotonic()
        if now - self.last.looked > DEAD:  # this process was stopped, and the controller has given up
            self._lose(f"the executor was stopped for {int(now - self.last.looked)} s")
        if heard or self.backlog > BACKLOG:
            self.last.heard = now
        elif now - self.last.heard > DEAD:
            self._lose(f"the controller has been silent for {DEAD} s")
        with self.arrived:
            self.last.looked = now
            self.arrived.notify_all()

    def _beat(self) -> None:
        """Send a heartbeat unless another thread is sending; don't block, because listening is more important."""
        if time.monotonic() - self.last.sent > BEAT and self.sending.acquire(False):
            try:
                if not self.lost and select.select([], [self.sink.descriptor], [], 0)[1]:
                    self.last.sent = time.monotonic()
                    data = self.sink.rest or encode({"type": "beat"})
                    self.sink.rest = data[os.write(self.sink.descriptor, data) :]
            except OSError as problem:
                self._lose(f"the connection broke: {problem.strerror}")
            finally:
                self.sending.release()

    def _take(self, frames: List[Frame]) -> None:
        with self.arrived:
            for header, body in frames:
                if header["type"] == "cancel":
                    self.cancelled = CHILDREN.cancelled = True
                elif header["type"] != "beat":
                    self.backlog += len(body)
                    self.frames.append((header, body))
            self.arrived.notify_all()

    def _last_moments(self) -> None:
        """End the process soon after the controller is lost, but wait for programs that must not be interrupted."""
        end = time.monotonic() + LAST
        while time.monotonic() < end or CHILDREN.protected:
            if self.closing:
                return
            time.sleep(0.2)
        os._exit(1)
