"""Filters and tests about true and false."""

from __future__ import annotations

from typing import Any

from jinja2.runtime import Undefined

from statecfg.templates.filters.limits import Refused

_WORDS = {"yes": True, "on": True, "true": True, "1": True, "no": False, "off": False, "false": False, "0": False}


def bool_(value: Any) -> bool:
    """Return a word as true or false: `yes`, `on`, `true`, `1`, `no`, `off`, `false`, `0`, in any case."""
    if isinstance(value, bool):
        return value
    word = str(value).lower()
    if word not in _WORDS:
        raise Refused(f"{value!r} is neither true nor false", f"write one of: {', '.join(_WORDS)}")
    return _WORDS[word]


def ternary(value: Any, true: Any, false: Any, none: Any = None) -> Any:
    """Return the second value if the first is true, otherwise the third; for None the fourth, if given."""
    if value is None and none is not None:
        return none
    return true if value else false


def mandatory(value: Any, message: str = "") -> Any:
    """Return the value; fail if it is undefined."""
    if isinstance(value, Undefined):
        if message:
            raise Refused(message)
        str(value)  # raises an error that names the variable
    return value


def truthy(value: Any, convert_bool: bool = False) -> bool:
    """Tell whether a value counts as true; with `convert_bool`, the word `no` does not."""
    return bool(_WORDS.get(str(value).lower(), value) if convert_bool else value)


def falsy(value: Any, convert_bool: bool = False) -> bool:
    """Tell whether a value does not count as true."""
    return not truthy(value, convert_bool)
