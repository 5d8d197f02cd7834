"""Checks after a layer or at the end of a run: new logins, and whether started units still run."""

from __future__ import annotations

import time

from statecfg.remote.graph.model import CheckError
from statecfg.remote.graph.names import ActionStatus, Outcome
from statecfg.remote.ledger.records import Orphan
from statecfg.remote.ledger.state import StateError
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.run.dependents import Dependent
from statecfg.remote.run.planning import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, List, Mapping, Sequence

    from statecfg.remote.graph.nodetype import NodeType
    from statecfg.remote.machine.planned import Planned
    from statecfg.remote.machine.real import Facets
    from statecfg.remote.machine.world import World
    from statecfg.remote.run.login_guard import LoginGuard
    from statecfg.remote.run.node_run import NodeRun
    from statecfg.remote.run.performing import Performer
    from statecfg.remote.run.plan import Plan
    from statecfg.remote.wire.channel import Channel


class Aftercare:
    """Corrects the outcome of nodes whose layer was already reported.

    :param runs: the executions of all nodes by name
    :param types: the node types by name
    :param guards: see `guards_of`
    :param halt: ends the run; receives the reason
    """

    def __init__(
        self,
        runs: Mapping[str, NodeRun],
        performer: Performer,
        types: Mapping[str, NodeType[...]],
        guards: Sequence[LoginGuard],
        halt: Callable[[str], None],
    ) -> None:
        self.runs, self.performer, self.types, self.guards, self.halt = runs, performer, types, guards, halt

    def after_layer(self) -> None:
        """Let the guards look whether a login still works. They restore what prevents it; then halt."""
        for guard in self.guards:
            lockout = guard.after(self.runs.values())
            if lockout is None:
                continue
            self.halt(lockout.reason)
            touched = [node for node in self.runs.values() if guard.touched(node, lockout)]
            self._amend([node for node in touched if guard.about(node.step.node)], lockout.reason)
            brief = f"undone: {lockout.brief}"
            self._amend([node for node in touched if not guard.about(node.step.node)], brief)
            self._remember(node for node in touched if node.forgotten)

    def at_end(self) -> None:
        """Wait until started units have run for long enough; fail their nodes if they no longer run."""
        due = []
        for node in self.runs.values():
            lasting = self._lasting(node) if node.outcome == Outcome.CHANGED else None
            if lasting is not None and lasting[0]:
                due.append((node, lasting))
        end = max((node.ended + seconds for node, (seconds, _) in due), default=0.0)
        while time.monotonic() < end and not self.performer.stopped():
            time.sleep(min(0.1, max(0.0, end - time.monotonic())))
        for node, (_, check) in due:
            why = self._ask(node, check)
            if why:
                self._amend([node], why)
        for guard in self.guards:
            if due or guard.waiting:
                guard.seen = -1  # sshd itself may have stopped meanwhile
        self.after_layer()

    def effects(self, machine: Planned) -> None:
        """Fail the nodes that the system does not use, because another source wins.

        :param machine: the host as it is now
        """
        if not any("effect" in node_type.methods for node_type in self.types.values()):
            return
        from statecfg.remote.run.effects import concerned, overridden

        names, nodes = concerned(self.types), {name: run.step.node for name, run in self.runs.items()}
        for node in self.runs.values():
            own = node.step.node
            if node.outcome not in Outcome.SOUND or own.type not in names or node.step.removal or node.step.excluded:
                continue
            machine.turn(own.provides, acted=node.outcome == Outcome.CHANGED, due=True)
            why = overridden(self.types, own, machine, nodes)
            if why:
                self._amend([node], why)

    def why(self, node: NodeRun) -> str:
        """Return the known reason why a node's real object changed after its actions, "" if there is none."""
        lasting = self._lasting(node)
        return self._ask(node, lasting[1]) if lasting is not None else ""

    def _lasting(self, node: NodeRun) -> Any:
        node_type = self.types.get(node.step.node.type)
        method = node_type.methods.get("lasting") if node_type is not None else None
        done = [action for action in node.done if action["status"] == ActionStatus.OK]
        return method(node.step.node, done) if method is not None else None

    def _ask(self, node: NodeRun, check: Callable[[World, float], str]) -> str:
        try:
            return check(RealMachine(self.performer.facets), node.ended)
        except Exception as problem:  # systemd doesn't answer, or the node type has a bug
            return f"statecfg can't check it again: {describe(problem)}"

    def _amend(self, nodes: Iterable[NodeRun], why: str) -> None:
        for node in nodes:
            node.fail(why)
            name = node.step.node.provides
            self.performer.record.finished(name, Outcome.FAILED)
            self.performer.send({"type": "amended", "node": name, "reason": why})

    def _remember(self, nodes: Iterable[NodeRun]) -> None:
        """Make removed resources managed again, because the guard restored them."""
        orphans = [node.step.node for node in nodes]
        again = [node.resource for node in orphans if isinstance(node, Orphan) and not isinstance(node, Dependent)]
        if again:
            self.performer.record.manage(again)


def guards_of(
    plan: Plan, types: Mapping[str, NodeType[...]], channel: Channel, facets: Facets, remote: bool, warnings: List[str]
) -> List[LoginGuard]:
    """Return the guards of a run: that of sshd on a host with systemd, and those of node types.

    :param remote: the controller can try a new login
    :param warnings: receives warnings for the user
    :raises StateError: if a guard can't record the state that it would restore, and one of its nodes may act
    """
    import os

    from statecfg.remote.run.login_guard import BOOTED, LoginGuard, is_sshd

    steps = [*plan.steps.values(), *plan.removal_steps()]
    machine, nodes = RealMachine(facets), [step.node for step in steps]
    of_types = {name: node_type.methods.get("guard") for name, node_type in types.items()}
    guards = []
    for guard in {of_types.get(node.type) for node in nodes}:
        if guard is None:
            continue
        try:
            guards.append(guard(machine, channel, remote, warnings, nodes))
        except CheckError as problem:
            acting = [step.node.provides for step in steps if of_types.get(step.node.type) is guard and step.acts]
            if acting:  # otherwise, the check of each node has failed with this problem
                text = "nothing was changed: the state that a failed login would restore can't be recorded: %s"
                raise StateError(text % problem, f"Repair that, or leave out {', '.join(sorted(acting))}.") from None
    if not os.path.isdir(BOOTED):
        return guards
    paths = []
    waiting = [node for node in nodes if is_sshd(node)]
    seen = {node.provides for node in waiting}
    while waiting:
        node = waiting.pop()
        paths.append(node.attrs.get("path"))
        near = [*(node.near.values() if isinstance(node, Dependent) else ())]
        near += [plan.steps[name].node for name in node.requires if name in plan.steps]
        waiting += [other for other in near if other.provides not in seen]
        seen.update(other.provides for other in near)
    more = [path for path in paths if isinstance(path, str) and path[:1] == "/"]
    return [*guards, LoginGuard(machine, channel, remote, warnings, more)]
