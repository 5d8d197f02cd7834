"""Conditions in the status of a reconciled object, as in Kubernetes: a state, and since when."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, NotRequired, TypedDict, TypeGuard

Status = Mapping[str, Any]  # what hooks set, and `conditions`

READY = "Ready"  # all other conditions are true
APPLIED = "Applied"  # the last run applied the playbook
OWN = (APPLIED, READY)
STATES = ("True", "False", "Unknown")


class Condition(TypedDict):
    """A condition. Hooks may leave out all but type and status, and add further keys."""

    type: str
    status: str
    reason: NotRequired[str]
    lastTransitionTime: NotRequired[str]
    message: NotRequired[str]


def moment(seconds: float) -> str:
    """Return a time, seconds since 1970, as Kubernetes writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def sanitised(status: Status, types: Iterable[str]) -> Status:
    """Return a status with exactly one condition of each type, sorted by type.

    Missing conditions are Unknown, with the reason UNKNOWN. Source: the order of Scoby's reconciliation.

    :param types: those that hooks own; our own types are added
    """
    by_type = {item["type"]: item for item in _well_formed(status.get("conditions"))}
    wanted = sorted({*types, *OWN})
    conditions = [by_type.get(type) or _condition(type, "Unknown", "UNKNOWN") for type in wanted]
    return {**status, "conditions": _with_ready(conditions)}


def returned(status: Status, before: Status, types: Iterable[str]) -> Status:
    """Return a status that a hook returned, with its own conditions and with our conditions of `before`.

    :param before: the status as it was sent
    :param types: of the conditions that hooks own
    """
    owned = set(types)
    ours = [item for item in _well_formed(before.get("conditions")) if item["type"] not in owned]
    theirs = [item for item in _well_formed(status.get("conditions")) if item["type"] in owned]
    return sanitised({**status, "conditions": [*ours, *theirs]}, owned)


def applied(status: Status, ok: bool, types: Iterable[str], message: str = "") -> Status:
    """Return a status after a run.

    :param ok: whether the run succeeded
    """
    condition = _condition(APPLIED, "True" if ok else "False", "APPLIED" if ok else "NOTAPPLIED", message)
    others = [item for item in _well_formed(status.get("conditions")) if item["type"] != APPLIED]
    before = [item for item in _well_formed(status.get("conditions")) if item["type"] == APPLIED]
    return sanitised({**status, "conditions": [*others, _since(condition, before)]}, types)


def _condition(type: str, state: str, reason: str, message: str = "") -> Condition:
    condition: Condition = {"type": type, "status": state, "reason": reason, "lastTransitionTime": moment(time.time())}
    return {**condition, "message": message} if message else condition


def _since(condition: Condition, before: list[Condition]) -> Condition:
    """Return a condition with the time since when it has its state."""
    for item in before:
        if item["status"] == condition["status"] and "lastTransitionTime" in item:
            return {**condition, "lastTransitionTime": item["lastTransitionTime"]}
    return condition


def _with_ready(conditions: list[Condition]) -> list[Condition]:
    states = [item["status"] for item in conditions if item["type"] != READY]
    if "False" in states:
        ready = _condition(READY, "False", "CONDITIONSNOTOK")
    elif "Unknown" in states:
        ready = _condition(READY, "Unknown", "UNKNOWN")
    else:
        ready = _condition(READY, "True", "CONDITIONSOK")
    return [_since(ready, [item]) if item["type"] == READY else item for item in conditions]


def _well_formed(value: Any) -> list[Condition]:
    return [item for item in (value if isinstance(value, list) else ()) if _is_condition(item)]


def _is_condition(item: Any) -> TypeGuard[Condition]:
    return isinstance(item, dict) and isinstance(item.get("type"), str) and item.get("status") in STATES
