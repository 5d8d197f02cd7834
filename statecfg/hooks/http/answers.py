"""Reads the JSON of hooks' responses as Go's encoding/json does, with the same error messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from statecfg.remote.graph.errors import StatecfgError

MAX_SHOWN = 4096  # maximum number of characters of an answer in a message

Json = Mapping[str, Any]  # what a hook returned


def clipped(text: str) -> str:
    """Return a string for a message: long strings are cut."""
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


class Unreadable(StatecfgError):
    """The response violates the contract; the message is Scoby's."""


def _constant(name: str) -> Any:
    raise ValueError(f"invalid character '{name[0]}' looking for beginning of value")


_DECODER = json.JSONDecoder(parse_constant=_constant)
_WRONG = {
    "Expecting value": "looking for beginning of value",
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    "Illegal trailing comma before end of object": "looking for beginning of object key string",
    "Expecting ':' delimiter": "after object key",
    "Expecting ',' delimiter": "after object key:value pair or array element",
}


def first_value(body: bytes) -> Any:
    """Return the first value of a body, {} for an empty body. The rest of the body is ignored."""
    text = body.decode("utf-8", "replace").lstrip(" \t\r\n")
    return _decoded(text)[0] if text else {}


def only_value(text: str) -> Any:
    """Return the only value of an answer's text.

    :raises Unreadable: the text is invalid or has more than one value
    """
    stripped = text.strip(" \t\r\n")
    value, end = _decoded(stripped)
    if end != len(stripped):
        raise Unreadable(f"invalid character {stripped[end : end + 1]!r} after top-level value")
    return value


def _decoded(text: str) -> tuple[Any, int]:
    try:
        value, end = _DECODER.raw_decode(text)
        # Lone surrogates can't be encoded. Go replaces them with U+FFFD.
        encoded = json.dumps(value, ensure_ascii=False, allow_nan=False)
        whole = encoded.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return (value if whole == encoded else json.loads(whole)), end
    except json.JSONDecodeError as error:
        raise Unreadable(_words(error)) from None
    except RecursionError:
        raise Unreadable("exceeded max depth") from None
    except ValueError as error:
        raise Unreadable(str(error).partition(":")[0]) from None


def _words(error: json.JSONDecodeError) -> str:
    if error.pos >= len(error.doc) or error.msg.startswith("Unterminated string"):
        return "unexpected EOF"
    where = _WRONG.get(error.msg)
    if where is None:
        return f"{error.msg} at character {error.pos + 1}"
    return f"invalid character {error.doc[error.pos]!r} {where}"


def fields_of(value: Any, go_type: str) -> Json:
    """Return the fields of an object. Names are case-insensitive, as in Go's decoder."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Unreadable(f"json: cannot unmarshal {json_type(value)} into Go value of type {go_type}")
    return {key.lower(): item for key, item in value.items()}


def typed(fields: Json, name: str, type_: type, default: Any) -> Any:
    """Return a field of one type, or `default` if it is missing or null.

    :raises Unreadable: the field has another type
    """
    value = fields.get(name)
    if value is None:
        return default
    if type(value) is not type_:
        raise Unreadable(f"json: cannot unmarshal {json_type(value)} into Go struct field HookResponseError.{name}")
    return value


def json_type(value: Any) -> str:
    """Return the JSON type of a value."""
    names = {bool: "bool", str: "string", int: "number", float: "number", list: "array", dict: "object"}
    return names.get(type(value), "null")


def object_of(value: Any) -> Json:
    """Return an object of the response; {} if it is missing or empty."""
    if value is None or value == {}:
        return {}
    if not isinstance(value, dict):
        raise Unreadable(f"json: cannot unmarshal {json_type(value)} into Go value of type map[string]interface {{}}")
    if not isinstance(value.get("kind"), str) or not value["kind"]:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        raise Unreadable(f"Object 'Kind' is missing in '{clipped(text)}'")
    return value
