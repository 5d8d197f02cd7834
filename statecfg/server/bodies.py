"""Request bodies: limits, and strict parsers for JSON and forms."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qsl

from statecfg.entities.problems import ApiError
from statecfg.remote.wire.strict_json import loads

LARGEST = 1 << 20
DEEPEST = 64
DIGITS = 100  # maximum number of digits of a number
BAD_REQUEST = "BAD_REQUEST"
# An unterminated string extends to the end of the body. Otherwise the search would start again at each quote in it and
# take quadratic time.
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)
_JSON_TYPE = re.compile(r"application/([a-z0-9.!#$&^_-]+\+)?json")


def bad(message: str, status: int = 400, code: str = BAD_REQUEST) -> ApiError:
    """Return the error for an invalid request."""
    return ApiError(status, code, message)


def parsed(data: bytes, content_type: str) -> Any:
    """Parse a JSON body that is not empty.

    :param content_type: the header; only JSON in UTF-8 is accepted, because browsers send other types across sites
    :raises ApiError: 415 for another type; 400 for a body that is not JSON, too deep, or ambiguous (duplicate keys,
        NaN, a lone surrogate)
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
    _check_depth(text)
    try:
        value = loads(text, DIGITS, unique=True)
    except json.JSONDecodeError as problem:
        raise bad(f"The body is not JSON: {problem.msg} (line {problem.lineno}, column {problem.colno}).") from None
    except ValueError as problem:
        raise bad(f"The body is not strict JSON: {problem}.") from None
    return _storable(value) if "\\u" in text else value


def fields(data: bytes, content_type: str) -> dict[str, str]:
    """Parse a form that a browser sends.

    Starlette would need another dependency for this, python-multipart.

    :returns: name → value of the fields
    :raises ApiError: 415 for another type; 400 for a duplicate field, too many fields or invalid UTF-8
    """
    if content_type.partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        raise bad("The body must be a form.", 415, "UNSUPPORTED_MEDIA_TYPE")
    try:
        pairs = parse_qsl(data.decode(), keep_blank_values=True, errors="strict", max_num_fields=20)
    except ValueError:
        raise bad("The form is not valid UTF-8, or has too many fields.") from None
    if len(dict(pairs)) < len(pairs):
        raise bad("The form contains a field twice.")
    return dict(pairs)


def _check_depth(text: str) -> None:
    depth = 0
    for token in _BRACKETS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        if depth > DEEPEST:
            raise bad(f"The body nests more than {DEEPEST} levels.")


def _storable(value: Any) -> Any:
    """Return the JSON value with U+FFFD instead of U+0000, which some databases can't store. Source: HTML, 13.2.5.

    :raises ApiError: 400 for a lone surrogate, which UTF-8 can't encode
    """
    if isinstance(value, str):
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise bad("The body contains a lone surrogate.")
        return value.replace("\0", "�")
    if isinstance(value, dict):
        return {_storable(key): _storable(item) for key, item in value.items()}
    return [_storable(item) for item in value] if isinstance(value, list) else value
