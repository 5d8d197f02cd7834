"""What the exit status says, and which says most when several things happened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

DONE = 0
FAILED = 1
PENDING = 2
UNKNOWN = 3
UNREACHABLE = 4
BAD_INPUT = 5
STALE = 6
LOCKED = 7
STORE = 8
# What happened could not be written down (EX_IOERR). Source: sysexits.h.
UNWRITTEN = 74
INTERRUPTED = 130
BROKEN_PIPE = 141

WORST_FIRST = (UNKNOWN, STORE, FAILED, UNREACHABLE, LOCKED, STALE, BAD_INPUT, PENDING, DONE)

_BY_STATUS = {
    "ok": DONE,
    "failed": FAILED,
    "unknown": UNKNOWN,
    "unreachable": UNREACHABLE,
    "refused": STALE,
    "locked": LOCKED,
}


def worst(codes: Iterable[int]) -> int:
    """Return the exit code that matters most: an unknown outcome first, nothing at all last."""
    return min(codes, key=WORST_FIRST.index, default=DONE)


def of_report(report: Mapping[str, Any], detailed: bool = False) -> int:
    """Return the exit code for a report of format 1.

    Parameters: `report` as the fleet returned it; `detailed` whether pending changes of a plan count (exit 2).
    """
    planned = report["mode"] == "plan"
    codes = []
    for host in report["hosts"].values():
        codes.append(_BY_STATUS[host["status"]])
        for layer in host.get("layers") or []:
            codes.extend(_of_node(node["outcome"], planned, detailed) for node in layer)
        if planned and detailed and host.get("owed"):
            codes.append(PENDING)
    return worst(codes)


def _of_node(outcome: str, planned: bool, detailed: bool) -> int:
    if outcome == "failed":
        return FAILED
    if planned:
        # In a plan, "unknown" is "known after …": honest, and something that may have to be done.
        return PENDING if detailed and outcome in ("changed", "unknown") else DONE
    return UNKNOWN if outcome == "unknown" else DONE
