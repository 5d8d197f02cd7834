"""One exchange on the host: take in the graph, plan it, show the plan, do it, and say how it ended."""

from __future__ import annotations

import os
import sys
import time
from importlib import import_module

from statecfg.remote.graph.model import Blob
from statecfg.remote.graph.names import HostStatus, Mode, Outcome, RunStatus
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.ledger import state
from statecfg.remote.ledger.ledger import Ledger
from statecfg.remote.ledger.orphans import contents
from statecfg.remote.machine.changes import secretive
from statecfg.remote.machine.planned import Planned
from statecfg.remote.machine.real import Facets, RealMachine
from statecfg.remote.run.management import Management
from statecfg.remote.run.order import Order
from statecfg.remote.run.planning import Planner
from statecfg.remote.run.report import portions, summary
from statecfg.remote.wire.channel import Channel
from statecfg.remote.wire.frames import PROTOCOL, ProtocolError, decode_node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

    from statecfg.remote.graph.model import Node
    from statecfg.remote.run.planning import Plan
    from statecfg.remote.units.units import Units


def main(source: int, sink: int, hello: Dict[str, Any], frames: List[Tuple[Dict[str, Any], bytes]]) -> None:
    """Run the exchange to its end; the bootstrap has read `hello` and perhaps more frames already."""
    channel = Channel(source, sink, frames)
    session = Session(channel, hello)
    try:
        status, more = session.run()
    except state.StateError as problem:
        status, more = HostStatus.FAILED, {"error": str(problem)}
    except ProtocolError as problem:
        status, more = HostStatus.FAILED, {"error": "the exchange ended early: %s" % problem}
    except Exception as problem:
        from traceback import format_exc

        # Our own mistake: the controller shows it as such, with where it happened.
        status, more = HostStatus.FAILED, {"error": "the executor failed: %r" % problem, "trace": format_exc()}
    finally:
        session.close()
    channel.send(dict(more, type="end", status=status))
    channel.closing = True


