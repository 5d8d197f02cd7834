"""The session with a host that reboots in the middle of its run, and with a host that only pretends to."""

from __future__ import annotations

from typing import Any

import pytest

from statecfg.graph.graph import Graph
from statecfg.resources import file, reboot
from statecfg.run.host import actions
from statecfg.run.host.absence import ABSENT, StillUp
from statecfg.run.host.broken import SUSPICIOUS, Broken
from statecfg.run.host.state import SessionState
from tests.each import each
from tests.unit.run.test_session import CODE, END, HELLO, Case, definition, sent

NODE = "reboot:kernel"
ASKS = {"type": "reboot", "node": NODE, "boot": "b1", "seconds": 60.0}
STARTS = {"type": "action", "node": NODE, "op": "reboot", "index": 0, "event": "started"}


def graphs() -> tuple[Graph, ...]:
    return reboot(NODE.partition(":")[2], always=True), file("/etc/motd", content="x\n", requires=[NODE])


class Reboots(Case):
    """A session whose host has permission to act."""

    def __init__(self) -> None:
        super().__init__(defined=definition(*graphs()))
        self.greet()
        planned = [{"type": "planned", "layer": number, "nodes": [self.node(number)]} for number in range(2)]
        self.hear(HELLO, *planned, {"type": "plan", "waits": True})
        self.session.go(True)

    def node(self, number: int, outcome: str = "changed", status: str = "planned") -> dict[str, Any]:
        (wire,) = self.defined.layers[number]
        action = {"op": "reboot" if number == 0 else "write", "args": {}, "status": status}
        fields = {"outcome": outcome, "changes": [], "actions": [action], "position": ""}
        return {"name": wire["provides"], "type": wire["type"], **fields}

    def away(self) -> None:
        """Let the host reboot, and connect again."""
        found = self.hear(STARTS, {"type": "keep", "text": "secret"}, {"type": "keep", "text": " rest"}, ASKS)
        assert found == [actions.AllowReboot()]
        assert sent(self.session.may_reboot()) == [{"type": "reboot"}]
        assert self.session.state is SessionState.REBOOTING


def test_the_session_continues_over_a_new_connection() -> None:
    case = Reboots()
    case.away()
    nonce = case.session.nonce
    headers = sent(b"".join(case.session.resume(CODE)))
    assert case.session.nonce != nonce and headers[0]["nonce"] == case.session.nonce
    assert [header["type"] for header in headers] == ["hello", "run", "nodes", "nodes", "keep", "keep", "begin"]
    assert [header["text"] for header in headers if header["type"] == "keep"] == ["secret", " rest"]
    assert headers[1]["run"] == "r1" and headers[1]["resume"] == {"boot": "b1"} and not headers[1]["asks"]
    case.greet()
    case.hear(HELLO, {"type": "booted", "boot": "b2"}, {"type": "resumed"})
    assert case.session.state is SessionState.ACTING
    ended = {**STARTS, "event": "finished", "status": "ok"}
    case.hear(ended, {"type": "finished", "node": NODE, "outcome": "changed"})
    case.hear({"type": "layer", "layer": 0, "nodes": [case.node(0, status="ok")]})
    write = {"type": "action", "node": "file:/etc/motd", "op": "write", "index": 0}
    case.hear({**write, "event": "started"}, {**write, "event": "finished", "status": "ok"})
    case.hear({"type": "finished", "node": "file:/etc/motd", "outcome": "changed"})
    layer = {"type": "layer", "layer": 1, "nodes": [case.node(1, status="ok")]}
    assert case.hear(layer, END) == [actions.ResultReceived()]
    case.session.report.conclude()
    report = case.session.report.data
    assert (report["status"], report["summary"]) == ("ok", {"changed": 2})
    assert "secret" not in repr(report)


def test_a_host_that_has_not_rebooted_yet_is_asked_again() -> None:
    case = Reboots()
    case.away()
    list(case.session.resume(CODE))
    case.greet()
    with pytest.raises(StillUp):
        case.hear(HELLO, {"type": "booted", "boot": "b1"})
    assert case.session.state is SessionState.RETURNING
    list(case.session.resume(CODE))
    case.greet()
    case.hear(HELLO, {"type": "booted", "boot": "b2"}, {"type": "resumed"})
    assert case.session.state is SessionState.ACTING


def test_a_host_that_can_not_reboot_goes_on() -> None:
    case = Reboots()
    case.away()
    case.hear({**STARTS, "event": "finished", "status": "error", "reason": "not today"})
    assert case.session.state is SessionState.ACTING


def test_a_host_that_does_not_come_back_is_unknown() -> None:
    case = Reboots()
    case.away()
    case.session.broke("the host did not come back", ABSENT)
    case.session.report.conclude()
    report = case.session.report.data
    assert report["status"] == "unknown" and report["error"]["hint"] == ABSENT
    assert report["summary"] == {"unknown": 1, "skipped": 1}


def test_heartbeats_keep_a_session_alive_while_the_host_shuts_down() -> None:
    case = Reboots()
    case.away()
    for _ in range(400):
        case.now += 10
        case.hear({"type": "beat"})
        case.session.check()


@each(
    "frames",
    [
        [ASKS],
        [STARTS, {**ASKS, "node": "file:/etc/motd"}],
        [STARTS, {**ASKS, "node": "reboot:other"}],
        [STARTS, {**ASKS, "seconds": 0.0}],
        [STARTS, {**ASKS, "seconds": 2e9}],
        [STARTS, {**ASKS, "boot": ""}],
        [{"type": "booted", "boot": "b2"}],
        [{"type": "resumed"}],
    ],
)
def test_a_host_that_only_pretends_to_reboot_is_suspicious(frames: list[dict[str, Any]]) -> None:
    with pytest.raises(Broken) as caught:
        Reboots().hear(*frames)
    assert caught.value.hint == SUSPICIOUS


def test_a_host_acts_only_after_it_continued() -> None:
    case = Reboots()
    case.away()
    list(case.session.resume(CODE))
    case.greet()
    with pytest.raises(Broken) as caught:
        case.hear(HELLO, {**STARTS, "event": "finished", "status": "ok"})
    assert caught.value.hint == SUSPICIOUS


def test_a_node_reboots_the_host_only_once() -> None:
    case = Reboots()
    case.away()
    list(case.session.resume(CODE))
    case.greet()
    case.hear(HELLO, {"type": "booted", "boot": "b2"}, {"type": "resumed"})
    with pytest.raises(Broken) as caught:
        case.hear(ASKS)
    assert caught.value.hint == SUSPICIOUS
