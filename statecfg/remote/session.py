"""One host session: receive the graph, plan it, send the plan, perform it, and report how it ended."""

from __future__ import annotations

import os
import sys
import time
from importlib import import_module

from statecfg.remote.graph.model import SECRETS, Blob
from statecfg.remote.graph.names import HostStatus, Mode, Outcome, RunStatus
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.ledger import state
from statecfg.remote.ledger.journal import Journal
from statecfg.remote.ledger.lock import Lock
from statecfg.remote.ledger.records import contents
from statecfg.remote.machine.real import Facets, RealMachine
from statecfg.remote.run.left_out import causes, foreseen
from statecfg.remote.run.management import Management
from statecfg.remote.run.order import Order
from statecfg.remote.run.report import differing, fingerprints, portions, summary
from statecfg.remote.wire.channel import Channel
from statecfg.remote.wire.frames import PROTOCOL, ProtocolError, decode_node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Tuple

    from statecfg.remote.graph.model import HostNode, JsonMap
    from statecfg.remote.ledger.lock import Holder
    from statecfg.remote.run.content import Spool
    from statecfg.remote.run.generated import Generated
    from statecfg.remote.run.plan import Plan
    from statecfg.remote.units.units import Units
    from statecfg.remote.wire.frames import Frame

    End = Tuple[str, JsonMap]  # the status of the run, and the other fields of the frame `end`


def main(source: int, sink: int, hello: Dict[str, Any], frames: List[Frame]) -> None:
    """Run the host session to its end.

    :param source: the descriptor to read from
    :param sink: the descriptor to write to
    :param hello: the first frame, which the bootstrap has read
    :param frames: further frames that the bootstrap has read
    """
    channel = Channel(source, sink, frames)
    session = Session(channel, hello)
    try:
        status, more = session.run()
    except state.StateError as problem:
        status, more = HostStatus.FAILED, {"error": str(problem), "hint": problem.hint}
    except ProtocolError as problem:
        status, more = HostStatus.FAILED, {"error": f"the session ended early: {problem}"}
    except Exception as problem:
        from traceback import format_exc

        # A bug in statecfg: the controller reports it as a bug, with the traceback.
        status, more = HostStatus.FAILED, {"error": f"the executor failed: {problem!r}", "trace": format_exc()}
    finally:
        session.close()
    channel.send(dict(more, type="end", status=status))
    channel.closing = True


