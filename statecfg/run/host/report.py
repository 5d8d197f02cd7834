"""The report of one host, built from its frames. Each frame must fit the request and the earlier frames.

An attacker may control the host. So a report accepts only data of the right shape about nodes of this run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from statecfg.facts.catalogue import wrong_fact
from statecfg.playbook.compile import Definition
from statecfg.remote.graph.events import RunEvent
from statecfg.remote.graph.names import HOOKS_OF_EVENT, ActionStatus, HostStatus, Mode, Outcome
from statecfg.remote.run.report import summary
from statecfg.remote.wire.frames import PROTOCOL
from statecfg.run.host import agreement, frames, lost
from statecfg.run.host.agreement import Agreement
from statecfg.run.host.broken import SUSPICIOUS, Broken, quoted
from statecfg.run.host.plan import HostNodes
from statecfg.run.host.progress import REBOOT, HostProgress
from statecfg.run.host.state import ACTING, PLANNED, SessionState
from statecfg.run.report_model import HostData
from statecfg.run.strict import Invalid

Json = dict[str, Any]  # of the report, format 1
Emit = Callable[[str, Json], None]

LONGEST_BOOT = 1e9  # seconds: the longest time that a node type allows
LOGINS = 20  # maximum number of logins that a host may request in one run
_WHY_NOT = {
    HostStatus.REFUSED: "not started: the plan has changed",
    HostStatus.OK: "not started: declined",
}
_OF_END = ("shutdown", "holder", "differs", "facts", "declined", "halted", "refusal", "ledger")


class HostReport:
    """Builds the report of one host from its frames.

    :param mode: one of `Mode`
    :param emit: called for each event with its name (one of `RunEvent`) and its data
    :param keep_going: whether the host continues after a failure
    """

    def __init__(self, definition: Definition, mode: str, emit: Emit, keep_going: bool = False) -> None:
        self.mode, self.emit, self.keep_going = mode, emit, keep_going
        self.state = SessionState.CONNECTING
        self.logins = 0
        self.reboots: list[str] = []  # the nodes that asked for a reboot
        self.kept: list[str] = []  # what the host continues with after the reboot
        self.asked: frozenset[str] = frozenset()  # the facts that the host was asked for and has not sent
        self.data: HostData = {"status": HostStatus.UNREACHABLE, "layers": [], "summary": {}}
        self.agreement = Agreement()
        self.define(definition)
        self._takers: Mapping[type[frames.Frame], Callable[[Any], None]] = {
            frames.HelloFrame: self._hello, frames.PlannedFrame: self._planned, frames.PlanFrame: self._plan,
            frames.ActionFrame: self._action, frames.OutputFrame: self._output, frames.FinishedFrame: self._finished,
            frames.LayerFrame: self._layer, frames.FiredFrame: self._fired, frames.UnitsFrame: self._phase,
            frames.EndFrame: self._end, frames.LoginFrame: self._login, frames.AmendedFrame: self._amended,
            frames.ItemsFrame: self._items, frames.HookFrame: self._hook, frames.CallingFrame: self._calling,
            frames.FactsFrame: self._facts, frames.KeepFrame: self._keep, frames.RebootFrame: self._reboot,
            frames.ResumedFrame: self._resumed, frames.ActionsFrame: self._actions,
        }  # fmt: skip

    def define(self, definition: Definition) -> None:
        """Set the definition whose plan the host makes."""
        self.plan = HostNodes(definition, self.mode)
        self.progress = HostProgress(self.plan)
        self.data["layers"] = self.plan.layers
        if self.mode not in Mode.ASKING:
            self.data["removals"], self.data["left"] = self.plan.removals, self.plan.parts["left"]

    @property
    def acting(self) -> bool:
        """Whether the host has permission to apply its plan and has not finished."""
        return self.state in ACTING

    def read(self, header: Mapping[str, Any]) -> frames.Frame:
        """Return the frame that a header describes.

        :raises Broken: if the protocol has no such frame
        """
        fields = dict(header)
        frame_type = fields.pop("type")
        if frame_type not in frames.FRAME_CLASSES:
            raise Broken(f"it sent a frame of unknown type {quoted(frame_type)}", SUSPICIOUS)
        try:
            return frames.FRAME_CLASSES[frame_type].from_json(fields)
        except Invalid as problem:
            raise Broken(f"its {frame_type} frame is invalid: {problem!s:.300}", SUSPICIOUS) from problem

    def take(self, frame: frames.Frame) -> None:
        """Process one frame.

        :raises Broken: if the frame does not fit the request or the earlier frames
        """
        if isinstance(frame, frames.UNITS):
            self._may_act()
        taker = self._takers.get(type(frame))
        if taker is not None:
            taker(frame)

    def go(self, yes: bool) -> None:
        """Note whether the host got permission to apply its plan."""
        self.state = SessionState.ACTING if yes else SessionState.DECLINED

    def decline(self) -> None:
        """Report that the plan of a host that has no connection was declined."""
        self.go(False)
        self._end(frames.EndFrame.from_json({"status": HostStatus.OK, "declined": True}))

    def warn(self, texts: Iterable[str]) -> None:
        """Add warnings for the user, each once."""
        texts = [text for text in texts if text not in self.data.get("warnings", ())]
        if texts:
            self.data["warnings"] = [*self.data.get("warnings", ()), *texts]

    def not_started(self) -> None:
        """Report that the run was stopped before the host's turn."""
        self.data["status"], self.data["error"] = HostStatus.CANCELLED, agreement.CANCELLED
        if self.mode in Mode.ACTING:
            lost.nothing_begun(self.plan, "not started")

    # Planning

    def _hello(self, frame: frames.HelloFrame) -> None:
        if frame.protocol != PROTOCOL:
            raise Broken(f"its executor uses protocol {frame.protocol}; this statecfg uses {PROTOCOL}", SUSPICIOUS)
        if self.state is SessionState.CONNECTING:
            self.state = SessionState.PLANNING

    def _facts(self, frame: frames.FactsFrame) -> None:
        if self.state is not SessionState.PLANNING or {*frame.values, *frame.failed} != self.asked or not self.asked:
            raise Broken("it sends facts that were not requested", SUSPICIOUS)
        wrong = next(filter(None, (wrong_fact(name, value) for name, value in frame.values.items())), "")
        if wrong:
            raise Broken(f"its facts are invalid: {wrong:.300}", SUSPICIOUS)
        self.asked = frozenset()
        if self.mode == Mode.FACTS:
            self.data["collected"] = {"values": dict(frame.values), "failed": dict(frame.failed)}
        else:
            self.state = SessionState.TOLD_FACTS

    def _planned(self, frame: frames.PlannedFrame) -> None:
        if self.state in PLANNED or self.state is SessionState.TOLD_FACTS or self.asked:
            raise Broken("it planned a layer that is not part of this run", SUSPICIOUS)
        self.plan.take(frame)

    def _plan(self, frame: frames.PlanFrame) -> None:
        if self.state in PLANNED or self.state is SessionState.TOLD_FACTS or self.asked:
            raise Broken("it planned twice", SUSPICIOUS)
        self.plan.complete()
        self.state = SessionState.WAITING if frame.waits and self.mode in Mode.ACTING else SessionState.PLANNED
        fields = frame.to_json()
        self.data["owed"] = fields.get("owed", [])
        self._take(fields, "hooks", "facts", "ledger")
        self.warn(frame.warnings)
        self.data["fingerprints"] = self.plan.fingerprints
        layers = [*self.plan.removals, *self.plan.layers]
        self.emit(RunEvent.PLANNED, {"layers": layers, "summary": self.count()})

    # Acting

    def _may_act(self) -> None:
        if not self.acting or self.state is SessionState.RETURNING:
            raise Broken("it acts without permission", SUSPICIOUS)

    def _items(self, frame: frames.ItemsFrame) -> None:
        self._may_act()
        self.progress.check_layer(frame.layer)
        self.plan.add(frame)

    def _action(self, frame: frames.ActionFrame) -> None:
        self._may_act()
        if self.progress.action(frame):
            self.emit(RunEvent.NODE_STARTED, {"name": frame.node})
        data: Json = {"node": frame.node, "op": frame.op}
        if frame.event == "started":
            self.emit(RunEvent.ACTION_STARTED, data)
        else:
            if self.state is SessionState.REBOOTING:  # the host could not reboot, and continues
                self.state = SessionState.ACTING
            self.emit(RunEvent.ACTION_FINISHED, {**data, "status": frame.status, "reason": frame.reason or None})

    def _actions(self, frame: frames.ActionsFrame) -> None:
        for event in frame.actions:
            self._action(event)

    def _output(self, frame: frames.OutputFrame) -> None:
        self.emit(RunEvent.OUTPUT, {"node": self.plan.checked_name(frame.node), "stream": "out", "text": frame.text})

    def _finished(self, frame: frames.FinishedFrame) -> None:
        self._may_act()
        self.progress.node(frame)
        self.emit(RunEvent.NODE_FINISHED, {"name": frame.node, "outcome": frame.outcome})

    def _layer(self, frame: frames.LayerFrame) -> None:
        self._may_act()
        self.progress.layer(frame)

    def _amended(self, frame: frames.AmendedFrame) -> None:
        self._may_act()
        self.progress.amended(frame)
        self.emit(RunEvent.NODE_FINISHED, {"name": frame.node, "outcome": Outcome.FAILED})

    def _login(self, frame: frames.LoginFrame) -> None:
        """Process a request for a new login, which the host sends after it restarted sshd."""
        self._may_act()
        self.logins += 1
        if self.logins > LOGINS:
            raise Broken(f"it requests more than {LOGINS} logins", SUSPICIOUS)

    def _keep(self, frame: frames.KeepFrame) -> None:
        """Keep what the host continues with after a reboot. Reports never contain it."""
        self._may_act()
        self.kept.append(frame.text)

    def _reboot(self, frame: frames.RebootFrame) -> None:
        """Process a request for a reboot: only a node of this type, whose action has started, may ask for it."""
        self._may_act()
        begun = self.progress.begun.get(self.plan.checked_name(frame.node), {})
        asking = [action.get("op") for action in begun.values() if action["status"] == ActionStatus.UNKNOWN]
        if asking != [REBOOT] or self.state is not SessionState.ACTING or frame.node in self.reboots:
            raise Broken(f"it reboots for {quoted(frame.node)}, which did not start that", SUSPICIOUS)
        if not 0 < frame.seconds <= LONGEST_BOOT or not frame.boot:
            raise Broken(f"it wants to reboot for {frame.seconds:g} s", SUSPICIOUS)
        self.reboots.append(frame.node)

    def _resumed(self, frame: frames.ResumedFrame) -> None:
        """Process the message that the host continues its run."""
        if self.state is not SessionState.RETURNING:
            raise Broken("it continues a run that has not stopped", SUSPICIOUS)
        self.state, self.kept = SessionState.ACTING, []

    def _phase(self, frame: frames.UnitsFrame) -> None:
        self.state = SessionState.SERVING_UNITS

    # Hooks

    def _hook(self, frame: frames.HookFrame) -> None:
        self._check_seconds(frame.seconds)

    def _check_seconds(self, seconds: float) -> None:
        if not 0 <= seconds <= HOOKS_OF_EVENT:
            raise Broken(f"it gives a hook {seconds:g} s; the maximum is {HOOKS_OF_EVENT:g} s", SUSPICIOUS)

    def _calling(self, frame: frames.CallingFrame) -> None:
        """Note that the host calls a hook."""
        self._may_act()
        self._check_seconds(frame.seconds)
        self.plan.checked_name(frame.name)
        self.emit(RunEvent.HOOK_STARTED, {**frame.to_json(), "attempt": 1})

    def _fired(self, frame: frames.FiredFrame) -> None:
        self._may_act()
        self.plan.checked_name(frame.name)
        fired: Any = {key: value for key, value in frame.to_json().items() if value is not None}
        self.data.setdefault("fired", []).append(fired)
        self.emit(RunEvent.FIRED, fired)

    # The end

    def _end(self, frame: frames.EndFrame) -> None:
        """Process the `end` frame. Only this frame gives the host a result."""
        status, error, fields = frame.status, frame.error, frame.to_json()
        if status == HostStatus.OK and self.mode not in Mode.ASKING and self.state not in PLANNED:
            raise Broken("it reports its end without a plan", SUSPICIOUS)
        wrong = self._contradiction(frame)
        if wrong:
            raise Broken(f"its end contradicts its report: {wrong}", SUSPICIOUS)
        ended = status in (HostStatus.OK, HostStatus.FAILED)
        acted = self.acting and ended and not frame.declined and not frame.unchanged
        if acted and not error and not self.progress.complete:
            raise Broken("it reports its end, but not every layer", SUSPICIOUS)
        self._take(fields, *_OF_END)
        if self.mode == Mode.HISTORY:
            self.data["history"] = fields.get("history", [])
            self._take(fields, "managed", "owners")
        if self.mode == Mode.REVEAL:
            self.data["revealed"] = frame.revealed
        self.warn(frame.warnings)
        why = agreement.error(frame, fields.get("holder") or {})
        if why is not None:
            self.data["error"] = why
        if frame.declined and self.agreement.declined is not None:
            del self.data["declined"]
            self.data.update(self.agreement.declined)
            status = self.data["status"]
        if acted and error:
            lost.account(self.progress, heard_all=True)
        elif self.mode in Mode.ACTING and not acted:
            halted = f"not started: {frame.halted}" if frame.halted else "not started"
            lost.nothing_begun(self.plan, _WHY_NOT.get(status, halted))
        counts = self.count()
        if status == HostStatus.OK and counts.get(Outcome.FAILED):  # a plan in which nodes fail was declined
            status = HostStatus.FAILED
        unknown = acted and error and counts.get(Outcome.UNKNOWN)
        self.data["status"] = HostStatus.UNKNOWN if unknown else status

    def _take(self, fields: Mapping[str, Any], *keys: str) -> None:
        """Copy the fields of a frame that have a value to the report."""
        self.data.update(cast(HostData, {key: fields[key] for key in keys if fields.get(key)}))

    def _contradiction(self, end: frames.EndFrame) -> str:
        """Return how the `end` frame contradicts itself or the earlier frames, "" if it does not."""
        outcomes = {node["outcome"] for node in self.plan.nodes()}
        begun, changes, planned = self.progress.started, self.mode in Mode.ACTING, self.state in PLANNED
        failing, open_work = outcomes & set(Outcome.STOPPED), outcomes & set(Outcome.ACTS)
        refused = end.refusal or end.differs
        why = end.error or refused or end.halted or end.holder is not None
        ok, failed = end.status == HostStatus.OK, end.status == HostStatus.FAILED
        was_locked, was_refused = end.status == HostStatus.LOCKED, end.status == HostStatus.REFUSED
        rules = (
            (ok and why, "it succeeded, but it gives a reason for a failure"),
            (ok and failing and not end.declined, "it succeeded, but nodes failed or were skipped"),
            (failed and not (end.error or end.halted or failing), "it failed, but it gives no reason"),
            (end.error and not failed, "it gives an error, but did not fail"),
            (was_locked and (planned or end.holder is None), "it planned, but another run has locked the host"),
            (was_refused and (begun or not refused), "it refused the plan, but it acted or gives no reason"),
            (
                end.declined and self.state not in (SessionState.WAITING, SessionState.DECLINED),
                "it reports that its plan was declined, but it was not",
            ),
            (end.unchanged and (begun or not changes), "it reports no changes, but it acted"),
            (end.unchanged and ok and open_work, "it reports no changes, but its plan has some"),
            (end.facts is not None and self.mode != Mode.FACTS, "it sends facts, which were not requested"),
            (
                (end.history or end.managed or end.owners) and self.mode != Mode.HISTORY,
                "it sends its history, which was not requested",
            ),
            (end.revealed and self.mode != Mode.REVEAL, "it sends a secret, which was not requested"),
        )
        return next((text for broken, text in rules if broken), "")

    def lost(self, text: str, detail: str, hint: str, heard_all: bool) -> None:
        """Report that the session ended before the host finished.

        :param text: what happened, in one line
        :param heard_all: whether everything that the host sent has arrived
        """
        self.data["error"] = {"summary": text, "detail": detail, "hint": hint}
        self.data["status"] = HostStatus.UNKNOWN if self.acting else HostStatus.UNREACHABLE
        if self.acting:
            lost.account(self.progress, heard_all, self.keep_going)
        elif self.mode in Mode.ACTING:
            lost.nothing_begun(self.plan, lost.LOST)

    def conclude(self) -> None:
        """Finish the report: count the nodes, and list the nodes that are still down after a shutdown-first action."""
        self.data["summary"] = self.count()
        acted, self.state = self.acting, SessionState.FINISHED
        if not acted:
            return
        first = [node for layer in self.plan.layers for node in layer if "shutdown_first" in node]
        if first and "shutdown" not in self.data:  # the host's own list, in its order, never arrived
            actions: Any = [{**node["shutdown_first"], "node": node["name"]} for node in reversed(first)]
            self.data["shutdown"] = actions
        sent = (ActionStatus.OK, ActionStatus.UNKNOWN)
        stopped = {action["node"] for action in self.data.get("shutdown", ()) if action["status"] in sent}
        down = [node["name"] for node in first if node["name"] in stopped and node["outcome"] not in Outcome.SOUND]
        if down:
            self.data["down"] = down

    def count(self) -> dict[str, int]:
        """Return the number of nodes by outcome."""
        nodes: Any = list(self.plan.nodes())
        counts: dict[str, int] = summary(nodes)
        return counts
