"""Sets the outcomes of nodes whose layers a host did not report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from statecfg.remote.graph.names import ActionStatus, Outcome
from statecfg.run.host.plan import HostNodes
from statecfg.run.host.progress import REBOOT, SHUTDOWN_FIRST, Begun, HostProgress
from statecfg.run.report_model import Action, Node

LOST = "not started: the connection was lost"
UNSEEN = "not seen: the connection was lost before its turn, and the host may have continued for some seconds"


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


def account(progress: HostProgress, heard_all: bool, keep_going: bool = False) -> None:
    """Give each node of the unfinished layers its outcome, as far as it is known.

    A host continues for some seconds after the connection is lost. So a node is skipped only if it certainly did not
    start: the executor ended, a node of an earlier layer failed, or the host had to wait for the controller.

    :param heard_all: whether everything that the host sent has arrived
    :param keep_going: whether the host continues after a failure
    """
    certain = heard_all or (not keep_going and any(map(_failed, progress.finished())))
    for position, (part, number) in enumerate(progress.unfinished()):
        nodes = progress.plan.parts[part][number]
        for node in nodes:
            _conclude(node, progress, certain, current=position == 0)
        certain = certain or (_failed(nodes) and not keep_going) or _asks(nodes)


def _failed(nodes: Iterable[Node]) -> bool:
    """Return whether one of the nodes failed."""
    return any(node["outcome"] == Outcome.FAILED for node in nodes)


def _asks(nodes: Iterable[Node]) -> bool:
    """Return whether the host can't continue after these nodes without the controller, because it reboots."""
    return any(
        action["op"] == REBOOT for node in nodes if node["outcome"] != Outcome.FAILED for action in node["actions"]
    )


def _ended(planned: Action | None, begun: Begun | None, certain: bool) -> Action:
    """Return the report of an action.

    :param planned: None for an action that the host decided on only during the apply
    :param begun: None for an action whose beginning did not arrive
    :param certain: whether an action whose beginning did not arrive certainly did not begin
    """
    unseen = ActionStatus.NOT_ATTEMPTED if certain else ActionStatus.UNKNOWN
    action: Any = {**(planned or {"args": {}}), "status": unseen, **(begun or {})}
    ended: Action = action
    return ended


def _conclude(node: Node, progress: HostProgress, certain: bool, current: bool) -> None:
    """Give one node its outcome. A node that was in progress is unknown, never changed and never failed.

    :param certain: whether a node whose beginning did not arrive certainly did not begin
    :param current: whether the host was processing its layer
    """
    begun = progress.begun.get(node["name"], {})
    over = certain or node["name"] in progress.ended or node["outcome"] not in Outcome.ACTS
    if "shutdown_first" in node:
        node["shutdown_first"] = _ended(node["shutdown_first"], begun.get(SHUTDOWN_FIRST), over)
    planned = dict(enumerate(node["actions"]))
    indexes = sorted({*planned, *begun} - {SHUTDOWN_FIRST})
    node["actions"] = [_ended(planned.get(index), begun.get(index), over) for index in indexes]
    if node["name"] in progress.ended:
        node["outcome"] = progress.ended[node["name"]]
    elif begun:
        node["outcome"], node["reason"] = Outcome.UNKNOWN, "it was running when the connection was lost"
    elif node["outcome"] in Outcome.ACTS:
        unseen = "it was about to start when the connection was lost" if current else UNSEEN
        node["outcome"], node["reason"] = (Outcome.SKIPPED, LOST) if certain else (Outcome.UNKNOWN, unseen)
