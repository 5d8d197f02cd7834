"""Planning: check each node on a simulated machine, in order, and perform its actions there."""

from __future__ import annotations

from statecfg.remote.graph.hy_lines import attribute, written_at
from statecfg.remote.graph.model import Action, ActionSpec, CheckError, Conflict, Excluded, Stays, Unknown
from statecfg.remote.graph.names import ActionStatus, Outcome
from statecfg.remote.graph.results import OK, error
from statecfg.remote.ledger.records import Orphan, contents
from statecfg.remote.machine.changes import as_json, hidden, secretive
from statecfg.remote.machine.guard import WriteAttempt, reading_only
from statecfg.remote.machine.world import ANYTHING
from statecfg.remote.run.dependents import Dependent, Dependents
from statecfg.remote.run.plan import NONE, Plan, PreviousSecrets, Step, kept_step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import AbstractSet, Any, Dict, FrozenSet, Hashable, List, Mapping, Optional, Sequence, Set

    from statecfg.remote.graph.model import HostNode
    from statecfg.remote.graph.nodetype import NodeType
    from statecfg.remote.graph.results import Result
    from statecfg.remote.ledger.records import Resource
    from statecfg.remote.machine.changes import Change
    from statecfg.remote.machine.planned import Planned
    from statecfg.remote.run.claims import Claims

WAITS = "kept: the removal of %s may need it, and that node %s"


