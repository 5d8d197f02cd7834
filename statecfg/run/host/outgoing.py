"""Frames that the controller sends: uncompressed frames for the bootstrap, content, and answers to units."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from statecfg.remote.graph.model import Blob
from statecfg.remote.wire import frames as wire

Json = dict[str, Any]  # the header of a frame

PIECE = wire.BODY_LIMIT // 2  # bytes of content in one frame
SHRUNK = 0.9  # a frame is worth compressing if this part of its size remains, or less
AS_IS = 31  # frames that are sent uncompressed after one that did not shrink


def plain(header: Json, body: bytes = b"") -> bytes:
    """Return an uncompressed frame for the bootstrap, which cannot decompress."""
    text = json.dumps(header, separators=(",", ":")).encode()
    return wire.HEAD.pack(len(text), len(body), 0) + text + body


def content_frames(blob: Blob) -> Iterator[bytes]:
    """Yield the frames with the content of a blob; each names its digest, and the last one is marked.

    If a frame does not shrink, the next ones are sent uncompressed: compressing takes more time than sending.

    :raises ProtocolError: if the file with the content has changed
    """
    sent = uncompressed = 0
    digest = hashlib.sha256()
    piece = b""
    for piece in blob.chunks(PIECE):
        sent += len(piece)
        digest.update(piece)
        if sent < blob.size:
            frame = wire.encode({"type": "blob", "sha256": blob.sha256, "last": False}, piece, uncompressed == 0)
            uncompressed = uncompressed - 1 if uncompressed else AS_IS if len(frame) > SHRUNK * len(piece) else 0
            yield frame
    if sent != blob.size or digest.hexdigest() != blob.sha256:
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
