"""Compare versions, as the test `version` of templates does."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from statecfg.templates.filters.limits import Refused

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "=": operator.eq, "eq": operator.eq,
    "!=": operator.ne, "<>": operator.ne, "ne": operator.ne,
    "<": operator.lt, "lt": operator.lt, "<=": operator.le, "le": operator.le,
    ">": operator.gt, "gt": operator.gt, ">=": operator.ge, "ge": operator.ge,
}  # fmt: skip
_STRICT = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?(?:([ab])(\d+))?\Z", re.ASCII)
_SEMANTIC = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z.-]+)?\Z",
    re.ASCII,
)


def version(value: Any, other: Any, operator: str = "eq", strict: bool = False, version_type: str = "loose") -> bool:
    """Return whether a version compares to another: `is version('1.24', '>=')`. Types: loose, strict, semver."""
    if operator not in _OPERATORS:
        raise Refused(f"unknown operator {operator!r} for versions", "write one of: == != < <= > >=")
    name = "strict" if strict else version_type
    if name not in _KEYS:
        raise Refused(f"unknown type {name!r} of versions", f"write one of: {', '.join(_KEYS)}")
    one, two = (_KEYS[name](str(text)) for text in (value, other))
    try:
        return _OPERATORS[operator](one, two)
    except TypeError:
        detail = f"{str(value)!r} and {str(other)!r} can't be compared: one has a letter where the other has a number"
        raise Refused(detail, "compare versions of the same form") from None


def _loose(text: str) -> list[int | str]:
    """Return the numbers and words of a version, in order. Source: distutils' LooseVersion."""
    if not text:
        raise Refused("a version is empty", "check the variable")
    parts = re.findall(r"\d+|[a-z]+|\.|[^\da-z.]+", text)
    return [int(part) if part.isdigit() else part for part in parts if part != "."]


def _strict(text: str) -> tuple[Any, ...]:
    """Return the parts of a version such as 1.2.3 or 1.2b4. Source: distutils' StrictVersion."""
    match = _STRICT.match(text)
    if match is None:
        raise Refused(f"{text!r} is not a strict version", "write numbers such as 1.2.3")
    major, minor, patch, letter, number = match.groups()
    return int(major), int(minor), int(patch or 0), (letter or "c", int(number or 0))


def _semantic(text: str) -> tuple[Any, ...]:
    """Return the parts of a semantic version, in its order. Source: semver.org 2.0.0, section 11."""
    match = _SEMANTIC.match(text)
    if match is None:
        raise Refused(f"{text!r} is not a semantic version", "write MAJOR.MINOR.PATCH, such as 1.2.3")
    major, minor, patch, before = match.groups()
    words = [(0, int(word), "") if word.isdigit() else (1, 0, word) for word in (before or "").split(".") if word]
    return int(major), int(minor), int(patch), before is None, words


_KEYS: dict[str, Callable[[str], Any]] = {
    "loose": _loose,
    "strict": _strict,
    "semver": _semantic,
    "semantic": _semantic,
}
