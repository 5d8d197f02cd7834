"""Drives the session with one host: connects, reads and writes in threads, and executes the session's actions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from statecfg.remote.graph.errors import StatecfgError
from statecfg.remote.graph.events import RunEvent
from statecfg.remote.graph.names import HostStatus, Mode
from statecfg.remote.wire import frames as wire
from statecfg.run.awaited import RefusedHost
from statecfg.run.bundle import build, command, modules_of
from statecfg.run.host import actions, heartbeats, rebooted, repeated
from statecfg.run.host.barrier import Barrier
from statecfg.run.host.broken import SUSPICIOUS, Broken
from statecfg.run.host.code import needed
from statecfg.run.host.events import Events, Late, Unjoined
from statecfg.run.host.gate import READ, Pass, Slots
from statecfg.run.host.host_key import HOST_KEY, OTHER_HOST, OtherHost, other_key
from statecfg.run.host.new_login import aside
from statecfg.run.host.outbox import Outbox
from statecfg.run.host.report import Emit
from statecfg.run.host.request import HostRequest
from statecfg.run.host.sender import Sender
from statecfg.run.host.session import HostSession
from statecfg.run.host.state import SessionState
from statecfg.run.job import Job
from statecfg.run.report_model import HostData, HostError
from statecfg.transport import HostConnection, Stream, TransportError
from statecfg.transport.become import open_become

Json = Mapping[str, Any]  # of reports, and of the frames of hooks and units

QUESTIONS = 3  # attempts to ask a host something if workers are lost meanwhile

_DECODING = threading.Lock()


class NotStarted(StatecfgError):
    """The user stopped the run before this host's turn."""


