"""Nodes with `for_each_host`: list the items at a node's turn, and make a node of each.

The declared node itself does nothing and is not managed: it is reported as excluded, with its items. The nodes of its
items are in the same layer. What requires the declared node also requires them. Only hosts whose definitions contain
such nodes get this module.
"""

from __future__ import annotations

import fnmatch
import re

from statecfg.remote.graph.model import CheckError, Excluded, Node
from statecfg.remote.graph.names import Mode
from statecfg.remote.ledger.records import Orphan, claims
from statecfg.remote.machine.guard import reading_only
from statecfg.remote.run.item_lists import Insertion, items, names
from statecfg.remote.run.management import Management
from statecfg.remote.run.plan import Step
from statecfg.remote.run.planning import Planner, describe, missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Mapping, Sequence, Set, Tuple

    from statecfg.remote.ledger.records import Resource
    from statecfg.remote.machine.real import Facets
    from statecfg.remote.run.execution import Execution
    from statecfg.remote.run.item_lists import Item
    from statecfg.remote.run.plan import Plan
    from statecfg.remote.run.report import NodeReport

OPTION = "for_each_host"
PASSES = 5  # plans of one host: each may show orphans whose removal changes a list
LONGEST = 4160  # bytes of the name of a node


class Repeated:
    """The nodes with `for_each_host` of one host, and what is known about their items.

    :param layers: the definition
    :ivar declared: these nodes by name
    :ivar found: the items of those whose lists are known
    :ivar nodes: the nodes of these items, by name
    :ivar problems: why the lists of the others are not known
    :ivar unstable: the nodes whose items depend on what happens to the items themselves
    """

    def __init__(self, layers: Sequence[Sequence[Node]]) -> None:
        self.declared = {node.provides: node for layer in layers for node in layer if OPTION in node.options}
        self.found: Dict[str, List[Item]] = {}
        self.nodes: Dict[str, List[Node]] = {}
        self.problems: Dict[str, Exception] = {}
        self.unstable: Set[str] = set()
        self._written: Dict[str, Tuple[Sequence[str], Sequence[str]]] = {}

    def all(self) -> List[Node]:
        """Return the nodes of all known items."""
        return [node for nodes in self.nodes.values() for node in nodes]

    def find(self, planner: Planner, node: Node) -> None:
        """Find the items of a node at its turn, and make their nodes. Call `begin` of the planner first."""
        name = node.provides
        for known in (self.found, self.nodes, self.problems):
            known.pop(name, None)
        try:
            with reading_only():
                planner.decided(node)
                if name in self.unstable:
                    raise CheckError("its list depends on its own items, or on what happens to its earlier items")
                found = items(node.options[OPTION], planner.machine)
                nodes = [made(node, item) for item in found]
            self._distinguish(nodes, planner.nodes, node)
        except OSError as problem:
            self.problems[name] = CheckError("its items can't be listed: %s" % describe(problem))
        except Exception as problem:  # the node's own turn reports it
            self.problems[name] = problem
        else:
            self.found[name], self.nodes[name] = found, nodes

    def _distinguish(self, nodes: Sequence[Node], others: Mapping[str, Node], source: Node) -> None:
        """Refuse items that are the same object as another node.

        :raises CheckError: names both
        """
        taken = {}
        every = [node for node in others.values() if OPTION not in node.options]
        every = [node for node in every if node.options.get("item_of") != source.provides]
        every += [node for node in self.all() if node.options.get("item_of") != source.provides]
        for node in every:
            taken[node.provides] = node
            taken.update((claim, node) for claim in claims(node))
        for node in nodes:
            for identity in (node.provides, *claims(node)):
                other = taken.setdefault(identity, node)
                if other is not node:
                    text = "its item %s (%s) and %s (%s) manage the same object: %s; keep one of them"
                    raise CheckError(text % (node.provides, node.position, other.provides, other.position, identity))

    def require(self, node: Node) -> None:
        """Let a node that requires declared nodes require their items as well."""
        requires, triggers = self._written.get(node.provides, (node.requires, node.triggers))
        if self.declared.keys().isdisjoint(requires):
            return
        self._written[node.provides] = requires, triggers
        more = [item.provides for name in requires for item in self.nodes.get(name, ())]
        due = [item.provides for name in triggers for item in self.nodes.get(name, ())]
        node.requires, node.triggers = (*requires, *more), (*triggers, *due)

    def said(self, name: str) -> Exception:
        """Return why a declared node does nothing itself: what its turn raises."""
        if name in self.problems:
            return self.problems[name]
        count = len(self.nodes.get(name, ()))
        listed = names(node.provides for node in self.nodes.get(name, ()))
        return Excluded("its items: %d%s" % (count, ": " + listed if listed else ""))

    def may_be_item(self, resource: Resource, node: Node) -> bool:
        """Tell whether a managed resource may be an earlier item of a declared node."""
        definition = resource.definition
        if definition.type != node.type:
            return False
        return node.provides in definition.requires or pattern(node).match(resource.name) is not None


