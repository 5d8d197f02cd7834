"""Frames with random content: the decoder returns intact frames unchanged and refuses damaged ones."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from statecfg.remote.wire import frames as wire
from statecfg.remote.wire.frames import (
    Decoder,
    ProtocolError,
    decode_value,
    encode,
    encode_value,
)

TEXT = st.text(max_size=40)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(st.recursive(st.text('[]{}\\\\"a'), lambda inner: st.lists(inner) | st.dictionaries(st.text('\\\\"[a'), inner)))
def test_without_texts_keeps_only_structural_brackets(value: Any) -> None:
    """JSON without its strings contains only the brackets of lists and maps."""

    def brackets(item: Any) -> str:
        if isinstance(item, dict):
            return f"{{{''.join(map(brackets, item.values()))}}}"
        return f"[{''.join(map(brackets, item))}]" if isinstance(item, list) else ""

    left = wire.without_texts(json.dumps(value, ensure_ascii=False).encode()).decode()
    assert "".join(each for each in left if each in "[]{}") == brackets(value)


@settings(max_examples=250)
@given(header=st.dictionaries(TEXT, JSON, max_size=3), at=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_changed_byte_gives_a_frame_or_protocol_error(header: dict[str, Any], at: int, byte: int) -> None:
    data = bytearray(encode(dict(header, type="x" * 300), b"body" * 100))
    data[at % len(data)] = byte
    try:
        for found, body in Decoder().feed(bytes(data)):
            assert isinstance(found["type"], str) and isinstance(body, bytes)
    except ProtocolError:
        pass


@given(header=st.dictionaries(TEXT, JSON, max_size=4), body=st.binary(max_size=2000), cut=st.integers(1, 50))
def test_decoder_returns_whole_frames_from_any_pieces(header: dict[str, Any], body: bytes, cut: int) -> None:
    """Frames may arrive in pieces of any size."""
    header = dict(header, type="x")
    data = encode(header, body) + encode({"type": "y"})
    decoder, found = Decoder(), []
    for start in range(0, len(data), cut):
        found += decoder.feed(data[start : start + cut])
    assert found == [(header, body), ({"type": "y"}, b"")]
    assert decoder.partial() == ""


@settings(max_examples=250)
@given(st.binary(max_size=400))
def test_random_bytes_give_frames_or_protocol_error(data: bytes) -> None:
    """The decoder returns frames or raises ProtocolError, and nothing else."""
    try:
        for header, body in Decoder().feed(data):
            assert isinstance(header["type"], str) and isinstance(body, bytes)
    except ProtocolError:
        pass


@given(JSON)
def test_decoded_values_equal_the_encoded_ones(value: Any) -> None:
    assert decode_value(json.loads(json.dumps(encode_value(value))), {}) == value
