"""A replaced controller for the units of one host, over a real channel, and functions for AMP without our own code."""

from __future__ import annotations

import os
import select
import socket
import struct
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from statecfg.remote.graph.model import Blob
from statecfg.remote.machine.process import CHILDREN
from statecfg.remote.units.units import Units
from statecfg.remote.wire.channel import Channel
from statecfg.remote.wire.frames import Decoder, ProtocolError, encode, encode_value

Json = dict[str, Any]
PYTHON = sys.executable
# Python code for hooks that speak to the agent without our tools: ask(command, key=value, …) returns the answer.
SPEAK = f"""#!{PYTHON} -IS
import os, socket, struct, sys, time, json
def box(fields):
    found = b""
    for text in [part for pair in fields.items() for part in pair]:
        data = text.encode()
        found += struct.pack(">H", len(data)) + data
    return found + bytes(2)
def ask(command, **fields):
    line = socket.socket(socket.AF_UNIX)
    line.connect(os.environ["JUJU_AGENT_SOCKET"])
    line.sendall(box({{"client_id": os.environ["JUJU_CLIENT_ID"], **fields, "_ask": "1", "_command": command}}))
    stream, answer = line.makefile("rb"), {{}}
    while True:
        pair = []
        for _ in range(2):
            length = struct.unpack(">H", stream.read(2))[0]
            if not length and not pair:
                return answer
            pair.append(stream.read(length).decode())
        answer[pair[0]] = pair[1]
def put(**settings):
    return ask("relation_set", json_blob=json.dumps(settings))
"""


def box(fields: Mapping[str, str]) -> bytes:
    """Return an AMP box of text fields."""
    pieces = [part.encode() for pair in fields.items() for part in pair]
    return b"".join(struct.pack(">H", len(piece)) + piece for piece in pieces) + b"\0\0"


def read_box(connection: socket.socket) -> dict[str, str]:
    """Read the next box. Raise EOFError if the connection ends before the box is complete."""
    found: dict[str, str] = {}
    while True:
        key = _read(connection)
        if not key:
            return found
        found[key] = _read(connection)


def _read(connection: socket.socket) -> str:
    return _exactly(connection, struct.unpack(">H", _exactly(connection, 2))[0]).decode()


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            raise EOFError(data)
        data += piece
    return data


