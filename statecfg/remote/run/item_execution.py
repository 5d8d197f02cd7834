"""Performs plans with nodes that are repeated for items of the host: list the items at their node's turn."""

from __future__ import annotations

from statecfg.remote.graph.model import Excluded, Unknown
from statecfg.remote.graph.names import Outcome
from statecfg.remote.graph.results import OK
from statecfg.remote.run.execution import Execution
from statecfg.remote.run.item_lists import names
from statecfg.remote.run.item_nodes import OPTION, Repeated
from statecfg.remote.run.node_run import NodeRun
from statecfg.remote.run.plan import Step
from statecfg.remote.run.planning import describe, missing
from statecfg.remote.run.report import portions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Protocol, Sequence

    from statecfg.remote.graph.model import HostNode
    from statecfg.remote.run.report import NodeReport

    class Managed(Protocol):
        """What the execution needs of the managed resources."""

        repeated: Repeated

        def join(self, nodes: Sequence[HostNode]) -> None: ...
        def report(self, step: Step) -> NodeReport: ...


LISTED = "list_items"  # what the journal calls the list of a declared node that was not known before the run


class ItemExecution(Execution):
    """Performs plans with `for_each_host`.

    :ivar managed: set by the caller
    """

    managed: Managed

    def layer(self, number: int, nodes: Sequence[NodeRun]) -> None:
        """Run one layer, after the lists of its declared nodes were made or compared with the plan."""
        joined: Dict[str, List[NodeRun]] = {}
        every: List[NodeRun] = []
        for node in nodes:
            every.append(node)
            if OPTION in node.step.node.options:
                joined[node.step.node.provides] = self._join(number, node)
                every += joined[node.step.node.provides]
        Execution.layer(self, number, every)
        for name, items_of in joined.items():
            if items_of:
                acted = any(node.done or node.shutdown for node in items_of)
                self.performer.record.took(name, LISTED, OK)
                self.performer.record.finished(name, Outcome.CHANGED if acted else Outcome.UNCHANGED)

    def verify(self, nodes: Sequence[NodeRun]) -> None:
        """Check nodes again, and whether what acted in this layer adds items."""
        Execution.verify(self, [node for node in nodes if OPTION not in node.step.node.options])
        for run in nodes:
            planned = self.managed.repeated.found.get(run.step.node.provides)
            if OPTION in run.step.node.options and planned is not None:
                found = self._listed(run.step.node)
                problem = found.problems.get(run.step.node.provides)
                more = [item for items_of in found.found.values() for item in items_of if item not in planned]
                if more:
                    listed = names(next(iter(item.values())) for item in more)
                    text = "did not converge: its list now contains %s as well; make it narrower, or add the node "
                    run.fail((text + "that adds it to its `requires`") % listed)
                elif problem is not None:
                    run.fail(f"did not converge: {describe(problem)}")

    def _listed(self, node: HostNode) -> Repeated:
        """List the items of a declared node on the real host as it is now."""
        planner = self.rechecks.planner()
        known = node.provides in self.managed.repeated.found
        planner.machine.turn(node.provides, acted=known, due=True)  # a plan's conditions are not checked again
        found = Repeated([[node]])
        found.nodes.update(
            (name, nodes) for name, nodes in self.managed.repeated.nodes.items() if name != node.provides
        )
        found.find(planner, node)
        return found

    def _join(self, number: int, run: NodeRun) -> List[NodeRun]:
        """List the items of a declared node at its turn; return the executions of nodes that were not planned."""
        node, repeated = run.step.node, self.managed.repeated
        name = node.provides
        planned = repeated.found.get(name)
        ready = not (missing(node, self.state) or self.halted or self.performer.stopped())
        if not ready or (planned is None and run.outcome != Outcome.UNKNOWN):
            return []
        found = self._listed(node)
        problem = found.problems.get(name)
        if planned is not None:
            if problem is not None or found.found[name] != planned:
                run.fail("its items are not those of the plan: %s" % (problem or found.exclusion(name)))
            return []
        if isinstance(problem, Excluded):
            run.step.excluded, run.step.outcome, run.outcome, run.reason = str(problem), *[Outcome.UNCHANGED] * 2, ""
            return []
        if problem is not None:
            text = "its items can't be known, although the nodes that it depends on have finished: %s"
            run.fail(text % problem if isinstance(problem, Unknown) else describe(problem))
            return []
        repeated.found[name], repeated.nodes[name] = found.found[name], found.nodes[name]
        run.step.excluded, run.step.known_after = str(found.exclusion(name)), None
        run.step.outcome, run.outcome, run.reason, run.step.reason = *[Outcome.UNCHANGED] * 2, "", ""
        return self._add(number, name, found.nodes[name])

    def _add(self, number: int, name: str, nodes: Sequence[HostNode]) -> List[NodeRun]:
        """Add nodes to the run, and tell the controller."""
        runs = []
        for node in nodes:
            step = Step(node)
            step.outcome, step.known_after = Outcome.UNKNOWN, name
            self.plan.steps[node.provides], self.rechecks.nodes[node.provides] = step, node
            self.plan.layers[number].append(step)
            runs.append(NodeRun(step))
            self.state[node.provides] = runs[-1]
        for steps in self.plan.layers[number + 1 :]:
            for step in steps:
                self.managed.repeated.require(step.node)
        self.managed.join(nodes)
        if runs:  # the ledger knows what its change triggers, but not yet its items
            self.performer.record.started(name, LISTED)
        for part in portions([self.managed.report(run.step) for run in runs], self.spent):
            self.performer.send({"type": "items", "layer": number, "nodes": part})
        return runs