class Session:
    """The steps of an exchange, and what must be given back at its end."""

    def __init__(self, channel: Channel, hello: Dict[str, Any]) -> None:
        self.channel, self.hello = channel, hello
        self.place = state.directory()
        self.lock = state.Lock(self.place)
        self.spool = ""
        self.blobs: Dict[str, Blob] = {}
        self.managed: Optional[Management] = None
        self.units: Optional[Units] = None
        self.expect: Dict[str, str] = {}
        self.warnings: List[str] = hello.setdefault("warnings", [])

    def run(self) -> Tuple[str, Dict[str, Any]]:
        """Do what the controller asks for; return the status and what else END is to say."""
        self.channel.send(
            {"type": "hello", "protocol": PROTOCOL, "pid": os.getpid(), "python": "%d.%d.%d" % sys.version_info[:3]}
        )
        frame, _ = self.channel.receive("run")
        order = Order.from_json(fields(frame))
        if order.secrets:
            from statecfg.remote.machine.redact import Redactor

            self.channel.mask = Redactor(order.secrets).report
        if order.mode == Mode.FACTS:
            from statecfg.remote.machine.facts import gather

            return HostStatus.OK, {"facts": gather()}
        if order.mode == Mode.HISTORY:
            return HostStatus.OK, self.history(order)
        layers, order = self.take_in(order)
        held = self.take_lock(order)
        if held is not None:
            return HostStatus.LOCKED, {"holder": held}
        for name in order.types:
            import_module(order.types[name])
        managed = self.managed = Management(self.place, order, self.warnings)
        if order.units:
            from statecfg.remote.units import home as unit_home

            managed.refusal = unit_home.refusal(self.place, order.units)
            if managed.refusal:
                return HostStatus.REFUSED, {"refusal": managed.refusal, "warnings": self.warnings}
        if order.has_units and order.acting:
            from statecfg.remote.units.units import Units

            self.units = Units(self.place, order.units, self.channel, self.warnings)
        self.arrive(managed, layers)
        expect = self.expect if order.expect else None
        facets = Facets()
        started = time.monotonic()
        plan = self.plan(managed, facets)
        differs = [*different(expect, plan, self.channel.mask), *order.differs]
        due = order.acting and managed.due(plan)
        waits = (due or self.units is not None) and not differs and not managed.refusal
        self.show(plan, managed, time.monotonic() - started, waits)
        if managed.refusal:
            return HostStatus.REFUSED, {"refusal": managed.refusal, "warnings": self.warnings}
        if differs:
            return HostStatus.REFUSED, {"differs": differs, "warnings": self.warnings}
        if not waits:
            return self.settle(managed, plan)
        # Nothing is done before the controller has the plan: what it can't know of, has not happened.
        answer, _ = self.channel.receive("go", "no")
        if answer["type"] == "no":
            return HostStatus.OK, {"declined": True, "warnings": self.warnings}
        if order.asks:
            # Somebody read the plan, and that took its time: the host may be another one by now.
            facets = Facets()
            mask = self.channel.mask
            differs = different(plan.fingerprints(mask), self.plan(managed, facets), mask)
            if differs:
                return HostStatus.REFUSED, {"differs": differs, "warnings": self.warnings}
        if self.units is None:
            return self.apply(managed, plan, facets)
        return self.with_units(self.units, managed, plan, facets)

    def with_units(self, units: Units, managed: Management, plan: Plan, facets: Facets) -> Tuple[str, Dict[str, Any]]:
        """Let the units that leave come to their end, do what was planned, then let those that stay run their hooks."""
        why = units.phase("before", True)
        if why:
            return HostStatus.FAILED, {"error": why, "unchanged": True, "warnings": self.warnings}
        doing = self.apply(managed, plan, facets) if managed.due(plan) else self.settle(managed, plan)
        units.phase("after", doing[0] == HostStatus.OK)
        return doing

    def history(self, order: Order) -> Dict[str, Any]:
        """Return the runs that this host remembers."""
        from statecfg.remote.ledger.history import history

        ledger = Ledger(self.place, reading=True)
        # The journal of a run that is under way is none that was left behind.
        running = [(self.lock.held(0) or {}).get("run")]
        left = state.left_over(self.place)
        running.append((self.lock.held(0) or {}).get("run"))
        cut_off = [(run, account) for run, account in left if run not in running]
        try:
            if cut_off:
                ledger.recall(cut_off)
            asked = order.history
            found = history(ledger, asked.get("playbook", ""), asked.get("run", ""), int(asked.get("limit", 20)))
            return {"history": found, "ledger": ledger.meta("lineage")}
        finally:
            ledger.close()

    # Before the plan

    def take_in(self, order: Order) -> Tuple[List[List[Node]], Order]:
        """Take in the nodes, layer by layer, up to the frame that says they are all there.

        That one completes the order with what the controller had to look up meanwhile: hooks, and what it remembers.
        """
        layers: List[List[Node]] = []
        while True:
            frame, _ = self.channel.receive("nodes", "expect", "begin")
            if frame["type"] == "begin":
                complete = fields(frame)
                for sha256 in complete.pop("parts", ()):
                    self.hello["modules"].update(self.hello["unpack"](sha256, self.part))
                return layers, order.with_json(complete)
            if frame["type"] == "expect":
                self.expect.update(frame["nodes"])
                continue
            while len(layers) <= frame["layer"]:
                layers.append([])
            layers[frame["layer"]] += [decode_node(found, self.blobs) for found in frame["nodes"]]

    def part(self, sha256: str) -> Iterator[bytes]:
        """Ask for a part of the executor that only some hosts need; yield its pieces."""
        self.channel.send({"type": "need", "bundle": sha256})
        last = False
        while not last:
            header, body = self.channel.receive("bundle")
            yield body
            last = header["last"]

    def take_lock(self, order: Order) -> Optional[Dict[str, Any]]:
        """Take the host for this run, or, for a plan, see that nobody else is changing it; return who does."""
        if not order.acting:
            return self.lock.held(order.lock_timeout)
        state.prepare(self.place)
        holder = {"run": order.run, "who": order.who, "since": time.time(), "pid": os.getpid()}
        held = self.lock.take(holder, order.lock_timeout)
        if held is None:
            # The host is ours: what a killed run left lying is nobody's any more.
            state.sweep(self.place)
        return held

    def arrive(self, managed: Management, layers: List[List[Node]]) -> None:
        """Let the nodes arrive, and what left the definition be known; ask for the content that this host lacks."""
        layers = [[from_wire(node) for node in layer] for layer in layers]
        managed.compare(layers)
        self.load(managed)
        managed.follow()
        units = self.units.files(self.blobs) if self.units is not None else []
        self.fetch(managed.layers, [*managed.files(self.blobs), *units])
        managed.install()
        secrets = managed.order.secrets.values()
        Blob.secrets = tuple(value.encode("utf-8", "surrogateescape") for value in secrets)
        # Content that this host has already does not arrive, and can't be looked into.
        hiding = [node.attrs.get(name) for layer in layers for node in layer for name in node.hides]
        for blob in contents(hiding):
            blob.secret = True

    def load(self, managed: Management) -> None:
        """Load the node types of what left the definition; those that did not come with this run are asked for."""
        missing = managed.load_types()
        if not missing:
            return
        self.channel.send({"type": "need", "types": missing})
        answer, _ = self.channel.receive("modules")
        modules = self.hello["modules"]
        for name, (package, filename, text) in answer["modules"].items():
            if name not in modules:
                modules[name] = (package, compile(text, filename, "exec", dont_inherit=True, optimize=0))
        for name in answer["types"]:
            import_module(answer["types"][name])

    def fetch(self, layers: List[List[Node]], more: List[Blob]) -> None:
        """Ask, once, for the content that this host lacks: of the nodes, and more that is wanted in any case."""
        if all(blob.data is not None for blob in self.blobs.values()):
            return
        world = RealMachine()
        wanted = {blob.sha256: blob for blob in more if blob.data is None}
        for layer in layers:
            for node in layer:
                kind = REGISTRY.get(node.type)
                function = kind.methods.get("blobs") if kind is not None else None
                try:
                    found = function(node, world) if function is not None else list(contents(node.attrs))
                except OSError:  # it can't be looked at: the check will say why, and the content may be needed
                    found = list(contents(node.attrs))
                wanted.update({blob.sha256: blob for blob in found if blob.data is None})
        if not wanted:
            return
        try:
            self.spool_up(wanted)
        except OSError as problem:
            text = "content can't be taken in, in %s: %s" % (self.place, problem.strerror)
            raise state.StateError(text) from None

    def spool_up(self, wanted: Dict[str, Blob]) -> None:
        """Take in content, to a directory of this run. Raises OSError."""
        state.prepare(self.place)
        self.spool = os.path.join(self.place, "%s%d-%d" % (state.SPOOL, os.getpid(), time.time_ns()))
        os.mkdir(self.spool, 0o700)
        self.channel.send({"type": "need", "blobs": sorted(wanted)})
        for sha256 in sorted(wanted):
            self.receive_blob(wanted[sha256])

    def receive_blob(self, blob: Blob) -> None:
        """Take in one content, in pieces, to a file of ours. Raises ProtocolError where it is not what it should be."""
        import hashlib

        digest = hashlib.sha256()
        path = os.path.join(self.spool, blob.sha256)
        with open(path, "xb") as stream:
            while True:
                frame, body = self.channel.receive("blob")
                if frame["sha256"] != blob.sha256:
                    raise ProtocolError("content %s came where %s was due" % (frame["sha256"][:12], blob.sha256[:12]))
                stream.write(body)
                digest.update(body)
                if frame["last"]:
                    break
        if digest.hexdigest() != blob.sha256:
            raise ProtocolError("content %s arrived damaged" % blob.sha256[:12])
        blob.path = path

    # The plan

    def plan(self, managed: Management, facets: Facets) -> Plan:
        """Plan against this host as it is."""
        planner = Planner(REGISTRY, Planned(RealMachine(facets)), debts(managed.owed))
        planner.staying, planner.machine.claimed = managed.going.staying, managed.going.others
        going = managed.going
        rows = dict(managed.rows, **going.renamed)
        rows.update((former.row["name"], former.row) for former in managed.formers())
        planner.held = {name for name, row in rows.items() if secretive(row["attrs"])}
        return planner.plan(
            managed.layers, going.layers, going.left, looking=not managed.acting, following=managed.following
        )

    def show(self, plan: Plan, managed: Management, seconds: float, waits: bool) -> None:
        """Send the plan, in frames of a bounded size; `waits` says that its execution waits for the word."""
        prints, spent = plan.fingerprints(self.channel.mask), [0]
        self.warnings += [step.reason for step in plan.going() if step.stays]
        for part, layers in (("removals", plan.removals), ("layers", plan.layers), ("left", plan.left)):
            for number, steps in enumerate(layers):
                for nodes in portions((managed.report(step) for step in steps), spent):
                    mine = {node["name"]: prints[node["name"]] for node in nodes if node["name"] in prints}
                    frame = {"type": "planned", "part": part, "layer": number, "nodes": nodes, "fingerprints": mine}
                    self.channel.send(frame)
        hooks = managed.would_fire(plan)
        more: Dict[str, Any] = {"hooks": hooks} if hooks else {}
        if managed.acting:
            from statecfg.remote.machine.facts import gather

            more["facts"] = gather()
        more["ledger"] = managed.lineage
        owed = [debt for debt in managed.owed if debt["node"] not in plan.settled]
        owed = [{key: debt[key] for key in ("node", "cause", "since", "run")} for debt in owed]
        frame = {"type": "plan", "owed": owed, "seconds": round(seconds, 3), "waits": waits}
        self.channel.send(dict(more, **frame))

    # The run

    def settle(self, managed: Management, plan: Plan) -> Tuple[str, Dict[str, Any]]:
        """End a run that has nothing to do on the host; an apply is entered in the ledger all the same."""
        status = HostStatus.FAILED if failed(plan) else HostStatus.OK
        if not managed.acting:
            return status, {"warnings": self.warnings}
        managed.settle(plan, status)
        return status, {"unchanged": True, "warnings": self.warnings, "ledger": managed.lineage}

    def apply(self, managed: Management, plan: Plan, facets: Facets) -> Tuple[str, Dict[str, Any]]:
        """Do what was planned; return the status and what END is to say."""
        from statecfg.remote.run.aftercare import guard_of
        from statecfg.remote.run.execution import Execution

        order = managed.order
        journal = state.Journal(self.place, order.run, managed.mask)
        try:
            life = managed.begin(plan, journal, facets, self.channel)
        except state.StateError:
            journal.discard()
            raise

        def stopped() -> str:
            return self.channel.stopped() or journal.broken

        owed = debts(managed.owed)
        guard = guard_of(plan, self.channel, facets, order.login, self.warnings)
        keep_going = order.keep_going
        execution = Execution(
            plan, REGISTRY, facets, self.channel.send, journal, stopped, keep_going, owed, life, guard
        )
        layers = execution.run()
        unchanged = {name for name, doing in execution.state.items() if doing.outcome == Outcome.UNCHANGED}
        for name in sorted((unchanged & managed.owing) | plan.settled):
            journal.finished(name, Outcome.UNCHANGED)
        counts = summary([node for layer in layers for node in layer])
        journal.sync()
        halted = execution.halted or journal.broken
        status = (
            HostStatus.FAILED if counts.get(Outcome.FAILED) or counts.get(Outcome.SKIPPED) or halted else HostStatus.OK
        )
        sound = [name for name, doing in execution.state.items() if doing.outcome in Outcome.SOUND]
        managed.end(journal, RunStatus.CUT_OFF if self.channel.lost else status, sound)
        more: Dict[str, Any] = {"shutdown": execution.shutdown, "halted": halted, "ledger": managed.lineage}
        return status, dict(more, warnings=self.warnings)

    def close(self) -> None:
        """Give back the lock, the ledger and the spool, and end what serves the units."""
        if self.units is not None:
            self.units.close()
        if self.managed is not None:
            self.managed.close()
        if self.spool:
            import shutil

            # What can't be removed is swept by the next run; that this one is over must be said all the same.
            shutil.rmtree(self.spool, ignore_errors=True)
        self.lock.drop()


