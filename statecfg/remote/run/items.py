"""Nodes with `for_each_host`: list the items at a node's turn, and make a node of each.

The declared node itself does nothing and is not managed: it is reported as excluded, with its items. The nodes of its
items are in the same layer. What requires the declared node also requires them. Only hosts whose definitions contain
such nodes get this module.
"""

from __future__ import annotations

from statecfg.remote.graph.model import Excluded, HostNode
from statecfg.remote.graph.names import Mode
from statecfg.remote.ledger.records import Orphan, identities
from statecfg.remote.run.item_nodes import OPTION, Repeated
from statecfg.remote.run.management import Management
from statecfg.remote.run.plan import Step
from statecfg.remote.run.planning import Planner, missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Mapping, Sequence

    from statecfg.remote.machine.real import Facets
    from statecfg.remote.run.execution import Execution
    from statecfg.remote.run.plan import Plan
    from statecfg.remote.run.report import NodeReport

PASSES = 5  # plans of one host: each may show orphans whose removal changes a list


class ItemPlanner(Planner):
    """Plans definitions with `for_each_host`: the nodes of items join the layers of their declared nodes.

    :ivar repeated: set by the caller
    """

    repeated: Repeated

    def layer(self, layer: Sequence[HostNode], earlier: Dict[str, Step]) -> List[Step]:
        nodes: List[HostNode] = []
        for name in self.repeated.declared:
            self.nodes.pop(name, None)  # checks must not take samples for attributes
        for node in layer:
            nodes.append(node)
            if isinstance(node, Orphan):
                continue
            self.repeated.require(node)
            if OPTION in node.options and not missing(node, earlier):
                self.acting[node.provides] = self.ancestors(node, earlier)
                self.begin(Step(node))
                self.repeated.find(self, node)
                nodes += self.repeated.nodes.get(node.provides, ())
                self.nodes.update((item.provides, item) for item in self.repeated.nodes.get(node.provides, ()))
        return Planner.layer(self, nodes, earlier)

    def excludes(self, node: HostNode, earlier: Mapping[str, Step]) -> bool:
        """Tell whether the other nodes of a layer act without a node: its declared nodes do nothing."""
        return OPTION in node.options or Planner.excludes(self, node, earlier)

    def check(self, node: HostNode) -> Any:
        if OPTION in node.options and not isinstance(node, Orphan):
            raise self.repeated.exclusion(node.provides)
        return Planner.check(self, node)


class _Beginning:
    """What a run knew before its first plan, because a run with items plans several times."""

    def __init__(self, managed: Management) -> None:
        self.resources = dict(managed.recorded.resources)
        self.debts = [(debt.node, debt.cause) for debt in managed.recorded.debts]
        self.warnings = len(managed.warnings)

    def restore(self, managed: Management) -> None:
        """Forget what the previous plan found."""
        managed.recorded.resources = dict(self.resources)
        for debt, (node, cause) in zip(managed.recorded.debts, self.debts):
            debt.node, debt.cause = node, cause
        del managed.warnings[self.warnings :]


