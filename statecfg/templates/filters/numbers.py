"""Filters of numbers and sizes."""

from __future__ import annotations

import math
import re
from typing import Any

from statecfg.templates.filters.limits import Refused


def human_readable(size: float, isbits: bool = False, unit: str | None = None) -> str:
    """Return a size in bytes with a unit, such as `1.00 MB`."""
    number = float(size)
    for name, exponent in _UNITS:
        if (unit is None and number >= 1 << exponent) or (unit is not None and unit.upper() == name):
            suffix = ("b" if isbits else "B") if name else ""
            break
    else:
        name, exponent, suffix = "", 0, ""
    word = f"{name}{suffix}" if name else "bits" if isbits else "Bytes"
    return f"{number / (1 << exponent):.2f} {word}"


_UNITS = [(name, 10 * (8 - at)) for at, name in enumerate("YZEPTGMK")]


def human_to_bytes(text: Any, default_unit: str | None = None, isbits: bool = False) -> int:
    """Return the number of bytes of a size such as `1.5 GB`."""
    match = re.match(r"\s*(\d*\.?\d+)\s*([A-Za-z]*)\s*\Z", str(text))
    unit = ((match[2] if match else "") or default_unit or "").upper()
    factors = {"": 1, "B": 1, **{name: 1 << exponent for name, exponent in _UNITS}}
    short = unit[:-1] if len(unit) == 2 and unit[1] == "B" else unit
    if match is None or short not in factors:
        raise Refused(f"{text!r} is not a size", "write a number and a unit, such as 10G or 1.5 MB")
    return round(float(match[1]) * factors[short])


def log(value: float, base: float = math.e) -> float:
    """Return a logarithm."""
    return math.log10(value) if base == 10 else math.log(value, base)


def pow_(value: float, exponent: float) -> float:
    """Return a power."""
    return math.pow(value, exponent)


def root(value: float, base: float = 2) -> float:
    """Return a root."""
    return math.sqrt(value) if base == 2 else math.pow(value, 1.0 / base)
