"""The exit codes, and which of several applies."""

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
# The report could not be written. Source: EX_IOERR in sysexits.h.
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
    """Return the most important exit code, by the order of WORST_FIRST. Return DONE if there are none."""
    return min(codes, key=WORST_FIRST.index, default=DONE)


def of_report(report: Mapping[str, Any], detailed: bool = False) -> int:
    """Return the exit code for a report of format 1.

    :param report: the report of all hosts
    :param detailed: return 2 if a plan has pending changes
    """
    mode = report["mode"]
    planned = mode in (Mode.PLAN, Mode.VERIFY)
    detailed = mode == Mode.VERIFY or (detailed and planned)
    codes = []
    for host in report["hosts"].values():
        # `refusal`: the host refused what the user asked for. Otherwise it refused a saved plan as stale.
        codes.append(BAD_INPUT if host.get("refusal") else _BY_STATUS[host["status"]])
        for layer in (*(host.get("removals") or ()), *(host.get("layers") or ())):
            codes.extend(_of_node(node["outcome"], planned, detailed) for node in layer)
        if detailed and _more_pending(host, mode):
            codes.append(PENDING)
        if any(fired["status"] in (HookStatus.FAILED, HookStatus.OWED) for fired in host.get("fired") or ()):
            codes.append(FAILED)
    return worst(codes)


def _more_pending(host: Mapping[str, Any], mode: str) -> bool:
    """Return whether anything is pending besides the nodes' outcomes. Kept orphans count as drift for verify only."""
    unresolved = any(
        node.get("state", State.RESOLVED) != State.RESOLVED for layer in host.get("layers") or () for node in layer
    )
    removals = host.get("removals") or (mode == Mode.VERIFY and host.get("left"))
    due = any(unit.get("due") or unit.get("change") for unit in host.get("units") or ())
    return bool(unresolved or removals or due or host.get("owed"))


def _of_node(outcome: str, planned: bool, detailed: bool) -> int:
    if outcome == Outcome.FAILED:
        return FAILED
    if planned:
        # In a plan, `unknown` means "known after …": a change that may be needed.
        return PENDING if detailed and outcome in Outcome.ACTS else DONE
    return UNKNOWN if outcome == Outcome.UNKNOWN else DONE
