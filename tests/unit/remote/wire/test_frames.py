"""Frames: valid frames arrive unchanged. The decoder refuses invalid frames at once and at little cost."""

from __future__ import annotations

import json
import tracemalloc
import zlib
from typing import Any

import pytest

from statecfg.remote.graph.model import Blob
from statecfg.remote.wire import frames as wire
from statecfg.remote.wire.frames import (
    HEAD,
    PACKED,
    Decoder,
    ProtocolError,
    decode_node,
    decode_value,
    encode,
    encode_value,
)
from tests.each import each


def frame(text: bytes, body: bytes = b"") -> bytes:
    """Return a frame with this text as its header. The text need not be JSON."""
    return HEAD.pack(len(text), len(body), 0) + text + body


@each("size", [0, 1, wire.PACK_FROM, wire.BODY_LIMIT])
@each("unit", [b"a", bytes(range(256))])
def test_bodies_up_to_the_limit_arrive_unchanged(size: int, unit: bytes) -> None:
    body = (unit * size)[:size]
    assert Decoder().feed(encode({"type": "blob"}, body)) == [({"type": "blob"}, body)]


def test_encode_refuses_oversized_frames_and_nan() -> None:
    with pytest.raises(ProtocolError):
        encode({"type": "x"}, b"a" * (wire.BODY_LIMIT + 1))
    with pytest.raises(ProtocolError):
        encode({"type": "x", "text": "a" * wire.CONTROL_LIMIT})
    with pytest.raises(ProtocolError):
        encode({"type": "x", "number": float("nan")})


BAD = {
    "length 0": HEAD.pack(0, 0, 0),
    "largest header length": HEAD.pack(2**32 - 1, 0, 0) + b"x" * 100,
    "largest body length": HEAD.pack(10, 2**32 - 1, 0),
    "header just over the limit": HEAD.pack(wire.CONTROL_LIMIT + 1, 0, 0),
    "body just over the limit": HEAD.pack(10, wire.BODY_LIMIT + 1, 0),
    "compressed header just over the limit": HEAD.pack(10, wire.PACKED_LIMIT + 1, PACKED),
    "unknown flag": HEAD.pack(10, 0, 2) + b"0123456789",
    "not JSON": frame(b"no json"),
    "truncated JSON": frame(b'{"type": "x"'),
    "two JSON objects": frame(b'{"type": "x"}{"type": "x"}'),
    "list": frame(b'[{"type": "x"}]'),
    "no type": frame(b'{"a": 1}'),
    "type is not a string": frame(b'{"type": 1}'),
    "not UTF-8": frame(b'{"type": "\xff"}'),
    "NaN": frame(b'{"type": "x", "n": NaN}'),
    "Infinity": frame(b'{"type": "x", "n": -Infinity}'),
    "number larger than a double": frame(b'{"type": "x", "n": 1e999}'),
    "duplicate key": frame(b'{"type": "x", "type": "y"}'),
    "nested duplicate key": frame(b'{"type": "x", "a": [{"b": 1, "b": 1}]}'),
    "too many digits": frame(b'{"type": "x", "n": ' + b"9" * 41 + b"}"),
    "a million digits": frame(b'{"type": "x", "n": ' + b"9" * 1_000_000 + b"}"),
    "lists nested one level too deep": frame(b'{"type": "x", "a": ' + b"[" * wire.DEPTH + b"]" * wire.DEPTH + b"}"),
    "lists nested a million levels deep": frame(b'{"type": "x", "a": ' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}"),
    "maps nested too deep": frame(b'{"type": "x", "a": ' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}"),
    "unterminated string": frame(b"[" * 200 + b'"' + b"a" * 27),
    "unterminated string of quotes": frame(b"[" * 200 + b'"' + b'\\"' * 1_000_000),
    "unterminated string that ends in a backslash": frame(b"[" * 200 + b'"' + b"a" * 27 + b"\\"),
    "only brackets": frame(b"[" * 100_000),
    "not compressed, despite the flag": HEAD.pack(10, 20, PACKED) + b"x" * 20,
    "truncated zlib data": HEAD.pack(1000, 20, PACKED) + zlib.compress(json.dumps({"type": "x" * 1000}).encode())[:20],
    "compressed header shorter than declared": HEAD.pack(1000, 21, PACKED) + zlib.compress(b'{"type": "x"}'),
    "extra bytes after the compressed header": HEAD.pack(13, 25, PACKED) + zlib.compress(b'{"type": "x"}') + b"more",
}
_LENGTH = len(zlib.compress(b'{"type": "x"}'))
BAD["compressed header shorter than declared"] = HEAD.pack(1000, _LENGTH, PACKED) + zlib.compress(b'{"type": "x"}')
BAD["extra bytes after the compressed header"] = (
    HEAD.pack(13, _LENGTH + 4, PACKED) + zlib.compress(b'{"type": "x"}') + b"more"
)


