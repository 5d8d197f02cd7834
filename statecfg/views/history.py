"""The runs in the ledgers of hosts, for people: a line for each run, or the details of a single run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from statecfg.remote.graph.names import ActionStatus, HostStatus, Outcome, RunStatus
from statecfg.run.report_model import Report
from statecfg.views import hosts as host_lines
from statecfg.views import safe
from statecfg.views.lines import BLANK, Line, Style, make
from statecfg.views.outcome import duration
from statecfg.views.tally import EqualHosts

_STYLES: dict[str, Style] = {
    HostStatus.OK: "add",
    HostStatus.FAILED: "remove",
    RunStatus.CUT_OFF: "unknown",
    RunStatus.RUNNING: "skip",
}
_OUTCOMES: dict[str, tuple[str, Style]] = {
    Outcome.CHANGED: ("✓", "change"),
    Outcome.UNCHANGED: (" ", "dim"),
    Outcome.FAILED: ("✗", "remove"),
    Outcome.SKIPPED: ("·", "skip"),
    Outcome.UNKNOWN: ("?", "unknown"),
}


def history_lines(report: Report, run: str = "") -> Iterator[Line]:
    """Yield the lines that show each host's runs, newest first.

    :param report: the masked report of mode "history", in format 1
    :param run: the beginning of the id of the requested run, "" for all runs
    """
    for number, name in enumerate(sorted(report["hosts"])):
        host = report["hosts"][name]
        if number:
            yield BLANK
        yield host_lines.heading(EqualHosts([name], host))
        yield from host_lines.trouble(host)
        for past in host.get("history") or []:
            yield from run_lines(past)
        if host["status"] == HostStatus.OK and not host.get("history"):
            text = f"has no run whose id starts with {run}" if run else "has no runs"
            yield make(("  ", ""), (f"This host {text}.", "dim"))


def run_lines(past: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the lines of one run."""
    status = str(past["status"])
    took = _took(past)
    yield make(
        "  ", (str(past["run"]), "bold"), f"  {host_lines.moment(past['started'])}  {past['mode'] or '?':<7}  ",
        (status, _STYLES.get(status, "unknown")), (took, "dim"),
        f"  {past['who'] or 'unknown user'}  {past['playbook']}", hang=4,
    )  # fmt: skip
    counts = ", ".join(f"{number} {outcome}" for outcome, number in sorted(past["summary"].items()))
    if "outcomes" not in past:
        if counts:
            yield make("      ", (counts, "dim"), hang=6)
        return
    done: dict[str, list[Mapping[str, Any]]] = {}
    for action in past.get("actions") or []:
        done.setdefault(str(action["node"]), []).append(action)
    for name, outcome in past["outcomes"].items():
        yield from _node(name, str(outcome), done.get(name, []), status)


def _took(past: Mapping[str, Any]) -> str:
    ended = past.get("ended")
    return f" in {duration(max(0.0, ended - past['started']))}" if ended and past["status"] != RunStatus.CUT_OFF else ""


def _node(name: str, outcome: str, actions: list[Mapping[str, Any]], status: str) -> Iterator[Line]:
    sign, style = _OUTCOMES.get(outcome, ("?", "unknown"))
    state = (
        "was running when the run was cut off"
        if outcome == Outcome.UNKNOWN and status == RunStatus.CUT_OFF
        else outcome
    )
    yield make((f"    {sign} ", style), (name, style), (f"  {state}", "dim"), hang=8)
    for action in actions:
        note = {ActionStatus.OK: "", ActionStatus.UNKNOWN: "  its result is unknown"}.get(
            str(action["status"]), f"  {action['status']}"
        )
        yield make(("        · ", "dim"), str(action["op"]), (note, "remove"), hang=10)
        for text in safe.block(str(action["reason"])) if action.get("reason") else ():
            yield make("          ", (text, "remove"), hang=10)
