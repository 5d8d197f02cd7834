"""The session with one host as a state machine without I/O: it takes bytes and results, and returns bytes and actions.

Threads, an event loop or workers can drive it, with one call at a time. `driver` drives it with threads.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from statecfg.playbook.compile import Definition
from statecfg.remote.graph.events import RunEvent
from statecfg.remote.graph.names import HookStatus, HostStatus, Mode
from statecfg.remote.wire import frames as wire
from statecfg.run.bundle import Part
from statecfg.run.host import actions, frames
from statecfg.run.host.absence import ABSENT, Absence, StillUp
from statecfg.run.host.broken import NO_ANSWER, SUSPICIOUS, Broken, readable
from statecfg.run.host.code import Code
from statecfg.run.host.deadlines import Deadlines
from statecfg.run.host.frame_reader import NODE, FrameReader
from statecfg.run.host.new_login import by_ssh
from statecfg.run.host.outgoing import answer_frame
from statecfg.run.host.report import Emit, HostReport
from statecfg.run.host.request import HostRequest
from statecfg.run.host.state import PLANNED, SessionState
from statecfg.run.host.supplies import Supplies
from statecfg.run.host_modules import Module
from statecfg.run.report_model import HostError

AGAIN = "Run the command again. The host has recorded its progress, and the next run completes it."
AGAIN_LATER = "The resources stay. Run the command again when the cause is gone."
UNREACHED = "Check with `ssh` that the host can be reached, then run the command again."
PYTHON = "Install Python 3.8 or newer on the host, or set its path in the inventory: `python: /path/to/python3`."
BUG = "This is a bug in statecfg. Please report it with the text above."
NO_PYTHON = 96  # the exit status of the command that starts the executor

Json = Mapping[str, Any]  # of frames and events


class HostSession:
    """The session with one host.

    :param emit: called for each event with its name (one of `RunEvent`) and its data
    :param clock: returns seconds
    :param decoding: entered while one frame is decoded; sessions that share it decode one at a time
    """

    def __init__(
        self,
        request: HostRequest,
        emit: Emit,
        clock: Callable[[], float] = time.monotonic,
        decoding: AbstractContextManager[Any] | None = None,
    ) -> None:
        self.request, self.emit = request, emit
        self.nonce = secrets.token_hex(16)
        self.report = HostReport(request.definition, request.order.mode, emit, request.order.limits.keep_going)
        if request.facts is not None:
            self.report.asked = frozenset(request.facts["names"])
        nodes = request.definition.packed.count
        self.reader = FrameReader(self.nonce, nodes, self.report.read, decoding or nullcontext())
        self.deadlines = Deadlines(clock, request.patience)
        self.supplies = Supplies(emit, clock, request.order.content)
        self.supplies.parts[request.bundle.sha256] = request.bundle
        self.supplies.parts.update((part.sha256, part) for part in request.first_parts)
        self.unit_hooks: dict[int, Json | None] = {}  # number of the order → unit and hook
        self.cancelled = self.defined = False  # whether the user stops the run; whether `define` was called
        self.absence: Absence | None = None  # the newest reboot of the host

    @property
    def state(self) -> SessionState:
        """How far the session has come."""
        return self.report.state

    # To the host

    def opening(self) -> bytes:
        """Return the bytes to send before the host has answered."""
        return b"".join(self.request.opening(self.nonce))

    def begin(self, definition: Definition, more: Mapping[str, Any], code: Code | None) -> bytes:
        """Complete the request. If the host waits for facts, only keep the data until `define`.

        :param definition: the definition with the content of hooks
        :param more: additional data for the executor
        :param code: the code that the definition needs; None if the host waits for facts
        :returns: the bytes to send
        """
        self.request = replace(self.request, definition=definition, more=more)
        self.deadlines = Deadlines(self.deadlines.clock, self.request.patience)
        return b"" if code is None else self._begin(code.parts)

    def define(self, definition: Definition, differs: Sequence[str], code: Code) -> Iterator[bytes]:
        """Complete the request of a host that has sent facts; yield the bytes to send.

        :param definition: the definition that depended on the facts
        :param differs: differences from a saved plan, in addition to those that `begin` received
        :param code: the code that this definition needs
        """
        before = self.request
        more = {**before.more, "differs": [*before.more.get("differs", ()), *differs]} if differs else before.more
        definition = replace(definition, blobs={**before.definition.blobs, **definition.blobs})
        self.request = replace(before, definition=definition, more=more, bundle=code.bundle)
        self.deadlines = Deadlines(self.deadlines.clock, self.request.patience, started=True)
        self.report.define(definition)
        self.report.state, self.defined = SessionState.PLANNING, True
        self.reader.room += NODE * definition.packed.count
        yield from definition.packed.frames
        yield self._begin(code.parts)

    def ask(self, facts: Mapping[str, Any]) -> bytes:
        """Return the frame that asks the host for more facts."""
        self.request = replace(self.request, facts=facts)
        self.report.asked, self.report.state = frozenset(facts["names"]), SessionState.PLANNING
        self.deadlines.progressed()
        return wire.encode({**facts, "type": "facts"})

    def _begin(self, parts: Mapping[str, Part]) -> bytes:
        self.supplies.parts.update(parts)
        return self.request.begin(list(parts))

    def supply_types(self, modules: Mapping[str, Module], types: Mapping[str, str]) -> bytes:
        """Return the frame with the node types of orphans that still exist in the project.

        :param modules: name of a module → what `bundle.modules_of` returns for it
        :param types: node type → the module that defines it
        """
        return wire.encode({"type": "modules", "modules": modules, "types": types})

    def beat(self) -> bytes:
        """Return a heartbeat."""
        return wire.encode({"type": "beat"})

    def cancel(self) -> bytes:
        """Return the frame that tells the host that the user stops the run; no bytes if it was sent before."""
        if self.cancelled:
            return b""
        self.cancelled = True
        return wire.encode({"type": "cancel"})

    def go(self, yes: bool) -> bytes:
        """Return the frame that allows or forbids the host to apply its plan. The session must be WAITING."""
        # From here on, the state of the host is unknown until the host reports it.
        self.report.go(yes)
        return wire.encode({"type": "go" if yes else "no"})

    def hooked(self, id: int, answer: Mapping[str, Any]) -> bytes:
        """Return the frame with the result of a hook, for which the host waits.

        :param answer: `ok`, `error` and the other data that the hook returned
        """
        self._answered()
        return wire.encode({**answer, "type": "hooked", "id": id})

    def logged_in(self, wrong: str) -> bytes:
        """Return the frame with the result of a login, for which the host waits.

        :param wrong: why the login failed, "" if it succeeded
        """
        self._answered()
        self.report.data["login"] = {"ok": not wrong, **({"error": wrong} if wrong else {})}
        return wire.encode({"type": "login", "error": wrong})

    def may_reboot(self) -> bytes:
        """Return the frame that allows the host to reboot."""
        self.report.state = SessionState.REBOOTING
        self.deadlines.progressed()
        return wire.encode({"type": "reboot"})

    def resume(self, code: Code) -> Iterator[bytes]:
        """Begin the session on a new connection after the host rebooted; yield the bytes to send.

        :param code: the code that the definition needs, with all of its node types in the bundle
        """
        assert self.absence is not None
        self.nonce, self.unit_hooks = secrets.token_hex(16), {}
        self.request = request = self.request.resuming(self.absence.boot, code.bundle)
        nodes = request.definition.packed.count
        self.reader = FrameReader(self.nonce, nodes, self.report.read, self.reader.decoding)
        self.deadlines = Deadlines(self.deadlines.clock, request.patience)
        self.supplies = Supplies(self.emit, self.deadlines.clock, request.order.content)
        self.supplies.parts[request.bundle.sha256] = request.bundle
        self.report.state = SessionState.RETURNING
        yield from request.opening(self.nonce)
        for text in self.report.kept:
            yield wire.encode({"type": "keep", "text": text})
        yield self._begin(code.parts)

    def _answered(self) -> None:
        if self.state is SessionState.ASKING:
            self.report.state = SessionState.ACTING
        self.deadlines.progressed()

    def tell_units(self, answer: Json) -> bytes:
        """Return the frame with an order or an answer for the host's units."""
        if answer["type"] == "unit":
            about = None
            if answer["do"] == "hook":
                about = {"unit": answer["step"]["unit"], "hook": answer["step"]["hook"]}
                self.emit(RunEvent.UNIT_HOOK, {**about, "status": "started"})
            self.unit_hooks[answer["id"]] = about
        elif answer["type"] == "units-go" and self.state is SessionState.SERVING_UNITS:
            self.report.state = SessionState.ACTING
        self.deadlines.progressed()
        return answer_frame(answer)

    # From the host

    def receive(self, data: bytes) -> Iterator[actions.Action]:
        """Process bytes; yield actions in order. Execute each action before you ask for the next one.

        :raises Broken: if the host breaks the protocol
        """
        self.deadlines.bytes_came()
        if not self.reader.greeted:
            data = self.reader.greet(data)
            self._warn_of_noise()
        for frame in self.reader.feed(data):
            self.deadlines.frame_came()
            self.report.take(frame)
            yield from self._follow(frame)
            if isinstance(frame, frames.EndFrame):
                return
            if not isinstance(frame, frames.BeatFrame | frames.OutputFrame):
                self.deadlines.started = self.deadlines.started or isinstance(frame, frames.HelloFrame)
                self.deadlines.progressed()
        if not self.reader.incomplete:
            self.deadlines.frame_came()
        self.deadlines.bytes_came()  # bytes may have arrived meanwhile, so the silence is measured from now

    def _follow(self, frame: frames.Frame) -> Iterator[actions.Action]:
        """Yield the actions that a frame asks for."""
        match frame:
            case frames.NeedFrame():
                names = self.supplies.types(frame)
                if names is not None:
                    yield actions.FindTypes(names)
                for pieces in self.supplies.answer(frame, self.request.definition):
                    yield actions.Send(pieces)
                self.deadlines.sent(len(self.request.bundle.text))
            case frames.HookFrame():
                yield self._hook(frame)
            case frames.LoginFrame():
                if not by_ssh(self.request.target) or self.state is not SessionState.ACTING:
                    raise Broken("it requests a login that statecfg can't try", SUSPICIOUS)
                self.report.state = SessionState.ASKING
                yield actions.TryLogin()
            case frames.RebootFrame():
                if not by_ssh(self.request.target):
                    raise Broken("it wants to reboot, and statecfg can't connect to it again", SUSPICIOUS)
                self.absence = Absence(frame.node, frame.boot, frame.seconds, self.deadlines.clock())
                yield actions.AllowReboot()
            case frames.BootedFrame():
                self._booted(frame)
            case frames.FactsFrame() if self.state is SessionState.TOLD_FACTS:
                yield actions.TellFacts(frame.values, frame.failed)
            case frames.PlanFrame():
                yield actions.PlanReceived()
            case frames.EndFrame():
                yield actions.ResultReceived()
            case _ if isinstance(frame, frames.UNITS):
                yield self._unit(frame)

    def _booted(self, frame: frames.BootedFrame) -> None:
        """Check that the host has rebooted since it asked for that.

        :raises StillUp: if it has not
        """
        if self.state is not SessionState.RETURNING or self.absence is None:
            raise Broken("it reports its boot ID, without a question", SUSPICIOUS)
        if frame.boot == self.absence.boot:
            raise StillUp("it has not rebooted", AGAIN)

    def _hook(self, frame: frames.HookFrame) -> actions.CallHook:
        if frame.hook not in self.request.hooks or self.state is not SessionState.ACTING:
            raise Broken("it requests a hook that is not part of this run", SUSPICIOUS)
        if frame.resource.name not in self.report.plan.positions:
            raise Broken("it requests a hook for a resource that is not part of this run", SUSPICIOUS)
        self.report.state = SessionState.ASKING
        about = {"hook": frame.hook, "event": frame.event, "name": frame.resource.name}
        self.emit(RunEvent.HOOK_STARTED, about)
        return actions.CallHook(frame, about)

    def _unit(self, frame: frames.Frame) -> actions.TellUnits:
        if not self.request.has_units:
            raise Broken("it mentions units that are not part of this run", SUSPICIOUS)
        fields = {**frame.to_json(), "type": frames.TYPES[type(frame)]}
        if isinstance(frame, frames.UnitLogFrame):
            self.emit(RunEvent.UNIT_LOG, fields)
        elif isinstance(frame, frames.UnitDoneFrame):
            about = self.unit_hooks.pop(frame.id, None)
            if about is not None:
                status = HookStatus.OK if frame.ok else HookStatus.FAILED
                self.emit(RunEvent.UNIT_HOOK, {**about, "status": status, "error": frame.error})
        last = isinstance(frame, frames.UnitsFrame) and frame.phase == "after"
        return actions.TellUnits(fields, waits_for_others=last)

    def warn(self, text: str) -> None:
        """Add a warning for the user to the report, once."""
        if text not in self.report.data.get("warnings", ()):
            self.report.warn([text])
            self.emit(RunEvent.WARNING, {"text": text})

    def _warn_of_noise(self) -> None:
        if self.reader.greeted and self.reader.noise:
            text = self.reader.printed()[:200]
            self.warn(f"its login shell prints {len(self.reader.noise)} bytes in a session without a terminal: {text}")

    # Time

    def check(self, now: float | None = None) -> None:
        """Check that no deadline has passed. Call it every second or more often.

        :param now: the time until which everything that the host sent has been received; None for the current time
        :raises Broken: if a deadline has passed
        """
        serving = self.state is SessionState.SERVING_UNITS and not self.unit_hooks
        if serving or self.state in (
            SessionState.ASKING,
            SessionState.WAITING,
            SessionState.TOLD_FACTS,
            SessionState.REBOOTING,
        ):
            self.deadlines.progressed()  # the host waits for the controller
        self.deadlines.check(self.reader.incomplete, "its apply" if self.state in PLANNED else "its plan", now)

    # The end

    def silence(self, status: int | None, errors: str) -> Broken:
        """Return the error that says why the host's output ended.

        :param status: the exit status of the executor (negative: the signal), None if unknown
        :param errors: the executor's output to stderr
        """
        greeted = self.reader.greeted
        printed = readable(errors or ("" if greeted else self.reader.printed()))
        if status == NO_PYTHON and not greeted:
            return Broken(printed[-500:] or "it has no suitable Python", PYTHON)
        partial = self.reader.decoder.partial()
        if partial:
            text = f"the connection ended {partial}"
        else:
            text = "the executor ended too early" if greeted else "the executor ended without an answer"
        text += _exit(status) + (f": {printed[-500:]}" if printed else "")
        hint = AGAIN if greeted else NO_ANSWER
        # sudo and doas end before the executor if they are killed. Then their status is unknown.
        return Broken(text, hint, heard_all=status is not None or self.request.become is None)

    def broke(self, summary: str, hint: str, heard_all: bool = False) -> None:
        """Report that the session ended before the host finished; see `HostReport.lost`."""
        acting = self.report.acting
        if acting:
            hint = hint if hint in (SUSPICIOUS, ABSENT) else f"{AGAIN}\n{self.request.find_out}"
        nothing = "" if acting or self.request.order.mode not in Mode.ACTING else "Nothing was changed."
        self.report.lost(summary, nothing, hint or UNREACHED, heard_all)

    def refuse(self, status: str, error: HostError) -> None:
        """Set the status and the error in the report, for a host that is refused or held back.

        :param status: one of `HostStatus`
        """
        self.report.data["status"], self.report.data["error"] = status, error

    def hold_back(self, why: str) -> None:
        """Report that the playbook stays on the host.

        :param why: the reason, such as that of a hook
        """
        if not self.report.data.get("error"):
            self.refuse(HostStatus.FAILED, {"summary": why, "detail": "", "hint": AGAIN_LATER})

    def failed(self, problem: Exception) -> None:
        """Report that a bug of statecfg ended the session."""
        import traceback  # takes time to import

        summary, trace = f"statecfg failed: {problem!r}", "".join(traceback.format_exception(problem))
        if self.state is SessionState.FINISHED:  # the outcomes of the nodes are known
            status = self.report.data["status"]
            status = HostStatus.FAILED if status == HostStatus.OK else status
            self.refuse(status, {"summary": summary, "detail": trace, "hint": BUG})
            return
        self.report.lost(summary, trace, BUG, heard_all=False)
        self.report.data["summary"] = self.report.count()


def _exit(status: int | None) -> str:
    """Return how a program ended, in parentheses; "" if that is unknown."""
    if status is None:
        return ""
    if 0 <= status <= 128:
        return f" (it ended with exit status {status})"
    number = -status if status < 0 else status - 128
    return f" (it was killed by signal {number}{'; perhaps the host is out of memory' if number == 9 else ''})"
