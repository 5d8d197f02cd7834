"""Rules for the attributes of conditions. Only the controller uses this module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from statecfg.remote.graph.wrong_values import PublicSecret, Wrong
from statecfg.resources.programs import request_rules

# The conditions, and the attributes that each of them can have.
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "path": ("contains", "gone"),
    "port": ("address",),
    "url": ("ca", "contains", "headers", "status", "verify_certificate"),
    "unit": ("user",),
    "command": ("user",),
    "that": (),
}
HOST_CONDITIONS = tuple(name for name in _OPTIONS if name != "that")


def check(attrs: Mapping[str, Any], conditions: Sequence[str] = HOST_CONDITIONS) -> None:
    """Check that a node has one condition, and only attributes that belong to it.

    :param conditions: the conditions that the node may have
    :raises ValueError: if not
    """
    given = [name for name in conditions if attrs.get(name) is not None]
    if len(given) != 1:
        raise ValueError(f"exactly one of {', '.join(conditions)} is required")
    (condition,) = given
    for name in sorted({option for options in _OPTIONS.values() for option in options}):
        idle = attrs.get(name) is None or attrs[name] == (name == "verify_certificate")
        if not idle and name not in _OPTIONS[condition]:
            raise ValueError(f"{name} has no effect with {condition}")
    if attrs.get("gone") and attrs.get("contains") is not None:
        raise ValueError("gone can't be combined with contains")
    for name in ("command", *(("contains",) if condition == "url" else ())):
        if hasattr(attrs.get(name), "reveal"):
            raise PublicSecret("read it from a file of the host in a script", name)
    if condition == "url":
        request_rules.check_request(attrs)


def check_assertion(attrs: Mapping[str, Any]) -> None:
    """Check the condition of an `assertion`, and that its expression is true.

    :raises ValueError: if not
    """
    check(attrs, tuple(_OPTIONS))
    if attrs.get("that") is False:
        raise Wrong(str(attrs.get("message") or "the expression in `that` is false"))
