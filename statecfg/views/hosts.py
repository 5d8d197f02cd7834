"""The lines about a host as a whole: its heading, its problems, and the triggers that it owes."""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

from statecfg.remote.graph.names import PLAN_FAILS, HostStatus, Outcome
from statecfg.run.report_model import HostData
from statecfg.views import safe
from statecfg.views.lines import Line, make
from statecfg.views.tally import EqualHosts, fates, names, plural

MEANING = {
    HostStatus.OK: "",
    HostStatus.FAILED: "failed",
    HostStatus.UNREACHABLE: "could not be reached",
    HostStatus.UNKNOWN: "outcome unknown",
    HostStatus.REFUSED: "refused",
    HostStatus.LOCKED: "locked by another run",
    HostStatus.CANCELLED: "cancelled",
}


def heading(group: EqualHosts) -> Line:
    """Return the heading with the names of hosts that share a report."""
    status = status_text(group.host)
    shared = f"{len(group.names)} hosts" if len(group.names) > 1 else ""
    spans: list[Any] = [("── ", "dim"), (names(group.names), "bold")]
    if status:
        spans.append((f"  {status}", "remove"))
    return make(*spans, right=shared, rule=True, hang=3)


def or_nothing(host: HostData, lines: Iterable[Line], lead: str = "Nothing to do") -> Iterator[Line]:
    """Yield the lines below a host's heading. If there are none and the host is ok, yield a line about that.

    :param lead: the first words of that line
    """
    rest = iter(lines)  # a report may have too many lines for a list
    first = next(rest, None)
    if first is not None:
        yield first
        yield from rest
    elif host["status"] == HostStatus.OK:
        yield make(("  ✓ ", "add"), f"{lead}: no resources are defined for this host.")


def status_text(host: HostData) -> str:
    """Return the status of a host in a few words, "" if it is ok."""
    if not_started(host):
        return f"{PLAN_FAILS}, so nothing is changed"
    return "stopped early" if stopped(host) else MEANING.get(host["status"], host["status"])


def not_started(host: HostData) -> bool:
    """Return whether an apply starts nothing on a host because its plan fails."""
    return host.get("halted") == PLAN_FAILS


def stopped(host: HostData) -> bool:
    """Return whether the user stopped the run before this host had finished, and nothing failed on it."""
    if host["status"] != HostStatus.FAILED or host.get("error") or host.get("halted"):
        return False
    outcomes = {fate.node["outcome"] for fate in fates(host)}
    return Outcome.SKIPPED in outcomes and Outcome.FAILED not in outcomes


def trouble(host: HostData) -> Iterator[Line]:
    """Yield the host's error with its fix, the holder of its lock, differences from a saved plan, and warnings."""
    error = host.get("error")
    if error:
        yield make(("  ✗ ", "remove"), (str(error["summary"]), "remove"), hang=4)
        for text in safe.block(str(error["detail"])) if error.get("detail") else ():
            yield make("    ", text, hang=4)
        for number, text in enumerate(safe.block(str(error["hint"])) if error.get("hint") else ()):
            yield make(("    help: " if number == 0 else "          ", "skip"), text, hang=10)
    elif host.get("halted") and not any(fate.node["outcome"] == Outcome.FAILED for fate in fates(host)):
        yield make(("  ✗ ", "remove"), (f"stopped: {host['halted']}", "remove"), hang=4)
    if host.get("holder") and str(host["holder"].get("who")) not in (str(error.get("detail") or "") if error else ""):
        yield make("    locked by ", _holder(host["holder"]), hang=12)
        yield make(("    help: ", "skip"), "Wait until it ends, or pass --lock-timeout SECONDS.", hang=10)
    for text in host.get("differs") or []:
        yield make(("  ≠ ", "change"), _difference(text), hang=4)
    for text in host.get("warnings") or []:
        yield make(("  warning: ", "change"), str(text), hang=11)


def login(host: HostData) -> str:
    """Return the result of the last new login after a change that logins depend on, "" if there was none."""
    if "login" not in host:
        return ""
    result = host["login"]
    found = "works" if result.get("ok") else f"fails: {result.get('error')}"
    return f"a new login after changes that logins depend on {found}"


def _holder(holder: Mapping[str, Any]) -> str:
    """Return who holds the lock of a host, in words."""
    details = dict(holder)
    parts = [str(details.pop("who", "an unknown user"))]
    since = details.pop("since", None)
    if isinstance(since, int | float):
        parts.append(f"since {moment(since)}")
    if details:
        parts.append(f"({', '.join(f'{key} {value}' for key, value in details.items())})")
    return " ".join(parts)


def owed(host: HostData, done: Container[str] = ()) -> Iterator[Line]:
    """Yield the owed triggers of an earlier run, except those of nodes that are `done` now."""
    listed = [debt for debt in host.get("owed") or [] if debt["node"] not in done]
    if listed:
        yield make(("    ↳ ", "dim"), f"{plural(len(listed), 'trigger')} owed from an earlier run:", hang=6)
    for item in listed:
        yield make(
            "        ", (str(item["node"]), "change"), f" because {item['cause']} changed", _since(item), hang=10
        )


def _since(debt: Mapping[str, Any]) -> str:
    """Return since when a trigger is owed, and by which run."""
    return f", since {moment(debt['since'])} (run {debt['run']})"


def moment(seconds: Any) -> str:
    """Return a time as local time in words.

    :param seconds: seconds since 1970, from a host; any other value becomes "an unknown time"
    """
    if not isinstance(seconds, int | float) or not 0 < seconds < 1e11:
        return "an unknown time"
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def _difference(item: Any) -> str:
    if isinstance(item, Mapping):
        return ", ".join(f"{key}: {value}" for key, value in item.items())
    return str(item)