@each("name", BAD)
def test_decoder_refuses_invalid_frames_at_little_cost(name: str) -> None:
    refused_at_little_cost(BAD[name])


def test_decoder_refuses_a_decompression_bomb_at_little_cost() -> None:
    bomb = zlib.compress(b"0" * 10**8)
    assert len(bomb) < wire.PACKED_LIMIT  # otherwise, its own size is the mistake
    refused_at_little_cost(HEAD.pack(20, len(bomb), PACKED) + bomb)


def refused_at_little_cost(invalid: bytes) -> None:
    """Decode an invalid frame: it raises ProtocolError within 16 MiB of memory."""
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            Decoder().feed(invalid)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_brackets_inside_strings_do_not_count_as_nesting() -> None:
    header = {"type": "x", "a": '\\"[[{' * 1000, "b": [[["]" * 500]]] * 100}
    assert Decoder().feed(encode(header))[0][0] == header


def test_decoder_accepts_nesting_up_to_the_limit() -> None:
    text = b'{"type": "x", "a": ' + b"[" * (wire.DEPTH - 1) + b"]" * (wire.DEPTH - 1) + b"}"
    assert Decoder().feed(frame(text))[0][0]["type"] == "x"


@each("kept", [1, 5, 8, 9, 10, 30, 312])
def test_decoder_says_where_a_stream_was_cut(kept: int) -> None:
    data = HEAD.pack(313, 0, 0) + b"x" * 313
    decoder = Decoder()
    assert decoder.feed(data[:kept]) == []
    said = decoder.partial()
    assert said.startswith("inside a frame") and f"got {kept} of" in said


@each("content", [b"", b"text", b"\xff\x00", b"a" * 4096])
def test_small_content_is_sent_inside_the_value(content: bytes) -> None:
    blobs: dict[str, Blob] = {}
    found = decode_value(encode_value({"content": Blob.of(content)}), blobs)["content"]
    assert found.read() == content
    assert list(blobs) == [found.sha256]


def test_large_content_is_replaced_by_its_digest() -> None:
    left: dict[str, Blob] = {}
    blob = Blob.of(b"a" * 4097)
    sent = encode_value([blob, blob], blobs=left)
    assert len(json.dumps(sent)) < 300
    one, two = decode_value(sent, {})
    assert one is two and one.data is None and one == blob
    assert left == {blob.sha256: blob}


def test_decode_value_refuses_content_with_a_wrong_digest() -> None:
    sent = encode_value(Blob.of("one"))
    sent["text"] = "two"
    with pytest.raises(ProtocolError):
        decode_value(sent, {})


@each("value", [object(), {1: 2}, {"a": {1}}, b"bytes", 1j])
def test_encode_value_refuses_values_without_a_json_form(value: Any) -> None:
    with pytest.raises(TypeError):
        encode_value(value)


def test_decode_node_restores_name_type_and_attributes() -> None:
    node = decode_node({"provides": "file:/a", "type": "file", "attrs": {"path": "/a", "$$x": 1}}, {})
    assert (node.provides, node.type, node.requires, node.attrs) == ("file:/a", "file", (), {"path": "/a", "$x": 1})
