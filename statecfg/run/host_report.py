"""What a host says of itself: checked against what it was asked, and made the host's part of the report.

A host may be anybody's by now. Only data of the right shape, about nodes that this run sent, gets into a report.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from statecfg.playbook.compile import Definition
from statecfg.remote.graph.errors import StatecfgError
from statecfg.remote.hooks.lifecycle import ALL_HOOKS
from statecfg.remote.run.report import summary
from statecfg.remote.wire.frames import PROTOCOL
from statecfg.run import frames
from statecfg.run.strict import Invalid

Json = dict[str, Any]

SOUND = ("changed", "unchanged")
SUSPICIOUS = "Our executor never does this. Look at the host, and at what answers for it, before you run it again."
PARTS = ("removals", "layers", "left")  # of a plan, in the order in which a host sends them
LOGINS = 20  # that a host may ask for in one run
MOST = 250_000  # resources of a host that may have left its definition
ACTIONS = 10_000  # actions of one node
_HELD = {"summary": "another run holds this host", "hint": "Wait for its end, or let this one: --lock-timeout SECONDS."}
_STALE = {"summary": "this is not what was planned; nothing was done", "hint": "Plan again, and apply the new plan."}
_REFUSED = {"hint": "Nothing was done on this host."}
_WHY_NOT = {"refused": "not started: this is not what was planned", "ok": "not started: declined"}


class Broken(StatecfgError):
    """The host said something that is none of ours, or went silent.

    :param summary: one line
    :param hint: what to do about it
    :param heard_all: everything the host said before has arrived: it ended, and not the connection
    """

    def __init__(self, summary: str, hint: str = "", heard_all: bool = False) -> None:
        super().__init__(summary)
        self.summary, self.hint, self.heard_all = summary, hint, heard_all


class HostReport:
    """What one host said, and the report made of it.

    :param mode: "plan", "verify", "apply", "prune", "destroy", "facts" or "history"
    :param emit: takes each event: its kind and its data
    """

    def __init__(self, definition: Definition, mode: str, emit: Callable[[str, Json], None]) -> None:
        self.mode, self.emit = mode, emit
        defined = () if mode in ("prune", "destroy") else definition.layers
        self.sent = [{node["provides"]: node for node in layer} for layer in defined]
        self.layers: list[list[Json]] = []
        self.removals: list[list[Json]] = []
        self.left: list[list[Json]] = []
        self.places: dict[str, tuple[str, int]] = {}  # node → the part of the plan that it is in, and the layer
        self.part = "removals"  # the part of the plan that came last
        self.changes = mode in ("apply", "prune", "destroy")
        self.begun: dict[str, dict[int, Json]] = {}
        self.ended: dict[str, str] = {}
        self.reported = {"removals": 0, "layers": 0}  # how many layers of each part were reported
        self.pieces: list[Json] = []  # of a layer that is not reported as a whole yet
        self.prints: dict[str, str] = {}
        self.planned = self.acting = self.waits = False
        self.logins = 0
        self.units = False  # it waits for the word on its units
        self.report: Json = {"status": "unreachable", "layers": self.layers, "summary": {}}
        if mode not in ("facts", "history"):
            self.report.update(removals=self.removals, left=self.left)
        self._takers: Mapping[type[frames.Frame], Callable[[Any], None]] = {
            frames.Hello: self._hello, frames.Planned: self._place, frames.Plan: self._plan,
            frames.ActionEvent: self._action, frames.Output: self._output, frames.Finished: self._finished,
            frames.Layer: self._layer, frames.Fired: self._fired, frames.UnitsPhase: self._phase,
            frames.End: self._end, frames.Login: self._login, frames.Amended: self._amended,
            frames.Hook: self._hook, frames.Calling: self._calling,
        }  # fmt: skip

    def read(self, header: Json) -> frames.Frame:
        """Return the frame that a header describes. Raises Broken for anything that is not one of ours."""
        said = dict(header)
        kind = said.pop("type")
        if kind not in frames.KINDS:
            raise Broken(f"it sent a frame of unknown type {_short(kind)}", SUSPICIOUS)
        try:
            return frames.KINDS[kind].from_json(said)
        except Invalid as problem:
            raise Broken(f"its {kind} frame makes no sense: {problem!s:.300}", SUSPICIOUS) from problem

    def take(self, frame: frames.Frame) -> bool:
        """Take in one frame; return True for the last. Raises Broken where it does not belong to this run."""
        if isinstance(frame, frames.UNITS):
            self._may_act()
        taker = self._takers.get(type(frame))
        if taker is not None:  # of others, that they came is all they say here
            taker(frame)
        return isinstance(frame, frames.End)

    def _hello(self, frame: frames.Hello) -> None:
        if frame.protocol != PROTOCOL:
            raise Broken(
                f"its executor speaks protocol {frame.protocol}, and this statecfg speaks {PROTOCOL}", SUSPICIOUS
            )

    # The plan

    def _place(self, frame: frames.Planned) -> None:
        """Take in a piece of the plan: part by part, layer by layer."""
        part, number = frame.part, frame.layer
        layers = {"removals": self.removals, "layers": self.layers, "left": self.left}[part]
        most = len(self.sent) if part == "layers" else MOST
        if self.planned or not 0 <= number < most:
            raise Broken("it planned a layer that is not part of this run", SUSPICIOUS)
        if PARTS.index(part) < PARTS.index(self.part) or number not in (len(layers) - 1, len(layers)):
            raise Broken(f"it planned layer {number} of {part} out of order", SUSPICIOUS)
        self.part = part
        if number == len(layers):
            layers.append([])
        for node in frame.nodes:
            name = node.name
            sent = self.sent[number].get(name) if part == "layers" else None
            if name in self.places or (part == "layers") != (sent is not None):
                raise Broken(f"it planned {_short(name)}, which was not asked for", SUSPICIOUS)
            if len(self.places) > MOST + sum(map(len, self.sent)):
                raise Broken(f"it speaks of more than {MOST} resources", SUSPICIOUS)
            self.places[name] = part, number
            found = node.to_json()
            if sent is not None:
                found["type"], found["position"] = sent["type"], sent.get("position", "")
            layers[number].append(found)
        self.prints.update({self.known(name): text for name, text in (frame.fingerprints or {}).items()})

    def _plan(self, frame: frames.Plan) -> None:
        """Take in that the plan is complete."""
        if self.planned:
            raise Broken("it planned twice", SUSPICIOUS)
        missing = sum(map(len, self.sent)) - sum(map(len, self.layers))
        if missing:
            raise Broken(f"it left {missing} of the nodes out of its plan", SUSPICIOUS)
        self.planned = True
        self.waits = frame.waits and self.changes
        said = frame.to_json()
        self.report["owed"] = said.get("owed", [])
        for key in ("hooks", "facts", "ledger"):
            if said.get(key):
                self.report[key] = said[key]
        self.report["fingerprints"] = self.prints
        self.emit("planned", {"layers": [*self.removals, *self.layers], "summary": self.count()})

    # The run

    def known(self, name: str) -> str:
        """Return the name of a node that is part of this run. Raises Broken for any other."""
        if name not in self.places:
            raise Broken(f"it speaks of {_short(name)}, which is not part of this run", SUSPICIOUS)
        return name

    def _may_act(self) -> None:
        if not self.acting:
            raise Broken("it acts without having been told to", SUSPICIOUS)

    def _in_turn(self, name: str) -> None:
        """See that it is the turn of a node's layer. Raises Broken."""
        if self.places[self.known(name)] != next(self._unfinished(), None):
            raise Broken(f"it acts on {_short(name)} before or after its layer", SUSPICIOUS)

    def _action(self, frame: frames.ActionEvent) -> None:
        """Take in that an action began or ended."""
        self._may_act()
        name, index = self.known(frame.node), frame.index
        if not -1 <= index < ACTIONS:
            raise Broken(f"{_short(name)} takes more than {ACTIONS:,} actions", SUSPICIOUS)
        if index >= 0:  # shutdown-first actions come before all layers
            self._in_turn(name)
        if name in self.ended:
            raise Broken(f"it acts on {_short(name)}, which has finished", SUSPICIOUS)
        begun = self.begun.setdefault(name, {})
        before = begun.get(index, {}).get("status")
        data: Json = {"node": name, "op": frame.op}
        if frame.event == "started":
            # What failed as part of a joint action is tried again alone.
            if before not in (None, "error"):
                raise Broken(f"an action of {_short(name)} begins twice", SUSPICIOUS)
            if not begun:
                self.emit("node-started", {"name": name})
            begun[index] = {"op": frame.op, "status": "unknown"}
            self.emit("action-started", data)
            return
        if before != "unknown" or frame.status is None:
            raise Broken(f"its action frame makes no sense: {_short(name)} ends what never began", SUSPICIOUS)
        begun[index]["status"] = frame.status
        if frame.reason:
            begun[index]["reason"] = frame.reason
        self.emit("action-finished", {**data, "status": frame.status, "reason": frame.reason or None})

    def _output(self, frame: frames.Output) -> None:
        self.emit("output", {"node": self.known(frame.node), "stream": "out", "text": frame.text})

    def _finished(self, frame: frames.Finished) -> None:
        self._may_act()
        self._in_turn(frame.node)
        if frame.node in self.ended:
            raise Broken(f"{_short(frame.node)} finishes twice", SUSPICIOUS)
        if frame.outcome != "skipped" and not self.begun.get(frame.node):
            raise Broken(f"{_short(frame.node)} finishes as {frame.outcome}, and no action of it began", SUSPICIOUS)
        self.ended[frame.node] = frame.outcome
        self.emit("node-finished", {"name": frame.node, "outcome": frame.outcome})

    def _layer(self, frame: frames.Layer) -> None:
        """Take in what became of a layer."""
        self._may_act()
        part, number = frame.part, frame.layer
        if next(self._unfinished(), None) != (part, number):
            raise Broken(f"it reports layer {number} of {part} out of order", SUSPICIOUS)
        layers = self.layers if part == "layers" else self.removals
        planned = {node["name"]: node for node in layers[number]}
        for node in frame.nodes:
            before = planned.get(node.name)
            if before is None or len(self.pieces) >= len(planned):
                raise Broken("it reports a layer with other nodes than were sent", SUSPICIOUS)
            ended = self.ended.get(node.name)
            if ended is None and node.outcome == "changed":
                raise Broken(f"it reports {_short(node.name)} as changed, which never finished", SUSPICIOUS)
            if ended is not None and ended != node.outcome:
                raise Broken(f"{_short(node.name)} finished as {ended}, and is reported as {node.outcome}", SUSPICIOUS)
            self.pieces.append({**node.to_json(), "type": before["type"], "position": before["position"]})
        if frame.more:
            return
        nodes, self.pieces = self.pieces, []
        if sorted(node["name"] for node in nodes) != sorted(planned):
            raise Broken("it reports a layer with other nodes than were sent", SUSPICIOUS)
        layers[number][:] = nodes
        self.reported[part] += 1

    def _login(self, frame: frames.Login) -> None:
        """Take in that sshd was restarted, and that it wants a new login to be tried."""
        self._may_act()
        self.logins += 1
        if self.logins > LOGINS:
            raise Broken(f"it asks for more than {LOGINS} logins", SUSPICIOUS)

    def _amended(self, frame: frames.Amended) -> None:
        """Take in that a node whose layer was reported has failed after all."""
        self._may_act()
        part, number = self.places[self.known(frame.node)]
        if part == "left" or number >= self.reported[part]:
            raise Broken(f"it amends {_short(frame.node)}, which it has not reported", SUSPICIOUS)
        self.ended[frame.node] = "failed"
        for node in (self.layers if part == "layers" else self.removals)[number]:
            if node["name"] == frame.node:
                node["outcome"], node["reason"] = "failed", frame.reason
        self.emit("node-finished", {"name": frame.node, "outcome": "failed"})

    def _phase(self, frame: frames.UnitsPhase) -> None:
        """Take in that it waits for its units; what it says of them is for who leads them."""
        self.units = True

    def _hook(self, frame: frames.Hook) -> None:
        """Take in that it asks for a hook; who calls it is not decided here."""
        self._in_time(frame.seconds)

    def _in_time(self, seconds: float) -> None:
        """See that a hook has no more time than any hook has. Raises Broken."""
        if not 0 <= seconds <= ALL_HOOKS:
            raise Broken(f"it gives a hook {seconds:g} s, and not at most {ALL_HOOKS:g} s", SUSPICIOUS)

    def _calling(self, frame: frames.Calling) -> None:
        """Take in that it calls a hook, and waits for its end."""
        self._may_act()
        self._in_time(frame.seconds)
        self.known(frame.name)
        self.emit("hook-started", {**frame.to_json(), "attempt": 1})

    def _fired(self, frame: frames.Fired) -> None:
        """Take in that a hook was fired."""
        self._may_act()
        self.known(frame.name)
        fired = {key: value for key, value in frame.to_json().items() if value is not None}
        self.report.setdefault("fired", []).append(fired)
        self.emit("fired", fired)

    def _end(self, frame: frames.End) -> None:
        """Take in the END frame: only it makes a result."""
        status, error, said = frame.status, frame.error, frame.to_json()
        if status == "ok" and self.mode not in ("facts", "history") and not self.planned:
            raise Broken("it says that it is done, and never planned", SUSPICIOUS)
        wrong = self._contradiction(frame)
        if wrong:
            raise Broken(f"its end contradicts itself: {wrong}", SUSPICIOUS)
        acted = self.acting and status in ("ok", "failed") and not frame.declined and not frame.unchanged
        if acted and not error and (self.pieces or next(self._unfinished(), None)):
            raise Broken("it says that it is done, and did not report every layer", SUSPICIOUS)
        for key in ("shutdown", "holder", "differs", "facts", "declined", "halted", "refusal", "ledger"):
            if said.get(key):
                self.report[key] = said[key]
        if self.mode == "history":
            self.report["history"] = said.get("history", [])
        if frame.warnings:
            self.report.setdefault("warnings", []).extend(frame.warnings)
        if error:
            self.report["error"] = {"summary": error, "detail": frame.trace, "hint": ""}
        elif frame.refusal:
            self.report["error"] = {**_REFUSED, "summary": frame.refusal, "detail": ""}
        elif status in ("locked", "refused"):
            self.report["error"] = _HELD if status == "locked" else _STALE
            self.report["error"] = {**self.report["error"], "detail": _holder(said.get("holder") or {})}
        if acted and error:
            self._account(heard_all=True)
        elif self.changes and not acted:
            self._nothing_begun(_WHY_NOT.get(status, "not started"))
        counts = self.count()
        if status == "ok" and counts.get("failed"):  # a plan in which nodes fail was declined
            status = "failed"
        self.report["status"] = "unknown" if acted and error and counts.get("unknown") else status

    def _contradiction(self, end: frames.End) -> str:
        """Say what in an end can't be true after all that the host said before, "" if nothing."""
        nodes = [node for layer in (*self.removals, *self.layers) for node in layer]
        outcomes = {node["outcome"] for node in nodes}
        begun = bool(self.begun or self.ended or any(self.reported.values()))
        failing = {"failed", "skipped"} & outcomes
        open_work = {"changed", "unknown"} & outcomes
        refused = end.refusal or end.differs
        why = end.error or refused or end.halted or end.holder is not None
        ok, failed, status = end.status == "ok", end.status == "failed", end.status
        rules = (
            (ok and why, "it succeeded, but it gives a reason for a failure"),
            (ok and failing and not end.declined, "it succeeded, but nodes failed or were skipped"),
            (failed and not (end.error or end.halted or failing), "it failed, but it gives no reason"),
            (end.error and not failed, "it gives an error, but did not fail"),
            (status == "locked" and (self.planned or end.holder is None), "it planned, but another run holds the host"),
            (status == "refused" and (begun or not refused), "it refused the plan, but it acted or gives no reason"),
            (end.declined and (self.acting or not self.waits), "nobody declined its plan"),
            (end.unchanged and (begun or not self.changes), "it did nothing, but it acted"),
            (end.unchanged and ok and open_work, "it did nothing, but its plan has changes"),
            (end.facts is not None and self.mode != "facts", "nobody asked for facts"),
            (end.history and self.mode != "history", "nobody asked for its history"),
        )
        return next((text for broken, text in rules if broken), "")

    # When it breaks

    def lost(self, summary_text: str, detail: str, hint: str, heard_all: bool) -> None:
        """Say what is known after the link died: what was under way is unknown, never ok and never failed."""
        self.report["error"] = {"summary": summary_text, "detail": detail, "hint": hint}
        self.report["status"] = "unknown" if self.acting else "unreachable"
        if self.acting:
            self._account(heard_all)
        elif self.changes:
            self._nothing_begun("not started: the connection was lost")

    def _nothing_begun(self, why: str) -> None:
        """Let what was only planned not pass for done."""
        going = {id(node) for layer in self.removals for node in layer}  # whose record stays, too
        for layer in (*self.removals, *self.layers):
            for node in layer:
                if node["outcome"] in ("changed", "unknown") or (node["outcome"] == "unchanged" and id(node) in going):
                    node["outcome"], node["reason"] = "skipped", why
                    node["actions"] = [{**action, "status": "not-attempted"} for action in node["actions"]]

    def _unfinished(self) -> Iterator[tuple[str, int]]:
        """Yield the layers that were not reported, the part and the number, in the order in which they are done."""
        yield from (("removals", number) for number in range(self.reported["removals"], len(self.removals)))
        yield from (("layers", number) for number in range(self.reported["layers"], len(self.layers)))

    def _account(self, heard_all: bool) -> None:
        """Give every node of a layer that was not reported the outcome that is known of it."""
        for place, (part, number) in enumerate(self._unfinished()):
            for node in (self.layers if part == "layers" else self.removals)[number]:
                self._conclude(node, heard_all, place == 0)

    def _conclude(self, node: Json, heard_all: bool, current: bool) -> None:
        """Give one node its outcome after the link died."""
        name = node["name"]
        begun = self.begun.get(name, {})
        if "shutdown_first" in node:
            node["shutdown_first"] |= begun.get(-1, {"status": "not-attempted"})
        planned = dict(enumerate(node["actions"]))
        late = {"args": {}, "status": "not-attempted"}  # an action that only its turn brought about
        node["actions"] = [
            {**planned.get(index, late), "status": "not-attempted", **begun.get(index, {})}
            for index in sorted({*planned, *begun} - {-1})
        ]
        if name in self.ended:
            node["outcome"] = self.ended[name]
        elif begun:
            node["outcome"], node["reason"] = "unknown", "it was under way when the connection was lost"
        elif node["outcome"] in ("changed", "unknown") and current and not heard_all:
            # Its layer was under way: that it began may be what the lost connection did not bring.
            node["outcome"], node["reason"] = "unknown", "its turn had come when the connection was lost"
            for action in node["actions"]:
                action["status"] = "unknown"
        elif node["outcome"] in ("changed", "unknown"):
            node["outcome"], node["reason"] = "skipped", "not started: the connection was lost"

    def conclude(self) -> None:
        """Count the nodes, and say what was stopped before all else, and what is down because of it."""
        self.report["summary"] = self.count()
        if not self.acting or not self.planned:
            return
        first = [node for layer in self.layers for node in layer if "shutdown_first" in node]
        if first and "shutdown" not in self.report:  # the host's own account, in its order, never came
            self.report["shutdown"] = [{**node["shutdown_first"], "node": node["name"]} for node in reversed(first)]
        stopped = {each["node"] for each in self.report.get("shutdown", ()) if each["status"] in ("ok", "unknown")}
        down = [node["name"] for node in first if node["name"] in stopped and node["outcome"] not in SOUND]
        if down:
            self.report["down"] = down

    def count(self) -> dict[str, int]:
        """Count the nodes by outcome."""
        return summary([node for layer in (*self.removals, *self.layers) for node in layer])


def _holder(found: Json) -> str:
    """Return who holds a host, as a person says it; that text is the holder's own."""
    since = found.get("since")
    when = ""
    if isinstance(since, int | float) and 0 < since < 1e11:
        when = f", since {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(since))}"
    return f"{found.get('who') or 'somebody'}{when}, run {found.get('run') or 'unknown'}" if found else ""


def _short(value: object) -> str:
    return f"{str(value)[:80]!r}"