def made(node: Node, item: Item) -> Node:
    """Return the node of an item.

    :raises CheckError: if the node can't take the item
    """
    spec = node.options[OPTION]
    insertion = Insertion(spec["samples"], item)
    label = next(iter(item.values()))
    name = insertion.into(spec["name"]) if "name" in spec else "%s[%s]" % (node.provides, label)
    if len(name.encode()) > LONGEST:
        raise CheckError("the name of its item %s is longer than %d bytes" % (label, LONGEST))
    attrs = {key: insertion.into(value, key in node.hides, key) for key, value in node.attrs.items()}
    options = {key: value for key, value in node.options.items() if key not in (OPTION, "when_host", "written")}
    options["item_of"] = node.provides
    if "when" in spec:
        options["when_host"] = insertion.into(spec["when"])
    requires = (*node.requires, node.provides)
    return Node(name, node.type, requires, attrs, node.triggers, node.produces_ops, node.position, options, node.hides)


def pattern(node: Node) -> Any:
    """Return a pattern for the names of a node's items."""
    spec = node.options[OPTION]
    if "name" not in spec:
        return re.compile(r"%s\[.*\]\Z" % re.escape(node.provides))
    parts = re.split("(%s)" % "|".join(map(re.escape, spec["samples"])), spec["name"])
    wild = fnmatch.translate(spec["glob"])[:-2] if "glob" in spec else ".+"
    return re.compile("".join(wild if part in spec["samples"] else re.escape(part) for part in parts) + r"\Z", re.S)


class ItemPlanner(Planner):
    """Plans definitions with `for_each_host`: the nodes of items join the layers of their declared nodes.

    :ivar repeated: set by the caller
    """

    repeated: Repeated

    def layer(self, layer: Sequence[Node], earlier: Dict[str, Step]) -> List[Step]:
        nodes: List[Node] = []
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

    def excludes(self, node: Node, earlier: Mapping[str, Step]) -> bool:
        """Tell whether the other nodes of a layer act without a node: its declared nodes do nothing."""
        return OPTION in node.options or Planner.excludes(self, node, earlier)

    def check(self, node: Node) -> Any:
        if OPTION in node.options and not isinstance(node, Orphan):
            raise self.repeated.said(node.provides)
        return Planner.check(self, node)


class ItemManagement(Management):
    """The managed resources of a playbook with `for_each_host`."""

    planner = ItemPlanner

    def compare(self, layers: List[List[Node]]) -> None:
        """Compare the definition with the managed resources; see `Management`.

        Resources that may be items of lists that are not known stay as they are.
        """
        if not hasattr(self, "repeated"):
            self.repeated, self.written = Repeated(layers), layers
            self._before = dict(self.recorded.resources), [(debt.node, debt.cause) for debt in self.recorded.debts]
            self._warned = len(self.warnings)
        self.recorded.resources = dict(self._before[0])
        for debt, (node, cause) in zip(self.recorded.debts, self._before[1]):
            debt.node, debt.cause = node, cause
        del self.warnings[self._warned :]
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
                        orphan.supply(source.attrs, self.definitions.mask_values)

    def _held(self, layers: Sequence[Sequence[Node]]) -> Dict[str, str]:
        """Return the names of the resources that are neither items now nor orphans, each with its declared node."""
        defined = {node.provides for layer in layers for node in layer}
        claimed = {claim for layer in layers for node in layer for claim in claims(node)}
        held = {}
        for name, resource in self.recorded.resources.items():
            definition = resource.definition
            if name in defined or not claimed.isdisjoint(definition.claims):
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
                what = "%d resource%s of earlier runs stay%s" % (count, "s"[count == 1 :], "s" * (count == 1))
                step.reason += "%s%s until its items are known" % ("; " if step.reason else "", what)
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

    def earlier(self) -> List[Node]:
        """Return nodes for earlier items whose lists are not known, so that no check removes their objects."""
        resources = ((name, self.recorded.resources.get(name)) for name in self.recorded.held)
        return [
            Node(
                name,
                resource.definition.type,
                (),
                resource.definition.attrs,
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

    def join(self, nodes: Sequence[Node]) -> None:
        """Make the nodes of items that became known during an apply part of the run's records."""
        assert self._recording is not None and self.orphans is not None
        for node in nodes:
            self._recording.nodes[node.provides] = node
            same = set(claims(node))
            for orphan in (orphan for layer in self.to_keep for orphan in layer if orphan.type == node.type):
                resource = orphan.resource
                if node.provides not in self.recorded.resources and not same.isdisjoint(resource.definition.claims):
                    self.orphans.renamed[node.provides] = resource

    def report(self, step: Step) -> NodeReport:
        data = Management.report(self, step)
        if "item_of" in step.node.options:
            data["item_of"] = step.node.options["item_of"]
        return data
