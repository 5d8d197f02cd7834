"""Strict JSON for the output of exec hooks, with the rules of Ruby's parser and limits."""

from __future__ import annotations

import json
from typing import Any

from statecfg.remote.wire.strict_json import loads

DEEPEST = 100  # levels of nesting, as in Ruby's parser


def parse(data: bytes) -> Any:
    """Return the value of a JSON document.

    :raises ValueError: invalid JSON, with line and column. A byte order mark, NaN, a second document and more than 100
        levels are invalid, too
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as problem:
        line, column = data.count(b"\n", 0, problem.start) + 1, problem.start - data.rfind(b"\n", 0, problem.start)
        raise ValueError(f"line {line}, column {column}: not UTF-8") from None
    if text.startswith("\ufeff"):
        raise ValueError("line 1, column 1: a byte order mark")
    try:
        value = loads(text)
    except json.JSONDecodeError as problem:
        raise ValueError(f"line {problem.lineno}, column {problem.colno}: {problem.msg}") from None
    except RecursionError:
        raise ValueError(f"nested more than {DEEPEST} levels deep") from None
    if deeper(value, DEEPEST):
        raise ValueError(f"nested more than {DEEPEST} levels deep")
    return value


def deeper(value: Any, levels: int) -> bool:
    """Return whether a value nests more than a number of levels."""
    row = [value] if isinstance(value, (dict, list)) else []
    for _ in range(levels):
        row = [
            inner
            for item in row
            for inner in (item if isinstance(item, list) else item.values())
            if isinstance(inner, (dict, list))
        ]
        if not row:
            return False
    return bool(row)