class ItemManagement(Management):
    """The managed resources of a playbook with `for_each_host`."""

    planner = ItemPlanner

    def compare(self, layers: List[List[HostNode]]) -> None:
        """Compare the definition with the managed resources; see `Management`.

        Resources that may be items of lists that are not known stay as they are.
        """
        if not hasattr(self, "repeated"):
            self.repeated, self.written, self._beginning = Repeated(layers), layers, _Beginning(self)
        self._beginning.restore(self)
        self.refusal, self._life, self._drift = "", None, None
        declared = [[node for node in layer if OPTION not in node.options] for layer in layers]
        nodes = [*declared, self.repeated.all()]
        self.recorded.held = {name: why for name, why in self._held(nodes).items() if self.order.mode != Mode.DESTROY}
        Management.compare(self, nodes)
        self.layers = [] if self.order.mode in Mode.REMOVING else layers
        if self.definitions is not None:
            for orphan in self.all_orphans():
                for source in self.repeated.declared.values():
                    if source.hides and self.repeated.may_be_item(orphan.resource, source):
                        orphan.supply(source.attrs, self.definitions.attrs(source))

    def _held(self, layers: Sequence[Sequence[HostNode]]) -> Dict[str, str]:
        """Return the names of the resources that are neither items now nor orphans, each with its declared node."""
        defined = {node.provides for layer in layers for node in layer}
        taken = {identity for layer in layers for node in layer for identity in identities(node)}
        held = {}
        for name, resource in self.recorded.resources.items():
            definition = resource.definition
            if name in defined or not taken.isdisjoint(definition.identities):
                continue
            for source, node in self.repeated.declared.items():
                gone = definition.type == "remove" or bool(definition.attrs.get("absent"))
                known = source in self.repeated.found
                if known and not (gone and source in definition.requires):
                    continue  # what is absent can't be listed, and stays as defined
                if self.repeated.may_be_item(resource, node):
                    held[name] = source
        return held

    def plan(self, facets: Facets, load: Callable[[Management], None]) -> Plan:
        """Plan until the lists and the removals agree, because each may affect the other."""
        repeated, order = self.repeated, self.order
        repeated.unstable.clear()
        self.layers = [] if order.mode in Mode.REMOVING else self.written  # an earlier plan added items
        for turn in range(PASSES + 2):
            before = dict(repeated.found)
            if order.mode == Mode.PRUNE:
                self._list_now(facets)
            plan = Management.plan(self, facets, load)
            if order.mode == Mode.DESTROY or (turn and before == repeated.found):
                break
            if turn == PASSES - 1:
                names_of = {*before, *repeated.found}
                repeated.unstable.update(name for name in names_of if before.get(name) != repeated.found.get(name))
            self.compare(self.written)
            load(self)
            self.follow()
        for name, problem in repeated.problems.items():
            step = plan.steps.get(name)
            count = sum(source == name for source in self.recorded.held.values())
            if step is not None and count and not isinstance(problem, Excluded):
                what = f"{count} resource{'s'[count == 1 :]} of earlier runs stay{'s' * (count == 1)}"
                step.reason += f"{'; ' if step.reason else ''}{what} until its items are known"
        if self.layers:
            self.layers = [[step.node for step in steps] for steps in plan.layers]
        return plan

    def _list_now(self, facets: Facets) -> None:
        """List the items on the host as it is, for a run that only removes."""
        planner = self.new_planner(facets)
        for node in self.repeated.declared.values():
            planner.begin(Step(node))
            self.repeated.find(planner, node)

    def new_planner(self, facets: Facets) -> Planner:
        planner = Management.new_planner(self, facets)
        assert isinstance(planner, ItemPlanner)
        planner.repeated = self.repeated
        planner.nodes.update((node.provides, node) for node in (*self.repeated.all(), *self.earlier()))
        return planner

    def earlier(self) -> List[HostNode]:
        """Return nodes for earlier items whose lists are not known, so that no check removes their objects."""
        resources = ((name, self.recorded.resources.get(name)) for name in self.recorded.held)
        return [
            HostNode(
                name,
                resource.definition.type,
                (),
                dict(resource.definition.attrs),
                options={"item_of": self.recorded.held[name]},
            )
            for name, resource in resources
            if resource is not None
        ]

    def execution(self, plan: Plan, *more: Any) -> Execution:
        from statecfg.remote.run.item_execution import ItemExecution

        execution = ItemExecution(plan, *more)
        execution.managed = self
        for name in self.repeated.declared:
            execution.rechecks.nodes.pop(name, None)
        for node in self.earlier():
            execution.rechecks.nodes[node.provides] = node
        return execution

    def join(self, nodes: Sequence[HostNode]) -> None:
        """Make the nodes of items that became known during an apply part of the run's records."""
        assert self._recording is not None and self.orphans is not None
        for node in nodes:
            self._recording.nodes[node.provides] = node
            same = set(identities(node))
            for orphan in (orphan for layer in self.to_keep for orphan in layer if orphan.type == node.type):
                resource = orphan.resource
                if node.provides not in self.recorded.resources and not same.isdisjoint(resource.definition.identities):
                    self.orphans.renamed[node.provides] = resource

    def report(self, step: Step) -> NodeReport:
        data = Management.report(self, step)
        if "item_of" in step.node.options:
            data["item_of"] = step.node.options["item_of"]
        return data
