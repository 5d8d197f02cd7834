"""Sets the outcomes of nodes whose layers a host did not report."""

from __future__ import annotations

from typing import Any

from statecfg.remote.graph.names import ActionStatus, Outcome
from statecfg.run.host.plan import HostNodes
from statecfg.run.host.progress import SHUTDOWN_FIRST, Begun, HostProgress
from statecfg.run.report_model import Action, Node

LOST = "not started: the connection was lost"


def nothing_begun(plan: HostNodes, why: str) -> None:
    """Mark the nodes of a plan that was not applied as skipped.

    :param why: the reason, in words
    """
    for layer in plan.removals:
        for node in layer:  # a removal without actions would only delete its record: it is skipped, too
            if node["outcome"] in (*Outcome.ACTS, Outcome.UNCHANGED):
                _skip(node, why)
    for layer in plan.layers:
        for node in layer:
            if node["outcome"] in Outcome.ACTS:
                _skip(node, why)


def _skip(node: Node, why: str) -> None:
    node["outcome"], node["reason"] = Outcome.SKIPPED, why
    node["actions"] = [{**action, "status": ActionStatus.NOT_ATTEMPTED} for action in node["actions"]]


def account(progress: HostProgress, heard_all: bool) -> None:
    """Give each node of the unfinished layers its outcome, as far as it is known.

    :param heard_all: whether everything that the host sent has arrived
    """
    for position, (part, number) in enumerate(progress.unfinished()):
        for node in progress.plan.parts[part][number]:
            _conclude(node, progress, uncertain=position == 0 and not heard_all)


def _ended(planned: Action | None, begun: Begun | None) -> Action:
    """Return the report of an action.

    :param planned: None for an action that the host decided on only during the apply
    :param begun: None for an action that the host did not begin
    """
    action: Any = {**(planned or {"args": {}}), "status": ActionStatus.NOT_ATTEMPTED, **(begun or {})}
    ended: Action = action
    return ended


def _conclude(node: Node, progress: HostProgress, uncertain: bool) -> None:
    """Give one node its outcome. A node that was in progress is unknown, never changed and never failed.

    :param uncertain: whether the host was processing its layer, and frames about that may be lost
    """
    begun = progress.begun.get(node["name"], {})
    if "shutdown_first" in node:
        node["shutdown_first"] = _ended(node["shutdown_first"], begun.get(SHUTDOWN_FIRST))
    planned = dict(enumerate(node["actions"]))
    indexes = sorted({*planned, *begun} - {SHUTDOWN_FIRST})
    node["actions"] = [_ended(planned.get(index), begun.get(index)) for index in indexes]
    if node["name"] in progress.ended:
        node["outcome"] = progress.ended[node["name"]]
    elif begun:
        node["outcome"], node["reason"] = Outcome.UNKNOWN, "it was running when the connection was lost"
    elif node["outcome"] in Outcome.ACTS and uncertain:
        node["outcome"], node["reason"] = Outcome.UNKNOWN, "it was about to start when the connection was lost"
        for action in node["actions"]:
            action["status"] = ActionStatus.UNKNOWN
    elif node["outcome"] in Outcome.ACTS:
        node["outcome"], node["reason"] = Outcome.SKIPPED, LOST
