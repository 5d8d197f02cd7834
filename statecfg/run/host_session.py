"""The conversation with one host: what is sent, how long anything is waited for, and what to say when it breaks."""

from __future__ import annotations

import contextlib
import secrets
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from statecfg.playbook.compile import Definition
from statecfg.playbook.inventory import Host
from statecfg.remote.graph.errors import StatecfgError
from statecfg.remote.wire import frames as wire
from statecfg.run import frames
from statecfg.run.bundle import Bundle, Part, command, modules_of, parts
from statecfg.run.host_report import SUSPICIOUS, Broken, HostReport
from statecfg.run.listening import AGAIN, Listening
from statecfg.run.new_login import aside, by_ssh
from statecfg.run.outbox import Outbox
from statecfg.run.outgoing import node_frames, plain, told
from statecfg.transport import Settings, Stream, Target, TransportError, connect
from statecfg.transport.become import Become, open_become

BEAT = 5.0  # seconds between our heartbeats
PATIENCE = 1800.0  # seconds without news but heartbeats, beside what the nodes themselves may take
PIECE = 128 << 10  # bytes of the bundle in one frame
EXPECTED = 5_000  # fingerprints in one frame
NODES = 200  # nodes in one frame
AGAIN_LATER = "Run it again: what a hook holds back stays until the hook lets it go."
BUG = "This is a mistake in statecfg: please report it with what is above."

Json = dict[str, Any]
Emit = Callable[[str, Json], None]


@dataclass(frozen=True)
class Order:
    """What every host of a run is asked for. See `fleet.Options`."""

    run: str
    mode: str
    who: str
    keep_going: bool = False
    lock_timeout: float = 0.0
    settings: Settings | None = None
    become: Become | None = None
    patience: float = PATIENCE
    password: str | None = field(default=None, repr=False)


class Events(Protocol):
    """Who is told of a host's life while a run is under way. Called from many threads."""

    def planned(self, host: str, report: Json) -> None:
        """Take in that a host has checked in and planned: `facts` and `ledger` are in its report."""

    def hook(self, host: str, question: Json, gone: Callable[[], bool], begun: Callable[[], None]) -> Json:
        """Call a hook that runs here (`hook`, `event`, `resource`, `seconds`); return {"ok", "error", …}.

        `gone` tells whether the host waits no longer; `begun` is called when the hook's turn has come.
        """

    def may_go(self, host: str) -> str:
        """Say why a host, planned, must not go on, "" where it may; called once, before anything is done there."""

    def going(self, host: str) -> None:
        """Take in that a host, planned, goes on to do it."""

    def unit(self, host: str, frame: Json, tell: Callable[[Json], None], address: str) -> None:
        """Take in what a host says of its units; `tell` sends it a frame. Source: `units.coordinator`."""

    def finished(self, host: str, report: Json) -> None:
        """Take in how a run ended on a host; it may complete the report."""


# The definition with the content of hooks, what else the executor is to know, and who is told of the host's life.
Late = tuple[Definition, Mapping[str, Any], Events | None]


class Unjoined(StatecfgError):
    """What was to be looked up could not be: the run ends, and nothing was done on any host."""


class NotStarted(StatecfgError):
    """The user stopped the run before this host had its turn."""


_CANCELLED = {"summary": "not started: the run was stopped before", "detail": "", "hint": ""}
HOST_KEY = "host key"  # what a difference of host keys begins with


class OtherHost(StatecfgError):
    """The host shows another key than it did when its plan was made: nothing was asked of it."""


_OTHER_HOST = {
    "summary": "this is not the host that was planned for; nothing was done",
    "detail": "It shows another host key.",
    "hint": "If the host was set up anew, plan again, read the plan, and apply the new one.",
}


def other_key(planned: str, now: str) -> bool:
    """Return whether two host keys of one kind, as `KIND FINGERPRINT`, differ; a host has one of each kind."""
    kind, _, fingerprint = planned.partition(" ")
    kind_now, _, fingerprint_now = now.partition(" ")
    return bool(fingerprint) and kind == kind_now and fingerprint != fingerprint_now