class Planner:
    """Determines what each node has to do.

    `plan` calls `layer` for the removals, the resources that they affect, the defined nodes and the orphans that stay.
    `layer` calls `ask` for every node: `begin` starts its turn, and `decide` calls its `check`. Then it calls, node by
    node, `begin` again and `foresee`, which performs the actions with `imagine`, so that later nodes see their result.

    :param types: node types by name
    :param machine: the simulated machine on which the plan acts
    :param owed: node → the nodes to whose change it still has to react, from earlier runs
    :ivar recorded: the managed resources by name, with the values that their nodes said
    """

    def __init__(
        self, types: Mapping[str, NodeType[...]], machine: Planned, owed: Optional[Mapping[str, Sequence[str]]] = None
    ) -> None:
        self.types, self.machine, self.owed = types, machine, owed or {}
        self.nodes: Dict[str, HostNode] = {}
        self.removals: Dict[str, Orphan] = {}
        self.still: FrozenSet[str] = NONE  # nodes that do nothing unless they are triggered
        self.managed: FrozenSet[str] = NONE  # the identities of all resources that stay managed
        self.claims: Optional[Claims] = None  # what other playbooks own on this host, if any
        self.previous_secrets = PreviousSecrets(NONE, {})
        self.recorded: Mapping[str, Resource] = {}
        self.actions: List[Dict[str, List[Action]]] = []
        # Node → the acting nodes that it depends on. Only these can make a value unknown to it.
        self.acting: Dict[str, AbstractSet[str]] = {}
        self.current = Plan()
        self.account: Any = None  # checks that the login of statecfg stays possible

    def plan(
        self,
        layers: Sequence[Sequence[HostNode]],
        removals: Sequence[Sequence[Orphan]] = (),
        to_keep: Sequence[Sequence[Orphan]] = (),
        checking_kept: bool = True,
        dependents: Optional[Dependents] = None,
    ) -> Plan:
        """Check all nodes, layer by layer, each against the host as the earlier nodes will leave it.

        :param layers: the defined nodes
        :param removals: layers of the orphans that this run removes, before all else
        :param to_keep: layers of the orphans that stay
        :param checking_kept: also plan what a later prune would do to the orphans that stay
        :param dependents: the resources that stay and that the removals affect
        """
        self.nodes.update((node.provides, node) for layer in layers for node in layer)
        plan = self.current = Plan()
        plan.managed, plan.elsewhere, plan.claims = self.managed, self.machine.elsewhere, self.claims
        plan.previous_secrets, plan.recorded = self.previous_secrets, self.recorded
        self.removals = {node.provides: node for layer in removals for node in layer}
        for layer in removals:
            plan.removals.append(self.layer(layer, plan.removed))
        if dependents is not None:
            plan.removal_triggers = dependents.triggers
            steps = self.layer(dependents.nodes, plan.removed)
            unchanged = {step.node.provides for step in steps if step.outcome == Outcome.UNCHANGED}
            plan.paid = unchanged.intersection(self.owed)
            steps = [step for step in steps if step.outcome != Outcome.UNCHANGED]
            plan.removals += [steps] if steps else []
        for nodes in layers:
            plan.layers.append(self.layer(nodes, plan.steps))
            self.actions.append({step.node.provides: step.spec.actions for step in plan.layers[-1]})
        if any("effect" in node_type.methods for node_type in self.types.values()):
            from statecfg.remote.run.effects import confirm

            confirm(self.types, self.machine, plan, self.acting, missing)
        if self.account is not None:
            self.account.confirm(plan, self.machine)
        kept_steps: Dict[str, Step] = {}
        self.removals = {node.provides: node for layer in to_keep for node in layer}
        kept = (node.resource.definition.identities for layer in to_keep for node in layer)
        self.managed = self.managed.difference(*kept)
        for layer in to_keep:
            plan.to_keep.append(self.layer(layer, kept_steps) if checking_kept else [kept_step(node) for node in layer])
        return plan

    def layer(self, layer: Sequence[HostNode], earlier: Dict[str, Step]) -> List[Step]:
        """Check the nodes of a layer against the host as it is before the layer, as they act concurrently.

        Nodes that touch the same path act one after another. Each is checked against the result of the previous ones.

        :param earlier: the steps of the earlier layers, by name; the steps of this layer are added
        """
        beside = [node for node in layer if not missing(node, earlier) and not self.excludes(node, earlier)]
        self.machine.beside, self.machine.memo = beside, {}
        steps = [self.ask(node, earlier) for node in layer]
        touched: Set[Hashable] = set()
        for at, step in enumerate(steps):
            if touched and not touched.isdisjoint(step.trace.looked):
                step = steps[at] = self.ask(step.node, earlier)
            trace = step.trace
            self.begin(step)
            self.machine.trace = step.trace = trace
            self.foresee(step)
            touched |= step.trace.touched
            earlier[step.node.provides] = step
        for step in steps:
            step.close(touched)
        return steps

    def ancestors(self, node: HostNode, earlier: Mapping[str, Step]) -> AbstractSet[str]:
        """Return the names of the acting nodes that a node requires, directly or indirectly."""
        if isinstance(node, Dependent):  # it runs after all removals
            return frozenset(name for name, step in earlier.items() if step.acts)
        sets = []
        for name in node.sees if isinstance(node, Orphan) else node.requires:
            above = self.acting.get(name, NONE)
            step = earlier.get(name)
            sets.append(above | {name} if step is not None and step.acts else above)
        if len(sets) > 1:
            return frozenset().union(*sets)
        return sets[0] if sets else NONE

    def excludes(self, node: HostNode, earlier: Mapping[str, Step]) -> bool:
        """Tell whether a condition of a node is false, so that the other nodes of its layer act without it."""
        if not node.options.get("when_host") or isinstance(node, Orphan):
            return False
        self.acting[node.provides] = self.ancestors(node, earlier)
        self.begin(Step(node))
        try:
            self.decided(node)
        except Excluded:
            return True
        except Exception:  # the node's own turn reports it
            return False
        return False

    def decided(self, node: HostNode) -> None:
        """Check the conditions of a node.

        :raises Excluded: if one is false
        """
        conditions = node.options.get("when_host")
        if conditions and not self.machine.acted:  # the node's own actions may make its condition false
            from statecfg.remote.run.decisions import require

            require(conditions, self.machine)

    def ask(self, node: HostNode, earlier: Mapping[str, Step]) -> Step:
        """Check one node in its turn, without performing its actions."""
        step = Step(node)
        self.acting[node.provides] = self.ancestors(node, earlier)
        why = missing(node, earlier)
        if why:
            step.outcome, step.reason = Outcome.SKIPPED, why
            return step
        triggers = [(name, self.current.triggering(name)) for name in self.current.triggers(node)]
        changing = [name for name, step in triggers if step is not None and step.outcome == Outcome.CHANGED]
        undecided = [name for name, step in triggers if step is not None and step.outcome == Outcome.UNKNOWN]
        changing += [name for name in self.owed.get(node.provides, ()) if name not in changing]
        self.begin(step, changing, undecided[0] if undecided else None)
        self.decide(step)
        if step.spec.steps and changing:
            step.triggered_by = changing
        return step

    def begin(self, step: Step, triggers: Sequence[str] = (), undecided: Optional[str] = None) -> None:
        """Start the node's turn on the simulated machine."""
        name = step.node.provides
        self.machine.turn(name, self.acting.get(name, NONE), triggers, undecided)
        step.trace = self.machine.trace

    def decide(self, step: Step) -> None:
        """Call the check and store its result in the step. Call `begin` first."""
        try:
            if step.node.provides in self.still and not self.machine.triggered_by:
                return
            step.spec = self.check(step.node)
            step.known_after = step.spec.known_after
            if step.known_after is not None and not step.spec.steps:
                step.outcome = Outcome.UNKNOWN
        except Unknown as unknown:
            step.outcome, step.known_after = Outcome.UNKNOWN, unknown.cause
        except Excluded as why:
            step.excluded = str(why)
        except Stays as why:
            step.outcome, step.reason, step.cannot_undo = Outcome.SKIPPED, str(why), True
        except (CheckError, OSError, WriteAttempt) as problem:
            step.outcome, step.reason, step.conflict = Outcome.FAILED, describe(problem), isinstance(problem, Conflict)
        except (Exception, SystemExit) as problem:  # a bug in a node type: its node fails, the others are planned
            step.outcome, step.reason = Outcome.FAILED, f"the check of {step.node.type} failed: {trace(problem)}"

    def foresee(self, step: Step) -> None:
        """Perform the actions of the check on the simulated machine, so that later nodes see their result."""
        if step.outcome == Outcome.UNKNOWN:
            # It may change anything, so nodes that require it must treat the host as unknown.
            self.machine.affect(ANYTHING)
        if self.claims is not None and step.spec.steps:
            self.claims.watch(step.node, self.machine)
        for action in step.spec.steps:
            result = self.imagine(action)
            if result["status"] != ActionStatus.OK:
                step.outcome, step.reason = Outcome.FAILED, f"{action.op}: {result['reason']}"
                return
        if step.spec.steps:
            step.outcome, step.reason = Outcome.CHANGED, "; ".join(self.machine.notes)
            step.changes = as_json(self.changes(step.node))
        if self.claims is not None:
            self.claims.settle(step, self.machine)

    def changes(self, node: HostNode) -> List[Change]:
        """Return the changes of the simulated machine in this turn, without values that may show a previous secret."""
        changes = self.machine.changes.report()
        return hidden(changes) if self.previous_secrets.may_be_in(changes, node) else changes

    def check(self, node: HostNode) -> ActionSpec:
        """Call the node type's check, undo or `on_removal`, which may only read; pass on what it raises.

        :raises Excluded: if a condition of the node is false
        """
        node_type = self.types.get(node.type)
        if isinstance(node, Orphan) and node.note:
            return ActionSpec()  # only its record is deleted
        if node_type is None:
            raise CheckError(f"unknown node type {node.type}")
        with reading_only():
            if isinstance(node, Dependent):
                return normalised(node_type.methods["on_removal"](node, node.near, self.machine), node)
            if isinstance(node, Orphan):
                for blob in contents(node.snapshot):
                    blob.require()
                    if secretive(node.attrs):
                        blob.secret = True
                undo = node_type.run_undo(node, node.snapshot, self.machine, self.removals, self.managed)
                spec = normalised(undo, node)
                left = [*spec.left, *([node_type.overwriting] if spec.steps and node_type.overwriting else ())]
                return ActionSpec(spec.steps, left=left)  # removals run first anyway: no shutdown-first action
            self.decided(node)
            triggers = self.current.removal_triggers.get(node.provides, ())
            if triggers or self.machine.removed:  # a check may read the removals that trigger its node
                self.machine.removed = {name: self.current.removed[name].node for name in triggers}
            if "inserts" in node.options:
                from statecfg.remote.run.values import fill

                fill(node, self.nodes, self.types, self.current, self.machine)
            return normalised(node_type.run_check(node, self.nodes, self.actions, self.machine), node)

    def imagine(self, action: Action) -> Result:
        """Perform an action on the simulated machine; if it bypasses the machine, its effects are unknown."""
        before = self.machine.calls
        try:
            with reading_only():
                result = as_result(action.perform(self.machine))
        except (WriteAttempt, Unknown):
            self.machine.affect(ANYTHING)
            return OK
        except OSError as problem:
            return error(describe(problem))
        except (Exception, SystemExit) as problem:
            return error(trace(problem))
        if self.machine.calls == before and result["status"] == ActionStatus.OK:
            # It made no call of the machine, so it bypasses it and may do anything.
            self.machine.affect(ANYTHING)
        return result