class HostDriver:
    """One host of a run, from the connection to its report.

    :param emit: called for each event with its name (one of `RunEvent`) and its data
    :param late: waits for the data that the controller looks up while it connects, and returns it
    :param gate_pass: the host's slot, and its pass through the barrier and the gate
    :param cancel: set when the user stops the run
    """

    def __init__(
        self, request: HostRequest, emit: Emit, late: Callable[[], Late], gate_pass: Pass, cancel: threading.Event
    ) -> None:
        self.emit, self.late, self.cancel = emit, late, cancel
        self.session = HostSession(request, emit, decoding=_DECODING)
        self.lock = threading.RLock()  # held during each call of the session
        self.gate_pass = gate_pass
        self.events: Events | None = None
        self.outbox: Outbox | None = None
        self.address = ""
        self.interrupted: str | None = None  # why the session must be repeated; see `RepeatDriver`
        self.over = threading.Event()
        self.told = False  # whether `finished` was emitted, which happens once

    @property
    def host(self) -> str:
        """The host's name."""
        return self.session.request.host.name

    @property
    def report(self) -> HostData:
        """The host's part of the report."""
        return self.session.report.data

    def run(self) -> bool:
        """Run the session and complete the host's part of the report, also if the host fails.

        :returns: False if the session was interrupted. Then this is called again as soon as `repeated.ready`
        """
        ended = True
        try:
            if self.cancel.is_set():
                raise NotStarted
            ended = repeated.through(self, partial(rebooted.through, self, self._connect))
            if not ended:
                return False
        except Unjoined:
            return True
        except NotStarted:
            self.session.report.not_started()
        except OtherHost:
            self.session.refuse(HostStatus.REFUSED, OTHER_HOST)
            planned = self.session.request.peer
            self.report["differs"] = [f"{HOST_KEY}: planned {planned}; now {self.report['peer']}"]
        except TransportError as problem:
            self.session.broke(problem.summary, problem.hint)
        except Broken as problem:
            self.session.broke(problem.summary, problem.hint, problem.heard_all)
        except wire.ProtocolError as problem:
            self.session.broke(f"its definition can't be sent: {problem}", "Make the largest nodes smaller.")
        finally:
            if ended:
                self.leave()
        self.session.report.conclude()
        why = self._held_back()
        if why:
            self.session.hold_back(why)
        if self._tell_end():
            self._emit_finished()
        return True

    def ask(self, request: HostRequest) -> Json:
        """Return the report of another request to the host, which is not part of the run's events."""
        late: Late = (request.definition, request.more, None)
        own = Pass(Slots(1, 0, self.gate_pass.slots.pace), None, Barrier(None, ()))
        driver = HostDriver(request, lambda event, data: None, lambda: late, own, self.cancel)
        for _ in range(QUESTIONS):
            if driver.run():
                break
            own.acquire()
        return driver.report

    def leave(self) -> None:
        """Let the other hosts continue without this one."""
        self.over.set()
        self.gate_pass.barrier.gone(self.host)
        self.gate_pass.leave()

    def failed(self, problem: Exception) -> None:
        """Report that a bug of statecfg ended the session.

        :raises Exception: the listener or a reader failed, which the report can't show
        """
        if self.told:
            raise problem
        self.session.failed(problem)
        self._emit_finished()

    def _emit_finished(self) -> None:
        self.told = True
        self.emit(RunEvent.FINISHED, {"status": self.report["status"], "report": self.report})

    def _tell_end(self) -> bool:
        """Tell `events` how the run ended on this host, also if it never began; return False if there are none."""
        if self.events is None:
            try:
                self.events = self.late()[2]
            except Unjoined:
                return False
        if self.events is not None:
            self.events.finished(self.host, self.report)
        return True

    def _held_back(self) -> str:
        """Return why a hook keeps the playbook on the host, "" if no hook does.

        If the host had nothing left to destroy, this asks the hooks now.
        """
        if self.gate_pass.permit is not None:
            return self.gate_pass.permit.answer or ""
        destroyed = self.session.request.order.mode == Mode.DESTROY and self.report["status"] == HostStatus.OK
        over = destroyed and not self.report.get("declined")
        return self.events.may_go(self.host) if over and self.events is not None else ""

    # Connecting

    def _connect(self, again: bool = False) -> None:
        """Connect, start the executor and run the session to its end, or until the host reboots.

        :param again: whether the host has rebooted, and the session continues
        :raises Exception: any error that `run` reports
        """
        request = self.session.request
        self.gate_pass.slots.pace.wait()
        if not again:
            self.emit(RunEvent.CONNECTING, {})
        access = request.order.access
        connection = access.connect(request.target, access.settings)
        try:
            if again and other_key(self.report["peer"], connection.peer):
                raise Broken("its host key has changed with the reboot", SUSPICIOUS)
            self.report["peer"], self.address = connection.peer, connection.address
            if other_key(request.peer, connection.peer):
                raise OtherHost
            self.session.request = replace(request, login=connection.login, peer_key=connection.peer)
            if not again:
                self.emit(RunEvent.CONNECTED, {"peer": connection.peer})
                for text in connection.warnings:
                    self.session.warn(text)
            stream = self._open(connection)
            try:
                self._talk(stream, again)
            finally:
                stream.close()
        finally:
            connection.close()

    def _open(self, connection: HostConnection) -> Stream:
        become, argv = self.session.request.become, command(self.session.request.host.python)
        return open_become(connection, argv, become, wire.GREETING) if become else connection.open(argv)

    def _talk(self, stream: Stream, again: bool) -> None:
        """Send the request, then read until the host has finished."""
        sender = Sender(stream)
        # A program that has ended by now, such as a shell that refuses the login, printed the reason. It is read below.
        if not again:
            sender.try_to_send(self.session.opening())
        with heartbeats.sending(partial(sender.beat, self.session.beat())):
            try:
                self._exchange(sender, again)
            finally:
                if self.outbox is not None:
                    self.outbox.close()
                    self.outbox = None

    def _exchange(self, sender: Sender, again: bool) -> None:
        """Complete the request, or continue it after a reboot, and follow the host to its end."""
        request = self.session.request
        if again:
            whole = needed(request.definition, request.more, build(request.definition.types))
            with self.lock:
                pieces = list(self.session.resume(whole))
            sender.send(pieces)
            self._listen(sender)
            return
        definition, more, self.events = self.late()
        if request.order.mode in Mode.ACTING and not request.waits_for_facts:
            self._stay(self.gate_pass.hold())
        code = None if request.waits_for_facts else needed(definition, more, request.bundle)
        data = self.session.begin(definition, more, code)
        if data:
            sender.try_to_send(data)
        self._listen(sender)

    # Listening

    def _listen(self, sender: Sender) -> None:
        """Read and execute the session's actions until the host has finished."""
        while True:
            asked = time.monotonic()  # a busy machine may stop this thread for long afterwards
            data = sender.stream.read(READ)
            if data == b"":
                status, errors = sender.ending(self.session.reader.greeted)
                raise self.session.silence(status, errors.decode("utf-8", "replace"))
            if data:
                for action in self._received(data):
                    if isinstance(action, actions.ResultReceived):
                        return
                    self._do(action, sender)
            if self.session.state is SessionState.TOLD_FACTS and sender.cut is None and not self._define(sender):
                return
            sender.check(self.session.deadlines.heard)
            with self.lock:
                self.session.check(asked)
            self._answer(sender)

    def _define(self, sender: Sender) -> bool:
        """Send the host its definition, or a request for more facts, as soon as this is known.

        :returns: whether the session continues
        """
        if not self.gate_pass.barrier.ready(self.host) or not self.gate_pass.enter():
            return True
        step = self.gate_pass.barrier.step(self.host)
        if isinstance(step, RefusedHost):
            error: HostError = {"summary": step.summary, "detail": step.detail, "hint": step.hint}
            self.session.refuse(HostStatus.FAILED, error)
            return False
        if isinstance(step, Job):
            request = self.session.request
            code = needed(step.definition, request.more, request.bundle)
            with self.lock:
                pieces = list(self.session.define(step.definition, step.differs, code))
        else:
            with self.lock:
                pieces = [self.session.ask(step)]
        sender.send(pieces)
        return True

    def _received(self, data: bytes) -> Iterator[actions.Action]:
        """Yield the actions that follow from bytes. The session is not locked while the caller executes an action."""
        following = self.session.receive(data)
        while True:
            with self.lock:
                action = next(following, None)
            if action is None:
                return
            yield action

    def _do(self, action: actions.Action, sender: Sender) -> None:
        match action:
            case actions.Send():
                sender.send(action.pieces)
            case actions.FindTypes():
                sender.send([self.session.supply_types(*modules_of(action.names))])
            case actions.CallHook():
                self._call_hook(action, sender)
            case actions.TryLogin():
                self._try_login(sender)
            case actions.AllowReboot():
                with self.lock:
                    data = self.session.may_reboot()
                sender.send([data])
            case actions.TellUnits():
                self._tell_units(action, sender)
            case actions.TellFacts():
                if self.events is not None:
                    self.events.collected(self.host, action.values)
                self.gate_pass.barrier.received(self.host, action)
                self._stay(self.gate_pass.rest())
            case actions.PlanReceived():
                if self.events is not None:
                    self.events.planned(self.host, self.report)
                if self.session.state is SessionState.WAITING:  # otherwise the end follows at once
                    self._stay(self.gate_pass.wait())

    def _stay(self, stays: bool) -> None:
        """Give up the connection if the host may not keep it while it waits."""
        if not stays:
            raise repeated.Disconnected

    # Answers

    def _answer(self, sender: Sender) -> None:
        """Tell the host that the user stops the run, or whether it may apply its plan."""
        if self.outbox is not None and self.outbox.cut is not None:
            sender.break_off(self.outbox.cut)
        waits = self.session.state is SessionState.WAITING and sender.cut is None
        if self.cancel.is_set() and not waits:
            data = self.session.cancel()
            if data:
                sender.send([data])
        if waits:
            destroys = self.session.request.order.mode == Mode.DESTROY
            yes = self.gate_pass.permitted(self.events if destroys else None, self.host)
            cancelled = self.cancel.is_set()
            if (yes or cancelled) and self.session.report.agreement.broken(self.report, cancelled):
                yes = False
            if yes is None or (yes and not self.gate_pass.enter()):
                return
            if yes and self.events is not None:
                self.events.going(self.host)
            with self.lock:
                data = self.session.go(yes)
            sender.send([data])

    def _call_hook(self, action: actions.CallHook, sender: Sender) -> None:
        """Call a hook in a thread, so that the session continues."""
        events, frame = self.events, action.frame
        if events is None:
            raise Broken("it requests a hook that is not part of this run", SUSPICIOUS)

        def begun() -> None:
            self.emit(RunEvent.HOOK_STARTED, {**action.about, "seconds": frame.seconds, "attempt": 1})

        def call() -> None:
            try:
                answer = events.hook(self.host, frame.to_json(), self.over.is_set, begun)
            except Exception as problem:  # a bug of statecfg: tell the host that the hook failed, and why
                answer = {"ok": False, "error": f"statecfg failed: {problem!r}"}
            with self.lock:
                data = self.session.hooked(frame.id, answer)
            sender.try_to_send(data)

        threading.Thread(target=call, daemon=True).start()

    def _try_login(self, sender: Sender) -> None:
        """Try a new login in a thread, in addition to this connection."""

        def answer(wrong: str) -> None:
            with self.lock:
                data = self.session.logged_in(wrong)
            sender.try_to_send(data)

        request = self.session.request
        argv = command(request.host.python)
        access = request.order.access
        aside(lambda: access.connect(request.target, access.settings), argv, request.become, answer)

    def _tell_units(self, action: actions.TellUnits, sender: Sender) -> None:
        """Pass a frame of the host's units to their coordinator. The outbox sends the coordinator's answers."""
        if self.events is None:
            raise Broken("it mentions units that are not part of this run", SUSPICIOUS)
        if self.outbox is None:
            self.outbox = Outbox(sender.write)
        if not self.outbox.room():
            raise Broken("it sends requests faster than it reads the answers", SUSPICIOUS)
        if action.waits_for_others:
            self.gate_pass.leave()
        self.events.unit(self.host, dict(action.frame), partial(self._order_units, self.outbox), self.address)

    def _order_units(self, outbox: Outbox, answer: Json) -> None:
        with self.lock:
            outbox.put(self.session.tell_units(answer))
