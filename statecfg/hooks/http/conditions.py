"""Conditions in the status of a reconciled object, as in Kubernetes: a state, and since when."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

Json = dict[str, Any]

READY = "Ready"  # all other conditions are true
APPLIED = "Applied"  # the last run did what the playbook says
OWN = (APPLIED, READY)
STATES = ("True", "False", "Unknown")


def moment(seconds: float) -> str:
    """Return a time, seconds since 1970, as Kubernetes writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def sanitised(status: Mapping[str, Any], types: Iterable[str]) -> Json:
    """Return a status with exactly one condition of each type, sorted by type.

    Missing conditions are Unknown, with the reason UNKNOWN. Source: the order of Scoby's reconciliation.

    :param types: those that hooks own; our own types are added
    """
    known = {item["type"]: item for item in _well_formed(status.get("conditions"))}
    wanted = sorted({*types, *OWN})
    found = [known.get(name) or _condition(name, "Unknown", "UNKNOWN") for name in wanted]
    return {**status, "conditions": _with_ready(found)}


def returned(status: Mapping[str, Any], before: Mapping[str, Any], types: Iterable[str]) -> Json:
    """Return a status that a hook returned, with its own conditions and with our conditions of `before`.

    :param before: the status as it was sent
    :param types: of the conditions that hooks own
    """
    owned = set(types)
    ours = [item for item in _well_formed(before.get("conditions")) if item["type"] not in owned]
    theirs = [item for item in _well_formed(status.get("conditions")) if item["type"] in owned]
    return sanitised({**status, "conditions": [*ours, *theirs]}, owned)


def applied(status: Mapping[str, Any], ok: bool, types: Iterable[str], message: str = "") -> Json:
    """Return a status after a run.

    :param ok: whether the run succeeded
    """
    made = _condition(APPLIED, "True" if ok else "False", "APPLIED" if ok else "NOTAPPLIED", message)
    others = [item for item in _well_formed(status.get("conditions")) if item["type"] != APPLIED]
    before = [item for item in _well_formed(status.get("conditions")) if item["type"] == APPLIED]
    return sanitised({**status, "conditions": [*others, _since(made, before)]}, types)


def _condition(kind: str, state: str, reason: str, message: str = "") -> Json:
    made = {"type": kind, "status": state, "reason": reason, "lastTransitionTime": moment(time.time())}
    return {**made, "message": message} if message else made


def _since(made: Json, before: list[Json]) -> Json:
    """Return a condition with the time since when it has its state."""
    for item in before:
        if item["status"] == made["status"] and "lastTransitionTime" in item:
            return {**made, "lastTransitionTime": item["lastTransitionTime"]}
    return made


def _with_ready(found: list[Json]) -> list[Json]:
    states = [item["status"] for item in found if item["type"] != READY]
    if "False" in states:
        made = _condition(READY, "False", "CONDITIONSNOTOK")
    elif "Unknown" in states:
        made = _condition(READY, "Unknown", "UNKNOWN")
    else:
        made = _condition(READY, "True", "CONDITIONSOK")
    return [_since(made, [item]) if item["type"] == READY else item for item in found]


def _well_formed(given: Any) -> list[Json]:
    return [
        item
        for item in (given if isinstance(given, list) else ())
        if isinstance(item, dict) and isinstance(item.get("type"), str) and item.get("status") in STATES
    ]
