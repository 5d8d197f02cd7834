"""Reboot the host in the middle of a run. `resuming` continues the run after that.

Only the controller keeps what the run continues with: values that nodes produced may be secrets. The host's lock stays
reserved for the run, and has the digest of these data.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
import zlib
from functools import partial

from statecfg.remote.graph.model import LEARNED
from statecfg.remote.graph.names import ActionStatus, Outcome, RunStatus
from statecfg.remote.graph.results import error
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.run.execution import Execution
from statecfg.remote.run.management import Management
from statecfg.remote.run.planning import as_result, describe
from statecfg.remote.run.report import action_report
from statecfg.remote.wire.frames import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import AbstractSet, Any, Callable, List, Optional, Protocol, Sequence

    from statecfg.remote.graph.model import Action, JsonMap
    from statecfg.remote.graph.results import Result
    from statecfg.remote.ledger.lock import Holder, Lock
    from statecfg.remote.run.node_run import NodeRun
    from statecfg.remote.run.plan import Plan, Step
    from statecfg.remote.wire.channel import Channel

    class Exchange(Protocol):
        """The part of a host session that a reboot needs."""

        channel: Channel
        lock: Lock
        warnings: List[str]


TYPE = "reboot"  # the node type whose nodes reboot the host
BOOT_ID = "/proc/sys/kernel/random/boot_id"  # the kernel makes a new one at each boot
FIRST = "/proc/1/stat"  # of process 1. It starts anew with a container, which may share the boot id of the kernel
PIECE = 1 << 20  # characters in one frame
LATER = 60.0  # seconds by which the lock is reserved for longer than the controller waits
ENDING = 5.0  # seconds in which a shutdown that has begun breaks the connection


def boot_id() -> str:
    """Return the id of the present boot of this host, and when its process 1 started. Either differs after a reboot."""
    with open(BOOT_ID, encoding="ascii") as stream:
        boot = stream.read().strip()
    with open(FIRST, "rb") as status:
        return f"{boot} {started(status.read())}"


def started(status: bytes) -> str:
    """Return when a process started, in clock ticks since the kernel started. Source: proc(5), /proc/PID/stat.

    :param status: the file; the name of the program in it may contain blanks and parentheses
    """
    return status.rpartition(b")")[2].split()[19].decode("ascii")


def digest_of(text: str) -> str:
    """Return the digest of what a run continues with."""
    return hashlib.sha256(text.encode()).hexdigest()


def of_session(session: Exchange) -> Callable[..., Management]:
    """Return what makes the managed resources of a session."""
    return partial(RebootManagement, session)


class RebootManagement(Management):
    """The managed resources of a playbook that may reboot the host.

    :param session: the session, which holds the lock
    :param more: as for `Management`
    :ivar begun: called when the execution begins, if the run continues after a reboot
    """

    def __init__(self, session: Exchange, *more: Any) -> None:
        self.session = session
        self.begun: Optional[Callable[[RebootingExecution], None]] = None
        Management.__init__(self, *more)

    def execution(self, plan: Plan, *more: Any) -> Execution:
        execution = RebootingExecution(self, plan, *more)
        if self.begun is not None:
            self.begun(execution)
        return execution


class RebootingExecution(Execution):
    """Performs a plan, and reboots the host at the turn of a node of type `reboot`. Such a node has its own layer.

    :param managed: the managed resources of the run
    :param rest: as for `Execution`
    :ivar begun: the number of the first layer of this session: the run processed the earlier ones before a reboot
    :ivar first: the same, or the number of the layer after a later reboot
    """

    def __init__(self, managed: RebootManagement, *rest: Any) -> None:
        Execution.__init__(self, *rest)
        self.session, self.managed = managed.session, managed
        self.begun = self.first = 0

    def reach(self) -> int:
        """Return how many layers will start before the next reboot, which starts the programs of later layers again."""
        reach = Execution.reach(self)
        return next((at for at in range(self.first, reach) if may_reboot(self.plan.layers[at])), reach)

    def layer(self, number: int, nodes: Sequence[NodeRun]) -> None:
        """Run one layer, unless the run did that before a reboot."""
        if number < self.first:
            return
        ends = may_reboot(self.plan.layers[number])  # according to the plan; its turn may decide that none is due
        Execution.layer(self, number, nodes)
        if ends:
            self.first = number + 1
            if not self.halted:
                self.shut_down()

    def act_on(self, ready: Sequence[NodeRun]) -> List[NodeRun]:
        """Perform the actions of nodes."""
        if not [node for node in ready if node.outcome == Outcome.CHANGED and may_reboot([node.step])]:
            return Execution.act_on(self, ready)
        self.leave(ready[0])
        return list(ready)

    def leave(self, node: NodeRun) -> None:
        """Reboot the host: this process ends with the connection. If the host does not reboot, fail the node.

        :raises ProtocolError: if the connection ends, or if the user stops the run before the reboot
        """
        action, timeout = node.step.spec.actions[0], node.step.spec.actions[0].args["boot_timeout"]
        name, plan, journal = node.step.node.provides, self.plan, self.performer.record
        number = next(at for at, steps in enumerate(plan.layers) if node.step in steps)
        layers = (*plan.removals, *plan.layers[self.begun : number])
        done = {step.node.provides for steps in layers for step in steps}
        why = self._obstacle(done)
        if why:
            node.outcome, node.reason = Outcome.SKIPPED, f"not started: {why}"
            return
        journal.intend([name])
        self._record(done, [step.node.provides for steps in plan.layers[number + 1 :] for step in steps if step.acts])
        journal.started(name, action.op)
        event = {"type": "action", "node": name, "op": action.op, "index": 0}
        self.performer.send(dict(event, event="started"))
        text = self._continuation(node, number)
        boot = boot_id()
        self._reserve(time.time() + timeout + LATER, boot, digest_of(text))
        os.sync()  # the journal, the ledger, the lock, and what the nodes have changed
        channel = self.session.channel
        try:
            for start in range(0, len(text), PIECE):
                channel.send({"type": "keep", "text": text[start : start + PIECE]}, exact=True)
            channel.send({"type": "reboot", "node": name, "boot": boot, "seconds": timeout})
            channel.receive("reboot")
        except ProtocolError:
            self._reserve()
            raise
        result = self._perform(action, timeout)
        self._reserve()  # the host is still up, so the run ends here as usual
        journal.took(name, action.op, result)
        self.performer.send(dict(event, event="finished", status=result["status"], reason=result["reason"]))
        node.done.append(action_report(action, result["status"], result))
        node.fail(f"{action.op}: {result['reason']}")

    def _obstacle(self, done: AbstractSet[str]) -> str:
        """Return why the host must not reboot now, "" if it may: what was started must still run.

        :param done: the names of the nodes before the reboot
        """
        if not self.managed.order.login:
            return "statecfg can't connect again, because this run does not use SSH"
        self.after.at_end()
        failed = sorted(name for name in done if self.state[name].outcome == Outcome.FAILED)
        if failed and not self.keep_going:
            self.halt(f"{', '.join(failed)} failed")
        return self.halted or self.performer.stopped()

    def _record(self, done: AbstractSet[str], left: Sequence[str]) -> None:
        """Record in the ledger what the run has done so far.

        :param left: the nodes that act after the reboot
        """
        journal: Any = self.performer.record
        unchanged = {name for name in done if self.state[name].outcome == Outcome.UNCHANGED}
        for name in sorted((unchanged & self.managed.recorded.restarts) | self.plan.paid):
            journal.finished(name, Outcome.UNCHANGED)
        self.managed.end(journal, RunStatus.RUNNING, [name for name in done if self.state[name].sound])
        journal.add(folded=list(left))

    def _perform(self, action: Action, timeout: float) -> Result:
        """Start the reboot, and wait until it ends this process; return an error if it does not.

        :raises ProtocolError: if the connection ends, as it does when the host shuts down
        """
        try:
            result = as_result(action.perform(RealMachine(self.performer.facets)))
        except OSError as problem:
            result = error(describe(problem))
        failed = result["status"] != ActionStatus.OK
        end = time.monotonic() + (ENDING if failed else timeout)
        while time.monotonic() < end:
            if self.session.channel.lost:
                raise ProtocolError("the host reboots")
            time.sleep(0.1)
        return result if failed else error(f"the host is still up after {timeout:g} seconds")

    def _reserve(self, until: float = 0.0, boot: str = "", digest: str = "") -> None:
        """Reserve the lock for the time of the reboot, or, without arguments, end the reservation."""
        order = self.managed.order
        holder: Holder = {"run": order.run, "who": order.who, "since": time.time(), "pid": os.getpid()}
        if until:
            holder["until"], holder["boot"], holder["digest"] = until, boot, digest
        self.session.lock.write(holder)

    def _continuation(self, node: NodeRun, number: int) -> str:
        """Return what the run continues with, as text. It contains secrets."""
        plan = self.plan
        data: JsonMap = {
            "node": node.step.node.provides,
            "number": number,
            "report": node.report(),
            "shutdown": self.shutdown,
            "warnings": self.session.warnings,
            "said": plan.said,
            "learned": LEARNED,
            "outcomes": {},
            "shown": {},
            "open": {},
            "stopped": {},
        }
        for steps in plan.layers[:number]:
            for name in (step.node.provides for step in steps):
                ended = self.state[name]
                if ended.outcome != Outcome.UNCHANGED:
                    data["outcomes"][name] = [ended.outcome, ended.reason]
        for steps in plan.layers[number + 1 :]:
            for step in steps:
                name = step.node.provides
                if step.outcome == Outcome.UNKNOWN or step.known_after:
                    data["open"][name] = step.known_after
                elif step.outcome in Outcome.STOPPED:
                    data["stopped"][name] = [step.outcome, step.reason]
                elif step.outcome == Outcome.CHANGED:
                    data["shown"][name] = digests_of(step)
        return base64.b64encode(zlib.compress(json.dumps(data).encode())).decode("ascii")


def digests_of(step: Step) -> List[str]:
    """Return a digest of each planned action of a node."""
    return [digest_of(json.dumps(action_report(action), sort_keys=True))[:32] for action in step.spec.steps]


def may_reboot(steps: Sequence[Step]) -> bool:
    """Tell whether a layer may reboot the host."""
    return bool(steps) and steps[0].node.type == TYPE and steps[0].acts
