"""Execution: perform the planned actions on the real host, layer by layer, and check the result."""

from __future__ import annotations

import threading
import time

from statecfg.remote.graph.model import ActionSpec, Unknown, error
from statecfg.remote.graph.names import ActionStatus, Outcome
from statecfg.remote.ledger.orphans import Orphan
from statecfg.remote.machine.planned import Planned
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.machine.world import ANYTHING
from statecfg.remote.run.aftercare import Aftercare
from statecfg.remote.run.node_run import NodeRun
from statecfg.remote.run.planning import Planner, describe, missing, settled, trace
from statecfg.remote.run.report import action_report, portions
from statecfg.remote.run.touching import chains, overtaken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Protocol, Sequence

    from statecfg.remote.graph.model import Action, Node, Result
    from statecfg.remote.graph.nodetype import NodeType
    from statecfg.remote.hooks.lifecycle import Lifecycle
    from statecfg.remote.machine.real import Facets
    from statecfg.remote.run.login_guard import LoginGuard
    from statecfg.remote.run.planning import Plan

    class Record(Protocol):
        """Records each step before and after it happens."""

        def intend(self, nodes: Sequence[str]) -> None: ...
        def started(self, node: str, op: str) -> None: ...
        def took(self, node: str, op: str, result: Result) -> None: ...
        def finished(self, node: str, outcome: str) -> None: ...
        def manage(self, rows: Sequence[Dict[str, Any]]) -> None: ...


WORKERS = 8  # nodes of a layer that run concurrently