def ask(path: str, **fields: str) -> dict[str, str]:
    """Send a request to an agent over a new connection. Return the answer without its tag."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60)
        connection.connect(path)
        connection.sendall(box({**fields, "_ask": "1"}))
        found = read_box(connection)
    return {key: value for key, value in found.items() if key not in ("_answer", "_error")}


def step(**more: Any) -> Json:
    """Return a step as the controller sends it, for mysql/0 in its relation db:0 with wordpress/0 and wordpress/1."""
    return {
        "unit": "mysql/0",
        "service": "mysql",
        "charm": "mysql",
        "hook": "db-relation-changed",
        "hooks": [more.get("hook", "db-relation-changed")],
        "relation": {"id": "db:0", "number": 0, "name": "db", "remote": "wordpress/0", "broken": False}
        | {"members": ["wordpress/0", "wordpress/1"]},
        "relations": {"db:0": ["wordpress/0", "wordpress/1"], "db:1": ["wiki/0"]},
        "services": {"db:0": "wordpress", "db:1": "wiki"},
        "leader": True,
        "timeout": 20.0,
        "addresses": {"private-address": "10.0.0.1", "public-address": ""},
        "ports": [],
        "status": {"status": "active", "message": "up"},
        "goal": {"units": {}, "relations": {}},
        **more,
    }


class UnitHost:
    """The units of one host and their controller. The controller answers the questions of hooks from `nodes`.

    :param place: the directory for the host's state
    :param nodes: node → its values
    """

    def __init__(self, place: Path, nodes: Mapping[tuple[str, ...], Json] | None = None) -> None:
        self.place, self.nodes = place, dict(nodes or {})
        self.home = place / "projects" / "shop"
        self.frames: list[Json] = []
        self.arrived = threading.Condition()
        self.number = 0
        source, self.sink = os.pipe()
        self.source, sink = os.pipe()
        self.descriptors = [source, self.sink, self.source, sink]
        self.channel = Channel(source, sink, [])
        self.closing = False
        self.reader = threading.Thread(target=self._read)
        self.reader.start()
        self.stop: list[str] = []
        self.units: Units | None = None

    def begin(self, files: Mapping[str, tuple[int, bytes | str]], names: Sequence[str] = ("mysql/0",)) -> Units:
        """Start a run with these units and the files of their charm, and start the phase after the changes."""
        found = {name: [mode, _content(content)] for name, (mode, content) in files.items()}
        digest = Blob.of(repr(sorted(files.items()))).sha256
        charms = {name.partition("/")[0]: {"name": "mysql", "digest": digest, "files": found} for name in names}
        self.warnings: list[str] = []
        order = {"project": "shop", "mark": "m", "store": "store.db", "units": list(names), "charms": charms}
        self.units = Units(str(self.place), order, self.channel, self.warnings)
        assert self.units.files({}) == []  # the order contains all file contents
        self.phase = threading.Thread(target=self._phase, args=(self.units,))
        self.phase.start()
        return self.units

    def _phase(self, units: Units) -> None:
        try:
            self.stop.append(units.phase("after", True))
        except ProtocolError as problem:
            self.stop.append(f"lost: {problem}")

    def send(self, **frame: Any) -> None:
        os.write(self.sink, encode(frame))

    def start(self, given: Json) -> int:
        """Start a hook. Return its number."""
        self.number += 1
        self.send(type="unit", id=self.number, do="hook", step=given)
        return self.number

    def done(self, number: int, seconds: float = 60.0) -> Json:
        """Wait until a hook has ended. Return its result."""
        return self.frame(lambda each: each["type"] == "unit-done" and each["id"] == number, seconds)

    def run(self, given: Json) -> Json:
        """Run a hook until it ends. Return its result."""
        return self.done(self.start(given))

    def frame(self, wanted: Any, seconds: float = 60.0) -> Json:
        """Wait for a frame for which `wanted` is true. Return it."""
        deadline = time.monotonic() + seconds
        with self.arrived:
            while True:
                found = [each for each in self.frames if wanted(each)]
                if found:
                    return found[0]
                assert time.monotonic() < deadline, f"no such frame arrived; the last frames: {self.frames[-20:]}"
                self.arrived.wait(0.1)

    def log(self) -> list[tuple[int, str]]:
        """Return the level and the text of each log line."""
        return [(each["level"], each["text"]) for each in self.frames if each["type"] == "unit-log"]

    def of(self, kind: str) -> list[Json]:
        """Return the frames of a type."""
        return [each for each in self.frames if each["type"] == kind]

    def go(self, stop: str = "") -> str:
        """End the phase. Return its result."""
        self.send(type="units-go", stop=stop)
        self.phase.join(60)
        assert not self.phase.is_alive()
        return self.stop[-1]

    def _read(self) -> None:
        decoder = Decoder()
        while not self.closing:
            if not select.select([self.source], [], [], 0.05)[0]:
                continue
            for header, _ in decoder.feed(os.read(self.source, 65536)):
                if header["type"] == "unit-ask":
                    self._tell(header)
                with self.arrived:
                    self.frames.append(header)
                    self.arrived.notify_all()

    def _tell(self, asked: Json) -> None:
        values = self.nodes.get(tuple(asked["node"]))
        told: Json = {"values": values}
        if values is None:
            relation, _, unit = asked["node"]
            name = asked["node"][1].partition(":")[0]
            told = {"error": ["NoSuchUnit", f"The {relation} '{name}' has no unit state for '{unit}'"]}
        self.send(type="unit-told", id=asked["id"], ask=asked["ask"], **told)

    def close(self) -> None:
        """Stop everything, in any state."""
        self.channel.closing = True
        if self.units is not None:
            if self.phase.is_alive():
                CHILDREN.stop()
                self.send(type="units-go", stop="")
                self.phase.join(60)
            self.units.close()
        CHILDREN.stopping = False
        self.closing = True
        self.reader.join(20)
        # The channel's thread must end before its descriptors are closed, as other files get these numbers soon.
        self.send(type="beat")
        for thread in threading.enumerate():
            if thread is not threading.main_thread() and getattr(thread, "_target", None) == self.channel._listen:
                thread.join(5)
        for descriptor in self.descriptors:
            os.close(descriptor)


def _content(content: bytes | str) -> Any:
    return content if isinstance(content, str) else encode_value(Blob.of(content), 1 << 20)