def missing(node: HostNode, earlier: Mapping[str, Any], was: str = "is") -> str:
    """Return why a node must be skipped because of how earlier nodes ended; "" if it need not be skipped.

    :param earlier: name → an object with an `outcome`
    :param was: "is" in a plan, "was" in a run
    """
    for names, why in ((node.requires, "%s, which it requires, %s"), (waits(node), WAITS)):
        for name in names:
            before = earlier.get(name)
            if before is not None and before.outcome in Outcome.STOPPED:
                return why % (name, Outcome.FAILED if before.outcome == Outcome.FAILED else was + " skipped")
    return ""


def waits(node: HostNode) -> Sequence[str]:
    """Return the names of the orphans that are removed before this one because their undo may need it."""
    return node.waits if isinstance(node, Orphan) else ()


def word(key: Any) -> str:
    """Return a key or status as a Python name: Hy's `:shutdown-first` becomes `shutdown_first`."""
    return attribute(str(getattr(key, "name", key)))


def normalised(returned: Any, node: HostNode) -> ActionSpec:
    """Convert the result of a check to an action spec.

    :param returned: a list of actions, a map, or an action spec (the forms of the Borg document)
    :raises CheckError: if it has another form
    """
    if isinstance(returned, ActionSpec):
        return returned
    if returned is None:
        raise CheckError(f"the check of {node.type} returned nothing; it must return a list of actions")
    if isinstance(returned, (str, bytes, Action)) or not hasattr(returned, "__iter__"):
        raise CheckError(f"the check of {node.type} returned {returned!r:.80} instead of a list of actions")
    if not hasattr(returned, "items"):
        return ActionSpec([as_action(item, node) for item in returned])
    plain = {word(key): value for key, value in returned.items()}
    wrong = sorted(set(plain) - {"actions", "shutdown_first"})
    if wrong:
        raise CheckError(f"the check of {node.type} returned the unknown key {', '.join(wrong)}")
    first = plain.get("shutdown_first")
    return ActionSpec(
        normalised(plain.get("actions") or [], node).actions,
        as_action(first, node) if first is not None else None,
    )


