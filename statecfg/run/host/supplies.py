"""What a host may request while it prepares: the executor, content and node types, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from statecfg.playbook.compile import Definition
from statecfg.remote.graph.events import RunEvent
from statecfg.remote.graph.model import Blob
from statecfg.remote.wire import frames as wire
from statecfg.run.bundle import Part
from statecfg.run.host import frames
from statecfg.run.host.broken import SUSPICIOUS, Broken
from statecfg.run.host.outgoing import PIECE as CONTENT_PIECE
from statecfg.run.host.outgoing import plain
from statecfg.run.host.report import Emit
from statecfg.run.host.shared_content import SharedContent

PIECE = 128 << 10  # bytes of the bundle in one frame
REPORTED = 1.0  # seconds between two reports of how much content is sent
TYPES = 1000  # maximum number of node types that a host may request


class Supplies:
    """Answers the `need` frames of one host.

    :param clock: returns seconds
    :param content: the content that several hosts of the run get
    """

    def __init__(self, emit: Emit, clock: Callable[[], float], content: SharedContent) -> None:
        self.emit, self.clock, self.content = emit, clock, content
        self.parts: dict[str, Part] = {}  # of the executor, by digest
        self.sent_types = False
        self.sent: set[str] = set()  # digests of parts and of content

    def answer(self, frame: frames.NeedFrame, definition: Definition) -> Iterator[Iterator[bytes]]:
        """Yield the executor or the content that the host requests, as frames.

        Iterating over content reads a file and may raise Broken.

        :raises Broken: if the host requests something twice, or something that does not belong to this run
        """
        if frame.bundle is not None:
            yield self._part(frame.bundle)
        for sha256 in frame.blobs or ():
            blob = definition.blobs.get(sha256)
            if blob is None or sha256 in self.sent:
                what = "was sent already" if sha256 in self.sent else "is not part of this run"
                raise Broken(f"it requests content {sha256[:12]!r}, which {what}", SUSPICIOUS)
            self.sent.add(sha256)
            self.emit(RunEvent.UPLOADING, {"bytes": blob.size, "sent": 0})
            yield self._content(blob)

    def _part(self, sha256: str) -> Iterator[bytes]:
        """Return a part of the executor."""
        if sha256 not in self.parts or sha256 in self.sent:
            raise Broken("it requests the executor twice, or another one", SUSPICIOUS)
        self.sent.add(sha256)
        data = self.parts[sha256].data
        self.emit(RunEvent.UPLOADING, {"bytes": len(data)})
        starts = range(0, len(data), PIECE)
        return map(partial(_piece, data), starts)

    def types(self, frame: frames.NeedFrame) -> Sequence[str] | None:
        """Return the names of the node types that the host requests; None if it requests something else.

        :raises Broken: if the host requests node types twice, or several things in one frame
        """
        if [frame.bundle, frame.blobs, frame.types].count(None) != 2:
            raise Broken("it requests something that does not exist", SUSPICIOUS)
        if frame.types is None:
            return None
        if self.sent_types:
            raise Broken("it requests node types that it can't need", SUSPICIOUS)
        self.sent_types = True
        return frame.types[:TYPES]

    def _content(self, blob: Blob) -> Iterator[bytes]:
        """Yield the frames with content, and report every second how much of it is sent."""
        began = reported = self.clock()
        sent = 0
        try:
            for frame in self.content.frames(blob, self.clock):
                yield frame
                sent = min(blob.size, sent + CONTENT_PIECE)
                now = self.clock()
                if now - reported > REPORTED:
                    reported = now
                    self.emit(RunEvent.UPLOADING, {"bytes": blob.size, "sent": sent, "seconds": now - began})
        except (OSError, wire.ProtocolError) as problem:
            raise Broken(f"content for it can't be sent: {problem}", "Run it again.") from problem


def _piece(data: bytes, start: int) -> bytes:
    return plain({"type": "bundle", "last": start + PIECE >= len(data)}, data[start : start + PIECE])