class Gate:
    """Where hosts wait, planned and held, until somebody has read the plan and said yes or no.

    :param slots: what a host needs one of, again, to go on
    """

    def __init__(self, slots: threading.Semaphore) -> None:
        self.answer: bool | None = None
        self.slots = slots


class HostSession:
    """One host, from the connection to its report.

    :param emit: takes each event: its kind and its data
    :param gate: None where nobody is asked
    :param cancel: set when the user wants to stop
    :param more: what else the executor is to know of the run (see `fleet.Job.order`)
    :param late: waits for what is looked up beside the way to the host, and returns it: the definition with the
        content of hooks, what else the executor is to know, and who is told of the host's life
    :param peer: the host key of a saved plan, "" for none
    """

    def __init__(
        self,
        host: Host,
        definition: Definition,
        playbook: str,
        bundle: Bundle,
        order: Order,
        emit: Emit,
        expect: Mapping[str, str] | None = None,
        gate: Gate | None = None,
        cancel: threading.Event | None = None,
        more: Mapping[str, Any] | None = None,
        late: Callable[[], Late] | None = None,
        peer: str = "",
    ) -> None:
        self.host, self.definition, self.playbook, self.bundle = host, definition, playbook, bundle
        self.order, self.emit, self.expect, self.gate = order, emit, expect, gate
        self.cancel = cancel or threading.Event()
        self.more, self.late, self.peer = more or {}, late, peer
        self.events: Events | None = None
        self.nonce = secrets.token_hex(16)
        self.said = HostReport(definition, order.mode, emit)
        self.report = self.said.report
        self.answered = self.told = self.entered = self.asking = self.typed = False
        self.permit: _Permit | None = None
        self.address = ""
        self.hooks = 0  # of units, that run there now
        self.running: dict[int, Json] = {}  # by the number of their order
        self.given: set[str] = set()
        self.parts: dict[str, Part] = {bundle.sha256: bundle}  # of the executor, by digest
        self.writing = threading.Lock()
        self.outbox: Outbox | None = None
        self.waiting = threading.Event()
        self.over = threading.Event()

    def run(self) -> Json:
        """Talk to the host; return its part of the report. A failing host is a report too, never an exception."""
        try:
            if self.cancel.is_set():
                raise NotStarted
            self.emit("connecting", {})
            connection = connect(self.target(), self.order.settings)
            try:
                self.report["peer"], self.address = connection.peer, connection.address
                self.emit("connected", {"peer": connection.peer})
                if other_key(self.peer, connection.peer):
                    raise OtherHost
                for text in connection.warnings:
                    self.warn(text)
                become = self.become()
                argv = command(self.host.python)
                stream = open_become(connection, argv, become, wire.GREETING) if become else connection.open(argv)
                try:
                    self.talk(stream)
                finally:
                    stream.close()
            finally:
                connection.close()
        except Unjoined:
            return self.report
        except NotStarted:
            self.report.update(status="cancelled", error=dict(_CANCELLED))
        except OtherHost:
            self.report.update(status="refused", error=dict(_OTHER_HOST))
            self.report["differs"] = [f"{HOST_KEY}: planned {self.peer}; now {self.report['peer']}"]
        except TransportError as problem:
            self.broke(problem.summary, problem.hint)
        except Broken as problem:
            self.broke(problem.summary, problem.hint, heard_all=problem.heard_all)
        except wire.ProtocolError as problem:
            self.broke(f"what it is to be can't be sent: {problem}", "Let single nodes be smaller.")
        finally:
            self.over.set()
            self.waiting.set()
            if self.entered and self.gate is not None:
                self.gate.slots.release()
        self.said.conclude()
        held_back = self.held_back()
        if held_back and not self.report.get("error"):
            self.report["status"] = "failed"
            self.report["error"] = {"summary": held_back, "detail": "", "hint": AGAIN_LATER}
        if self.told_of_end():
            self.emit("finished", {"status": self.report["status"], "report": self.report})
        return self.report

    def told_of_end(self) -> bool:
        """Tell who follows the run how it ended here, also where it never began; return False where nobody can."""
        if self.events is None and self.late is not None:
            try:
                self.events = self.late()[2]
            except Unjoined:
                return False
        if self.events is not None:
            self.events.finished(self.host.name, self.report)
        return True

    def held_back(self) -> str:
        """Return why a playbook can't come to its end here, "" where it can; also where nothing is left of it."""
        if self.permit is not None:
            return self.permit.answer or ""
        over = self.order.mode == "destroy" and self.report["status"] == "ok" and not self.report.get("declined")
        return self.events.may_go(self.host.name) if over and self.events is not None else ""

    def broke(self, summary: str, hint: str, heard_all: bool = False) -> None:
        """Say what is known now that the conversation is over before its end, and what to do."""
        if self.said.acting:
            hint = hint if hint == SUSPICIOUS else AGAIN
        elif not hint:
            hint = "Run it again when the host can be reached: `ssh` to it shows whether it can."
        nothing = "Nothing was changed." if self.said.changes and not self.said.acting else ""
        self.said.lost(summary, nothing, hint, heard_all)

    def failed(self, problem: Exception) -> None:
        """Let our own mistake be this host's end, with where it happened."""
        self.said.lost(f"statecfg failed: {problem!r}", "".join(traceback.format_exception(problem)), BUG, False)
        self.report["summary"] = self.said.count()
        self.emit("finished", {"status": self.report["status"], "report": self.report})

    def target(self) -> Target:
        """Return where the host is, as the transports take it."""
        return Target.of(self.host)

    def become(self) -> Become | None:
        """Return whom to become: what the command line says, else the inventory."""
        if self.order.become is not None or self.host.become is None:
            return self.order.become
        # doas takes no password without a terminal; where it asks for one, it says so itself.
        password = None if self.host.become == "doas" else self.order.password
        return Become(self.host.become, self.host.become_user, password)

    # Sending

    def opening(self) -> Iterator[bytes]:
        """Yield what can be said before the host has answered; with `begin`, on a converged host it is all there is."""
        yield plain({"type": "hello", "nonce": self.nonce, "bundle": self.bundle.sha256})
        run: Json = {
            "type": "run",
            "run": self.order.run,
            "mode": self.order.mode,
            "who": self.order.who,
            "playbook": self.playbook,
            "types": self.bundle.modules,
            "keep_going": self.order.keep_going,
            "lock_timeout": self.order.lock_timeout,
            "secrets": dict(self.definition.secrets),
            "expect": self.expect is not None,
            "asks": self.gate is not None,
            "login": by_ssh(self.target()),
            **self.more,
        }
        yield wire.encode(run)
        expect = sorted((self.expect or {}).items())
        for start in range(0, len(expect), EXPECTED):
            yield wire.encode({"type": "expect", "nodes": dict(expect[start : start + EXPECTED])})
        for number, layer in enumerate(self.definition.layers):
            for start in range(0, len(layer), NODES):
                yield from node_frames(number, layer[start : start + NODES])

    def say(self, stream: Stream, data: bytes) -> None:
        """Send; heartbeats go by another thread."""
        with self.writing:
            stream.write(data)

    def supply(self, stream: Stream, frame: frames.Need) -> None:
        """Send what the host lacks: the executor, or content; once, and nothing but what belongs to this run."""
        if [frame.bundle, frame.blobs, frame.types].count(None) != 2:
            raise Broken("it asks for nothing that there is", SUSPICIOUS)
        if frame.types is not None:
            self.supply_types(stream, frame.types)
        elif frame.bundle is not None:
            self.supply_part(stream, frame.bundle)
        for sha256 in frame.blobs or ():
            blob = self.definition.blobs.get(sha256)
            if blob is None or sha256 in self.given:
                what = "was sent already" if sha256 in self.given else "is not part of this run"
                raise Broken(f"it asks for content {sha256[:12]!r}, which {what}", SUSPICIOUS)
            self.given.add(sha256)
            self.emit("uploading", {"bytes": blob.size})
            try:
                for piece in wire.pieces(blob):
                    self.say(stream, piece)
            except (OSError, wire.ProtocolError) as problem:
                raise Broken(f"content for it can't be sent: {problem}", "Run it again.") from problem

    def supply_part(self, stream: Stream, sha256: str) -> None:
        """Send a part of the executor."""
        if sha256 not in self.parts or sha256 in self.given:
            raise Broken("it asks for the executor a second time, or for another one", SUSPICIOUS)
        self.given.add(sha256)
        self.emit("uploading", {"bytes": len(data := self.parts[sha256].data)})
        for start in range(0, len(data), PIECE):
            self.say(stream, plain({"type": "bundle", "last": start + PIECE >= len(data)}, data[start : start + PIECE]))

    def supply_types(self, stream: Stream, names: Sequence[str]) -> None:
        """Send node types of what left the definition, as far as they are still known here."""
        if self.typed:
            raise Broken("it asks for node types that it can't need", SUSPICIOUS)
        self.typed = True
        modules, types = modules_of(list(names[:1000]))
        self.say(stream, wire.encode({"type": "modules", "modules": modules, "types": types}))

    def answer(self, stream: Stream) -> None:
        """Let the host go on with what it planned, or not; pass on that the user stops."""
        if self.outbox is not None:
            self.outbox.check()
        if self.cancel.is_set() and not self.told:
            self.told = True
            self.say(stream, wire.encode({"type": "cancel"}))
        if not self.said.waits or self.answered:
            return
        yes = True
        if self.gate is not None:
            if self.gate.answer is None:
                return
            yes = self.gate.answer
        if yes and self.events is not None and self.order.mode == "destroy":
            if self.permit is None:
                self.permit = _Permit(self.events, self.host.name)
            if self.permit.answer is None:
                return
            yes = not self.permit.answer
        if yes and self.gate is not None:
            if not self.gate.slots.acquire(blocking=False):
                return
            self.entered = True
        if yes and self.events is not None:
            self.events.going(self.host.name)
        # From here on, what became of the host is unknown until it says so.
        self.answered, self.said.acting = True, yes
        self.say(stream, wire.encode({"type": "go" if yes else "no"}))

    def ask(self, stream: Stream, frame: frames.Hook) -> None:
        """Let the hook be called that the host waits for, and pass on its answer; meanwhile, go on listening.

        Raises Broken where it asks for what is no hook of this run.
        """
        names = {hook["name"] for hook in self.more.get("hooks", ()) if hook["where"] == "controller"}
        if self.events is None or frame.hook not in names or not self.said.acting or self.asking:
            raise Broken("it asks for a hook that is not part of this run", SUSPICIOUS)
        if frame.resource.name not in self.said.places:
            raise Broken("it asks for a hook without a resource of this run", SUSPICIOUS)
        self.asking, events, question = True, self.events, frame.to_json()
        about = {"hook": frame.hook, "event": frame.event, "name": frame.resource.name}
        self.emit("hook-started", about)

        def begun() -> None:
            self.emit("hook-started", {**about, "seconds": frame.seconds, "attempt": 1})

        def answer() -> None:
            try:
                found = events.hook(self.host.name, question, self.over.is_set, begun)
            except Exception as problem:  # our own mistake: the host is told that the hook failed, and why
                found = {"ok": False, "error": f"statecfg failed: {problem!r}"}
            self.asking = False
            with contextlib.suppress(TransportError):  # whoever listens finds out too, and says it
                self.say(stream, wire.encode({**found, "type": "hooked", "id": frame.id}))

        threading.Thread(target=answer, daemon=True).start()

    def log_in_again(self, stream: Stream) -> None:
        """Try a new login beside this connection, and tell the host what came of it; meanwhile, go on listening."""
        if not by_ssh(self.target()) or self.asking:
            raise Broken("it asks for a login that can't be tried", SUSPICIOUS)
        self.asking = True

        def answer(wrong: str) -> None:
            self.report["login"] = {"ok": not wrong, **({"error": wrong} if wrong else {})}
            self.asking = False
            with contextlib.suppress(TransportError):  # whoever listens finds out too, and says it
                self.say(stream, wire.encode({"type": "login", "error": wrong}))

        aside(self.target(), self.order.settings, command(self.host.python), answer)

    def unit(self, stream: Stream, frame: frames.Frame) -> None:
        """Pass on what the host says of its units. Raises Broken where it has none in this run."""
        if self.events is None or not self.said.acting or not self.more.get("units", {}).get("units"):
            raise Broken("it speaks of units that are not part of this run", SUSPICIOUS)
        if self.outbox is None:
            self.outbox = Outbox(partial(self.say, stream))
        outbox, said = self.outbox, {**frame.to_json(), "type": frames.TYPES[type(frame)]}
        if not outbox.room():
            raise Broken("it asks for more than it reads", SUSPICIOUS)
        if isinstance(frame, frames.UnitsPhase) and frame.phase == "after":
            self.give_way()
        if isinstance(frame, frames.UnitLog):
            self.emit("unit-log", said)
        elif isinstance(frame, frames.UnitDone):
            self.hooks -= 1
            about = self.running.pop(frame.id, None)
            if about is not None:
                self.emit("unit-hook", {**about, "status": "ok" if frame.ok else "failed", "error": frame.error})

        def tell(answer: Json) -> None:
            if answer["type"] == "unit":
                self.hooks += 1
                if answer["do"] == "hook":
                    step = answer["step"]
                    self.running[answer["id"]] = {"unit": step["unit"], "hook": step["hook"]}
                    self.emit("unit-hook", {**self.running[answer["id"]], "status": "started"})
            self.said.units = answer["type"] != "units-go"
            outbox.put(told(answer))

        self.events.unit(self.host.name, said, tell, self.address)

    def give_way(self) -> None:
        """Let another host have this one's slot: from here on it may wait for that one."""
        self.waiting.set()
        if self.entered and self.gate is not None:
            self.entered = False
            self.gate.slots.release()

    # Listening

    def talk(self, stream: Stream) -> None:
        """Say everything, then listen until END. Raises Broken, ProtocolError, TransportError, Unjoined."""
        # A program that has ended by now, such as a shell that lets nobody in, has said why: listening finds it.
        with contextlib.suppress(TransportError):
            self.say(stream, b"".join(self.opening()))
        over = threading.Event()
        threading.Thread(target=self._beat, args=(stream, over), daemon=True).start()
        try:
            if self.late is not None:
                self.definition, self.more, self.events = self.late()
            self.parts |= (more := parts(self.more))
            with contextlib.suppress(TransportError):
                self.say(stream, wire.encode({**self.more, "type": "begin", "parts": list(more)}))
            Listening(self, stream).run()
        finally:
            over.set()
            if self.outbox is not None:
                self.outbox.close()

    def _beat(self, stream: Stream, over: threading.Event) -> None:
        """Tell the host, every few seconds, that we are alive, whatever the rest of us waits for."""
        while not over.wait(BEAT):
            try:
                self.say(stream, wire.encode({"type": "beat"}))
            except TransportError:  # whoever listens finds out too, and says it
                return

    def warn(self, text: str) -> None:
        """Pass on something the user should know."""
        self.report.setdefault("warnings", []).append(text)
        self.emit("warning", {"text": text})

    def longest(self) -> float:
        """Return how long, in seconds, the host may have no news."""
        spans = [node.get("attrs", {}).get("timeout") for layer in self.definition.layers for node in layer]
        spans.append((self.more.get("units") or {}).get("longest"))
        return self.order.patience + max((span for span in spans if isinstance(span, int | float)), default=0.0)


class _Permit:
    """The question, asked aside, whether a host may go on; `answer` is None until it is known."""

    def __init__(self, events: Events, host: str) -> None:
        self.answer: str | None = None
        threading.Thread(target=self._ask, args=(events, host), daemon=True).start()

    def _ask(self, events: Events, host: str) -> None:
        try:
            self.answer = events.may_go(host)
        except Exception as problem:  # our own mistake: the host stays as it is, and its report says so
            self.answer = f"statecfg failed: {problem!r}"
