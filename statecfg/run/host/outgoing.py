"""Frames that the controller sends: uncompressed frames for the bootstrap, content, and answers to units."""

from __future__ import annotations

import hashlib
import json
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from statecfg.playbook.file_blobs import FileBlob
from statecfg.remote.graph.model import Blob
from statecfg.remote.wire import frames as wire

Json = Mapping[str, Any]  # the header of a frame

PIECE = wire.BODY_LIMIT  # bytes of content in one frame
SAMPLE = 16 << 10  # bytes at the beginning of a frame that show whether it shrinks
SHRUNK = 0.9  # a frame is worth compressing if this part of its size remains, or less
AS_IS = 31  # frames that are sent uncompressed after one that did not shrink
ROUND = 64  # frames that are sent before the speed is measured
KEPT = 16  # rounds that are sent in the faster way before the other way is tried again


def plain(header: Json, body: bytes = b"") -> bytes:
    """Return an uncompressed frame for the bootstrap, which cannot decompress."""
    text = json.dumps(header, separators=(",", ":")).encode()
    return wire.HEAD.pack(len(text), len(body), 0) + text + body


class Packing:
    """Decides which frames of one content to compress.

    If a frame does not shrink, the next ones are sent as they are. On a fast connection, compressing takes more time
    than sending. So from the second round on, the faster way is used, as measured with both.

    :param clock: returns seconds
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.compressing = True  # in this round
        self.sent = self.as_is = self.rounds = 0
        self.began = clock()
        self.seconds: dict[bool, float] = {}  # how long the last round with and without compressing took

    def packs(self, piece: bytes) -> bool:
        """Decide whether to compress the next frame."""
        if self.sent == ROUND:
            self._next_round()
        self.sent += 1
        if not self.compressing:
            return False
        if self.as_is:
            self.as_is -= 1
            return False
        sample = piece[:SAMPLE]
        if len(zlib.compress(sample, 1)) > SHRUNK * len(sample):
            self.as_is = AS_IS
            return False
        return True

    def _next_round(self) -> None:
        now = self.clock()
        self.seconds[self.compressing] = now - self.began
        self.began, self.sent = now, 0
        self.rounds += 1
        other = not self.compressing
        if self.rounds % KEPT == 1:
            self.compressing = other
        else:
            self.compressing = self.seconds[True] <= self.seconds[False]


def content_frames(blob: Blob, clock: Callable[[], float] = time.monotonic) -> Iterator[bytes]:
    """Yield the frames with the content of a blob; each names its digest, and the last one is marked.

    :param clock: returns seconds
    :raises ProtocolError: if the file with the content has changed
    """
    sent = 0
    # The host checks the digest anyway. So a file that shows no change since statecfg read it is not hashed again.
    digest = None if isinstance(blob, FileBlob) and blob.untouched() else hashlib.sha256()
    packing = Packing(clock)
    piece = b""
    for piece in blob.chunks(PIECE):
        sent += len(piece)
        if digest is not None:
            digest.update(piece)
        if sent < blob.size:
            yield wire.encode({"type": "blob", "sha256": blob.sha256, "last": False}, piece, packing.packs(piece))
    same = digest.hexdigest() == blob.sha256 if digest is not None else isinstance(blob, FileBlob) and blob.untouched()
    if sent != blob.size or not same:
        raise wire.ProtocolError(f"{blob.path or 'the content'} changed after statecfg read it")
    yield wire.encode({"type": "blob", "sha256": blob.sha256, "last": True}, piece)


def answer_frame(answer: Json) -> bytes:
    """Return the frame with an answer to a host's units. If requested settings are too large, return an error instead.

    The settings may be another host's. So only the hook that requests them fails.
    """
    try:
        return wire.encode(answer)
    except wire.ProtocolError as problem:
        if answer["type"] != "unit-told":
            raise
        why = {"error": ["UNKNOWN", f"the requested content can't be sent: {problem}"]}
        return wire.encode({key: answer[key] for key in ("type", "id", "ask")} | why)
