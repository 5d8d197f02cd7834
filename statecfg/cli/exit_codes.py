"""What the exit status says, and which says most when several things happened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from statecfg.remote.graph.names import HookStatus, HostStatus, Mode, Outcome, State

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
HANGUP = 129
INTERRUPTED = 130
TERMINATED = 143
BROKEN_PIPE = 141

WORST_FIRST = (UNKNOWN, STORE, FAILED, UNREACHABLE, LOCKED, STALE, BAD_INPUT, PENDING, DONE)

_BY_STATUS = {
    HostStatus.OK: DONE,
    HostStatus.FAILED: FAILED,
    HostStatus.UNKNOWN: UNKNOWN,
    HostStatus.UNREACHABLE: UNREACHABLE,
    HostStatus.REFUSED: STALE,
    HostStatus.LOCKED: LOCKED,
    HostStatus.CANCELLED: FAILED,
}


def worst(codes: Iterable[int]) -> int:
    """Return the exit code that matters most: an unknown outcome first, nothing at all last."""
    return min(codes, key=WORST_FIRST.index, default=DONE)


def of_report(report: Mapping[str, Any], detailed: bool = False) -> int:
    """Return the exit code for a report of format 1.

    Parameters: `report` as the fleet returned it; `detailed` whether pending changes of a plan count (exit 2).
    """
    mode = report["mode"]
    planned = mode in (Mode.PLAN, Mode.VERIFY)
    detailed = mode == Mode.VERIFY or (detailed and planned)
    codes = []
    for host in report["hosts"].values():
        # A refusal that no plan is behind is one of what was asked for.
        codes.append(BAD_INPUT if host.get("refusal") else _BY_STATUS[host["status"]])
        for layer in (*(host.get("removals") or ()), *(host.get("layers") or ())):
            codes.extend(_of_node(node["outcome"], planned, detailed) for node in layer)
        if detailed and _more_pending(host, mode):
            codes.append(PENDING)
        if any(fired["status"] in (HookStatus.FAILED, HookStatus.OWED) for fired in host.get("fired") or ()):
            codes.append(FAILED)
    return worst(codes)


def _more_pending(host: Mapping[str, Any], mode: str) -> bool:
    """Say whether there is something to do beside what the nodes say; what stays behind is drift, and nothing to do."""
    unresolved = any(
        node.get("state", State.RESOLVED) != State.RESOLVED for layer in host.get("layers") or () for node in layer
    )
    gone = host.get("removals") or (mode == Mode.VERIFY and host.get("left"))
    due = any(unit.get("due") for unit in host.get("units") or ())
    return bool(unresolved or gone or due or host.get("owed"))


def _of_node(outcome: str, planned: bool, detailed: bool) -> int:
    if outcome == Outcome.FAILED:
        return FAILED
    if planned:
        # In a plan, "unknown" is "known after …": honest, and something that may have to be done.
        return PENDING if detailed and outcome in Outcome.ACTS else DONE
    return UNKNOWN if outcome == Outcome.UNKNOWN else DONE
