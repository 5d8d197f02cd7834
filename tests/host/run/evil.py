"""A hostile program in place of the executor: `python evil.py FILE`; the file contains the name of a function below."""

from __future__ import annotations

import os
import struct
import sys
import time
import zlib
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from statecfg.remote.wire import frames as wire

NAME = "file:/etc/asked"
WIDE = "\U0001f600" + "a" * (3 << 20)
ESCAPES = "\x1b]0;owned\x07\x1b[2J\u202e\x9b31m"


class Evil:
    """The hostile side of a conversation with the controller."""

    def __init__(self) -> None:
        self.decoder = wire.Decoder()
        self.frames: list[tuple[dict[str, Any], bytes]] = []
        self.nonce = self.take("hello")["nonce"]

    def take(self, kind: str) -> dict[str, Any]:
        """Wait for a frame of the type, and return its header."""
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
        """Send raw bytes."""
        view = memoryview(data)
        while view:
            view = view[os.write(1, view[:65536]) :]

    def greet(self) -> None:
        """Send the greeting of a genuine executor."""
        self.raw(wire.GREETING + self.nonce.encode() + b"\n")
        self.say(type="hello", protocol=wire.PROTOCOL)

    def say(self, **header: Any) -> None:
        """Send a frame with this header."""
        self.raw(wire.encode(header))

    def header(self, text: bytes) -> None:
        """Send a frame with this text as its header."""
        self.raw(struct.pack(">IIB", len(text), 0, 0) + text)

    def packed(self, text: bytes) -> None:
        """Send a compressed frame with this text as its header."""
        packed = zlib.compress(text, 9)
        self.raw(struct.pack(">IIB", len(text), len(packed), 1) + packed)

    def plan(self, **more: Any) -> None:
        """Send a plan with the requested node."""
        self.take("begin")
        self.greet()
        self.say(type="planned", layer=0, nodes=[node(**more)])
        self.say(type="plan", waits=True)

    def end(self, status: str = "ok", **more: Any) -> None:
        """Send the end frame, and wait a second."""
        self.say(type="end", status=status, **more)
        time.sleep(1)


def node(**more: Any) -> dict[str, Any]:
    """Return the report of the requested node."""
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


def wants_two_things(evil: Evil) -> None:
    evil.greet()
    evil.say(type="need", blobs=["0" * 64], types=["file"])
    time.sleep(60)


def too_much(evil: Evil) -> None:
    evil.greet()
    for number in range(1000):
        evil.say(type="planned", part="removals", layer=0, nodes=[node(name=f"n{number}", reason="a" * (3 << 20))])


# Frames that are short when sent but need much memory.


def many_values(evil: Evil) -> None:
    evil.greet()
    for number in range(1000):
        text = b'{"type":"planned","layer":0,"nodes":[' + b"[]," * 1_300_000 + b"%d]}" % number
        evil.packed(text)
    time.sleep(60)


def wide_texts(evil: Evil) -> None:
    evil.greet()
    for number in range(1000):
        evil.say(type="planned", part="removals", layer=0, nodes=[node(name=f"n{number}", reason=WIDE)])
    time.sleep(60)


def small_maps(evil: Evil) -> None:
    evil.greet()
    action = {"op": "write", "args": {"x": [{"": 0}] * 20_000}, "status": "planned"}
    for number in range(1000):
        evil.say(type="planned", part="removals", layer=0, nodes=[node(name=f"n{number}", actions=[action])])
    time.sleep(60)


def heavy_reports(evil: Evil) -> None:
    evil.greet()
    action = {"op": "write", "args": {"x": [{"": 0}] * 10_000}, "status": "planned"}
    for number in range(1000):
        evil.say(type="planned", part="removals", layer=0, nodes=[node(name=f"n{number}", actions=[action])])
    time.sleep(60)


def large_facts(evil: Evil) -> None:
    evil.take("begin")
    evil.greet()
    evil.say(type="planned", layer=0, nodes=[node()])
    evil.say(type="plan", waits=True, facts={"hostname": "a" * (3 << 20)})
    time.sleep(60)


def facts_in_facts(evil: Evil) -> None:
    evil.take("begin")
    evil.greet()
    evil.say(type="planned", layer=0, nodes=[node()])
    deep: Any = 1
    for _ in range(120):
        deep = [deep]
    evil.say(type="plan", waits=True, facts={"hostname": deep})
    time.sleep(60)


# Output of hooks and settings of units that take too much memory or are nested too deeply.


def say_while_acting(evil: Evil, **frame: Any) -> None:
    evil.plan()
    evil.take("go")
    evil.say(**frame)
    time.sleep(60)


def fired(evil: Evil, **more: Any) -> None:
    say_while_acting(evil, type="fired", hook="h", event="post-create", name=NAME, where="host", status="ok", **more)


def nested(levels: int) -> Any:
    """Return maps that are nested this deeply."""
    return {"a": nested(levels - 1)} if levels else 1


def large_output_of_a_hook(evil: Evil) -> None:
    fired(evil, entry={"output": [{"": 0}] * 40_000})


def deep_output_of_a_hook(evil: Evil) -> None:
    fired(evil, entry=nested(110))


def large_metadata(evil: Evil) -> None:
    fired(evil, metadata={"a": [{"": 0}] * 40_000})


