"""Frames that the controller sends: uncompressed frames for the bootstrap, and answers to units."""

from __future__ import annotations

import json
from typing import Any

from statecfg.remote.wire import frames as wire

Json = dict[str, Any]  # the header of a frame


def plain(header: Json, body: bytes = b"") -> bytes:
    """Return an uncompressed frame for the bootstrap, which cannot decompress."""
    text = json.dumps(header, separators=(",", ":")).encode()
    return wire.HEAD.pack(len(text), len(body), 0) + text + body


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
