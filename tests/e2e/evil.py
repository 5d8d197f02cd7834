"""What answers in the executor's place on a host that somebody else owns: `python evil.py FILE`; the file says how."""

from __future__ import annotations

import json
import os
import struct
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from statecfg.remote import wire

NAME = "file:/etc/asked"
ESCAPES = "\x1b]0;owned\x07\x1b[2J\u202e\x9b31m"


class Evil:
    """The conversation as the controller began it."""

    def __init__(self) -> None:
        self.decoder = wire.Decoder()
        self.frames: list[tuple[dict[str, Any], bytes]] = []
        self.nonce = self.take("hello")["nonce"]

    def take(self, kind: str) -> dict[str, Any]:
        """Wait for a frame of a type."""
        while True:
            for index, (header, _) in enumerate(self.frames):
                if header["type"] == kind:
                    del self.frames[: index + 1]
                    return header
            data = os.read(0, 65536)
            if not data:
                sys.exit(0)
            self.frames += self.decoder.feed(data)

    def raw(self, data: bytes) -> None:
        """Say bytes."""
        view = memoryview(data)
        while view:
            view = view[os.write(1, view[:65536]) :]

    def greet(self) -> None:
        """Pass for the executor."""
        self.raw(wire.GREETING + self.nonce.encode() + b"\n")
        self.say(type="hello", protocol=wire.PROTOCOL)

    def say(self, **header: Any) -> None:
        """Send a frame."""
        self.raw(wire.encode(header))

    def header(self, text: bytes) -> None:
        """Send a frame whose header is this text."""
        self.raw(struct.pack(">IIB", len(text), 0, 0) + text)

    def plan(self, **more: Any) -> None:
        """Plan what was asked."""
        self.take("begin")
        self.greet()
        self.say(type="planned", layer=0, nodes=[node(**more)])
        self.say(type="plan", waits=True)

    def end(self, status: str = "ok", **more: Any) -> None:
        """Say END."""
        self.say(type="end", status=status, **more)
        time.sleep(1)


def node(**more: Any) -> dict[str, Any]:
    """Return a node's report."""
    action = {"op": "write", "args": {"path": "/etc/asked"}, "status": "planned"}
    found = {"name": NAME, "type": "file", "outcome": "changed", "changes": [], "actions": [action], "position": ""}
    return {**found, **more}


def garbage(evil: Evil) -> None:
    evil.greet()
    evil.raw(os.urandom(4096))
    time.sleep(60)


def no_greeting(evil: Evil) -> None:
    while True:
        evil.raw(b"x" * 65536)


def wrong_nonce(evil: Evil) -> None:
    evil.nonce = "0" * 32
    evil.greet()
    evil.end()
    sys.exit(0)


def replay(evil: Evil) -> None:
    store = Path(sys.argv[1] + ".session")
    if store.exists():
        evil.raw(store.read_bytes())
        sys.exit(0)
    evil.take("begin")
    said = wire.GREETING + evil.nonce.encode() + b"\n" + wire.encode({"type": "hello", "protocol": wire.PROTOCOL})
    said += wire.encode({"type": "planned", "layer": 0, "nodes": [node(outcome="unchanged", actions=[])]})
    said += wire.encode({"type": "plan"}) + wire.encode({"type": "end", "status": "ok", "unchanged": True})
    store.write_bytes(said)
    evil.raw(said)
    time.sleep(1)


def cut_frame(evil: Evil) -> None:
    evil.greet()
    evil.raw(struct.pack(">IIB", 1000, 0, 0) + b'{"type":')


def huge_length(evil: Evil) -> None:
    evil.greet()
    evil.raw(struct.pack(">IIB", 2**32 - 1, 0, 0))
    time.sleep(60)


def zero_length(evil: Evil) -> None:
    evil.greet()
    evil.raw(struct.pack(">IIB", 0, 0, 0))
    time.sleep(60)


def bomb(evil: Evil) -> None:
    import zlib

    evil.greet()
    packed = zlib.compress(b'{"type":"beat","x":"' + b"a" * (200 << 20) + b'"}', 9)
    evil.raw(struct.pack(">IIB", 100, len(packed), 1) + packed)
    time.sleep(60)


def not_json(evil: Evil) -> None:
    evil.greet()
    evil.header(b"{'type': 'end'}")
    time.sleep(60)


def nan(evil: Evil) -> None:
    evil.greet()
    evil.header(b'{"type": "beat", "x": NaN}')
    time.sleep(60)


