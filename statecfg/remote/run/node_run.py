"""The execution of one node in an apply, and the results of its actions."""

from __future__ import annotations

from statecfg.remote.graph.names import ActionStatus, Outcome
from statecfg.remote.ledger.records import Orphan
from statecfg.remote.run.report import action_report, step_report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional

    from statecfg.remote.run.plan import Step
    from statecfg.remote.run.report import ActionReport, NodeReport


class NodeRun:
    """The execution of one node, with the results of its actions so far."""

    __slots__ = ("done", "ended", "forgotten", "outcome", "reason", "shutdown", "step", "verified")

    def __init__(self, step: Step) -> None:
        self.step = step
        self.done: List[ActionReport] = []
        self.shutdown: Optional[ActionReport] = None
        self.ended = 0.0  # when its last action ended, `time.monotonic()`
        self.forgotten = False  # its record was deleted from the ledger
        self.outcome = step.outcome
        self.reason = step.reason if step.outcome != Outcome.CHANGED else ""  # a plan's note on what only a run shows
        self.verified = False

    @property
    def sound(self) -> bool:
        """Whether the host is as the node defines it. A node that `when_host` excludes defines nothing."""
        return self.outcome in Outcome.SOUND and not self.step.excluded

    def fail(self, reason: str) -> None:
        """Set the outcome to failed, with a reason."""
        self.outcome, self.reason = Outcome.FAILED, reason

    def report(self) -> NodeReport:
        """Return the node as data; planned actions that did not start have the status `NOT_ATTEMPTED`."""
        actions = self.step.spec.actions
        left = [action_report(action, ActionStatus.NOT_ATTEMPTED) for action in actions[len(self.done) :]]
        data = step_report(self.step, self.done + left)
        first = self.step.spec.shutdown_first
        if first is not None:
            data["shutdown_first"] = self.shutdown or action_report(first, ActionStatus.NOT_ATTEMPTED)
        data["outcome"] = self.outcome
        data.pop("reason", None)
        node = self.step.node
        reason = self.reason or (node.note if isinstance(node, Orphan) and self.outcome == Outcome.UNCHANGED else "")
        if reason:
            data["reason"] = reason
        return data
