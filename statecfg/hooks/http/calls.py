"""One call of an HTTP hook: the request, and the meaning of the response.

Requests, responses and error messages are those of TriggerMesh Scoby's hooks API v1. Two choices are our own: an empty
`object` or `children` means no change, as the documentation says, and a child that is null is refused. Each call has
limits on time and memory.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict

from statecfg.hooks.http.answers import (
    Json,
    Unreadable,
    clipped,
    fields_of,
    first_value,
    json_type,
    object_of,
    only_value,
    typed,
)
from statecfg.hooks.http.exchange import Answer, Unanswered, exchange
from statecfg.problems.frozen import dataclass
from statecfg.remote.graph.names import ResourceEvent

PRE_RECONCILE = ResourceEvent.PRE_RECONCILE
FINALIZE = ResourceEvent.FINALIZE

MAX_REPLY = 4 << 20  # bytes, enough for the children of a large graph
MAX_ERROR = 64 << 10  # bytes to read of the body of an error


class FormFactor(TypedDict):
    """The kind of the children."""

    name: str


class RequestBody(TypedDict):
    """The body of a request."""

    formFactor: FormFactor
    object: Mapping[str, Any]
    phase: str
    children: NotRequired[Mapping[str, Any]]
    dryRun: NotRequired[bool]


@dataclass(frozen=True)
class Failure:
    """The failure of a hook. Source: the error contract of the Scoby document.

    :param message: for people
    :param permanent: whether a retry is pointless
    :param proceed: whether the run continues nevertheless, with unchanged children (`continue`)
    """

    message: str
    permanent: bool = False
    proceed: bool = False


@dataclass(frozen=True)
class Reply:
    """The reply of a hook.

    :param object: the returned object; None for no change
    :param children: all returned children; None for no change
    :param error: the failure; None if it succeeded
    """

    object: Json | None = None
    children: dict[str, Json] | None = None
    error: Failure | None = None


def request(
    form_factor: str,
    phase: str,
    object: Mapping[str, Any],
    children: Mapping[str, Any] | None,
    dry_run: bool = False,
) -> bytes:
    """Return the body of a request. `children` are omitted if there are none, and in the phase finalize."""
    body: RequestBody = {"formFactor": {"name": form_factor}, "object": object, "phase": phase}
    if children and phase == PRE_RECONCILE:
        body["children"] = children
    if dry_run:
        body["dryRun"] = True
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def call(
    url: str,
    seconds: float,
    form_factor: str,
    phase: str,
    object: Mapping[str, Any],
    children: Mapping[str, Any] | None = None,
    key: str = "",
) -> Reply:
    """Call a hook once and return its reply. It raises nothing: errors are part of the reply.

    :param url: URL of the service (`statecfg.hooks.http.address.resolve`)
    :param seconds: time limit for the whole call, more than 0
    :param form_factor: the value of `formFactor.name`
    :param phase: "pre-reconcile" or "finalize"
    :param object: the object
    :param children: the desired nodes by key
    :param key: the same for each attempt of one event, so that the service can recognize it (`Idempotency-Key`)
    """
    return sent(url, seconds, request(form_factor, phase, object, children), phase, key)


def sent(url: str, seconds: float, body: bytes, phase: str, key: str = "") -> Reply:
    """Send a request once and return the reply; see `call`.

    :param body: the request
    """
    headers = {"Content-Type": "application/json; charset=UTF-8"}
    if key:
        headers["Idempotency-Key"] = key
    try:
        answer = exchange(url, body, headers, seconds, (MAX_REPLY, MAX_ERROR))
    except Unanswered as error:
        # The service may never have existed, and Scoby does not retry either.
        return Reply(error=Failure(f"executing hook request to {url}: {error}", permanent=True))
    if 200 <= answer.status <= 299:
        return _reply(answer, phase, url)
    return Reply(error=_failure(answer, url))


call_hook = call  # its public name


def _reply(answer: Answer, phase: str, url: str) -> Reply:
    try:
        if answer.cut:
            raise Unreadable(answer.cut)
        response = first_value(answer.body)
        fields = fields_of(response, "v1.HookResponse")
        returned = object_of(fields.get("object"))
        children = _children(fields.get("children"), phase)
    except Unreadable as error:
        return Reply(error=Failure(f"hook response from {url} could not be parsed: {error}", permanent=True))
    return Reply(returned or None, children or None)


def _failure(answer: Answer, url: str) -> Failure:
    if answer.cut and len(answer.body) < MAX_ERROR:
        return Failure(f"hook response from {url} returning {answer.status} could not be read: {answer.cut}")
    text = answer.body.decode("utf-8", "replace")
    try:
        fields = fields_of(only_value(text), "v1.HookResponseError")
        return Failure(
            clipped(typed(fields, "message", str, "")),
            typed(fields, "permanent", bool, False),
            typed(fields, "continue", bool, False),
        )
    except Unreadable:
        # The body is not an error of the contract: maybe a proxy's page, or the service is starting. Retry later.
        return Failure(clipped(f"hook request at {url} returned {answer.status}: {text}"))


def _children(value: Any, phase: str) -> dict[str, Json]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Unreadable(f"json: cannot unmarshal {json_type(value)} into Go struct field HookResponse.children")
    children = {}
    for key, item in value.items():
        if item == {}:
            raise Unreadable("Object 'Kind' is missing in '{}'")
        if item is None and phase == PRE_RECONCILE:
            raise Unreadable(f"the child {key!r} is null")
        children[key] = object_of(item)
    return children if phase == PRE_RECONCILE else {}
