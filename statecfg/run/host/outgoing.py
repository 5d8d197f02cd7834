"""Frames that the controller sends: in the bootstrap's plain form, and nodes in pieces that fit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from statecfg.remote.wire import frames as wire

Json = dict[str, Any]


def plain(header: Json, body: bytes = b"") -> bytes:
    """Return a frame that is not packed, for the bootstrap, which does not unpack."""
    text = json.dumps(header, separators=(",", ":")).encode()
    return wire.HEAD.pack(len(text), len(body), 0) + text + body


def node_frames(number: int, nodes: list[Json]) -> Iterator[bytes]:
    """Yield frames with these nodes of a layer, split where one would be too large."""
    try:
        yield wire.encode({"type": "nodes", "layer": number, "nodes": nodes})
    except wire.ProtocolError:
        if len(nodes) == 1:
            raise
        half = len(nodes) // 2
        yield from node_frames(number, nodes[:half])
        yield from node_frames(number, nodes[half:])


def told(answer: Json) -> bytes:
    """Return the frame of what a host is told about its units; settings too large to be sent are told as an error.

    They may be another host's: only the hook that asks for them fails.
    """
    try:
        return wire.encode(answer)
    except wire.ProtocolError as problem:
        if answer["type"] != "unit-told":
            raise
        why = {"error": ["UNKNOWN", f"what it asks for can't be sent: {problem}"]}
        return wire.encode({key: answer[key] for key in ("type", "id", "ask")} | why)
