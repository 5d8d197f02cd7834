"""Continue a run after it rebooted the host (see `rebooting`): plan the layers that are left, and perform them.

The controller has shown the plan of these layers. A node that would now take other actions fails.
"""

from __future__ import annotations

import base64
import json
import os
import time
import zlib
from functools import partial

from statecfg.remote.graph.model import LEARNED
from statecfg.remote.graph.names import ActionStatus, Outcome
from statecfg.remote.ledger.state import StateError
from statecfg.remote.machine.real import Facets
from statecfg.remote.run.plan import Step
from statecfg.remote.run.planning import Planner
from statecfg.remote.run.rebooting import boot_id, digest_of, digests_of
from statecfg.remote.wire.frames import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Protocol, Sequence, Tuple

    from statecfg.remote.graph.model import HostNode, JsonMap
    from statecfg.remote.ledger.lock import Holder, Lock
    from statecfg.remote.run.order import Order
    from statecfg.remote.run.plan import Plan
    from statecfg.remote.run.rebooting import Exchange, RebootingExecution, RebootManagement
    from statecfg.remote.run.report import ActionReport
    from statecfg.remote.wire.channel import Channel

    End = Tuple[str, JsonMap]  # see `ResumableSession.run`

    class ResumableSession(Exchange, Protocol):
        """The part of a host session that the rest of a run needs."""

        kept: List[str]
        units: Any

        def proceed(self, order: Order, layers: List[List[HostNode]], act: Callable[[Any], End]) -> End: ...
        def apply(self, managed: RebootManagement, plan: Plan, facets: Facets) -> End: ...


AGAIN = "Run the command again. It performs the remaining steps."
DEVIATES = "after the reboot it needs other actions than planned; plan again, or add %s to its `requires`"


def resume(session: ResumableSession, order: Order, layers: List[List[HostNode]]) -> End:
    """Continue the run; return its end.

    :param order: the controller's instructions
    :param layers: the definition
    :raises StateError: if the host has not rebooted, or the lock is not reserved for this run
    """
    resumed = Resumed(order, session.kept, session.channel)
    resumed.check(session.lock)
    session.lock.reserved = resumed.reservation  # until the run continues, the connection may break once more
    return session.proceed(order, layers, partial(resumed.run, session))


class Resumed:
    """The rest of a run.

    :param order: the controller's instructions
    :param kept: what the run continues with, in pieces, as the controller kept it
    :param channel: the connection to the controller
    :raises StateError: if the host has not rebooted
    :ivar number: the number of the layer with the node that rebooted the host
    """

    def __init__(self, order: Order, kept: List[str], channel: Channel) -> None:
        self.order, self.channel = order, channel
        boot = boot_id()
        channel.send({"type": "booted", "boot": boot})
        if boot == order.resume["boot"]:
            raise StateError("the host has not rebooted", AGAIN)
        text = "".join(kept)
        self.digest = digest_of(text)
        self.data: JsonMap = json.loads(zlib.decompress(base64.b64decode(text)).decode())
        self.number: int = self.data["number"]

    def check(self, lock: Lock) -> None:
        """Check that the lock is reserved for the rest of this run.

        :raises StateError: if it is not, or if another run holds the lock
        """
        holder = lock.current_holder(0) or lock.previous_holder
        found = (holder.get("run"), holder.get("boot"), holder.get("digest"))
        if found != (self.order.run, self.order.resume["boot"], self.digest):
            text = "the host is no longer reserved for this run: after the reboot, run %s by %s locked it"
            raise StateError(text % (holder.get("run"), holder.get("who")), AGAIN)
        self.reservation: Holder = {"until": holder["until"], "boot": holder["boot"], "digest": holder["digest"]}

    def run(self, session: ResumableSession, managed: RebootManagement) -> End:
        """Plan and perform the layers that are left; return the end of the run."""
        session.warnings[:0] = [text for text in self.data["warnings"] if text not in session.warnings]
        LEARNED.update(self.data["learned"])
        facets = Facets()
        managed.planner = Rest
        planner: Any = managed.new_planner(facets)
        planner.said = self.data["said"]
        planner.done = [[self._ended(node) for node in layer] for layer in managed.layers[: self.number + 1]]
        plan: Plan = planner.plan(managed.layers, checking_kept=False)
        self._compare(plan)
        if self.channel.lost:  # another session continues the run
            raise ProtocolError("the connection was lost after the reboot")
        session.lock.write({"run": self.order.run, "who": self.order.who, "since": time.time(), "pid": os.getpid()})
        self.channel.send({"type": "resumed"})
        managed.begun = self.enter
        ended = session.apply(managed, plan, facets)
        if session.units is not None:
            session.units.after(managed, ended[0], time.time())
        return ended

    def _ended(self, node: HostNode) -> Step:
        """Return the step of a node that the run has processed before the reboot. The ledger has it already."""
        step = Step(node)
        if node.provides == self.data["node"]:
            report = self.data["report"]
            step.outcome, step.changes = Outcome.CHANGED, report["changes"]
            step.triggered_by, step.known_after = report.get("triggered_by", ()), report.get("known_after")
            return step
        step.outcome, step.reason = self.data["outcomes"].get(node.provides, (Outcome.UNCHANGED, ""))
        step.excluded = "processed before the reboot"
        return step

    def _compare(self, plan: Plan) -> None:
        """Fail the nodes that would take actions that were not shown. A node that has less to do is fine."""
        for step in (step for steps in plan.layers[self.number + 1 :] for step in steps):
            name = step.node.provides
            if name in self.data["stopped"]:
                step.outcome, step.reason = self.data["stopped"][name]
            elif name in self.data["open"]:
                step.known_after = self.data["open"][name]
            elif step.acts and not set(digests_of(step)).issubset(self.data["shown"].get(name, ())):
                step.outcome, step.reason = Outcome.FAILED, DEVIATES % self.data["node"]

    def enter(self, execution: RebootingExecution) -> None:
        """Report that the node has rebooted the host, and start with the layer after it."""
        node, name = execution.state[self.data["node"]], self.data["node"]
        action: ActionReport = self.data["report"]["actions"][0]
        execution.performer.record.took(name, action["op"], {"status": ActionStatus.OK})
        event = {"type": "action", "node": name, "op": action["op"], "index": 0, "event": "finished"}
        self.channel.send(dict(event, status=ActionStatus.OK))
        action["status"] = ActionStatus.OK
        node.done = [action]
        execution.shutdown, execution.acted = self.data["shutdown"], True
        execution.verify([node])
        execution.events.after(node)
        execution.close(self.number, [node], [node], "layers")
        execution.begun, execution.first = self.number, self.number + 1


class Rest(Planner):
    """Plans the layers after a reboot.

    :ivar done: the layers before it
    :ivar said: see `Plan`
    """

    done: List[List[Step]]
    said: Dict[str, Dict[str, str]]

    def layer(self, layer: Sequence[HostNode], earlier: Dict[str, Step]) -> List[Step]:
        """Check the nodes of a layer, or return their steps if the run has processed them before the reboot."""
        self.current.said = self.said
        number = len(self.current.layers)
        if number >= len(self.done):
            return Planner.layer(self, layer, earlier)
        earlier.update((step.node.provides, step) for step in self.done[number])
        return self.done[number]
