"""The conversation with one host: what is sent, what is made of what comes back, and what is unknown when it breaks."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from statecfg.bundle import Bundle, command
from statecfg.compile import Definition
from statecfg.inventory import Host
from statecfg.remote import wire
from statecfg.remote.report import summary
from statecfg.transport import Settings, Stream, Target, TransportError, connect
from statecfg.transport.become import Become, open_become

BEAT = 5.0  # seconds between our heartbeats
DEAD = 15.0  # seconds of silence after which a host is taken for gone
START = 60.0  # seconds a host may take from the start of the executor to its first word
PIECE = 128 << 10  # bytes of the bundle in one frame
NODES = 200  # nodes in one frame

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


class Gate:
    """Where hosts wait, planned and held, until somebody has read the plan and said yes or no."""

    def __init__(self) -> None:
        self.answer: bool | None = None


class Broken(Exception):
    """The host said something that is none of ours, or went silent."""


class Conversation:
    """One host, from the connection to its report.

    :param emit: takes each event: its kind and its data
    :param gate: None where nobody is asked
    :param cancel: set when the user wants to stop
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
    ) -> None:
        self.host, self.definition, self.playbook, self.bundle = host, definition, playbook, bundle
        self.order, self.emit, self.expect, self.gate = order, emit, expect, gate
        self.cancel = cancel or threading.Event()
        self.nonce = secrets.token_hex(16)
        self.layers: list[list[Json]] = []
        self.index: dict[str, tuple[int, int]] = {}
        self.begun: dict[str, list[str]] = {}
        self.ended: dict[str, str] = {}
        self.done: set[int] = set()
        self.report: Json = {"status": "unreachable", "layers": self.layers, "summary": {}}
        self.planned = self.acting = self.told = False
        self.waiting = threading.Event()

    def run(self) -> Json:
        """Talk to the host; return its part of the report. A failing host is a report too, never an exception."""
        self.emit("connecting", {})
        try:
            connection = connect(self.target(), self.order.settings)
            try:
                self.report["peer"] = connection.peer
                self.emit("connected", {"peer": connection.peer})
                become = self.become()
                argv = command(self.host.python)
                stream = open_become(connection, argv, become) if become else connection.open(argv)
                try:
                    self.talk(stream)
                finally:
                    stream.close()
            finally:
                connection.close()
        except TransportError as problem:
            self.broke(problem.summary, problem.detail, problem.hint)
        except (Broken, wire.ProtocolError) as problem:
            self.broke(str(problem))
        finally:
            self.waiting.set()
        self.report["summary"] = summary([node for layer in self.layers for node in layer])
        self.emit("finished", {"status": self.report["status"], "report": self.report})
        return self.report

    def target(self) -> Target:
        """Return where the host is, as the transports take it."""
        host = self.host
        address = host.address or None
        return Target(
            host.name, address, host.port, host.user, tuple(host.identity_files), host.proxy_jump, host.transport
        )

    def become(self) -> Become | None:
        """Return whom to become: what the command line says, else the inventory."""
        if self.order.become is not None or self.host.become is None:
            return self.order.become
        return Become(self.host.become, self.host.become_user)

    # Sending

    def opening(self) -> Iterator[bytes]:
        """Yield everything that can be said before the host has answered: on most hosts, all there is to say."""
        yield _plain({"type": "hello", "nonce": self.nonce, "bundle": self.bundle.sha256})
        run: Json = {
            "type": "run",
            "run": self.order.run,
            "mode": self.order.mode,
            "who": self.order.who,
            "playbook": self.playbook,
            "types": self.bundle.modules,
            "keep_going": self.order.keep_going,
            "lock_timeout": self.order.lock_timeout,
            "confirm": self.gate is not None,
            "secrets": dict(self.definition.secrets),
        }
        if self.expect is not None:
            run["expect"] = dict(self.expect)
        yield wire.encode(run)
        for number, layer in enumerate(self.definition.layers):
            for start in range(0, len(layer), NODES):
                yield from _nodes(number, layer[start : start + NODES])
        yield wire.encode({"type": "begin"})

    def supply(self, stream: Stream, frame: Json) -> None:
        """Send what the host lacks: the executor, or content. Nothing but what belongs to this run is given out."""
        if "bundle" in frame:
            data = self.bundle.data
            self.emit("uploading", {"bytes": len(data)})
            for start in range(0, len(data), PIECE):
                last = start + PIECE >= len(data)
                stream.write(_plain({"type": "bundle", "last": last}, data[start : start + PIECE]))
            return
        for sha256 in frame.get("blobs", ()):
            blob = self.definition.blobs.get(sha256)
            if blob is None:
                raise Broken(f"it asks for content {str(sha256)[:12]!r}, which is not part of this run")
            self.emit("uploading", {"bytes": blob.size})
            for piece in wire.pieces(blob):
                stream.write(piece)

    # Listening

    def talk(self, stream: Stream) -> None:
        """Say everything, then listen until END. Raises Broken, ProtocolError, TransportError."""
        stream.write(b"".join(self.opening()))
        decoder = wire.Decoder()
        heard = beaten = time.monotonic()
        deadline = heard + START
        noise = bytearray()
        greeted = False
        greeting = wire.GREETING + self.nonce.encode() + b"\n"
        while True:
            data = stream.read(0.2)
            now = time.monotonic()
            if data == b"":
                raise Broken(self.silence(stream, decoder, noise, greeted))
            if data:
                heard = now
                if not greeted:
                    noise += data
                    found = noise.find(greeting)
                    if found < 0:
                        if len(noise) > wire.NOISE + len(greeting):
                            raise Broken(f"it printed more than {wire.NOISE} bytes before the executor's greeting")
                        data = b""
                    else:
                        greeted = True
                        if found:
                            self.warn(f"its login shell prints: {bytes(noise[:found]).decode('utf-8', 'replace')[:200]}")
                        data = bytes(noise[found + len(greeting) :])
                for frame, _ in decoder.feed(data) if data else ():
                    if self.take(stream, frame):
                        return
            elif now - heard > DEAD and greeted:
                raise Broken(f"nothing came from it for {DEAD:.0f} s")
            elif not greeted and now > deadline:
                raise Broken(f"the executor did not answer within {START:.0f} s")
            if greeted and now - beaten > BEAT:
                stream.write(wire.encode({"type": "beat"}))
                beaten = now
            self.answer(stream)

    def silence(self, stream: Stream, decoder: wire.Decoder, noise: bytearray, greeted: bool) -> str:
        """Say what is known of why the host fell silent."""
        partial = decoder.partial()
        said = stream.stderr().decode("utf-8", "replace").strip()
        if not said and not greeted:
            said = bytes(noise).decode("utf-8", "replace").strip()
        status = stream.exit_status()
        how = f" (it ended with exit status {status})" if status is not None and status >= 0 else ""
        if status is not None and status < 0 or status in (137, 139):
            how = " (it was killed by a signal; perhaps out of memory)"
        text = f"the connection ended {partial}" if partial else "the executor ended without a word" if not greeted else (
            "the connection ended before the executor was done"
        )
        return text + how + (f": {said[-500:]}" if said else "")

    def answer(self, stream: Stream) -> None:
        """Pass on what the user decided meanwhile."""
        if self.cancel.is_set() and not self.told:
            self.told = True
            stream.write(wire.encode({"type": "cancel"}))
        if self.gate is not None and self.planned and not self.acting and self.gate.answer is not None:
            self.acting = True
            stream.write(wire.encode({"type": "go" if self.gate.answer else "no"}))

    def take(self, stream: Stream, frame: Json) -> bool:
        """Take in one frame; return True for the last. Raises Broken where it does not belong to this run."""
        kind = frame["type"]
        if kind == "need":
            self.supply(stream, frame)
        elif kind == "planned":
            self.place(frame)
        elif kind == "plan":
            self.planned = True
            self.acting = self.order.mode != "plan" and self.gate is None and self.expect is None
            self.report["owed"] = frame.get("owed", [])
            self.report["fingerprints"] = frame.get("fingerprints", {})
            self.emit("planned", {"layers": self.layers, "summary": summary([n for la in self.layers for n in la])})
            if self.gate is not None:
                self.waiting.set()
        elif kind == "action":
            self.action(frame)
        elif kind == "output":
            self.emit("output", {"node": self.known(frame["node"]), "stream": "out", "text": str(frame["text"])})
        elif kind == "finished":
            self.ended[self.known(frame["node"])] = str(frame["outcome"])
            self.emit("node-finished", {"name": frame["node"], "outcome": frame["outcome"]})
        elif kind == "layer":
            self.layer(frame)
        elif kind == "end":
            self.end(frame)
            return True
        elif kind not in ("hello", "beat"):
            raise Broken(f"it sent a frame of unknown type {kind[:40]!r}")
        return False

    def known(self, name: object) -> str:
        """Return the name of a node that is part of this run. Raises Broken for any other."""
        if not isinstance(name, str) or name not in self.index:
            raise Broken(f"it speaks of {str(name)[:80]!r}, which is not part of this run")
        return name

    def place(self, frame: Json) -> None:
        """Take in a part of the plan."""
        number = frame["layer"]
        if not isinstance(number, int) or not 0 <= number < len(self.definition.layers):
            raise Broken("it planned a layer that is not part of this run")
        sent = {node["provides"] for node in self.definition.layers[number]}
        while len(self.layers) <= number:
            self.layers.append([])
        for node in frame["nodes"]:
            if node["name"] not in sent or node["name"] in self.index:
                raise Broken(f"it planned {str(node['name'])[:80]!r}, which was not asked for")
            self.index[node["name"]] = (number, len(self.layers[number]))
            self.layers[number].append(node)

    def layer(self, frame: Json) -> None:
        """Take in what became of a layer."""
        number = frame["layer"]
        names = {node["name"] for node in frame["nodes"]}
        if not isinstance(number, int) or not 0 <= number < len(self.layers):
            raise Broken("it reports a layer that is not part of this run")
        if names != {node["name"] for node in self.layers[number]}:
            raise Broken("it reports a layer with other nodes than were sent")
        self.layers[number][:] = frame["nodes"]
        self.done.add(number)

    def action(self, frame: Json) -> None:
        """Take in that an action began or ended."""
        name = self.known(frame["node"])
        self.acting = True
        if frame["event"] == "started":
            if name not in self.begun:
                self.emit("node-started", {"name": name})
            self.begun.setdefault(name, []).append("unknown")
            self.emit("action-started", {"node": name, "op": frame["op"]})
        else:
            self.begun[name][-1:] = [frame["status"]]
            data = {"node": name, "op": frame["op"], "status": frame["status"], "reason": frame.get("reason")}
            self.emit("action-finished", data)

    def end(self, frame: Json) -> None:
        """Take in the END frame: only it makes a result."""
        self.report["status"] = frame["status"]
        for key in ("warnings", "shutdown", "holder", "differs", "facts", "declined", "halted"):
            if frame.get(key):
                self.report[key] = frame[key]
        if frame.get("error"):
            self.report["error"] = {"summary": frame["error"], "detail": frame.get("trace", ""), "hint": ""}
        if self.acting and self.order.mode != "plan" and frame["status"] in ("ok", "failed"):
            if frame.get("unchanged") or frame.get("declined"):
                return
            missing = set(range(len(self.layers))) - self.done
            if missing or frame.get("error"):
                self.account()

    def warn(self, text: str) -> None:
        """Pass on something the user should know."""
        self.report.setdefault("warnings", []).append(text)
        self.emit("warning", {"text": text})

    # When it breaks

    def broke(self, summary_text: str, detail: str = "", hint: str = "") -> None:
        """Say what is known after the link died: what was under way is unknown, never ok and never failed."""
        self.report["error"] = {"summary": summary_text, "detail": detail, "hint": hint}
        self.report["status"] = "unknown" if self.acting else "unreachable"
        if self.acting:
            self.account()

    def account(self) -> None:
        """Give every node of a layer that was not reported the outcome that is known of it."""
        for number, layer in enumerate(self.layers):
            if number not in self.done:
                for node in layer:
                    self.conclude(node)

    def conclude(self, node: Json) -> None:
        """Give one node its outcome after the link died."""
        name = node["name"]
        begun = self.begun.get(name, [])
        actions = node["actions"]
        for action, status in zip(actions, begun, strict=False):
            action["status"] = status
        for action in actions[len(begun) :]:
            action["status"] = "not-attempted"
        if name in self.ended:
            node["outcome"] = self.ended[name]
        elif begun:
            node["outcome"], node["reason"] = "unknown", "it was under way when the connection was lost"
        elif node["outcome"] in ("changed", "unknown"):
            node["outcome"], node["reason"] = "skipped", "not started: the connection was lost"


def _plain(header: Json, body: bytes = b"") -> bytes:
    """Return a frame that is not packed, for the bootstrap, which does not unpack."""
    import json

    text = json.dumps(header, separators=(",", ":")).encode()
    return wire.HEAD.pack(len(text), len(body), 0) + text + body


def _nodes(number: int, nodes: list[Json]) -> Iterator[bytes]:
    """Yield frames with these nodes of a layer, split where one would be too large."""
    try:
        yield wire.encode({"type": "nodes", "layer": number, "nodes": nodes})
    except wire.ProtocolError:
        if len(nodes) == 1:
            raise
        half = len(nodes) // 2
        yield from _nodes(number, nodes[:half])
        yield from _nodes(number, nodes[half:])
