"""Check nodes again during an apply: those whose plan was unknown, before they act; and all nodes, after they acted."""

from __future__ import annotations

from typing import Callable, Dict, Iterator, Mapping, Sequence

from statecfg.remote.graph.model import ActionSpec, Excluded, HostNode
from statecfg.remote.graph.names import Outcome
from statecfg.remote.graph.nodetype import NodeType
from statecfg.remote.ledger.records import Orphan
from statecfg.remote.machine.planned import Planned
from statecfg.remote.machine.real import Facets, RealMachine
from statecfg.remote.run.node_run import NodeRun
from statecfg.remote.run.plan import Plan
from statecfg.remote.run.planning import Planner, describe
from statecfg.remote.run.touching import overtaken


class Rechecks:
    """The checks of one apply.

    :param plan: the plan; its steps are updated
    :param types: node types by name
    :param facets: the host's facets, shared with the plan
    :param owed: node → the nodes to whose change it still has to react, from earlier runs
    :param state: the executions of all nodes by name
    """

    def __init__(
        self,
        plan: Plan,
        types: Mapping[str, NodeType[...]],
        facets: Facets,
        owed: Mapping[str, Sequence[str]],
        state: Mapping[str, NodeRun],
    ) -> None:
        self.plan, self.types, self.facets, self.owed, self.state = plan, types, facets, owed, state
        self.nodes: Dict[str, HostNode] = {name: step.node for name, step in plan.steps.items()}

    def planner(self) -> Planner:
        """Return a planner for the real host as it is now."""
        planner = Planner(self.types, Planned(RealMachine(self.facets)), self.owed)
        planner.nodes, planner.current = self.nodes, self.plan
        orphans = [step.node for step in self.plan.removal_steps() if isinstance(step.node, Orphan)]
        planner.removals = {orphan.provides: orphan for orphan in orphans}
        planner.managed, planner.machine.elsewhere = self.plan.managed, self.plan.elsewhere
        planner.claims = planner.machine.claims = self.plan.claims
        planner.previous_secrets = self.plan.previous_secrets
        planner.actions = [{step.node.provides: step.spec.actions for step in steps} for steps in self.plan.layers]
        return planner

    def decide(self, node: NodeRun, beside: Sequence[HostNode]) -> None:
        """Check a node again and replace its step by the result.

        :param beside: the nodes that run in the same layer
        """
        step = node.step
        name = step.node.provides
        changed = [other for other in self.plan.triggers(step.node) if self.state[other].outcome == Outcome.CHANGED]
        changed += [other for other in self.owed.get(name, ()) if other not in changed]
        planner = self.planner()
        planner.machine.turn(name, triggers=changed, due=True)
        planner.machine.beside = beside
        step.outcome, step.spec, step.excluded = Outcome.UNCHANGED, ActionSpec(), ""
        known_after, step.known_after = step.known_after, None
        planner.decide(step)
        planner.foresee(step)
        step.trace = planner.machine.trace
        step.close()
        step.known_after = step.known_after or known_after
        if step.outcome == Outcome.UNKNOWN:
            step.outcome, step.reason = (
                Outcome.FAILED,
                "its actions can't be determined, although the nodes that it depends on have finished",
            )
        if step.outcome == Outcome.CHANGED:
            step.triggered_by = changed
        node.outcome, node.reason = step.outcome, "" if step.outcome == Outcome.CHANGED else step.reason

    def _acted(self) -> Iterator[NodeRun]:
        """Yield the nodes that have acted so far."""
        for node in self.state.values():
            if node.done or node.shutdown is not None:
                yield node

    def verify(self, nodes: Sequence[NodeRun], why_changed: Callable[[NodeRun], str]) -> None:
        """Check nodes again on the real machine; fail a node that would still act.

        :param why_changed: returns the known reason why a node's real object changed after its actions, "" for none
        """
        planner = self.planner()
        planner.machine.beside = [node.step.node for node in nodes if not node.step.excluded]
        for node in nodes:
            step = node.step
            acted = node.outcome == Outcome.CHANGED or bool(node.done)
            planner.machine.turn(step.node.provides, acted=acted, due=True)
            try:
                todo = planner.check(step.node).steps
                if not isinstance(step.node, Orphan) and not self.types[step.node.type].looks():
                    continue  # this check does not read the host, so there is nothing to read back
                for action in todo:
                    planner.imagine(action)
            except Excluded:
                continue
            except (Exception, SystemExit) as problem:
                node.fail(f"it can't be checked after its actions: {describe(problem)}")
                continue
            if todo:
                still = [
                    f"{change['object']} {change['field']}: {change['before']!r}, not {change['after']!r}"
                    for change in planner.changes(step.node)
                ]
                what = "; ".join(still[:3]) or f"it still needs {', '.join((action.op for action in todo))}"
                reason = why_changed(node)
                what += f"; {reason}" if reason else ""
                unchanged = node.outcome == Outcome.UNCHANGED
                why = overtaken(step.node, planner.machine, self.nodes, self._acted()) if unchanged else ""
                node.fail(f"{why} ({what})" if why else f"did not converge: {what}")
                beside, planner = planner.machine.beside, self.planner()
                planner.machine.beside = beside
