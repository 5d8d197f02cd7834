"""Durations as ISO 8601 writes them, in seconds: `PT1M30S`, `P1D`, `PT0.5S`.

Source: what the library `rickb777/date`, which reads them for TriggerMesh Scoby, makes of them: one decimal counts, a
comma separates it as well as a point, the order of the units is free, a month is a twelfth of 365.2425 days.
"""

from __future__ import annotations

import itertools
import re

DEFAULT_TIMEOUT = 15.0  # seconds; of a hook's HTTP call that gives none
LONGEST = 86_400.0  # seconds: a deadline of more than a day would bound nothing
HELP = "write an ISO 8601 duration such as PT30S, PT1M30S or PT0.5S"

_DATE = {"Y": 315_569_520, "M": 26_297_460, "W": 6_048_000, "D": 864_000}  # in tenths of a second
_TIME = {"H": 36_000, "M": 600, "S": 10}
_NUMBER = r"[0-9]+[.,]?[0-9]*"
_WRITTEN = re.compile(rf"(?P<sign>[+-]?)P(?P<date>(?:{_NUMBER}[YMWD])*)(?:T(?P<time>(?:{_NUMBER}[HMS])*))?\Z")
_FIELD = re.compile(r"([0-9]+)[.,]?([0-9]?)[0-9]*([A-Z])")
_MOST = 32_767 * _DATE["Y"] // 10  # the original has no room for more than 3,276.7 years


def seconds(text: str) -> float:
    """Return the seconds of an ISO 8601 duration; less than 0 after a minus sign. Raises ValueError for others."""
    if text == "P0":
        return 0.0
    found = _WRITTEN.match(text)
    total = None
    if found is not None:
        total = _total(
            [(_DATE, item) for item in _fields(found["date"])] + [(_TIME, item) for item in _fields(found["time"])]
        )
    if found is None or total is None:
        raise ValueError(f"`{text[:40]}` is no ISO 8601 duration")
    return (-total if found["sign"] == "-" else total) / 10


def _fields(text: str | None) -> list[tuple[str, str, str]]:
    return _FIELD.findall(text or "")


def _total(fields: list[tuple[dict[str, int], tuple[str, str, str]]]) -> int | None:
    """Return the sum in tenths of a second; None where a unit stands twice, two numbers have decimals, or too much."""
    twice = len({(id(units), unit) for units, (_, _, unit) in fields}) < len(fields)
    decimals = [tenth not in ("", "0") for _, (_, tenth, _) in fields]
    if (
        not fields
        or twice
        or any(map(all, itertools.pairwise(decimals)))
        or any(len(item[0]) > 18 for _, item in fields)
    ):
        return None
    total = sum((int(whole) * 10 + int(tenth or 0)) * units[unit] // 10 for units, (whole, tenth, unit) in fields)
    return total if total <= _MOST else None


def deadline(text: str) -> float:
    """Return the seconds of a deadline: more than 0, at most a day. Raises ValueError, which says what is wrong."""
    found = seconds(text)
    if not 0 < found <= LONGEST:
        raise ValueError(f"`{text[:40]}` is {'no time at all' if found <= 0 else 'longer than a day'}")
    return found


def timeout(text: str | None) -> float:
    """Return the seconds of a Scoby hook's `timeout`: 15 where there is none or it can't be read, as Scoby does.

    0 and less stand for no timeout of its own.
    """
    try:
        return DEFAULT_TIMEOUT if text is None else seconds(text)
    except ValueError:
        return DEFAULT_TIMEOUT