def fields(frame: Dict[str, Any]) -> Dict[str, Any]:
    """Return a frame without its type."""
    return {key: value for key, value in frame.items() if key != "type"}


def different(expect: Optional[Dict[str, str]], plan: Plan, mask: Optional[Callable[[Any], Any]]) -> List[str]:
    """Return the names of the nodes that would not do what was planned before; none where nothing was."""
    if expect is None:
        return []
    found = plan.fingerprints(mask)
    return sorted(name for name in set(expect) | set(found) if expect.get(name) != found.get(name))


def debts(owed: List[Dict[str, Any]]) -> Dict[str, List[str]]:
    """Return node → the causes it owes an answer to."""
    found: Dict[str, List[str]] = {}
    for debt in owed:
        found.setdefault(debt["node"], []).append(debt["cause"])
    return found


def failed(plan: Plan) -> bool:
    """Tell whether any check failed."""
    return any(step.outcome in Outcome.STOPPED for step in (*plan.steps.values(), *plan.going()))


def from_wire(node: Node) -> Node:
    """Let a node's type add what only this host knows (`from_wire` of the Borg document)."""
    kind = REGISTRY.get(node.type)
    function = kind.methods.get("from_wire") if kind is not None else None
    if function is None:
        return node
    count = function.__code__.co_argcount
    found: Node = function(*[node, RealMachine()][:count])
    return found