class Execution:
    """Performs one plan on the host.

    :param plan: the plan
    :param types: node types by name
    :param facets: the host's tables, shared with the plan
    :param send: receives each host event immediately, from any thread
    :param record: the journal
    :param stopped: returns why nothing new may start, "" if it may
    :param keep_going: after a failure, skip only the nodes that depend on the failed node
    :param owed: node → the nodes whose change it still has to answer, from earlier runs
    :param life: makes nodes managed and fires the events before and after each node; None: neither happens
    :param guard: restores sshd's settings if they lock everybody out
    """

    def __init__(
        self,
        plan: Plan,
        types: Mapping[str, NodeType[...]],
        facets: Facets,
        send: Callable[[Mapping[str, Any]], None],
        record: Record,
        stopped: Callable[[], str],
        keep_going: bool = False,
        owed: Optional[Mapping[str, Sequence[str]]] = None,
        life: Optional[Lifecycle] = None,
        guard: Optional[LoginGuard] = None,
    ) -> None:
        self.plan, self.types, self.facets = plan, types, facets
        self.send, self.record, self.stopped, self.keep_going = send, record, stopped, keep_going
        self.owed, self.life = owed or {}, life
        self.nodes = {name: step.node for name, step in plan.steps.items()}
        self.state = {name: NodeRun(step) for name, step in plan.steps.items()}
        self.state.update((step.node.provides, NodeRun(step)) for step in plan.going())
        self.turns: Dict[str, threading.Lock] = {}
        self.shutdown: List[Dict[str, Any]] = []
        self.spent = [0]
        self.halted = ""
        self.acted = False
        self.after = Aftercare(self, guard)

    def run(self) -> List[List[Dict[str, Any]]]:
        """Perform the plan; return the reports of all nodes, layer by layer, removals first."""
        conflicts = sorted(name for name, step in self.plan.steps.items() if step.conflict)
        if conflicts and not self.keep_going:
            self.halted = "%s can't come about together with other nodes" % ", ".join(conflicts)
        self.shut_down()
        for number, steps in enumerate(self.plan.removals):
            self.removal(number, [self.state[step.node.provides] for step in steps])
        for number, steps in enumerate(self.plan.layers):
            self.layer(number, [self.state[step.node.provides] for step in steps])
        self.after.at_end()
        layers = (*self.plan.removals, *self.plan.layers)
        return [[self.state[step.node.provides].report() for step in steps] for steps in layers]

    # Shutdown-first

    def shut_down(self) -> None:
        """Perform the shutdown-first actions, one at a time, dependents first; the first failure ends the run."""
        for steps in reversed(self.plan.layers[: self.reach()]):
            for step in reversed(steps):
                if step.spec.shutdown_first is None or step.outcome != Outcome.CHANGED:
                    continue
                self.halted = self.halted or self.stopped()
                if self.halted:
                    left = action_report(step.spec.shutdown_first, ActionStatus.NOT_ATTEMPTED)
                    self.shutdown.append(dict(left, node=step.node.provides))
                elif not self.shut(self.state[step.node.provides]):
                    self.record.finished(step.node.provides, self.state[step.node.provides].outcome)
                    failed = "%s of %s failed" % (step.spec.shutdown_first.op, step.node.provides)
                    self.halted = self.stopped() or failed

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
        if self.life is not None:
            self.manage([node])
        if node.outcome == Outcome.FAILED:
            return False
        why = self.stopped()
        if why:
            node.outcome, node.reason = Outcome.SKIPPED, "not started: %s" % why
            return False
        self.record.intend([name])
        result = self.take(node, action, -1)
        node.shutdown = action_report(action, result["status"], result)
        self.shutdown.append(dict(node.shutdown, node=name))
        if result["status"] != ActionStatus.OK:
            node.fail("%s, to be done before all else, failed: %s" % (action.op, result["reason"]))
            if self.life is not None:
                self.life.broke(node.step.node)
        return bool(result["status"] == ActionStatus.OK)

    # Layers

    def layer(self, number: int, doing: Sequence[NodeRun]) -> None:
        """Run one layer: check the undecided nodes, act concurrently, check again, report."""
        ready = [node for node in doing if self.may_begin(node) and self.may_turn(node)]
        self.decide(ready)
        if self.life is not None:
            self.manage(ready)
        acting = self.act_on(ready)
        if self.acted:
            self.verify([node for node in ready if node.outcome in Outcome.SOUND])
        for node in ready if self.life is not None else ():
            self.settle(node)
        self.close(number, doing, acting, "layers")

    def removal(self, number: int, doing: Sequence[NodeRun]) -> None:
        """Run one layer of removals, or of the restarts that removals trigger."""
        ready = [node for node in doing if self.may_begin(node) and self.may_go(node)]
        self.decide(ready)
        acting = self.act_on(ready)
        if acting:
            self.verify([node for node in acting if node.outcome == Outcome.CHANGED and not node.verified])
        for node in ready:
            if node.outcome in Outcome.SOUND and not node.step.kept:
                self.went(node)
        self.close(number, doing, acting, "removals")

    def act_on(self, ready: Sequence[NodeRun]) -> List[NodeRun]:
        """Perform the actions of nodes concurrently; return the nodes that were to act."""
        acting = [node for node in ready if node.outcome == Outcome.CHANGED]
        if acting:
            self.acted = True
            self.record.intend([node.step.node.provides for node in acting])
            self.together(acting)
            side_by_side(self.act_in_order, chains([node for node in acting if node.outcome == Outcome.CHANGED]))
        return acting

    def close(self, number: int, doing: Sequence[NodeRun], acting: Sequence[NodeRun], part: str) -> None:
        """Record and report the outcomes of a layer; a failure halts the run unless `keep_going` is set."""
        for node in acting:
            self.record.finished(node.step.node.provides, node.outcome)
            self.send({"type": "finished", "node": node.step.node.provides, "outcome": node.outcome})
        failed = sorted(node.step.node.provides for node in doing if node.outcome == Outcome.FAILED)
        if failed and not self.keep_going and not self.halted:
            self.halted = "%s failed" % ", ".join(failed)
        parts = list(portions((node.report() for node in doing), self.spent))
        for index, nodes in enumerate(parts):
            more = {"more": True} if index + 1 < len(parts) else {}
            self.send(dict(more, type="layer", part=part, layer=number, nodes=nodes))
        self.after.after_layer()

    # Entities

    def manage(self, nodes: Sequence[NodeRun]) -> None:
        """Make a layer's nodes managed; a node whose snapshot can't be taken fails before it acts."""
        assert self.life is not None
        ready = [node for node in nodes if node.outcome in Outcome.SOUND]
        try:
            self.life.manage([node.step.node for node in ready])
        except (Exception, SystemExit):  # try each node alone to find the one that failed
            for node in ready:
                try:
                    self.life.manage([node.step.node])
                except (Exception, SystemExit) as problem:
                    node.fail("what stands there can't be remembered: %s" % describe(problem))

    def may_turn(self, node: NodeRun) -> bool:
        """Fire the events before a node's turn; tell whether the node may run."""
        return self.life is None or self.unless(node, self.life.before(node.step.node))

    def settle(self, node: NodeRun) -> None:
        """Fire the events after a node's turn."""
        assert self.life is not None
        if node.outcome in Outcome.SOUND:
            self.unless(node, self.life.done(node.step.node, node.outcome == Outcome.CHANGED))
        elif node.outcome == Outcome.FAILED:
            self.life.broke(node.step.node)

    def may_go(self, node: NodeRun) -> bool:
        """Fire the events before a removal; tell whether it may happen. Skip this if only the record is deleted."""
        if node.step.kept:
            return True
        assert self.life is not None and isinstance(node.step.node, Orphan)
        return node.step.node.heir is not None or self.unless(node, self.life.may_go(node.step.node))

    def went(self, node: NodeRun) -> None:
        """Fire the events after a removal, and forget the resource."""
        former = node.step.node
        assert self.life is not None and isinstance(former, Orphan)
        if former.heir is not None:
            self.life.forget(former, heir=list(former.heir))
            return
        why = self.life.gone(former)
        node.gone = not why
        if why and self.life.entity(former).postponed:  # the change on the host itself is complete
            node.reason = why
        elif why:
            node.fail(why)

    def unless(self, node: NodeRun, why: str) -> bool:
        """Skip or fail a node if a hook gave a reason; tell whether the node continues.

        :param why: the reason; "" if no hook objects
        """
        if not why:
            return True
        assert self.life is not None
        if self.life.entity(node.step.node).postponed:
            node.outcome, node.reason = Outcome.SKIPPED, why
        else:
            node.fail(why)
        return False

    def may_begin(self, node: NodeRun) -> bool:
        """Tell whether a node may start; otherwise skip it with a reason."""
        if node.outcome in Outcome.STOPPED:
            return False
        why = missing(node.step.node, self.state, "was")
        if why:
            node.outcome, node.reason = Outcome.SKIPPED, why
            return False
        why = self.halted or self.stopped()
        if why and node.outcome != Outcome.UNCHANGED:
            node.outcome, node.reason = Outcome.SKIPPED, "not started: %s" % why
            return False
        return not why

    def planner(self) -> Planner:
        """Return a planner for the real host as it is now."""
        planner = Planner(self.types, Planned(RealMachine(self.facets)), self.owed)
        planner.nodes, planner.current = self.nodes, self.plan
        planner.leaving = {step.node.provides: step.node for step in self.plan.going()}
        planner.staying, planner.machine.claimed = self.plan.staying, self.plan.claimed
        planner.actions = [{step.node.provides: step.spec.actions for step in steps} for steps in self.plan.layers]
        return planner

    def decide(self, nodes: Sequence[NodeRun]) -> None:
        """Check the nodes again whose plan was fully or partly unknown."""
        for node in nodes:
            if node.step.outcome == Outcome.UNKNOWN or (node.step.outcome == Outcome.CHANGED and node.step.known_after):
                self.decide_one(node, [other.step.node for other in nodes])

    def decide_one(self, node: NodeRun, beside: Sequence[Node]) -> None:
        """Check a node again and replace its step by the result.

        :param beside: the nodes that run in the same layer
        """
        step = node.step
        name = step.node.provides
        changed = [other for other in self.plan.triggers(step.node) if self.state[other].outcome == Outcome.CHANGED]
        changed += [other for other in self.owed.get(name, ()) if other not in changed]
        planner = self.planner()
        planner.machine.turn(name, triggers=changed)
        planner.machine.beside = beside
        step.outcome, step.spec = Outcome.UNCHANGED, ActionSpec()
        known_after, step.known_after = step.known_after, None
        planner.decide(step)
        planner.foresee(step)
        step.trace = planner.machine.trace
        step.settle()
        step.known_after = step.known_after or known_after
        if step.outcome == Outcome.UNKNOWN:
            step.outcome, step.reason = Outcome.FAILED, "what it has to do can't be known even now"
        if step.outcome == Outcome.CHANGED:
            step.triggered_by = changed
        node.outcome, node.reason = step.outcome, step.reason
        if step.outcome == Outcome.CHANGED and step.spec.shutdown_first is not None and not self.stopped():
            self.shut(node)

    def together(self, acting: Sequence[NodeRun]) -> None:
        """Perform joinable first actions (packages) as one transaction; if it fails, each node acts alone later."""
        groups: Dict[str, List[NodeRun]] = {}
        for node in acting:
            first = node.step.spec.actions[0] if node.step.spec.actions else None
            if first is not None and first.maker is not None and first.maker.batch is not None:
                rest = {key: value for key, value in first.args.items() if key != first.maker.batch}
                groups.setdefault("%s %r %d" % (first.op, rest, id(first.maker)), []).append(node)
        for key in sorted(groups):
            members = groups[key]
            if len(members) < 2 or self.stopped():
                continue
            firsts = [node.step.spec.actions[0] for node in members]
            maker = firsts[0].maker
            assert maker is not None
            result = self.take(members[0], maker.joined(firsts), 0, of=[node.step.node.provides for node in members])
            if result["status"] == ActionStatus.OK:
                for node, first in zip(members, firsts):
                    node.done.append(action_report(first, ActionStatus.OK, result))
            # One bad name fails the whole transaction. Each node then acts alone, which shows the bad one.

    def act_in_order(self, nodes: Sequence[NodeRun]) -> None:
        """Run nodes that touch the same object one after another, in the planned order."""
        for node in nodes:
            self.act(node)
            if node.step.removal and node is not nodes[-1] and node.outcome == Outcome.CHANGED:
                self.verify([node])  # now: the next node may change what this one restored
                node.verified = True

    def act(self, node: NodeRun) -> None:
        """Perform a node's actions in order, up to the first failure."""
        for action in node.step.spec.actions[len(node.done) :]:
            why = self.stopped()
            if why:
                node.fail("stopped before %s: %s" % (action.op, why))
                if not node.done:
                    node.outcome, node.reason = Outcome.SKIPPED, "not started: %s" % why
                return
            result = self.take(node, action, len(node.done))
            node.done.append(action_report(action, result["status"], result))
            node.ended = time.monotonic()
            if result["status"] != ActionStatus.OK:
                node.fail("%s: %s" % (action.op, result["reason"]))
                return

    def take(self, node: NodeRun, action: Action, index: int, of: Optional[Sequence[str]] = None) -> Result:
        """Perform one action on the real machine and return its result; turn exceptions into errors with a reason.

        :param index: the position of the action in the node's list; -1: its shutdown-first action
        :param of: the names of all nodes that share this action, if several do
        """
        name = node.step.node.provides
        event = {"type": "action", "node": name, "op": action.op, "index": index}
        for member in of or [name]:
            self.record.started(member, action.op)
            self.send(dict(event, node=member, event="started"))
        turn = self.turn(action)
        if turn is not None:
            turn.acquire()
        machine = RealMachine(self.facets, self.listener(name))
        try:
            result = settled(action.perform(machine))
        except Unknown as problem:
            result = error(str(problem))
        except OSError as problem:
            result = error(describe(problem))
        except (Exception, SystemExit) as problem:  # a bug in a node type: its node fails, the others continue
            result = error(trace(problem))
        finally:
            if not machine.calls:  # it bypassed the machine, so it may have changed anything
                self.facets.forget(ANYTHING)
            if turn is not None:
                turn.release()
        for member in of or [name]:
            self.record.took(member, action.op, result)
            self.send(dict(event, node=member, event="finished", status=result["status"], reason=result.get("reason")))
        return result

    def turn(self, action: Action) -> Optional[threading.Lock]:
        """Return the lock of the action's mutex, None if it has none."""
        name = action.maker.turn if action.maker is not None else None
        return self.turns.setdefault(name, threading.Lock()) if name else None

    def listener(self, node: str) -> Callable[[bytes], None]:
        """Return a function that sends a program's output to the controller as it arrives."""

        def listen(piece: bytes) -> None:
            self.send({"type": "output", "node": node, "text": piece.decode("utf-8", "replace")})

        return listen

    def finished(self) -> Iterator[NodeRun]:
        """Yield the nodes that have acted so far."""
        for node in self.state.values():
            if node.done or node.shutdown is not None:
                yield node

    # Reading back

    def verify(self, nodes: Sequence[NodeRun]) -> None:
        """Check nodes again on the real machine; fail a node that would still act."""
        planner = self.planner()
        for node in nodes:
            step = node.step
            planner.machine.turn(step.node.provides, acted=node.outcome == Outcome.CHANGED)
            try:
                todo = planner.check(step.node).steps
                if not isinstance(step.node, Orphan) and not self.types[step.node.type].looks():
                    continue  # this check does not read the host, so there is nothing to read back
                for action in todo:
                    planner.imagine(action)
            except (Exception, SystemExit) as problem:
                node.fail("it can't be checked after its actions: %s" % describe(problem))
                continue
            if todo:
                still = [
                    "%s %s: %r, not %r" % (change["object"], change["field"], change["before"], change["after"])
                    for change in planner.machine.changes.report()
                ]
                what = "; ".join(still[:3]) or "it would still take %s" % ", ".join(action.op for action in todo)
                why, known = "", self.after.why(node)
                what += "; %s" % known if known else ""
                if node.outcome == Outcome.UNCHANGED:
                    why = overtaken(step.node, planner.machine, self.nodes, self.finished())
                node.fail("%s (%s)" % (why, what) if why else "did not converge: %s" % what)
                planner = self.planner()


def side_by_side(work: Callable[[Sequence[NodeRun]], None], items: Sequence[Sequence[NodeRun]]) -> None:
    """Call `work` on all items, up to `WORKERS` at once, and wait for all of them."""
    if len(items) <= 1:
        for item in items:
            work(item)
        return
    todo = list(reversed(items))
    lock = threading.Lock()
    problems: List[BaseException] = []

    def worker() -> None:
        while True:
            with lock:
                if not todo:
                    return
                item = todo.pop()
            try:
                work(item)
            except BaseException as problem:  # raised again below, in the calling thread
                problems.append(problem)

    threads = [threading.Thread(target=worker) for _ in range(min(WORKERS, len(items)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
