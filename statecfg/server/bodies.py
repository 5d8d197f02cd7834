"""Requests' bodies: how large, of which form, and JSON without what other readers would read in another way."""

from __future__ import annotations

import json
import math
import re
from typing import Any
from urllib.parse import parse_qsl

from statecfg.entities.problems import ApiError

LARGEST = 1 << 20
DEEPEST = 64
BAD_REQUEST = "BAD_REQUEST"
# A text without an end goes on to the body's: were it tried again from each quote inside, time would grow as a square.
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)
_JSON_TYPE = re.compile(r"application/([a-z0-9.!#$&^_-]+\+)?json")


def bad(message: str, status: int = 400, code: str = BAD_REQUEST) -> ApiError:
    """Return what is raised for a request of the wrong form."""
    return ApiError(status, code, message)


def parsed(data: bytes, content_type: str) -> Any:
    """Return the JSON value of a body that is not empty.

    :param content_type: the header; anything but JSON in UTF-8 is refused, since a browser sends all else unasked
    :raises ApiError: 415, or 400 for what is no JSON, too deep, or ambiguous: a key twice, NaN, half a character
    """
    media, *parameters = (part.strip().lower() for part in content_type.split(";"))
    charset = next(
        (value.strip('"') for name, _, value in (p.partition("=") for p in parameters) if name == "charset"), ""
    )
    if not _JSON_TYPE.fullmatch(media) or charset not in ("", "utf-8", "utf8"):
        raise bad("The body must have the Content-Type application/json.", 415, "UNSUPPORTED_MEDIA_TYPE")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise bad("The body is not UTF-8.") from None
    _look_at_depth(text)
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_number, parse_int=_integer
        )
    except json.JSONDecodeError as problem:
        raise bad(f"The body is no JSON: {problem.msg} (line {problem.lineno}, column {problem.colno}).") from None
    return _storable(value) if "\\u" in text else value


def fields(data: bytes, content_type: str) -> dict[str, str]:
    """Return the fields of a form that a browser sends.

    :raises ApiError: 415, or 400 for a field that is given twice or is no UTF-8
    """
    if content_type.partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        raise bad("The body must be a form.", 415, "UNSUPPORTED_MEDIA_TYPE")
    try:
        pairs = parse_qsl(data.decode(), keep_blank_values=True, errors="strict", max_num_fields=20)
    except ValueError:
        raise bad("The form can't be read.") from None
    if len(dict(pairs)) < len(pairs):
        raise bad("The form has a field twice.")
    return dict(pairs)


def _look_at_depth(text: str) -> None:
    depth = 0
    for found in _BRACKETS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
        if depth > DEEPEST:
            raise bad(f"The body nests more than {DEEPEST} levels.")


def _storable(value: Any) -> Any:
    """Return JSON with U+0000, which not every database can hold, replaced as HTML does it.

    Halves of surrogate pairs, which UTF-8 can't hold, are refused. Source: HTML, 13.2.5 (U+0000 becomes U+FFFD).
    """
    if isinstance(value, str):
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise bad("The body holds a half of a surrogate pair.")
        return value.replace("\0", "�")
    if isinstance(value, dict):
        return {_storable(key): _storable(item) for key, item in value.items()}
    return [_storable(item) for item in value] if isinstance(value, list) else value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise bad(f"The body has the key {json.dumps(twice[:100])} twice in one object.")
    return made


def _constant(name: str) -> Any:
    raise bad(f"The body holds {name}, which JSON does not have.")


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise bad("The body holds a number that is too large.")
    return number


def _integer(text: str) -> int:
    if len(text) > 100:
        raise bad("The body holds a number of more than 100 digits.")
    return int(text)
