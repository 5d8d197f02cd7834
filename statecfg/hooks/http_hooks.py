"""One call of an HTTP hook: what is asked, what its answer means.

Requests, answers and texts of errors are those of TriggerMesh Scoby's hooks API v1, with these choices of ours: an
`object` or `children` that is empty stands for no change, as the document says; a child that is null is refused.
Whatever the service does, a call ends in time, and costs little memory.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from statecfg.hooks.exchange import Answer, Unanswered, exchange

PRE_RECONCILE = "pre-reconcile"
FINALIZE = "finalize"

MAX_REPLY = 4 << 20  # bytes: the children of a large graph
MAX_ERROR = 64 << 10  # bytes read of the body of an error
MAX_MESSAGE = 4096  # characters shown of it

Json = dict[str, Any]


@dataclass(frozen=True)
class Failure:
    """What went wrong at a hook. Source: the error contract of the Scoby document.

    :param message: for people
    :param permanent: whether trying again is pointless
    :param proceed: whether the run goes on nevertheless, with the children as they were (`continue`)
    """

    message: str
    permanent: bool = False
    proceed: bool = False


@dataclass(frozen=True)
class Reply:
    """What a hook answered.

    :param object: the object as it returned it; None for no change
    :param children: all children as it returned them; None for no change
    :param error: what went wrong; None for nothing
    """

    object: Json | None = None
    children: dict[str, Json] | None = None
    error: Failure | None = None


def request(form_factor: str, phase: str, given: Mapping[str, Any], children: Mapping[str, Any] | None) -> bytes:
    """Return the body of a request. `children` are left out where there are none, and at finalize."""
    body: Json = {"formFactor": {"name": form_factor}, "object": given, "phase": phase}
    if children and phase == PRE_RECONCILE:
        body["children"] = children
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def call(
    url: str,
    seconds: float,
    form_factor: str,
    phase: str,
    given: Mapping[str, Any],
    children: Mapping[str, Any] | None = None,
    key: str = "",
) -> Reply:
    """Ask a hook once and return its reply; whatever goes wrong is in there, nothing is raised.

    :param url: where the service is (`statecfg.hooks.address.resolve`)
    :param seconds: how long the call may take in all, more than 0
    :param form_factor: what `formFactor.name` says
    :param phase: "pre-reconcile" or "finalize"
    :param given: the object
    :param children: the desired nodes by key
    :param key: the same for each try of one event, so that a service may know them (`Idempotency-Key`)
    """
    headers = {"Content-Type": "application/json; charset=UTF-8"}
    if key:
        headers["Idempotency-Key"] = key
    try:
        answer = exchange(url, request(form_factor, phase, given, children), headers, seconds, (MAX_REPLY, MAX_ERROR))
    except Unanswered as error:
        # The service may never have been there, and Scoby does not ask again either.
        return Reply(error=Failure(f"executing hook request to {url}: {error}", permanent=True))
    if 200 <= answer.status <= 299:
        return _reply(answer, phase, url)
    return Reply(error=_failure(answer, url))


def _reply(answer: Answer, phase: str, url: str) -> Reply:
    try:
        if answer.cut:
            raise _Unreadable(answer.cut)
        given = _first_value(answer.body)
        fields = _fields(given, "v1.HookResponse")
        returned = _object(fields.get("object"))
        children = _children(fields.get("children"), phase)
    except _Unreadable as error:
        return Reply(error=Failure(f"hook response from {url} could not be parsed: {error}", permanent=True))
    return Reply(returned or None, children or None)


def _failure(answer: Answer, url: str) -> Failure:
    if answer.cut and len(answer.body) < MAX_ERROR:
        return Failure(f"hook response from {url} returning {answer.status} could not be read: {answer.cut}")
    text = answer.body.decode("utf-8", "replace")
    try:
        fields = _fields(_only_value(text), "v1.HookResponseError")
        return Failure(
            _clipped(_typed(fields, "message", str, "")),
            _typed(fields, "permanent", bool, False),
            _typed(fields, "continue", bool, False),
        )
    except _Unreadable:
        # What is no error of the contract may be a proxy's page, or a service that is starting: asked again later.
        return Failure(_clipped(f"hook request at {url} returned {answer.status}: {text}"))


def _clipped(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"


# JSON, as Go's encoding/json takes it


class _Unreadable(Exception):
    """It is not what the contract says; the message says why, in Scoby's words."""


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


def _first_value(body: bytes) -> Any:
    """Return the first value of a body, {} for an empty one; what follows it does not matter."""
    text = body.decode("utf-8", "replace").lstrip(" \t\r\n")
    return _decoded(text)[0] if text else {}


def _only_value(text: str) -> Any:
    stripped = text.strip(" \t\r\n")
    value, end = _decoded(stripped)
    if end != len(stripped):
        raise _Unreadable(f"invalid character {stripped[end : end + 1]!r} after top-level value")
    return value


def _decoded(text: str) -> tuple[Any, int]:
    try:
        value, end = _DECODER.raw_decode(text)
        # Half of a surrogate pair could be written nowhere: Go puts U+FFFD in its place.
        shown = json.dumps(value, ensure_ascii=False)
        whole = shown.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return (value if whole == shown else json.loads(whole)), end
    except json.JSONDecodeError as error:
        raise _Unreadable(_words(error)) from None
    except RecursionError:
        raise _Unreadable("exceeded max depth") from None
    except ValueError as error:
        raise _Unreadable(str(error).partition(":")[0]) from None


def _words(error: json.JSONDecodeError) -> str:
    if error.pos >= len(error.doc) or error.msg.startswith("Unterminated string"):
        return "unexpected EOF"
    where = _WRONG.get(error.msg)
    if where is None:
        return f"{error.msg} at character {error.pos + 1}"
    return f"invalid character {error.doc[error.pos]!r} {where}"


def _fields(value: Any, kind: str) -> Json:
    """Return the fields of an object without regard to case, as Go's decoder finds them."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _Unreadable(f"json: cannot unmarshal {_kind(value)} into Go value of type {kind}")
    return {key.lower(): item for key, item in value.items()}


def _typed(fields: Json, name: str, kind: type, default: Any) -> Any:
    value = fields.get(name)
    if value is None:
        return default
    if type(value) is not kind:
        raise _Unreadable(f"json: cannot unmarshal {_kind(value)} into Go struct field HookResponseError.{name}")
    return value


def _kind(value: Any) -> str:
    names = {bool: "bool", str: "string", int: "number", float: "number", list: "array", dict: "object"}
    return names.get(type(value), "null")


def _object(value: Any) -> Json:
    """Return an object of the reply; {} for one that is not there or empty."""
    if value is None or value == {}:
        return {}
    if not isinstance(value, dict):
        raise _Unreadable(f"json: cannot unmarshal {_kind(value)} into Go value of type map[string]interface {{}}")
    if not isinstance(value.get("kind"), str) or not value["kind"]:
        shown = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        raise _Unreadable(f"Object 'Kind' is missing in '{_clipped(shown)}'")
    return value


def _children(value: Any, phase: str) -> dict[str, Json]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _Unreadable(f"json: cannot unmarshal {_kind(value)} into Go struct field HookResponse.children")
    found = {}
    for key, item in value.items():
        if item == {}:
            raise _Unreadable("Object 'Kind' is missing in '{}'")
        if item is None and phase == PRE_RECONCILE:
            raise _Unreadable(f"the child {key!r} is null")
        found[key] = _object(item)
    return found if phase == PRE_RECONCILE else {}
