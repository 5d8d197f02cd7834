"""Small parts of the transports, with random text and bytes: cleaning, tails."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from statecfg.transport.errors import MAX_TEXT, clean
from statecfg.transport.tail import Tail


@given(st.text())
def test_cleaned_text_has_no_control_characters(text: str) -> None:
    cleaned = clean(text)
    assert len(cleaned) <= MAX_TEXT
    assert all(c.isprintable() or c in "\n\t" or c.isspace() for c in cleaned)
    cleaned.encode()


@given(st.lists(st.binary(max_size=50)), st.integers(1, 40))
def test_tail_keeps_the_last_bytes_within_its_limit(chunks: list[bytes], limit: int) -> None:
    tail = Tail(limit)
    for chunk in chunks:
        tail.add(chunk)
    assert tail.bytes() == b"".join(chunks)[-limit:]
    assert sum(map(len, tail.chunks)) < limit + 50
