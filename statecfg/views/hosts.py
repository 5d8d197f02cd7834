"""The lines about a host as a whole: its heading, what is wrong with it, what it still owes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from statecfg.views import safe
from statecfg.views.lines import Line, make
from statecfg.views.tally import Group, names, plural

MEANING = {
    "ok": "",
    "failed": "failed",
    "unreachable": "could not be reached",
    "unknown": "outcome unknown",
    "refused": "refused: not what was planned",
    "locked": "held by another run",
}


def heading(group: Group) -> Line:
    """Return the rule with the hosts' names; hosts with the same report share one."""
    status = MEANING.get(group.host["status"], group.host["status"])
    shared = f"{len(group.names)} hosts" if len(group.names) > 1 else ""
    spans: list[Any] = [("── ", "dim"), (names(group.names), "bold")]
    if status:
        spans.append((f"  {status}", "remove"))
    return make(*spans, right=shared, rule=True, hang=3)


def trouble(host: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the host's error with its cure, its warnings, who holds it, and what differs from a saved plan."""
    error = host.get("error")
    if error:
        yield make(("  ✗ ", "remove"), (str(error.get("summary", "")), "remove"), hang=4)
        for text in safe.block(str(error["detail"])) if error.get("detail") else ():
            yield make("    ", text, hang=4)
        for number, text in enumerate(safe.block(str(error["hint"])) if error.get("hint") else ()):
            yield make(("    help: " if number == 0 else "          ", "skip"), text, hang=10)
    if host.get("holder"):
        holder = ", ".join(f"{key}: {value}" for key, value in host["holder"].items())
        yield make("    held by ", holder, hang=12)
    for text in host.get("differs") or []:
        yield make(("  ≠ ", "change"), _difference(text), hang=4)
    for text in host.get("warnings") or []:
        yield make(("  warning: ", "change"), str(text), hang=11)


def owed(host: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the triggers that an earlier, broken run left undone."""
    listed = host.get("owed") or []
    if listed:
        yield make(("    ↳ ", "dim"), f"{plural(len(listed), 'trigger')} owed from an earlier run:", hang=6)
    for item in listed:
        yield make("        ", item if isinstance(item, str) else " ".join(str(part) for part in _parts(item)), hang=10)


def _parts(item: Any) -> list[Any]:
    return list(item.values()) if isinstance(item, Mapping) else list(item)


def _difference(item: Any) -> str:
    if isinstance(item, Mapping):
        return ", ".join(f"{key}: {value}" for key, value in item.items())
    return str(item)
