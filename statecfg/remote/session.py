"""One exchange on the host: take in the graph, plan it, show the plan, do it, and say how it ended."""

from __future__ import annotations

import os
import sys
import time
from importlib import import_module

from statecfg.remote import state
from statecfg.remote.channel import Channel
from statecfg.remote.model import Blob
from statecfg.remote.nodetype import REGISTRY
from statecfg.remote.planned import Planned
from statecfg.remote.planning import Planner
from statecfg.remote.real import Facets, RealMachine
from statecfg.remote.report import portions, step_report, summary
from statecfg.remote.wire import PROTOCOL, ProtocolError, decode_node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple

    from statecfg.remote.model import Node
    from statecfg.remote.planning import Plan


def main(source: int, sink: int, hello: Dict[str, Any], frames: List[Tuple[Dict[str, Any], bytes]]) -> None:
    """Run the exchange to its end; the bootstrap has read `hello` and perhaps more frames already."""
    channel = Channel(source, sink, frames)
    session = Session(channel, hello)
    try:
        status, more = session.run()
    except state.StateError as problem:
        status, more = "failed", {"error": str(problem)}
    except ProtocolError as problem:
        status, more = "failed", {"error": "the exchange ended early: %s" % problem}
    except Exception as problem:
        from traceback import format_exc

        # Our own mistake: the controller shows it as such, with where it happened.
        status, more = "failed", {"error": "the executor failed: %r" % problem, "trace": format_exc()}
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
        self.ledger: Optional[state.Ledger] = None
        self.blobs: Dict[str, Blob] = {}
        self.interrupted = ""
        self.expect: Dict[str, str] = {}
        self.warnings: List[str] = list(hello.get("warnings", ()))

    def run(self) -> Tuple[str, Dict[str, Any]]:
        """Do what the controller asks for; return the status and what else END is to say."""
        self.channel.send(
            {"type": "hello", "protocol": PROTOCOL, "pid": os.getpid(), "python": "%d.%d.%d" % sys.version_info[:3]}
        )
        order, _ = self.channel.receive("run")
        if order.get("secrets"):
            from statecfg.remote.redact import Redactor

            self.channel.mask = Redactor(order["secrets"]).value
        if order["mode"] == "facts":
            from statecfg.remote.facts import gather

            return "ok", {"facts": gather()}
        layers = self.take_in()
        expect = self.expect if order.get("expect") else None
        held = self.take_lock(order)
        if held is not None:
            return "locked", {"holder": held}
        for name in order["types"]:
            import_module(order["types"][name])
        cut_off = state.left_over(self.place)
        owed = self.owed(order, cut_off)
        layers = [[self.arrive(node) for node in layer] for layer in layers]
        self.fetch(layers)
        values = [value.encode("utf-8", "surrogateescape") for value in order.get("secrets", {}).values()]
        for blob in self.blobs.values() if values else ():
            blob.secret = blob.holds(values)
        facets = Facets()
        started = time.monotonic()
        plan = self.plan(layers, facets, owed)
        differs = different(expect, plan)
        due = bool(owed or cut_off or self.interrupted) or any(step.acts for step in plan.steps.values())
        waits = order["mode"] == "apply" and due and not differs
        self.show(plan, owed, time.monotonic() - started, waits)
        if differs:
            return "refused", {"differs": differs, "warnings": self.warnings}
        if not waits:
            more = {"unchanged": True} if order["mode"] == "apply" else {}
            return "failed" if failed(plan) else "ok", dict(more, warnings=self.warnings)
        # Nothing is done before the controller has the plan: what it can't know of, has not happened.
        answer, _ = self.channel.receive("go", "no")
        if answer["type"] == "no":
            return "ok", {"declined": True, "warnings": self.warnings}
        if order.get("asks"):
            # Somebody read the plan, and that took its time: the host may be another one by now.
            facets = Facets()
            differs = different(plan.fingerprints(), self.plan(layers, facets, owed))
            if differs:
                return "refused", {"differs": differs, "warnings": self.warnings}
        return self.apply(order, plan, facets, owed, cut_off)

    # Before the plan

    def take_in(self) -> List[List[Node]]:
        """Take in the nodes, layer by layer, up to the frame that says they are all there."""
        layers: List[List[Node]] = []
        while True:
            frame, _ = self.channel.receive("nodes", "expect", "begin")
            if frame["type"] == "begin":
                return layers
            if frame["type"] == "expect":
                self.expect.update(frame["nodes"])
                continue
            while len(layers) <= frame["layer"]:
                layers.append([])
            layers[frame["layer"]] += [decode_node(found, self.blobs) for found in frame["nodes"]]

    def take_lock(self, order: Dict[str, Any]) -> Optional[Dict[str, Any]]:
        """Take the host for this run, or, for a plan, see that nobody else is changing it; return who does."""
        if order["mode"] == "plan":
            return self.lock.held(float(order.get("lock_timeout", 0)))
        state.prepare(self.place)
        holder = {"run": order["run"], "who": order["who"], "since": time.time(), "pid": os.getpid()}
        held = self.lock.take(holder, float(order.get("lock_timeout", 0)))
        if held is None:
            # The host is ours: what a killed run left lying is nobody's any more.
            state.sweep(self.place)
        return held

    def owed(self, order: Dict[str, Any], cut_off: List[Tuple[str, state.Account]]) -> List[Dict[str, Any]]:
        """Return what earlier runs of this playbook still owe, and warn of those that were cut off."""
        if not os.path.exists(os.path.join(self.place, state.LEDGER)):
            return []
        ledger = state.Ledger(self.place, reading=True)
        try:
            for run, account in cut_off:
                who = ledger.who(run)
                text = "run %s by %s was cut off" % (run, who.get("who", "an unknown user"))
                if account.under_way:
                    text += "; under way were %s" % ", ".join(account.under_way)
                self.warnings.append(text)
            self.interrupted = ledger.interrupted(order["playbook"])
            if self.interrupted:
                self.warnings.append("the last run, %s, lost its controller and was cut off" % self.interrupted)
            return ledger.owed(order["playbook"], cut_off)
        finally:
            ledger.close()

    def arrive(self, node: Node) -> Node:
        """Let the node's type add what only this host knows (`from_wire` of the Borg document)."""
        kind = REGISTRY.get(node.type)
        function = kind.methods.get("from_wire") if kind is not None else None
        if function is None:
            return node
        count = function.__code__.co_argcount
        found: Node = function(*[node, RealMachine()][:count])
        return found

    def fetch(self, layers: List[List[Node]]) -> None:
        """Ask, once, for the content that this host lacks."""
        if all(blob.data is not None for blob in self.blobs.values()):
            return
        world = RealMachine()
        wanted = {}
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

    def plan(self, layers: List[List[Node]], facets: Facets, owed: List[Dict[str, Any]]) -> Plan:
        """Plan against this host as it is."""
        planner = Planner(REGISTRY, Planned(RealMachine(facets)), debts(owed))
        return planner.plan(layers)

    def show(self, plan: Plan, owed: List[Dict[str, Any]], seconds: float, waits: bool) -> None:
        """Send the plan, in frames of a bounded size; `waits` says that its execution waits for the word."""
        prints = plan.fingerprints()
        for number, steps in enumerate(plan.layers):
            for nodes in portions(step_report(step) for step in steps):
                mine = {node["name"]: prints[node["name"]] for node in nodes if node["name"] in prints}
                self.channel.send({"type": "planned", "layer": number, "nodes": nodes, "fingerprints": mine})
        self.channel.send({"type": "plan", "owed": owed, "seconds": round(seconds, 3), "waits": waits})

    # The run

    def apply(
        self,
        order: Dict[str, Any],
        plan: Plan,
        facets: Facets,
        owed: List[Dict[str, Any]],
        cut_off: List[Tuple[str, state.Account]],
    ) -> Tuple[str, Dict[str, Any]]:
        """Do what was planned; return the status and what END is to say."""
        from statecfg.remote.execution import Execution

        self.ledger = state.Ledger(self.place)
        for run, account in cut_off:
            self.ledger.end(run, account, state.CUT_OFF)
        journal = state.Journal(self.place, order["run"])
        debts_now = [
            (step.node.provides, cause)
            for step in plan.steps.values()
            for cause in step.node.triggers
            if cause in plan.steps and plan.steps[cause].acts
        ]
        entry = {"id": order["run"], "mode": order["mode"], "who": order["who"], "playbook": order["playbook"]}
        self.ledger.begin(entry, debts_now)

        def stopped() -> str:
            return self.channel.stopped() or journal.broken

        execution = Execution(
            plan, REGISTRY, facets, self.channel.send, journal, stopped, bool(order.get("keep_going")), debts(owed)
        )
        layers = execution.run()
        for name, doing in execution.state.items():
            if doing.outcome == "unchanged" and name in debts(owed):
                journal.finished(name, "unchanged")
        nodes = [node for layer in layers for node in layer]
        counts = summary(nodes)
        status = "failed" if counts.get("failed") or counts.get("skipped") else "ok"
        journal.sync()
        with open(journal.path, encoding="utf-8") as stream:
            account = state.Account(stream.read().split("\n"))
        self.ledger.end(order["run"], account, state.CUT_OFF if self.channel.lost else status)
        return status, {"warnings": self.warnings, "shutdown": execution.shutdown, "halted": execution.halted}

    def close(self) -> None:
        """Give back the lock, the ledger and the spool."""
        if self.ledger is not None:
            self.ledger.close()
        if self.spool:
            import shutil

            # What can't be removed is swept by the next run; that this one is over must be said all the same.
            shutil.rmtree(self.spool, ignore_errors=True)
        self.lock.drop()


def different(expect: Optional[Dict[str, str]], plan: Plan) -> List[str]:
    """Return the names of the nodes that would not do what was planned before; none where nothing was."""
    if expect is None:
        return []
    found = plan.fingerprints()
    return sorted(name for name in set(expect) | set(found) if expect.get(name) != found.get(name))


def debts(owed: List[Dict[str, Any]]) -> Dict[str, List[str]]:
    """Return node → the causes it owes an answer to."""
    found: Dict[str, List[str]] = {}
    for debt in owed:
        found.setdefault(debt["node"], []).append(debt["cause"])
    return found


def contents(value: Any) -> Any:
    """Yield every content within a value."""
    if isinstance(value, Blob):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from contents(item)
    elif isinstance(value, list):
        for item in value:
            yield from contents(item)


def failed(plan: Plan) -> bool:
    """Tell whether any check failed."""
    return any(step.outcome in ("failed", "skipped") for step in plan.steps.values())