class Session:
    """The steps of a host session, and the resources to release at its end.

    :param channel: the connection to the controller
    :param hello: the first frame
    """

    def __init__(self, channel: Channel, hello: Dict[str, Any]) -> None:
        self.channel, self.hello = channel, hello
        self.state_dir = state.directory()
        self.lock = Lock(self.state_dir)
        self.spool: Optional[Spool] = None
        self.blobs: Dict[str, Blob] = {}
        self.managed: Optional[Management] = None
        self.units: Optional[Units] = None
        self.generated: Optional[Generated] = None
        self.expect: Dict[str, str] = {}
        self.kept: List[str] = []  # what the run continues with after a reboot
        self.warnings: List[str] = hello.setdefault("warnings", [])

    def run(self) -> End:
        """Do what the controller asks for; return the status and the other fields of the frame `end`."""
        python = "%d.%d.%d" % sys.version_info[:3]
        self.channel.send({"type": "hello", "protocol": PROTOCOL, "pid": os.getpid(), "python": python})
        frame, _ = self.channel.receive("run")
        order = Order.from_json(fields(frame))
        for sha256 in order.parts:
            self.hello["modules"].update(self.hello["unpack"](sha256, self.channel.part))
        if order.facts:
            self.tell_facts(order.facts)
        if order.mode == Mode.FACTS:
            from statecfg.remote.machine.facts import gather

            return HostStatus.OK, {"facts": gather()}
        if order.mode == Mode.HISTORY:
            from statecfg.remote.ledger.history import of_host

            return HostStatus.OK, of_host(self.state_dir, self.lock, order.history)
        if order.mode == Mode.REVEAL:
            return state.revealed(self.state_dir, order.playbook, order.history["name"])
        layers, order = self.take_in(order)
        if order.resume:
            from statecfg.remote.run.resuming import resume

            return resume(self, order, layers)
        return self.proceed(order, layers, self.plan_and_apply)

    def proceed(self, order: Order, layers: List[List[HostNode]], act: Callable[[Any], End]) -> End:
        """Lock the host, compare the definition with the ledger, and act."""
        self.mask(order)
        holder = self.take_lock(order)
        if holder is not None:
            return HostStatus.LOCKED, {"holder": holder}
        for name in order.types:
            import_module(order.types[name])
        if any(node.type == "generate" for layer in layers for node in layer):
            from statecfg.remote.run.generated import Generated

            self.generated = Generated(self.state_dir, order, layers)
            order = self.generated.order
            self.mask(order)
        manager: Callable[..., Management] = Management
        if any("for_each_host" in node.options for layer in layers for node in layer):
            from statecfg.remote.run.items import ItemManagement

            manager = ItemManagement
        elif any(node.type == "reboot" for layer in layers for node in layer):
            from statecfg.remote.run.rebooting import of_session

            manager = of_session(self)
        managed = self.managed = manager(self.state_dir, order, self.warnings)
        if order.account and order.account.get("module") in self.hello["modules"]:
            managed.account = import_module("statecfg.remote.run.own_account").OwnAccount(order.account)
        self.prepare_units(managed)
        if managed.refusal:
            return self.end(HostStatus.REFUSED, refusal=managed.refusal)
        self.arrive(managed, layers)
        return act(managed)

    def tell_facts(self, request: JsonMap) -> None:
        """Collect facts and send them."""
        from statecfg.remote.facts import told

        self.channel.send(dict(told(request), type="facts"))

    def mask(self, order: Order) -> None:
        """Mask the secrets of the order in everything that is sent from now on."""
        SECRETS.update(order.secrets)
        if order.secrets:
            from statecfg.remote.machine.redact import Redactor

            self.channel.mask = Redactor(order.secrets).report

    def end(self, status: str, **more: Any) -> End:
        """Return the status and the other fields of the frame `end`, with the warnings."""
        return status, dict(more, warnings=self.warnings)

    def prepare_units(self, managed: Management) -> None:
        """Check that this host's units belong to the controller's project, and serve them if the run acts."""
        order = managed.order
        if order.units:
            from statecfg.remote.units import home as unit_home

            managed.refusal = unit_home.refusal(self.state_dir, order.units)
        if order.has_units and order.acting and not managed.refusal:
            from statecfg.remote.units.units import Units

            self.units = Units(self.state_dir, order.units, self.channel, self.warnings)

    def plan_and_apply(self, managed: Management) -> End:
        """Plan, send the plan, wait for the controller's answer, and apply the plan."""
        order, mask = managed.order, self.channel.mask
        facets = Facets(managed.recorded.digests)
        started = time.monotonic()
        plan = managed.plan(facets, self.load)
        differs = [*(differing(self.expect, fingerprints(plan, mask)) if order.expect else ()), *order.differs]
        due = order.acting and managed.due(plan)
        halted = plan.halted(order, due, self.warnings)
        waits = (due or self.units is not None) and not (differs or managed.refusal or halted)
        self.show(plan, managed, time.monotonic() - started, waits)
        if managed.refusal:
            return self.end(HostStatus.REFUSED, refusal=managed.refusal)
        if differs:
            return self.end(HostStatus.REFUSED, differs=differs)
        if not waits:
            return self.end_unchanged(managed, plan, halted)
        # Change nothing before the controller has the plan, so that no change goes unreported.
        answer, _ = self.channel.receive("go", "no")
        if answer["type"] == "no":
            return self.end(HostStatus.OK, declined=True)
        if order.asks:
            # The host may have changed while the user read the plan.
            facets = Facets(managed.recorded.digests)
            again = managed.plan(facets, self.load)
            differs = differing(fingerprints(plan, mask), fingerprints(again, mask))
            if differs:
                return self.end(HostStatus.REFUSED, differs=differs)
        if self.units is None:
            return self.apply(managed, plan, facets)
        return self.units.around(self, managed, plan, facets)

    # Before the plan

    def take_in(self, order: Order) -> Tuple[List[List[HostNode]], Order]:
        """Receive the nodes, layer by layer, up to the frame `begin`.

        That frame completes the order with the data that the controller looked up meanwhile.

        :returns: the layers and the complete order
        """
        layers: List[List[HostNode]] = []
        while True:
            frame, _ = self.channel.receive("nodes", "expect", "begin", "facts", "keep")
            if frame["type"] == "facts":
                self.tell_facts(fields(frame))
                continue
            if frame["type"] == "begin":
                complete = fields(frame)
                for sha256 in complete.pop("parts", ()):
                    self.hello["modules"].update(self.hello["unpack"](sha256, self.channel.part))
                return layers, order.with_json(complete)
            if frame["type"] == "keep":
                self.kept.append(frame["text"])
                continue
            if frame["type"] == "expect":
                self.expect.update(frame["nodes"])
                continue
            while len(layers) <= frame["layer"]:
                layers.append([])
            layers[frame["layer"]] += [decode_node(data, self.blobs) for data in frame["nodes"]]

    def take_lock(self, order: Order) -> Optional[Holder]:
        """Take the host's lock, or, for a plan, only check it.

        :returns: data about another run that holds the lock, None if there is none
        """
        if not order.acting:
            return self.lock.current_holder(order.lock_timeout)
        state.prepare(self.state_dir)
        holder: Holder = {"run": order.run, "who": order.who, "since": time.time(), "pid": os.getpid()}
        other = self.lock.take(holder, order.lock_timeout)
        if other is None:
            state.sweep(self.state_dir)  # this run holds the lock, so the files of killed runs are unused
        return other

    def arrive(self, managed: Management, layers: List[List[HostNode]]) -> None:
        """Complete the nodes, find the orphans, load their types, and request the content that this host lacks."""
        layers = [[from_wire(node) for node in layer] for layer in layers]
        managed.compare(layers)
        self.load(managed)
        managed.follow()
        units = self.units.files(self.blobs) if self.units is not None else []
        self.fetch(managed, [*managed.files(self.blobs), *units])
        managed.install()
        if self.generated is not None:
            self.generated.insert(layers, managed)
        secrets = managed.order.secrets.values()
        Blob.secrets = tuple(value.encode("utf-8", "surrogateescape") for value in secrets)
        # Content that this host already has is not sent, so nothing searches it for secrets.
        hiding = [node.attrs.get(name) for layer in layers for node in layer for name in node.hides]
        for blob in contents(hiding):
            blob.secret = True

    def load(self, managed: Management) -> None:
        """Load the node types of the orphans; request those that the controller has not sent."""
        missing = managed.load_types()
        if not missing:
            return
        from statecfg.remote.run.content import request_types

        for name in request_types(missing, self.channel, self.hello["modules"]):
            import_module(name)

    def fetch(self, managed: Management, more: List[Blob]) -> None:
        """Request the content that this host lacks, see `missing_content`."""
        if all(blob.data is not None for blob in self.blobs.values()):
            return
        from statecfg.remote.run.content import Spool, missing_content

        wanted = missing_content(managed.layers, more, RealMachine(Facets(managed.recorded.digests)))
        if wanted:
            self.spool = Spool(self.state_dir)
            self.spool.receive(wanted, self.channel)

    # The plan

    def show(self, plan: Plan, managed: Management, seconds: float, waits: bool) -> None:
        """Send the plan in frames of limited size.

        :param seconds: how long the planning took
        :param waits: the run now waits for the controller's answer `go` or `no`
        """
        prints, spent = fingerprints(plan, self.channel.mask), [0]
        self.warnings += foreseen(plan, managed.order)
        for part, layers in (("removals", plan.removals), ("layers", plan.layers), ("left", plan.to_keep)):
            for number, steps in enumerate(layers):
                for nodes in portions((managed.report(step) for step in steps), spent):
                    mine = {node["name"]: prints[node["name"]] for node in nodes if node["name"] in prints}
                    frame = {"type": "planned", "part": part, "layer": number, "nodes": nodes, "fingerprints": mine}
                    self.channel.send(frame)
        more: Dict[str, Any] = {"hooks": managed.would_fire(plan), "seconds": round(seconds, 3), "waits": waits}
        if waits:
            more["warnings"] = self.warnings  # the controller may give up this connection before the end
        if managed.order.acting:
            from statecfg.remote.machine.facts import gather

            more["facts"] = gather()
        debts = (debt for debt in managed.recorded.debts if debt.node not in plan.paid)
        owed = [{key: debt[key] for key in ("node", "cause", "since", "run")} for debt in debts]
        self.channel.send(dict(more, type="plan", owed=owed, ledger=managed.recorded.lineage))

    # The run

    def end_unchanged(self, managed: Management, plan: Plan, halted: str = "") -> End:
        """End a run that does nothing on the host, and say why (`halted`); record it unless it only plans."""
        status = HostStatus.FAILED if plan.failed else HostStatus.OK
        if not managed.order.acting:
            return self.end(status, halted=halted)
        managed.end_unchanged(plan, status)
        return self.end(status, halted=halted, unchanged=True, ledger=managed.recorded.lineage)

    def apply(self, managed: Management, plan: Plan, facets: Facets) -> End:
        """Perform the plan; return the status and the other fields of the frame `end`.

        :raises StateError: if the state directory can't be written, or a guard can't record the state of the host
        """
        from statecfg.remote.run.aftercare import guards_of

        order = managed.order
        assert managed.definitions is not None
        guards = guards_of(plan, REGISTRY, self.channel, facets, order.login, self.warnings)
        if managed.account is not None:
            guards += managed.account.guards(plan, self.channel, facets, self.warnings)
        journal = Journal(self.state_dir, order.run, managed.definitions.mask)
        try:
            life = managed.begin(plan, journal, facets, self.channel)
        except state.StateError:
            if not order.resume:
                journal.discard()
            raise

        def stopped() -> str:
            return self.channel.stopped() or journal.broken

        owed = causes(managed.recorded.debts)
        keep_going = order.keep_going
        execution = managed.execution(
            plan, REGISTRY, facets, self.channel.send, journal, stopped, keep_going, owed, life, guards
        )
        layers = execution.run()
        unchanged = {name for name, node in execution.state.items() if node.outcome == Outcome.UNCHANGED}
        owing = sorted((unchanged & managed.recorded.restarts) | plan.paid)
        journal.all_finished([(name, Outcome.UNCHANGED) for name in owing])
        counts = summary([node for layer in layers for node in layer])
        journal.sync()
        halted = execution.halted or journal.broken
        status = (
            HostStatus.FAILED if counts.get(Outcome.FAILED) or counts.get(Outcome.SKIPPED) or halted else HostStatus.OK
        )
        sound = [name for name, node in execution.state.items() if node.sound]
        goes_on = self.units is not None  # with the hooks of units, after which the run gets its status
        managed.end(
            journal, RunStatus.CUT_OFF if self.channel.lost else RunStatus.RUNNING if goes_on else status, sound
        )
        if goes_on and not self.channel.lost:
            journal.add(folded=[])
        return self.end(status, shutdown=execution.shutdown, halted=halted, ledger=managed.recorded.lineage)

    def close(self) -> None:
        """Stop serving the units, close the ledger, delete received content and release the lock."""
        if self.units is not None:
            self.units.close()
        if self.managed is not None:
            self.managed.close()
        if self.spool is not None:
            self.spool.delete()
        self.lock.drop()


def fields(frame: JsonMap) -> Dict[str, Any]:
    """Return a frame without its type."""
    return {key: value for key, value in frame.items() if key != "type"}


def from_wire(node: HostNode) -> HostNode:
    """Return the node as its type completes it on this host (`from_wire` of the Borg document)."""
    node_type = REGISTRY.get(node.type)
    function = node_type.methods.get("from_wire") if node_type is not None else None
    if function is None:
        return node
    count = function.__code__.co_argcount
    completed: HostNode = function(*[node, RealMachine()][:count])
    return completed
