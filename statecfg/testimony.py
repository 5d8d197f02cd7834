"""What a host says of itself: checked against what it was asked, and made the host's part of the report.

A host may be anybody's by now. Only data of the right shape, about nodes that this run sent, gets into a report.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from statecfg.compile import Definition
from statecfg.remote.report import summary
from statecfg.remote.wire import PROTOCOL

Json = dict[str, Any]

OUTCOMES = frozenset({"unchanged", "changed", "unknown", "failed", "skipped"})
STATUSES = frozenset({"ok", "failed", "locked", "refused"})
ACTION_STATUSES = frozenset({"planned", "ok", "error", "not-attempted", "unknown"})
SUSPICIOUS = "Our executor never does this. Look at the host, and at what answers for it, before you run it again."

_ACTION: Mapping[str, Any] = {"op": str, "args": dict, "status": ACTION_STATUSES}
_ACTION_MAY: Mapping[str, Any] = {"reason": str}
_CHANGE: Mapping[str, Any] = {"object": str, "field": str}
_NODE: Mapping[str, Any] = {"name": str, "outcome": OUTCOMES, "changes": list, "actions": list}
STATES = frozenset({"PRE_CREATED", "RESOLVED", "RESOLUTION_ERROR", "IN_DELETION"})
PARTS = ("removals", "layers", "left")
MOST = 250_000  # resources of a host that may have left its definition
_NODE_MAY: Mapping[str, Any] = {
    "reason": str, "known_after": str, "shutdown_first": dict, "triggered_by": list, "state": STATES, "drift": list,
    "leaves": list,
}  # fmt: skip
_PLAN_MAY: Mapping[str, Any] = {"owed": list, "waits": bool, "hooks": list, "facts": dict, "ledger": str}
_HOOK: Mapping[str, Any] = {"hook": str, "event": str, "name": str, "where": str}
_FIRED: Mapping[str, Any] = {**_HOOK, "status": frozenset({"ok", "failed", "continued", "owed"})}
_FIRED_MAY: Mapping[str, Any] = {"error": str, "severity": str, "entry": dict, "metadata": dict}
# What a host says of its units.
UNITS: Mapping[str, Mapping[str, Any]] = {
    "units": {"phase": frozenset({"before", "after"}), "ok": bool},
    "unit-ask": {"id": int, "ask": int, "node": list},
    "unit-port": {"id": int, "open": bool, "port": str},
    "unit-status": {"id": int, "status": str, "message": str},
    "unit-log": {"unit": str, "hook": str, "level": int, "text": str},
    "unit-done": {"id": int, "ok": bool, "ran": bool, "error": str, "seconds": (int, float), "changes": dict},
}
_RUN: Mapping[str, Any] = {
    "run": str, "started": (int, float), "mode": str, "who": str, "playbook": str, "status": str, "summary": dict,
}  # fmt: skip
_RUN_MAY: Mapping[str, Any] = {"ended": (int, float), "outcomes": dict, "actions": list}
_HELD = {"summary": "another run holds this host", "hint": "Wait for its end, or let this one: --lock-timeout SECONDS."}
_STALE = {"summary": "this is not what was planned; nothing was done", "hint": "Plan again, and apply the new plan."}
_REFUSED = {"hint": "Nothing was done on this host."}
_WHY_NOT = {"refused": "not started: this is not what was planned", "ok": "not started: declined"}
_END: Mapping[str, Any] = {"status": STATUSES}
_END_MAY: Mapping[str, Any] = {
    "warnings": list, "shutdown": list, "holder": dict, "differs": list, "facts": dict, "declined": bool,
    "halted": str, "error": str, "trace": str, "unchanged": bool, "refusal": str, "ledger": str, "history": list,
}  # fmt: skip


class Broken(Exception):
    """The host said something that is none of ours, or went silent.

    :param summary: one line
    :param hint: what to do about it
    :param heard_all: everything the host said before has arrived: it ended, and not the connection
    """

    def __init__(self, summary: str, hint: str = "", heard_all: bool = False) -> None:
        super().__init__(summary)
        self.summary, self.hint, self.heard_all = summary, hint, heard_all


class Testimony:
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
        self.places: dict[str, str] = {}  # node → the part of the plan that it is in
        self.changes = mode in ("apply", "prune", "destroy")
        self.begun: dict[str, dict[int, Json]] = {}
        self.ended: dict[str, str] = {}
        self.done: dict[str, set[int]] = {"removals": set(), "layers": set()}
        self.parts: list[Json] = []
        self.prints: dict[str, str] = {}
        self.planned = self.acting = self.waits = False
        self.units = False  # it waits for the word on its units
        self.report: Json = {"status": "unreachable", "layers": self.layers, "summary": {}}
        if mode not in ("facts", "history"):
            self.report.update(removals=self.removals, left=self.left)

    def take(self, frame: Json) -> bool:
        """Take in one frame; return True for the last. Raises Broken where it does not belong to this run."""
        takers: dict[str, Callable[[Json], None]] = {
            "hello": self._hello, "beat": _nothing, "planned": self._place, "plan": self._plan,
            "action": self._action, "output": self._output, "finished": self._finished, "layer": self._layer,
            "fired": self._fired, "hook": _nothing, "end": self._end, **dict.fromkeys(UNITS, self._unit),
        }  # fmt: skip
        kind = frame["type"]
        if kind not in takers:
            raise Broken(f"it sent a frame of unknown type {_short(kind)}", SUSPICIOUS)
        try:
            takers[kind](frame)
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise Broken(f"its {kind} frame makes no sense: {problem!r:.200}", SUSPICIOUS) from problem
        return bool(kind == "end")

    def _hello(self, frame: Json) -> None:
        if frame["protocol"] != PROTOCOL:
            said = _short(frame["protocol"])
            raise Broken(f"its executor speaks protocol {said}, and this statecfg speaks {PROTOCOL}", SUSPICIOUS)

    # The plan

    def _place(self, frame: Json) -> None:
        """Take in a part of the plan."""
        part, number = frame.get("part", "layers"), frame["layer"]
        most = len(self.sent) if part == "layers" else MOST
        if self.planned or part not in PARTS or not isinstance(number, int) or not 0 <= number < most:
            raise Broken("it planned a layer that is not part of this run", SUSPICIOUS)
        layers = {"removals": self.removals, "layers": self.layers, "left": self.left}[part]
        if number > len(layers) + (len(self.sent) if part == "layers" else 0):
            raise Broken("it planned a layer that is not part of this run", SUSPICIOUS)
        while len(layers) <= number:
            layers.append([])
        for node in frame["nodes"]:
            _check_node(node)
            name = node["name"]
            sent = self.sent[number].get(name) if part == "layers" else None
            if name in self.places or (part == "layers") != (sent is not None):
                raise Broken(f"it planned {_short(name)}, which was not asked for", SUSPICIOUS)
            if sent is not None:
                node["type"], node["position"] = sent["type"], sent.get("position", "")
            else:
                _check(node, {"type": str, "position": str}, {})
            if len(self.places) > MOST + sum(map(len, self.sent)):
                raise Broken(f"it speaks of more than {MOST} resources", SUSPICIOUS)
            self.places[name] = part
            layers[number].append(node)
        prints = frame.get("fingerprints", {})
        if any(not isinstance(text, str) for text in prints.values()):
            raise ValueError("a fingerprint is no text")
        self.prints.update({self.known(name): text for name, text in prints.items()})

    def _plan(self, frame: Json) -> None:
        """Take in that the plan is complete."""
        _check(frame, {}, _PLAN_MAY)
        if self.planned:
            raise Broken("it planned twice", SUSPICIOUS)
        missing = sum(map(len, self.sent)) - sum(map(len, self.layers))
        if missing:
            raise Broken(f"it left {missing} of the nodes out of its plan", SUSPICIOUS)
        for debt in frame.get("owed", ()):
            _check(debt, {"node": str, "cause": str, "since": (int, float), "run": str}, {})
        for hook in frame.get("hooks", ()):
            _check(hook, _HOOK, {})
        self.planned = True
        self.waits = bool(frame.get("waits")) and self.changes
        self.report["owed"] = frame.get("owed", [])
        for key in ("hooks", "facts", "ledger"):
            if frame.get(key):
                self.report[key] = frame[key]
        self.report["fingerprints"] = self.prints
        self.emit("planned", {"layers": [*self.removals, *self.layers], "summary": self.count()})

    # The run

    def known(self, name: object) -> str:
        """Return the name of a node that is part of this run. Raises Broken for any other."""
        if not isinstance(name, str) or name not in self.places:
            raise Broken(f"it speaks of {_short(name)}, which is not part of this run", SUSPICIOUS)
        return name

    def _may_act(self) -> None:
        if not self.acting:
            raise Broken("it acts without having been told to", SUSPICIOUS)

    def _action(self, frame: Json) -> None:
        """Take in that an action began or ended."""
        self._may_act()
        name = self.known(frame["node"])
        must = {"op": str, "event": frozenset({"started", "finished"}), "index": int}
        _check(frame, must, {"status": ACTION_STATUSES})
        data = {"node": name, "op": frame["op"]}
        begun, index = self.begun.setdefault(name, {}), frame["index"]
        if not -1 <= index < 10_000:
            raise Broken(f"{_short(name)} takes more than 10,000 actions", SUSPICIOUS)
        if frame["event"] == "started":
            if not begun:
                self.emit("node-started", {"name": name})
            begun[index] = {"op": frame["op"], "status": "unknown"}
            self.emit("action-started", data)
            return
        if index not in begun:
            raise ValueError("an action ends that never began")
        begun[index]["status"] = frame["status"]
        reason = None if frame.get("reason") is None else str(frame["reason"])
        if reason:
            begun[index]["reason"] = reason
        self.emit("action-finished", {**data, "status": frame["status"], "reason": reason})

    def _output(self, frame: Json) -> None:
        self.emit("output", {"node": self.known(frame["node"]), "stream": "out", "text": str(frame["text"])})

    def _finished(self, frame: Json) -> None:
        self._may_act()
        _check(frame, {"outcome": OUTCOMES}, {})
        self.ended[self.known(frame["node"])] = frame["outcome"]
        self.emit("node-finished", {"name": frame["node"], "outcome": frame["outcome"]})

    def _layer(self, frame: Json) -> None:
        """Take in what became of a layer."""
        self._may_act()
        part, number = frame.get("part", "layers"), frame["layer"]
        if part not in self.done:
            raise Broken("it reports a layer that is not part of this run", SUSPICIOUS)
        layers = self.layers if part == "layers" else self.removals
        if not isinstance(number, int) or not 0 <= number < len(layers) or number in self.done[part]:
            raise Broken("it reports a layer that is not part of this run", SUSPICIOUS)
        self.parts += frame["nodes"]
        if len(self.parts) > len(layers[number]):
            raise Broken("it reports a layer with other nodes than were sent", SUSPICIOUS)
        if frame.get("more"):
            return
        nodes, self.parts = self.parts, []
        for node in nodes:
            _check_node(node)
        planned = {node["name"]: node for node in layers[number]}
        if sorted(node["name"] for node in nodes) != sorted(planned):
            raise Broken("it reports a layer with other nodes than were sent", SUSPICIOUS)
        for node in nodes:
            before = planned[node["name"]]
            node["type"], node["position"] = before["type"], before["position"]
        layers[number][:] = nodes
        self.done[part].add(number)

    def _unit(self, frame: Json) -> None:
        """Take in that it speaks of its units; what it says is for who leads them."""
        self._may_act()
        _check(frame, UNITS[frame["type"]], {})
        _check_changes(frame.get("changes", {}))
        if any(not isinstance(text, str) for text in frame.get("node", ())):
            raise ValueError("what it asks for is no text")
        self.units = self.units or frame["type"] == "units"

    def _fired(self, frame: Json) -> None:
        """Take in that a hook was fired."""
        self._may_act()
        _check(frame, _FIRED, _FIRED_MAY)
        self.known(frame["name"])
        fired = {key: frame[key] for key in (*_FIRED, *_FIRED_MAY) if frame.get(key) is not None}
        self.report.setdefault("fired", []).append(fired)
        if len(self.report["fired"]) > 10 * MOST:
            raise Broken("it fires hooks without end", SUSPICIOUS)
        self.emit("fired", fired)

    def _end(self, frame: Json) -> None:
        """Take in the END frame: only it makes a result."""
        _check(frame, _END, _END_MAY)
        for key in ("warnings", "differs"):
            if any(not isinstance(text, str) for text in frame.get(key, ())):
                raise ValueError(f"one of its {key} is no text")
        for action in frame.get("shutdown", ()):
            _check(action, {**_ACTION, "node": str}, _ACTION_MAY)
        status, error = frame["status"], frame.get("error")
        if status == "ok" and not error and self.mode not in ("facts", "history") and not self.planned:
            raise Broken("it says that it is done, and never planned", SUSPICIOUS)
        acted = self.acting and status in ("ok", "failed") and not frame.get("declined") and not frame.get("unchanged")
        if acted and not error and self._unfinished():
            raise Broken("it says that it is done, and did not report every layer", SUSPICIOUS)
        for key in ("shutdown", "holder", "differs", "facts", "declined", "halted", "refusal", "ledger"):
            if frame.get(key):
                self.report[key] = frame[key]
        if self.mode == "history":
            self.report["history"] = [_past(run) for run in frame.get("history", ())]
        self.report.setdefault("warnings", []).extend(frame.get("warnings", ()))
        if not self.report["warnings"]:
            del self.report["warnings"]
        if error:
            self.report["error"] = {"summary": error, "detail": frame.get("trace", ""), "hint": ""}
        elif frame.get("refusal"):
            self.report["error"] = {**_REFUSED, "summary": frame["refusal"], "detail": ""}
        elif status in ("locked", "refused"):
            self.report["error"] = _HELD if status == "locked" else _STALE
            self.report["error"] = {**self.report["error"], "detail": _holder(frame.get("holder") or {})}
        if acted and error:
            self._account(heard_all=True)
        elif self.changes and not acted:
            self._nothing_begun(_WHY_NOT.get(status, "not started"))
        counts = self.count()
        if status == "ok" and (counts.get("failed") or (acted and counts.get("skipped"))):
            status = "failed"
        self.report["status"] = "unknown" if acted and error and counts.get("unknown") else status

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

    def _unfinished(self) -> list[tuple[str, int]]:
        """Return the layers that were not reported, the part and the number, in the order in which they are done."""
        parts = (("removals", self.removals), ("layers", self.layers))
        return [
            (part, number) for part, layers in parts for number in range(len(layers)) if number not in self.done[part]
        ]

    def _account(self, heard_all: bool) -> None:
        """Give every node of a layer that was not reported the outcome that is known of it."""
        left = self._unfinished()
        for part, number in left:
            for node in (self.layers if part == "layers" else self.removals)[number]:
                self._conclude(node, heard_all, (part, number) == left[0])

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


def _past(run: Any) -> Json:
    """Return a run of the past as the host remembers it. Raises ValueError where it is none."""
    _check(run, _RUN, _RUN_MAY)
    for action in run.get("actions", ()):
        _check(action, {"node": str, "op": str, "status": str, "reason": str}, {})
    counts = (*run["summary"].values(), *run.get("outcomes", {}).values())
    if any(not isinstance(value, int | str) for value in counts):
        raise ValueError("a count is no number")
    return {key: run[key] for key in (*_RUN, *_RUN_MAY) if key in run}


def _nothing(frame: Json) -> None:
    """Take in a heartbeat, or a question that the conversation answers: that it came is all it says here."""


def _check_node(node: Any) -> None:
    _check(node, _NODE, _NODE_MAY)
    for change in node["changes"]:
        _check(change, _CHANGE, {"diff": str})
    for action in [*node["actions"], *([node["shutdown_first"]] if "shutdown_first" in node else [])]:
        _check(action, _ACTION, _ACTION_MAY)
    for key in ("triggered_by", "drift", "leaves"):
        if any(not isinstance(text, str) for text in node.get(key, ())):
            raise ValueError(f"one of its {key} is no text")


def _check_changes(changes: Json) -> None:
    """See that what a hook has changed is texts by name, and names. Raises ValueError."""
    _check(changes, {}, {"relations": dict, "leader": dict})
    for change in (*changes.get("relations", {}).values(), changes.get("leader", {})):
        _check(change, {}, {"set": dict, "delete": list})
        if any(not isinstance(text, str) for text in (*change.get("set", {}).values(), *change.get("delete", ()))):
            raise ValueError("a setting is no text")


def _check(value: Any, must: Mapping[str, Any], may: Mapping[str, Any]) -> None:
    """See that a map has these keys with values of these types, or of these sets. Raises ValueError."""
    if not isinstance(value, dict):
        raise ValueError(f"{value!r:.80} is no map")
    for key, kind in [*must.items(), *((key, kind) for key, kind in may.items() if value.get(key) is not None)]:
        found = value.get(key)
        right = isinstance(found, str) and found in kind if isinstance(kind, frozenset) else isinstance(found, kind)
        if not right:
            raise ValueError(f"{key} is {found!r:.80}")


def _short(value: object) -> str:
    return f"{str(value)[:80]!r}"