def deep_metadata(evil: Evil) -> None:
    fired(evil, metadata=nested(110))


def large_attributes(evil: Evil) -> None:
    resource = {"name": NAME, "type": "file", "state": "RESOLVED", "position": "", "tags": [], "playbook": "tests"}
    resource["attributes"] = {"content": [{"": 0}] * 40_000}
    say_while_acting(evil, type="hook", id=1, hook="h", event="post-create", seconds=1.0, resource=resource)


def unit_done(evil: Evil, changes: Any) -> None:
    say_while_acting(evil, type="unit-done", id=1, ok=True, ran=True, error="", seconds=1.0, changes=changes)


def large_settings(evil: Evil) -> None:
    unit_done(evil, {"relations": {"db:0": {"set": {str(number): "" for number in range(90_000)}}}})


def deep_settings(evil: Evil) -> None:
    unit_done(evil, {"relations": nested(110)})


# Frames with keys that the protocol does not have.


def unknown_key(evil: Evil) -> None:
    evil.greet()
    evil.say(type="beat", x=1)
    time.sleep(60)


def unknown_key_in_a_change(evil: Evil) -> None:
    evil.take("begin")
    evil.greet()
    change = {"object": "/etc/asked", "field": "mode", "before": None, "after": "0644", "html": "<b>"}
    evil.say(type="planned", layer=0, nodes=[node(changes=[change])])
    time.sleep(60)


# Frames that are invalid after the frames before them.


def layers_out_of_order(evil: Evil) -> None:
    evil.take("begin")
    evil.greet()
    evil.say(type="planned", part="left", layer=1, nodes=[])
    time.sleep(60)


def parts_out_of_order(evil: Evil) -> None:
    evil.take("begin")
    evil.greet()
    evil.say(type="planned", layer=0, nodes=[node()])
    evil.say(type="planned", part="removals", layer=0, nodes=[])
    time.sleep(60)


def reports_out_of_order(evil: Evil) -> None:
    evil.take("begin")
    evil.greet()
    gone = node(name="file:/etc/gone")
    evil.say(type="planned", part="removals", layer=0, nodes=[gone])
    evil.say(type="planned", layer=0, nodes=[node()])
    evil.say(type="plan", waits=True)
    evil.take("go")
    evil.say(type="layer", layer=0, nodes=[node(outcome="failed")])
    time.sleep(60)


def acts_out_of_order(evil: Evil) -> None:
    evil.take("begin")
    evil.greet()
    evil.say(type="planned", part="removals", layer=0, nodes=[node(name="file:/etc/gone")])
    evil.say(type="planned", layer=0, nodes=[node()])
    evil.say(type="plan", waits=True)
    evil.take("go")
    evil.say(type="action", node=NAME, op="write", index=0, event="started")
    time.sleep(60)


def finishes_without_an_action(evil: Evil) -> None:
    evil.plan()
    evil.take("go")
    evil.say(type="finished", node=NAME, outcome="changed")
    time.sleep(60)


def changes_without_finishing(evil: Evil) -> None:
    evil.plan()
    evil.take("go")
    evil.say(type="layer", layer=0, nodes=[node()])
    time.sleep(60)


def act(evil: Evil, outcome: str = "changed") -> None:
    """Report all planned actions as done."""
    evil.plan()
    evil.take("go")
    evil.say(type="action", node=NAME, op="write", index=0, event="started")
    evil.say(type="action", node=NAME, op="write", index=0, event="finished", status="ok")
    evil.say(type="finished", node=NAME, outcome=outcome)


def finishes_twice(evil: Evil) -> None:
    act(evil)
    evil.say(type="finished", node=NAME, outcome="failed")
    time.sleep(60)


def acts_after_finishing(evil: Evil) -> None:
    act(evil)
    evil.say(type="action", node=NAME, op="write", index=1, event="started")
    time.sleep(60)


def reports_another_outcome(evil: Evil) -> None:
    act(evil, "failed")
    evil.say(type="layer", layer=0, nodes=[node(outcome="unchanged")])
    time.sleep(60)


def ok_with_an_error(evil: Evil) -> None:
    act(evil)
    evil.say(type="layer", layer=0, nodes=[node()])
    evil.end("ok", error="No space left on device")


def fails_without_a_reason(evil: Evil) -> None:
    act(evil)
    evil.say(type="layer", layer=0, nodes=[node()])
    evil.end("failed")


def declines_itself(evil: Evil) -> None:
    evil.plan()
    evil.take("go")
    evil.end("ok", declined=True)


def unchanged_after_acting(evil: Evil) -> None:
    act(evil)
    evil.end("ok", unchanged=True)


def unchanged_with_a_plan(evil: Evil) -> None:
    evil.take("begin")
    evil.greet()
    evil.say(type="planned", layer=0, nodes=[node()])
    evil.say(type="plan")
    evil.end("ok", unchanged=True)


def locked_after_acting(evil: Evil) -> None:
    act(evil)
    evil.end("locked", holder={"who": "somebody"})


def refuses_after_acting(evil: Evil) -> None:
    act(evil)
    evil.end("refused", refusal="no")


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
    evil.plan(outcome="failed", actions=[])
    evil.take("go")
    evil.end("ok", unchanged=True)


if __name__ == "__main__":
    globals()[Path(sys.argv[1]).read_text()](Evil())
