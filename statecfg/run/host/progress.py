"""The progress of one host: its actions, finished nodes and reported layers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NotRequired, TypedDict

from statecfg.remote.graph.names import ActionStatus, Outcome
from statecfg.run.host import frames
from statecfg.run.host.broken import SUSPICIOUS, Broken, quoted
from statecfg.run.host.plan import HostNodes
from statecfg.run.report_model import Node


class Begun(TypedDict):
    """An action that the host began. Its status is unknown until it ends."""

    op: str
    status: str
    reason: NotRequired[str]


ACTIONS = 10_000  # maximum number of actions of one node
SHUTDOWN_FIRST = -1  # the index of a shutdown-first action
REBOOT = "reboot"  # the op after which the host continues only if the controller connects again


class HostProgress:
    """The actions and outcomes of the nodes of a plan, as the host reports them.

    :param plan: the plan whose nodes receive the outcomes
    """

    def __init__(self, plan: HostNodes) -> None:
        self.plan = plan
        self.begun: dict[str, dict[int, Begun]] = {}  # node → index → action; equal actions share their map
        self._actions: dict[tuple[str, str, str | None], Begun] = {}
        self.ended: dict[str, str] = {}  # node → outcome
        self.reported = {"removals": 0, "layers": 0}  # the number of reported layers of each part
        self.awaited: dict[str, Node] | None = None  # nodes that a layer's report still lacks; None between layers

    @property
    def started(self) -> bool:
        """Whether the host has done anything."""
        return bool(self.begun or self.ended or any(self.reported.values()))

    @property
    def complete(self) -> bool:
        """Whether the host has reported every layer."""
        return self.awaited is None and next(self.unfinished(), None) is None

    def unfinished(self) -> Iterator[tuple[str, int]]:
        """Yield the part and the number of each layer that was not reported, in the order of execution."""
        for part in self.reported:
            yield from ((part, number) for number in range(self.reported[part], len(self.plan.parts[part])))

    def finished(self) -> Iterator[list[Node]]:
        """Yield the nodes of each layer that was reported."""
        for part, number in self.reported.items():
            yield from self.plan.parts[part][:number]

    def check_layer(self, number: int) -> None:
        """Check that a layer of the definition is the current one.

        :raises Broken: if it is not
        """
        if next(self.unfinished(), None) != ("layers", number):
            raise Broken(f"it adds items to layer {number} out of order", SUSPICIOUS)

    def check_turn(self, name: str) -> None:
        """Check that a node belongs to the current layer.

        :raises Broken: if it belongs to another layer
        """
        if self.plan.positions[self.plan.checked_name(name)] != next(self.unfinished(), None):
            raise Broken(f"it acts on {quoted(name)} before or after its layer", SUSPICIOUS)

    def action(self, frame: frames.ActionFrame) -> bool:
        """Record that an action started or ended; return whether the node's first action started.

        :raises Broken: if the node can't act now
        """
        name, index = self.plan.checked_name(frame.node), frame.index
        if not SHUTDOWN_FIRST <= index < ACTIONS:
            raise Broken(f"{quoted(name)} has more than {ACTIONS:,} actions", SUSPICIOUS)
        if index != SHUTDOWN_FIRST:  # shutdown-first actions run before all layers
            self.check_turn(name)
        if name in self.ended:
            raise Broken(f"it acts on {quoted(name)}, which has finished", SUSPICIOUS)
        begun = self.begun.setdefault(name, {})
        before = begun[index]["status"] if index in begun else None
        if frame.event == "started":
            # The host retries an action alone if it failed as part of a joint action.
            if before not in (None, ActionStatus.ERROR):
                raise Broken(f"an action of {quoted(name)} starts twice", SUSPICIOUS)
            first = not begun
            begun[index] = self._action(frame.op, ActionStatus.UNKNOWN)
            return first
        if before != ActionStatus.UNKNOWN or frame.status is None:
            raise Broken(f"its action frame is invalid: {quoted(name)} ends an action that never started", SUSPICIOUS)
        begun[index] = self._action(begun[index]["op"], frame.status, frame.reason)
        return False

    def _action(self, op: str, status: str, reason: str | None = None) -> Begun:
        action: Begun = {"op": op, "status": status}
        if reason:
            action["reason"] = reason
        return self._actions.setdefault((op, status, reason), action)

    def node(self, frame: frames.FinishedFrame) -> None:
        """Record that a node run ended.

        :raises Broken: if it can't have ended
        """
        self.check_turn(frame.node)
        if frame.node in self.ended:
            raise Broken(f"{quoted(frame.node)} finishes twice", SUSPICIOUS)
        if frame.outcome != Outcome.SKIPPED and not self.begun.get(frame.node):
            raise Broken(
                f"{quoted(frame.node)} finishes as {frame.outcome}, but none of its actions started", SUSPICIOUS
            )
        self.ended[frame.node] = frame.outcome

    def layer(self, frame: frames.LayerFrame) -> None:
        """Record the report of a layer, or a piece of it.

        :raises Broken: if it is not about the current layer, or contradicts earlier frames
        """
        part, number = frame.part, frame.layer
        if next(self.unfinished(), None) != (part, number):
            raise Broken(f"it reports layer {number} of {part} out of order", SUSPICIOUS)
        if self.awaited is None:
            self.awaited = {node["name"]: node for node in self.plan.parts[part][number]}
        texts: dict[str, str] = {}
        for node in frame.nodes:
            planned = self.awaited.pop(node.name, None)
            if planned is None:
                raise Broken("it reports a layer with other nodes than were sent", SUSPICIOUS)
            self._check_outcome(node)
            fields: Any = node.to_json(texts)
            _report(planned, fields)
        if frame.more:
            return
        if self.awaited:
            raise Broken("it reports a layer with other nodes than were sent", SUSPICIOUS)
        self.awaited = None
        self.reported[part] += 1

    def _check_outcome(self, node: frames.ReportedNode) -> None:
        ended = self.ended.get(node.name)
        if ended is None and node.outcome == Outcome.CHANGED:
            raise Broken(f"it reports {quoted(node.name)} as changed, although it never finished", SUSPICIOUS)
        if ended is not None and ended != node.outcome:
            raise Broken(f"{quoted(node.name)} finished as {ended}, but is reported as {node.outcome}", SUSPICIOUS)

    def amended(self, frame: frames.AmendedFrame) -> None:
        """Record that a node failed after its layer was reported.

        :raises Broken: if its layer was not reported
        """
        part, number = self.plan.positions[self.plan.checked_name(frame.node)]
        if part == "left" or number >= self.reported[part]:
            raise Broken(f"it corrects {quoted(frame.node)}, which it has not reported", SUSPICIOUS)
        self.ended[frame.node] = Outcome.FAILED
        for node in self.plan.parts[part][number]:
            if node["name"] == frame.node:
                node["outcome"], node["reason"] = Outcome.FAILED, frame.reason


def _report(planned: Node, fields: Node) -> None:
    """Replace the plan of a node by its report. Share what is equal in both: usually everything but statuses."""
    if fields["changes"] == planned["changes"]:
        fields["changes"] = planned["changes"]
    for action, before in zip(fields["actions"], planned["actions"], strict=False):
        if action["args"] == before["args"]:
            action["args"] = before["args"]
    report: Any = planned
    sent = {key: report[key] for key in ("name", "type", "position", "item_of") if key in report}
    report.clear()
    report.update(fields)
    report.update(sent)
