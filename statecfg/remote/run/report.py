"""Reports: what was planned and done, as plain data that is sent to the controller (format 1)."""

from __future__ import annotations

from statecfg.remote.graph.names import ActionStatus
from statecfg.remote.ledger.orphans import Orphan
from statecfg.remote.machine.changes import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, Iterator, List, Optional

    from statecfg.remote.graph.model import Action, Result
    from statecfg.remote.run.planning import Step

PORTION = 1 << 20  # bytes of JSON in one frame of nodes
SMALL = 4 << 10  # bytes of JSON; a smaller node is never cut
WHOLE = 12 << 20  # bytes of JSON that a plan, or an apply, may send; after that, large nodes are cut


def action_report(
    action: Action, status: str = ActionStatus.PLANNED, result: Optional[Result] = None
) -> Dict[str, Any]:
    """Return an action as data: op, the args that are not None, status, and, if present, reason and log."""
    found = {
        "op": action.op,
        "args": {key: shown(value) for key, value in action.args.items() if value is not None},
        "status": status,
    }
    for key in ("reason", "log"):
        if result is not None and result.get(key):
            found[key] = result[key]
    return found


def step_report(step: Step) -> Dict[str, Any]:
    """Return a planned node as data."""
    node = step.node
    found: Dict[str, Any] = {
        "name": node.provides,
        "type": node.type,
        "outcome": step.outcome,
        "changes": shown(step.changes),
        "actions": [action_report(action) for action in step.spec.actions],
        "position": node.position,
    }
    if step.spec.shutdown_first is not None:
        found["shutdown_first"] = action_report(step.spec.shutdown_first)
    if step.known_after is not None:
        found["known_after"] = step.known_after
    if step.reason:
        found["reason"] = step.reason
    if step.triggered_by:
        found["triggered_by"] = list(step.triggered_by)
    if step.spec.left:
        found["leaves"] = list(step.spec.left)
    if isinstance(node, Orphan):
        found["state"] = node.row["state"]
        if node.note and not step.reason:
            found["reason"] = node.note
        if step.kept:
            found["stays"] = True
            del found["state"]
    return found


def portions(nodes: Iterable[Dict[str, Any]], spent: List[int]) -> Iterator[List[Dict[str, Any]]]:
    """Yield the reports of nodes in lists that each fit into a frame; cut a node that is too large for a frame.

    :param spent: a list of one number, the bytes of JSON so far. It is updated. Above `WHOLE`, all large nodes are cut
    """
    import json

    part: List[Dict[str, Any]] = []
    size = 0
    for node in nodes:
        weight = len(json.dumps(node))
        if weight > PORTION or (spent[0] > WHOLE and weight > SMALL):
            node = cut(node)
            weight = len(json.dumps(node))
        if part and (size + weight > PORTION or len(part) == 200):
            yield part
            part, size = [], 0
        part.append(node)
        size += weight
        spent[0] += weight
    yield part


def cut(node: Dict[str, Any]) -> Dict[str, Any]:
    """Return a node's report without diffs, with its first 1000 changes and actions, and with the ends of its logs."""
    changes = [{key: value for key, value in change.items() if key != "diff"} for change in node["changes"]]
    if len(changes) > 1000:
        more = {"object": "%d more" % (len(changes) - 1000), "field": "changes", "before": None, "after": None}
        changes = [*changes[:1000], more]
    actions = []
    for action in node["actions"][:1000]:
        logged = dict(action)
        if len(action.get("log", "")) > 4096:
            logged["log"] = "[…]\n" + action["log"][-4096:]
        args = action["args"]
        fits = sum(len(repr(value)) for value in args.values()) <= 4096
        logged["args"] = args if fits else {key: ("%.200r" % (value,)) for key, value in args.items()}
        actions.append(logged)
    return dict(node, changes=changes, actions=actions)


def summary(nodes: List[Dict[str, Any]]) -> Dict[str, int]:
    """Count the nodes by outcome."""
    counts: Dict[str, int] = {}
    for node in nodes:
        counts[node["outcome"]] = counts.get(node["outcome"], 0) + 1
    return counts
