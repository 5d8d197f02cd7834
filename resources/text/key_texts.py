"""What the editors of keys in files have in common."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from statecfg.remote.graph.errors import StatecfgError
from statecfg.remote.machine import hidden
from statecfg.remote.machine.changes import secretive

# Characters that YAML or TOML forbid in a string, or that parsers read as a line break.
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
UNKNOWN = object()  # a value that an editor does not understand
MISSING = object()  # there is no such key


class WrittenValue(str):
    """A value as it is written in a file: editors put it back exactly. A parsed value can lose digits or its form."""


class NotEditable(StatecfgError):
    """A file can't be edited safely.

    :param at: the line, counted from 0; None for the whole text
    """

    def __init__(self, at: int | None, why: str) -> None:
        Exception.__init__(self, why if at is None else f"line {at + 1}: {why}")


def equal(one: Any, other: Any) -> bool:
    """Tell whether two values are equal and have the same types, unlike Python's `1 == True`.

    The second one may have stand-ins for secrets.

    A value that an editor does not understand differs from every other one.
    """
    if one is UNKNOWN or other is UNKNOWN:
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return sorted(one) == sorted(other) and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, str) and isinstance(other, str):
        return hidden.same(str(one), str(other))
    if isinstance(other, str) and isinstance(one, (int, float)) and secretive(other):
        return hidden.same(repr(one), str(other))  # a number can be a secret, too
    return type(one) is type(other) and bool(one == other)


def quoted_text(text: str) -> str:
    """Return a string in double quotes, for JSON, TOML and YAML."""
    return _ESCAPED.sub(lambda found: f"\\u{ord(found.group()):04x}", json.dumps(text, ensure_ascii=False))


def dotted(key: Sequence[str]) -> str:
    """Return a key for messages."""
    return ".".join(key)


def row_of(text: str, at: int) -> int:
    """Return the line of a position, counted from 0."""
    return text.count("\n", 0, at)
