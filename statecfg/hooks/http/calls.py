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

from statecfg.hooks.http.answers import (
    Json,
    Unreadable,
    clipped,
    fields_of,
    first_value,
    kind_of,
    object_of,
    only_value,
    typed,
)
from statecfg.hooks.http.exchange import Answer, Unanswered, exchange
from statecfg.remote.graph.names import ResourceEvent

PRE_RECONCILE = ResourceEvent.PRE_RECONCILE
FINALIZE = ResourceEvent.FINALIZE

MAX_REPLY = 4 << 20  # bytes: the children of a large graph
MAX_ERROR = 64 << 10  # bytes read of the body of an error


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

    :param url: where the service is (`statecfg.hooks.http.address.resolve`)
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
            raise Unreadable(answer.cut)
        given = first_value(answer.body)
        fields = fields_of(given, "v1.HookResponse")
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
        # What is no error of the contract may be a proxy's page, or a service that is starting: asked again later.
        return Failure(clipped(f"hook request at {url} returned {answer.status}: {text}"))


def _children(value: Any, phase: str) -> dict[str, Json]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Unreadable(f"json: cannot unmarshal {kind_of(value)} into Go struct field HookResponse.children")
    found = {}
    for key, item in value.items():
        if item == {}:
            raise Unreadable("Object 'Kind' is missing in '{}'")
        if item is None and phase == PRE_RECONCILE:
            raise Unreadable(f"the child {key!r} is null")
        found[key] = object_of(item)
    return found if phase == PRE_RECONCILE else {}
