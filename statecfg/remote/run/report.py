"""Reports: what was planned and done, as plain data that is sent to the controller (format 1)."""

from __future__ import annotations

import json

from statecfg.remote.graph.names import ActionStatus, Outcome
from statecfg.remote.graph.sha256 import sha256
from statecfg.remote.ledger.records import Orphan
from statecfg.remote.machine.changes import as_json, marked_by, without_diff

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional

    from typing_extensions import TypedDict

    from statecfg.remote.graph.model import Action, HostNode
    from statecfg.remote.graph.results import Result
    from statecfg.remote.machine.changes import Change
    from statecfg.remote.run.plan import Plan, Step

    class ActionReport(TypedDict, total=False):
        """An action as data. `reason` and `log` are there only if the action has them.

        `node` is there only in the list of shutdown-first actions.
        """

        op: str
        args: Dict[str, Any]
        status: str
        reason: str
        log: str
        node: str

    class NodeReport(TypedDict, total=False):
        """A node as data. Every node has the first six keys; the page "Report" of the docs describes all of them."""

        name: str
        type: str
        outcome: str
        changes: List[Change]
        actions: List[ActionReport]
        position: str
        shutdown_first: ActionReport
        known_after: str
        declared: Dict[str, Any]
        excluded: str
        item_of: str
        reason: str
        triggered_by: List[str]
        leaves: List[str]
        state: str
        stays: bool
        kept: bool
        drift: List[str]


PORTION = 1 << 20  # bytes of JSON in one frame of nodes
SMALL = 4 << 10  # bytes of JSON; a smaller node is never cut
WHOLE = 12 << 20  # bytes of JSON that a plan, or an apply, may send; after that, large nodes are cut


def action_report(action: Action, status: str = ActionStatus.PLANNED, result: Optional[Result] = None) -> ActionReport:
    """Return an action as data: op, the args that are not None, status, and, if present, reason and log."""
    report: ActionReport = {
        "op": action.op,
        "args": {key: as_json(value) for key, value in action.args.items() if value is not None},
        "status": status,
    }
    if result is not None and result.get("reason"):
        report["reason"] = result["reason"]
    if result is not None and result.get("log"):
        report["log"] = result["log"]
    return report


def step_report(step: Step, actions: Optional[List[ActionReport]] = None) -> NodeReport:
    """Return a node as data.

    :param actions: its actions as data; None: they are planned
    """
    node = step.node
    report: NodeReport = {
        "name": node.provides,
        "type": node.type,
        "outcome": step.outcome,
        "changes": step.changes,
        "actions": [action_report(action) for action in step.spec.actions] if actions is None else actions,
        "position": node.position,
    }
    if step.spec.shutdown_first is not None:
        report["shutdown_first"] = action_report(step.spec.shutdown_first)
    if step.known_after is not None:
        report["known_after"] = step.known_after
    if step.outcome == Outcome.UNKNOWN and not isinstance(node, Orphan):
        report["declared"] = declared(node)
    if step.excluded:
        report["excluded"] = step.excluded
    if step.reason:
        report["reason"] = step.reason
    if step.triggered_by:
        report["triggered_by"] = list(step.triggered_by)
    if step.spec.left:
        report["leaves"] = list(step.spec.left)
    if step.changes and not step.removal and _thing_stays(step):
        report["kept"] = True
    if isinstance(node, Orphan):
        report["state"] = node.resource.state
        if node.note and not step.reason:
            report["reason"] = node.note
        if step.dependent:
            report["stays"] = True
            del report["state"]
    return report


def _thing_stays(step: Step) -> bool:
    """Tell whether a node adds or removes only something about a thing that exists before and after it."""
    first = step.changes[0]
    if (first["after"] is None or first["before"] is None) and marked_by(first["object"]):
        return all(marked_by(change["object"]) for change in step.changes)
    return first["after"] is None and _only_inside(step)


def _only_inside(step: Step) -> bool:
    """Tell whether a node only removes paths inside one of its own paths, which stays, as a purge does."""
    attrs = step.node.attrs
    if attrs.get("purge") and not attrs.get("absent"):  # its own path may lead through a link
        return all(change["after"] is None for change in step.changes)
    paths = [value.rstrip("/") + "/" for value in attrs.values() if isinstance(value, str) and value[:1] == "/"]
    return all(
        change["after"] is None and any(change["object"].startswith(path) for path in paths) for change in step.changes
    )


def declared(node: HostNode) -> Dict[str, Any]:
    """Return the attributes that a node declares, for a node whose actions are not known yet."""
    shown = {name: value for name, value in node.attrs.items() if value is not None and value is not False}
    return {name: "<secret>" if name in node.hides else as_json(value) for name, value in shown.items()}


def portions(nodes: Iterable[NodeReport], spent: List[int]) -> Iterator[List[NodeReport]]:
    """Yield the reports of nodes in lists that each fit into a frame; cut a node that is too large for a frame.

    :param spent: a list of one number, the bytes of JSON so far. It is updated. Above `WHOLE`, all large nodes are cut
    """
    part: List[NodeReport] = []
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


def cut(node: NodeReport) -> NodeReport:
    """Return a node's report without diffs, with its first 1000 changes and actions, and with the ends of its logs."""
    changes = [without_diff(change) for change in node["changes"]]
    if len(changes) > 1000:
        rest = f"{len(changes) - 1000} more"
        changes = [*changes[:1000], {"object": rest, "field": "changes", "before": None, "after": None}]
    actions = []
    for action in node["actions"][:1000]:
        logged = action.copy()
        if len(action.get("log", "")) > 4096:
            logged["log"] = "[…]\n" + action["log"][-4096:]
        args = action["args"]
        fits = sum(len(repr(value)) for value in args.values()) <= 4096
        logged["args"] = args if fits else {key: (f"{value!r:.200}") for key, value in args.items()}
        actions.append(logged)
    report = node.copy()
    report["changes"], report["actions"] = changes, actions
    return report


def summary(nodes: Iterable[Mapping[str, Any]]) -> Dict[str, int]:
    """Count the nodes by outcome."""
    counts: Dict[str, int] = {}
    for node in nodes:
        counts[node["outcome"]] = counts.get(node["outcome"], 0) + 1
    return counts


def fingerprints(plan: Plan, mask: Optional[Callable[[Any], Any]] = None) -> Dict[str, str]:
    """Return a digest of each node's planned changes.

    :param mask: replaces secrets in JSON data. Saved plans contain the digests, and a secret could be guessed from its
        digest. The controller itself checks that a secret still has the same value.
    """
    digests = {}
    for step in (*plan.steps.values(), *plan.removal_steps()):
        if step.outcome != Outcome.UNCHANGED or step.removal or step.excluded:
            # A node's source location does not affect its changes.
            report = dict(step_report(step), position="", declared=None)
            del report["declared"]  # nor does it matter that a plan of an older version lacks these
            text = json.dumps(mask(report) if mask is not None else report, sort_keys=True)
            digests[step.node.provides] = sha256(text.encode()).hexdigest()[:32]
    return digests


def differing(expect: Mapping[str, str], digests: Mapping[str, str]) -> List[str]:
    """Return the names of the nodes whose planned changes differ between two plans.

    :param expect: the fingerprints of the earlier plan
    :param digests: the fingerprints of the present plan
    """
    return sorted(name for name in set(expect) | set(digests) if expect.get(name) != digests.get(name))
