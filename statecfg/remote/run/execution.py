"""Execution: perform the planned actions on the real host, layer by layer, and check the result."""

from __future__ import annotations

from functools import partial

from statecfg.remote.graph.names import ActionStatus, Outcome
from statecfg.remote.machine import accounts
from statecfg.remote.run.aftercare import Aftercare
from statecfg.remote.run.node_events import NodeEvents
from statecfg.remote.run.node_run import NodeRun
from statecfg.remote.run.performing import BATCH, LANES, Performer, side_by_side
from statecfg.remote.run.planning import missing
from statecfg.remote.run.rechecks import Rechecks
from statecfg.remote.run.report import action_report, portions
from statecfg.remote.run.touching import chains

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, List, Mapping, Optional, Sequence

    from statecfg.remote.graph.nodetype import NodeType
    from statecfg.remote.hooks.lifecycle import Lifecycle
    from statecfg.remote.machine.real import Facets
    from statecfg.remote.run.login_guard import LoginGuard
    from statecfg.remote.run.performing import StepJournal
    from statecfg.remote.run.plan import Plan
    from statecfg.remote.run.report import ActionReport, NodeReport


class Execution:
    """Performs one plan on the host.

    :param plan: the plan
    :param types: node types by name
    :param facets: the host's facets, shared with the plan
    :param send: receives each message about the progress immediately, from any thread
    :param record: the journal
    :param stopped: returns why nothing new may start, "" if it may
    :param keep_going: after a failure, skip only the nodes that depend on the failed node
    :param owed: node → the nodes to whose change it still has to react, from earlier runs
    :param life: makes nodes managed and fires the events before and after each node; None: neither happens
    :param guards: restore what prevents all logins
    :ivar state: the executions of all nodes by name
    :ivar shutdown: the reports of the shutdown-first actions
    :ivar spent: the bytes of JSON that the reports took so far, as a list of one number
    :ivar halted: why the run ends early, "" if it does not
    :ivar acted: whether any node has acted
    """

    def __init__(
        self,
        plan: Plan,
        types: Mapping[str, NodeType[...]],
        facets: Facets,
        send: Callable[[Mapping[str, Any]], None],
        record: StepJournal,
        stopped: Callable[[], str],
        keep_going: bool = False,
        owed: Optional[Mapping[str, Sequence[str]]] = None,
        life: Optional[Lifecycle] = None,
        guards: Sequence[LoginGuard] = (),
    ) -> None:
        self.plan, self.keep_going = plan, keep_going
        self.state = {name: NodeRun(step) for name, step in plan.steps.items()}
        self.state.update((step.node.provides, NodeRun(step)) for step in plan.removal_steps())
        self.performer = Performer(facets, send, record, stopped)
        self.performer.said = plan.said
        self.rechecks = Rechecks(plan, types, facets, owed or {}, self.state)
        self.events = NodeEvents(life)
        self.shutdown: List[ActionReport] = []
        self.spent = [0]
        self.halted = ""
        self.acted = False
        self.after = Aftercare(self.state, self.performer, types, guards, self.halt)

    def run(self) -> List[List[NodeReport]]:
        """Perform the plan; return the reports of all nodes, layer by layer, removals first."""
        conflicts = sorted(name for name, step in self.plan.steps.items() if step.conflict)
        if conflicts and not self.keep_going:
            self.halted = f"{', '.join(conflicts)} can't be applied"
        self.shut_down()
        for number, steps in enumerate(self.plan.removals):
            self.removal(number, [self.state[step.node.provides] for step in steps])
        for number, steps in enumerate(self.plan.layers):
            self.layer(number, [self.state[step.node.provides] for step in steps])
        self.after.at_end()
        if self.acted and not self.halted and not self.performer.stopped():
            self.after.effects(self.rechecks.planner().machine)
        layers = (*self.plan.removals, *self.plan.layers)
        return [[self.state[step.node.provides].report() for step in steps] for steps in layers]

    def halt(self, reason: str) -> None:
        """End the run: start no further layer."""
        self.halted = reason

    # Shutdown-first

    def shut_down(self) -> None:
        """Perform the shutdown-first actions, one at a time, dependents first; the first failure ends the run."""
        for steps in reversed(self.plan.layers[: self.reach()]):
            for step in reversed(steps):
                node = self.state[step.node.provides]
                if step.spec.shutdown_first is None or step.outcome != Outcome.CHANGED or node.shutdown is not None:
                    continue
                self.halted = self.halted or self.performer.stopped()
                if self.halted:
                    report = action_report(step.spec.shutdown_first, ActionStatus.NOT_ATTEMPTED)
                    self._add_shutdown(report, step.node.provides)
                elif not self.shut(node):
                    self.performer.record.finished(step.node.provides, node.outcome)
                    failed = f"{step.spec.shutdown_first.op} of {step.node.provides} failed"
                    self.halted = self.performer.stopped() or failed

    def reach(self) -> int:
        """Return how many layers will start according to the plan, so that nothing is stopped and then left down."""
        for number, steps in enumerate(self.plan.layers):
            if not self.keep_going and any(step.outcome == Outcome.FAILED for step in steps):
                return number + 1
        return len(self.plan.layers)

    def shut(self, node: NodeRun) -> bool:
        """Perform a node's shutdown-first action; return whether it succeeded."""
        action = node.step.spec.shutdown_first
        assert action is not None
        name = node.step.node.provides
        self.events.manage([node])
        if node.outcome == Outcome.FAILED:
            return False
        why = self.performer.stopped()
        if why:
            node.outcome, node.reason = Outcome.SKIPPED, f"not started: {why}"
            return False
        self.performer.record.intend([name])
        result = self.performer.perform(node, action, -1)
        node.shutdown = action_report(action, result["status"], result)
        self._add_shutdown(node.shutdown, name)
        if result["status"] != ActionStatus.OK:
            node.fail(f"{action.op}, which runs first, failed: {result['reason']}")
            self.events.failed(node)
        return bool(result["status"] == ActionStatus.OK)

    def _add_shutdown(self, report: ActionReport, name: str) -> None:
        self.shutdown.append({**report, "node": name})

    # Layers

    def layer(self, number: int, nodes: Sequence[NodeRun]) -> None:
        """Run one layer: check the undecided nodes, act concurrently, check again, report."""
        ready = [node for node in nodes if self.may_begin(node) and self.events.before(node)]
        self.decide(ready)
        self.events.manage(ready)
        acting = self.act_on(ready)
        if self.acted:
            with accounts.Remembering():
                self.verify([node for node in ready if node.outcome in Outcome.SOUND])
        for node in ready:
            self.events.after(node)
        self.close(number, nodes, acting, "layers")

    def removal(self, number: int, nodes: Sequence[NodeRun]) -> None:
        """Run one layer of removals, or of the restarts that removals trigger."""
        ready = [node for node in nodes if self.may_begin(node) and self.events.before_removal(node)]
        self.decide(ready)
        acting = self.act_on(ready)
        if acting:
            self.verify([node for node in acting if node.outcome == Outcome.CHANGED and not node.verified])
        for node in ready:
            if node.outcome in Outcome.SOUND and not node.step.dependent:
                self.events.after_removal(node)
        self.close(number, nodes, acting, "removals")

    def act_on(self, ready: Sequence[NodeRun]) -> List[NodeRun]:
        """Perform the actions of nodes concurrently; return the nodes that were to act."""
        acting = [node for node in ready if node.outcome == Outcome.CHANGED]
        if acting:
            self.acted = True
            self.performer.record.intend([node.step.node.provides for node in acting])
            self.performer.together(acting)
            self.act_on_groups(chains([node for node in acting if node.outcome == Outcome.CHANGED]))
        return acting

    def act_on_groups(self, groups: Sequence[Sequence[NodeRun]]) -> None:
        """Run groups of nodes concurrently, those that only write a small file in batches."""
        quick = [group[0] for group in groups if len(group) == 1 and self.performer.quick(group[0])]
        works: List[Callable[[], None]] = []
        if len(quick) > 1:
            batches = [quick[at : at + BATCH] for at in range(0, len(quick), BATCH)]
            lanes = [batches[lane::LANES] for lane in range(min(LANES, len(batches)))]
            works = [partial(self.act_in_batches, lane) for lane in lanes]
            groups = [group for group in groups if len(group) > 1 or not self.performer.quick(group[0])]
        side_by_side([*works, *(partial(self.act_in_order, group) for group in groups)])

    def act_in_batches(self, batches: Sequence[Sequence[NodeRun]]) -> None:
        """Run batches one after another."""
        for nodes in batches:
            self.performer.write_together(nodes)

    def close(self, number: int, nodes: Sequence[NodeRun], acting: Sequence[NodeRun], part: str) -> None:
        """Record and report the outcomes of a layer; a failure halts the run unless `keep_going` is set."""
        self.performer.record.all_finished([(node.step.node.provides, node.outcome) for node in acting])
        for node in acting:
            self.performer.send({"type": "finished", "node": node.step.node.provides, "outcome": node.outcome})
        failed = sorted(node.step.node.provides for node in nodes if node.outcome == Outcome.FAILED)
        if failed and not self.keep_going and not self.halted:
            self.halted = f"{', '.join(failed)} failed"
        parts = list(portions((node.report() for node in nodes), self.spent))
        for index, part_of_nodes in enumerate(parts):
            more = {"more": True} if index + 1 < len(parts) else {}
            self.performer.send(dict(more, type="layer", part=part, layer=number, nodes=part_of_nodes))
        self.after.after_layer()

    def may_begin(self, node: NodeRun) -> bool:
        """Tell whether a node may start; otherwise skip it with a reason."""
        if node.outcome in Outcome.STOPPED:
            return False
        why = missing(node.step.node, self.state, "was")
        if why:
            node.outcome, node.reason = Outcome.SKIPPED, why
            return False
        why = self.halted or self.performer.stopped()
        if why and node.outcome != Outcome.UNCHANGED:
            node.outcome, node.reason = Outcome.SKIPPED, f"not started: {why}"
            return False
        return not why

    def decide(self, nodes: Sequence[NodeRun]) -> None:
        """Check the nodes again whose plan was fully or partly unknown."""
        for node in nodes:
            if node.step.outcome == Outcome.UNKNOWN or (node.step.outcome == Outcome.CHANGED and node.step.known_after):
                self.rechecks.decide(node, [other.step.node for other in nodes if not other.step.excluded])
                waits = node.outcome == Outcome.CHANGED and node.step.spec.shutdown_first is not None
                if waits and not self.performer.stopped():
                    self.shut(node)

    def act_in_order(self, nodes: Sequence[NodeRun]) -> None:
        """Run nodes that touch the same object one after another, in the planned order."""
        for node in nodes:
            self.performer.act(node)
            if node.step.removal and node is not nodes[-1] and node.outcome == Outcome.CHANGED:
                self.verify([node])  # now: the next node may change what this one restored
                node.verified = True

    def verify(self, nodes: Sequence[NodeRun]) -> None:
        """Check nodes again on the real machine; fail a node that would still act."""
        self.rechecks.verify(nodes, self.after.why)
