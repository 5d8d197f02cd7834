"""Read JSON strictly: no NaN, no infinite and no extremely long numbers. Controller and host use this."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, Tuple

DIGITS = 4300  # maximum digits of an integer; Python has the same limit


def loads(text: str, digits: int = DIGITS, unique: bool = False) -> Any:
    """Return the value of a JSON text.

    :param digits: the maximum number of digits of an integer
    :param unique: refuse an object with a duplicate key
    :raises ValueError: if the text is not JSON, a number is too large, or a key is refused
    :raises RecursionError: if the text is nested too deep
    """

    def integer(number: str) -> int:
        if len(number) > digits:
            raise ValueError(f"an integer of {len(number)} digits")
        return int(number)

    hook = distinct if unique else None
    return json.loads(text, parse_constant=_constant, parse_int=integer, parse_float=_float, object_pairs_hook=hook)


def _float(number: str) -> float:
    value = float(number)
    if abs(value) == float("inf"):
        raise ValueError(f"{number[:40]} is too large a number")
    return value


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def distinct(pairs: List[Tuple[str, Any]]) -> Mapping[str, Any]:
    """Return the members of an object. Give it to `json.loads` as `object_pairs_hook`.

    :raises ValueError: if a key is duplicate
    """
    result = dict(pairs)
    if len(result) != len(pairs):
        counts: Dict[str, int] = {}
        for key, _ in pairs:
            counts[key] = counts.get(key, 0) + 1
        twice = max(counts, key=lambda key: counts[key])
        raise ValueError(f"an object contains the key {twice!r:.100} twice")
    return result