def as_action(item: Any, node: HostNode) -> Action:
    """Convert an item of a check's result to an action.

    :param item: an action, or a map with `fn`, a function without arguments, and `op`, a name
    :raises CheckError: if it is something else
    """
    if isinstance(item, Action):
        return item
    plain = {word(key): value for key, value in item.items()} if hasattr(item, "items") else {}
    function = plain.get("fn")
    if not callable(function) or plain.get("op") is None:
        raise CheckError(f"the check of {node.type} returned {item!r:.80}, which is not an action")
    args = {word(key): value for key, value in (plain.get("args") or {}).items()}
    name = str(getattr(plain["op"], "name", plain["op"])).lstrip(":")
    return Action(name, args, lambda machine: machine.outside(function), plain.get("body") or ())


def as_result(result: Any) -> Result:
    """Return an action's result in the form of the Borg document; turn anything else into an error with a reason."""
    plain = {word(key): value for key, value in result.items()} if hasattr(result, "items") else {}
    status = word(plain.get("status"))
    if status not in (ActionStatus.OK, ActionStatus.ERROR):
        return error(f"the op returned {result!r:.80} instead of a result with a status")
    result_map: Result = {"status": status}
    if status == ActionStatus.ERROR:
        result_map["reason"] = str(plain.get("reason") or "no reason was given")
    if plain.get("log"):
        result_map["log"] = str(plain["log"])
    if isinstance(plain.get("said"), dict):
        result_map["said"] = plain["said"]
    for key in ("unchanged", "intact"):
        if plain.get(key):
            result_map[key] = True
    return result_map


def describe(problem: BaseException) -> str:
    """Return an exception's message without its class name."""
    if isinstance(problem, OSError) and problem.strerror:
        return f"{problem.filename}: {problem.strerror}" if problem.filename else problem.strerror
    return str(problem)


def trace(problem: BaseException) -> str:
    """Describe an exception in a node type's code in one line: class, message, and line in its file."""
    where = ""
    step = problem.__traceback__
    while step is not None:
        name = step.tb_frame.f_code.co_filename
        if "statecfg/remote" not in name.replace("\\", "/"):
            where = " (%s:%d)" % written_at(step.tb_frame.f_globals, name, step.tb_lineno)
        step = step.tb_next
    return f"{type(problem).__name__}: {problem}{where}"