def deep(evil: Evil) -> None:
    evil.greet()
    evil.header(b'{"type": "beat", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}")
    time.sleep(60)


def long_number(evil: Evil) -> None:
    evil.greet()
    evil.header(b'{"type": "plan", "x": ' + b"9" * 100_000 + b"}")
    time.sleep(60)


def twice(evil: Evil) -> None:
    evil.greet()
    evil.header(b'{"type": "end", "status": "failed", "status": "ok"}')
    time.sleep(60)


def other_protocol(evil: Evil) -> None:
    evil.raw(wire.GREETING + evil.nonce.encode() + b"\n")
    evil.say(type="hello", protocol=99)
    time.sleep(60)


def unknown_type(evil: Evil) -> None:
    evil.greet()
    evil.say(type="exec", code="import os")
    time.sleep(60)


def not_asked_for(evil: Evil) -> None:
    evil.take("begin")
    evil.greet()
    evil.say(type="planned", layer=0, nodes=[node(name="file:/etc/other", outcome="unchanged")])
    time.sleep(60)


def speaks_of_others(evil: Evil) -> None:
    evil.plan()
    evil.take("go")
    evil.say(type="finished", node="file:/etc/other", outcome="changed")
    time.sleep(60)


def leaves_out(evil: Evil) -> None:
    evil.take("begin")
    evil.greet()
    evil.say(type="plan")
    evil.end()


def ends_at_once(evil: Evil) -> None:
    evil.greet()
    evil.end()


def reports_no_layer(evil: Evil) -> None:
    evil.plan()
    evil.take("go")
    evil.end()


def acts_unasked(evil: Evil) -> None:
    evil.take("begin")
    evil.greet()
    evil.say(type="planned", layer=0, nodes=[node()])
    evil.say(type="action", node=NAME, op="write", index=0, event="started")
    time.sleep(60)


def ends_what_never_began(evil: Evil) -> None:
    evil.plan()
    evil.take("go")
    evil.say(type="action", node=NAME, op="write", index=0, event="finished", status="ok")
    time.sleep(60)


def wrong_shapes(evil: Evil) -> None:
    evil.take("begin")
    evil.greet()
    evil.say(type="planned", layer=0, nodes=[{"name": NAME, "outcome": ["changed"], "changes": "none", "actions": {}}])
    time.sleep(60)


def missing_keys(evil: Evil) -> None:
    evil.greet()
    evil.say(type="planned")
    time.sleep(60)


def strange_status(evil: Evil) -> None:
    evil.plan()
    evil.take("go")
    evil.end("wonderful")


def wants_foreign_content(evil: Evil) -> None:
    evil.greet()
    evil.say(type="need", blobs=["0" * 64])
    time.sleep(60)


def wants_the_executor_for_ever(evil: Evil) -> None:
    evil.greet()
    while True:
        evil.say(type="need", bundle="0" * 64)
        evil.take("bundle")


def wants_nonsense(evil: Evil) -> None:
    evil.greet()
    evil.say(type="need", blobs={"a": 1})
    time.sleep(60)


def too_much(evil: Evil) -> None:
    evil.greet()
    while True:
        evil.header(json.dumps({"type": "beat", "x": "a" * (3 << 20)}).encode())


def beats_for_ever(evil: Evil) -> None:
    evil.greet()
    while True:
        evil.say(type="beat")
        time.sleep(0.2)


def beats_while_acting(evil: Evil) -> None:
    evil.plan()
    evil.take("go")
    evil.say(type="action", node=NAME, op="write", index=0, event="started")
    while True:
        evil.say(type="beat")
        time.sleep(0.2)


def drips(evil: Evil) -> None:
    evil.greet()
    evil.raw(struct.pack(">IIB", 1000, 0, 0))
    while True:
        evil.raw(b" ")
        time.sleep(0.2)


def silent(evil: Evil) -> None:
    evil.greet()
    time.sleep(60)


def escapes(evil: Evil) -> None:
    evil.plan(reason=ESCAPES, changes=[{"object": ESCAPES, "field": "content", "before": ESCAPES, "after": None}])
    evil.take("go")
    evil.say(type="layer", layer=0, nodes=[node(reason=ESCAPES, outcome="failed")])
    evil.end("failed", warnings=[ESCAPES], error=ESCAPES, trace=ESCAPES)


def says_ok_of_a_failure(evil: Evil) -> None:
    evil.plan(outcome="failed")
    evil.end("ok", unchanged=True)


if __name__ == "__main__":
    globals()[Path(sys.argv[1]).read_text()](Evil())
