"""Small parts of the transports: quoting, cleaning, gates, tails, deadlines."""

from __future__ import annotations

import threading
import time

import pytest

from statecfg.transport import TransportError, Unreachable
from statecfg.transport.dial import HANDSHAKES_PER_ADDRESS, LoginGate, gate, within
from statecfg.transport.quoting import command_line, quote
from tests.each import each


def test_command_line_quotes_only_words_that_need_it() -> None:
    assert command_line(["/usr/bin/python3", "-I", "a b"]) == "/usr/bin/python3 -I 'a b'"
    assert quote("it's!") == r"'it'\''s'\!"


def test_command_line_refuses_a_nul_character() -> None:
    with pytest.raises(ValueError, match="NUL"):
        command_line(["a\0b"])


@each("char", ["\x1b", "\x07", "\x9b", "\r", "\b", "\u202e", "\u200b", "\u2028", "\ud800", "\0"])
def test_transport_error_replaces_control_characters(char: str) -> None:
    error = TransportError("host", f"a{char}b", f"c{char}d")
    assert str(error) == "host: a\ufffdb\n  c\ufffdd"


def test_summary_of_a_transport_error_is_one_line() -> None:
    assert TransportError("host", "a\nb").summary == "a b"


def test_gate_gives_up_after_its_timeout() -> None:
    door = LoginGate(1)
    with door.enter("first", 1), pytest.raises(Unreachable, match="did not finish"), door.enter("second", 0.1):
        pass


def test_each_address_has_its_own_gate() -> None:
    assert gate("192.0.2.1", 1) is gate("192.0.2.1", 1)
    assert gate("192.0.2.1", 1) is not gate("192.0.2.2", 1)
    assert gate("192.0.2.1", 1).limit == HANDSHAKES_PER_ADDRESS == 8
    assert [gate("192.0.2.1", processes).limit for processes in (2, 3, 8, 100)] == [4, 2, 1, 1]


def test_within_returns_raises_or_times_out() -> None:
    assert within(5, lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        within(5, lambda: 1 // 0)
    begun, over = time.monotonic(), threading.Event()
    with pytest.raises(TimeoutError):
        within(0.1, lambda: over.wait(60))
    over.set()
    assert time.monotonic() - begun < 20
