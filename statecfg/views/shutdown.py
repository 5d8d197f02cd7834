"""Shutdown-first actions, their results, and the nodes that are down because of them."""

from __future__ import annotations

from collections.abc import Iterator

from statecfg.remote.graph.names import ActionStatus, Outcome
from statecfg.run.report_model import Action, HostData
from statecfg.views.lines import Line, Style, make
from statecfg.views.plan import action_text
from statecfg.views.tally import nodes

HOW = {
    ActionStatus.OK: "",
    ActionStatus.ERROR: "failed",
    ActionStatus.UNKNOWN: "its result is unknown",
    ActionStatus.NOT_ATTEMPTED: "not attempted",
}
_MEANWHILE = {
    Outcome.FAILED: "its own actions failed",
    Outcome.SKIPPED: "its own actions did not run",
    Outcome.UNKNOWN: "the result of its own actions is unknown",
}


def done(host: HostData) -> list[tuple[str, Action, str]]:
    """Return the shutdown-first actions of a run in order: the node, the action, its problem ("" if it succeeded)."""
    listed = host.get("shutdown") or []
    return [(str(action.get("node", "")), action, HOW.get(str(action["status"]), "")) for action in listed]


def down(host: HostData) -> list[tuple[str, str]]:
    """Return the nodes that were stopped first and may still be down, each with the reason."""
    reasons = {str(node["name"]): _MEANWHILE.get(str(node["outcome"]), "") for node in nodes(host)}
    unseen = {
        str(action.get("node", "")) for action in host.get("shutdown") or () if action["status"] != ActionStatus.OK
    }
    stopped = {name: "it may have been stopped first" if name in unseen else "it was stopped first" for name in reasons}
    return [(str(name), f"{stopped.get(name)}, and {reasons.get(name)}") for name in host.get("down") or []]


def lines(host: HostData) -> Iterator[Line]:
    """Yield the lines about both for the terminal."""
    for node, action, how in done(host):
        style: Style = "remove" if how == "failed" else "skip"
        text, went = f"  {action_text(action)}", f"  {how or 'done'}"
        yield make(("  ! ", "change"), "stopped first: ", (node, "bold"), text, (went, style), hang=6)
    for name, why in down(host):
        text = f"  {why}"
        yield make(("  ! ", "remove"), ("down: ", "remove"), (name, "bold"), text, hang=6)
