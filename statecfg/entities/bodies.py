"""Read values from request bodies and check their types. Unknown keys are ignored."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from statecfg.entities.problems import bad
from statecfg.problems import did_you_mean, sentence

LONGEST = 1 << 10
DEEPEST = 64
_WORDS: Mapping[type, str] = {str: "a string", dict: "an object", list: "a list", bool: "true or false"}


def whole(body: Any) -> Mapping[str, Any]:
    """Return a request body as an object of JSON values that the store can hold.

    :raises ApiError: the body is not such an object
    """
    if not isinstance(body, dict):
        raise bad("The body must be a JSON object.")
    check(body, "the body")
    return body


def check(value: Any, where: str, depth: int = 0) -> None:
    """Refuse values that JSON or a database can't hold: U+0000, lone surrogates, NaN, huge numbers, deep nesting.

    :param where: name of the value for the error message
    :raises ApiError: the value contains one of these
    """
    if depth > DEEPEST:
        raise bad(f"{where}: it is nested more than {DEEPEST} levels deep.")
    if isinstance(value, str):
        if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
            raise bad(f"{where}: the character U+0000 and lone surrogates are not allowed.")
    elif isinstance(value, float) and not math.isfinite(value):
        raise bad(f"{where}: {value} is not a JSON number.")
    elif isinstance(value, int) and abs(value) >= 1 << 4096:
        raise bad(f"{where}: a number has more than 1233 digits.")
    elif isinstance(value, dict):
        for key, item in value.items():
            check(key, where, depth)
            check(item, where, depth + 1)
    elif isinstance(value, list):
        for item in value:
            check(item, where, depth + 1)


def text(body: Mapping[str, Any], key: str, longest: int = LONGEST) -> str:
    """Return a required, non-empty string.

    :param longest: maximum number of characters
    :raises ApiError: it is missing, empty, too long or of another type
    """
    value = optional(body, key, str)
    if not value:
        raise bad(f"{key} is missing.")
    if len(value) > longest:
        raise bad(f"{key} is longer than {longest} characters.")
    return str(value)


def optional(body: Mapping[str, Any], key: str, type_: type) -> Any:
    """Return a value, or None if it is missing or null.

    :raises ApiError: the value is of another type
    """
    value = body.get(key)
    if value is None:
        return None
    if not isinstance(value, type_):
        raise bad(f"{key} must be {_WORDS[type_]}.")
    return value


def words(body: Mapping[str, Any], key: str) -> list[str]:
    """Return a list of strings; [] if it is missing.

    :raises ApiError: the value is not a list of strings
    """
    value = optional(body, key, list) or []
    if not all(isinstance(item, str) for item in value):
        raise bad(f"{key} must be a list of strings.")
    return list(dict.fromkeys(value))


def one_of(value: Any, allowed: tuple[str, ...], key: str) -> str:
    """Return a value that must be one of the allowed ones.

    :raises ApiError: it is not; the message suggests the nearest allowed value
    """
    if value not in allowed:
        hint = did_you_mean(value, allowed) if isinstance(value, str) else ""
        raise bad(f"{key} must be one of {', '.join(allowed)}.{sentence(hint)}")
    return str(value)


def values(body: Any) -> list[Mapping[str, Any]]:
    """Return the objects in `values` of a body that replaces a list.

    :raises ApiError: `values` is missing or not a list of objects
    """
    items = optional(whole(body), "values", list)
    if items is None or not all(isinstance(item, dict) for item in items):
        raise bad("values must be a list of objects.")
    return list(items)
