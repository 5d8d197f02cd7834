"""Frames with random damage: refused at once."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from statecfg.remote.wire import frames as wire
from statecfg.remote.wire.frames import (
    Decoder,
    ProtocolError,
    encode,
)
from tests.unit.remote.wire.test_frames import JSON, TEXT


@given(st.recursive(st.text('[]{}\\\\"a'), lambda inner: st.lists(inner) | st.dictionaries(st.text('\\\\"[a'), inner)))
def test_json_without_its_texts(value: Any) -> None:
    """What is left of it has the brackets of its lists and maps, and no others."""

    def brackets(item: Any) -> str:
        if isinstance(item, dict):
            return f"{{{''.join(map(brackets, item.values()))}}}"
        return f"[{''.join(map(brackets, item))}]" if isinstance(item, list) else ""

    left = wire.without_texts(json.dumps(value, ensure_ascii=False).encode()).decode()
    assert "".join(each for each in left if each in "[]{}") == brackets(value)


@settings(max_examples=500)
@given(header=st.dictionaries(TEXT, JSON, max_size=3), at=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_a_changed_byte(header: dict[str, Any], at: int, byte: int) -> None:
    data = bytearray(encode(dict(header, type="x" * 300), b"body" * 100))
    data[at % len(data)] = byte
    try:
        for found, body in Decoder().feed(bytes(data)):
            assert isinstance(found["type"], str) and isinstance(body, bytes)
    except ProtocolError:
        pass
