"""Strict JSON for the output of exec hooks, with the rules of Ruby's parser and limits."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEEPEST = 100  # levels of nesting, as in Ruby's parser
LONGEST = 4300  # digits of an integer, as in Python


def parse(data: bytes) -> Any:
    """Return the value of a JSON document. Raises ValueError, with line and column, for invalid JSON.

    A byte order mark, NaN, a second document and more than 100 levels are invalid.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as problem:
        line, column = data.count(b"\n", 0, problem.start) + 1, problem.start - data.rfind(b"\n", 0, problem.start)
        raise ValueError("line %d, column %d: not UTF-8" % (line, column)) from None
    if text.startswith("\ufeff"):
        raise ValueError("line 1, column 1: a byte order mark")
    try:
        value = json.loads(text, parse_constant=_refuse, parse_int=_integer, parse_float=_finite)
    except json.JSONDecodeError as problem:
        raise ValueError("line %d, column %d: %s" % (problem.lineno, problem.colno, problem.msg)) from None
    except RecursionError:
        raise ValueError("nested more than %d levels deep" % DEEPEST) from None
    if _deeper(value, DEEPEST):
        raise ValueError("nested more than %d levels deep" % DEEPEST)
    return value


def _refuse(constant: str) -> Any:
    raise ValueError("%s is no JSON" % constant)


def _integer(digits: str) -> int:
    if len(digits) > LONGEST:
        raise ValueError("an integer of %d digits" % len(digits))
    return int(digits)


def _finite(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ValueError("%s is too large a number" % digits[:40])
    return value


def _deeper(value: Any, levels: int) -> bool:
    """Return whether a value nests more than this number of levels."""
    row = [value]
    for _ in range(levels):
        row = [
            item
            for one in row
            if isinstance(one, (dict, list))
            for item in (one if isinstance(one, list) else one.values())
        ]
    return any(isinstance(one, (dict, list)) for one in row)
