"""The strict JSON reader of the controller and of the hosts."""

from __future__ import annotations

from typing import Any

import pytest

from statecfg.remote.hooks.ruby_json import deeper
from statecfg.remote.wire.strict_json import loads
from tests.each import each


@each(
    ("text", "why"),
    [
        ("NaN", "NaN is not JSON"),
        ("-Infinity", "-Infinity is not JSON"),
        ("1e999", "1e999 is too large a number"),
        ("1" * 4301, "an integer of 4301 digits"),
        ('{"a": 1, "b": 2, "a": 3}', "an object contains the key 'a' twice"),
        ("[1, 2", "Expecting"),
    ],
)
def test_loads_refuses_invalid_json_with_a_reason(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        loads(text, unique=True)


def test_last_of_equal_keys_wins_if_duplicates_are_allowed() -> None:
    assert loads('{"a": 1, "a": 2}') == {"a": 2}


def test_loads_limits_the_digits_of_a_number() -> None:
    assert loads("123", digits=3) == 123
    with pytest.raises(ValueError, match="an integer of 4 digits"):
        loads("1234", digits=3)


@each(("value", "levels"), [(1, 0), ([], 1), ([[1], 2], 2), ({"a": {"b": [1]}}, 3)])
def test_deeper_counts_levels_of_nesting(value: Any, levels: int) -> None:
    assert not deeper(value, levels)
    assert deeper([value], levels)
