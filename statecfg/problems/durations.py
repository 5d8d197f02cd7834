"""Convert ISO 8601 durations to seconds: `PT1M30S`, `P1D`, `PT0.5S`.

Source: the library `rickb777/date`, which TriggerMesh Scoby uses. Only the first decimal counts, after a comma or a
point, the units can be in any order, and a month is a twelfth of 365.2425 days.
"""

from __future__ import annotations

import itertools
import re

DEFAULT_TIMEOUT = 15.0  # seconds; for the HTTP call of a hook without a timeout
LONGEST = 86_400.0  # seconds; the longest deadline
HELP = "write an ISO 8601 duration such as PT30S, PT1M30S or PT0.5S"

_DATE = {"Y": 315_569_520, "M": 26_297_460, "W": 6_048_000, "D": 864_000}  # in tenths of a second
_TIME = {"H": 36_000, "M": 600, "S": 10}
_NUMBER = r"[0-9]+[.,]?[0-9]*"
_DURATION = re.compile(rf"(?P<sign>[+-]?)P(?P<date>(?:{_NUMBER}[YMWD])*)(?:T(?P<time>(?:{_NUMBER}[HMS])*))?\Z")
_FIELD = re.compile(r"([0-9]+)[.,]?([0-9]?)[0-9]*([A-Z])")
_MOST = 32_767 * _DATE["Y"] // 10  # the original supports at most 3,276.7 years
_MOST_DIGITS = 18


def seconds(text: str) -> float:
    """Return the seconds of an ISO 8601 duration; the number is negative after a minus sign.

    :raises ValueError: the text is not an ISO 8601 duration
    """
    if text == "P0":
        return 0.0
    match = _DURATION.match(text)
    total = None
    if match is not None:
        total = _total(
            [(_DATE, item) for item in _fields(match["date"])] + [(_TIME, item) for item in _fields(match["time"])]
        )
    if match is None or total is None:
        raise ValueError(f"`{text[:40]}` is not an ISO 8601 duration")
    return (-total if match["sign"] == "-" else total) / 10


def _fields(text: str | None) -> list[tuple[str, str, str]]:
    return _FIELD.findall(text or "")


def _total(fields: list[tuple[dict[str, int], tuple[str, str, str]]]) -> int | None:
    """Return tenths of a second; None if a unit is repeated, two numbers have decimals, or it is too large."""
    repeated = len({(id(units), unit) for units, (_, _, unit) in fields}) < len(fields)
    decimals = [tenth not in ("", "0") for _, (_, tenth, _) in fields]
    if (
        not fields
        or repeated
        or any(map(all, itertools.pairwise(decimals)))
        or any(len(item[0]) > _MOST_DIGITS for _, item in fields)
    ):
        return None
    total = sum((int(integer) * 10 + int(tenth or 0)) * units[unit] // 10 for units, (integer, tenth, unit) in fields)
    return total if total <= _MOST else None


def deadline(text: str) -> float:
    """Return the seconds of a deadline: more than 0, at most a day.

    :raises ValueError: the duration is invalid, zero, negative or too long
    """
    duration = seconds(text)
    if duration <= 0:
        raise ValueError(f"`{text[:40]}` is not longer than 0 seconds")
    if duration > LONGEST:
        raise ValueError(f"`{text[:40]}` is longer than a day")
    return duration


def timeout(text: str | None) -> float:
    """Return the seconds of a Scoby hook's `timeout`, as Scoby interprets it.

    :param text: an ISO 8601 duration. A missing or invalid one means 15 seconds
    :returns: the seconds; 0 or less means that the hook has no timeout
    """
    try:
        return DEFAULT_TIMEOUT if text is None else seconds(text)
    except ValueError:
        return DEFAULT_TIMEOUT
