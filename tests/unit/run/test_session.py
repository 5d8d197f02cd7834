"""The session with one host. The tests only exchange bytes with it, without connections, processes or threads."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from statecfg.graph.graph import Graph, merge_graphs
from statecfg.playbook.compile import Definition, WireContext, compile_graph
from statecfg.playbook.inventory import Host
from statecfg.playbook.plays import HostContext
from statecfg.remote.wire import frames as wire
from statecfg.resources import command, file
from statecfg.run.bundle import Bundle
from statecfg.run.host import actions, deadlines
from statecfg.run.host.broken import SUSPICIOUS, Broken
from statecfg.run.host.code import Code
from statecfg.run.host.request import CommonRequest, HostRequest
from statecfg.run.host.session import AGAIN, HostSession
from statecfg.run.host.state import SessionState
from tests.each import each

BUNDLE = Bundle(random.Random(5).randbytes(320_000), "5" * 64, {})  # it can't be compressed
HELLO = {"type": "hello", "protocol": wire.PROTOCOL, "pid": 7, "python": "3.11.2"}
END = {"type": "end", "status": "ok"}
CODE = Code(BUNDLE, {})
HOOK = {"name": "guard", "where": "controller"}


def definition(*graphs: Graph) -> Definition:
    return compile_graph(merge_graphs(*graphs or (file("/etc/motd", content="x\n"),)), WireContext(HostContext("web1")))


class Case:
    """A session, its clock, and the events that it emitted."""

    def __init__(self, mode: str = "apply", defined: Definition | None = None, **more: Any) -> None:
        self.now = 100.0
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.defined = defined or definition()
        common = CommonRequest("r1", mode, "me@here")
        request = HostRequest(Host("web1"), self.defined, "web.yml", BUNDLE, common, more=more)
        self.session = HostSession(request, self.emit, clock=lambda: self.now)
        self.session.opening()
        self.session.begin(self.defined, more, CODE)

    def emit(self, name: str, data: dict[str, Any]) -> None:
        self.events.append((name, data))

    def hear(self, *frames: dict[str, Any]) -> list[actions.Action]:
        """Send frames of the host to the session. Return the actions that the session requests."""
        return list(self.session.receive(b"".join(wire.encode(frame) for frame in frames)))

    def greet(self, noise: bytes = b"") -> None:
        list(self.session.receive(noise + wire.GREETING + self.session.nonce.encode() + b"\n"))

    def nodes(self, outcome: str = "changed") -> list[dict[str, Any]]:
        (layer,) = self.defined.layers
        status = "planned" if outcome == "changed" else "ok"
        action = {"op": "write", "args": {}, "status": status}
        return [
            {
                "name": node["provides"],
                "type": node["type"],
                "outcome": outcome,
                "changes": [],
                "actions": [action],
                "position": "",
            }
            for node in layer
        ]

    def plan(self, waits: bool = True, outcome: str = "changed") -> list[actions.Action]:
        """Greet and plan. If `waits` is true, the host waits for permission."""
        self.greet()
        planned = {"type": "planned", "layer": 0, "nodes": self.nodes(outcome)}
        return self.hear(HELLO, planned, {"type": "plan", "waits": waits})

    def act(self) -> None:
        """Plan, and give the host permission to apply the plan."""
        self.plan()
        self.session.go(True)

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.session.check()


def sent(data: bytes | Iterable[bytes]) -> list[dict[str, Any]]:
    """Return the headers of frames."""
    joined = data if isinstance(data, bytes) else b"".join(data)
    return [header for header, _ in wire.Decoder().feed(joined)]


def done(name: str) -> Iterator[dict[str, Any]]:
    """Yield the frames of a node that one action changes."""
    action = {"type": "action", "node": name, "op": "write", "index": 0}
    yield {**action, "event": "started"}
    yield {**action, "event": "finished", "status": "ok"}
    yield {"type": "finished", "node": name, "outcome": "changed"}


def test_opening_sends_everything_that_needs_no_answer() -> None:
    case = Case()
    headers = sent(case.session.opening())
    assert [header["type"] for header in headers] == ["hello", "run", "nodes"]
    assert headers[0] == {"type": "hello", "nonce": case.session.nonce, "bundle": BUNDLE.sha256}
    begin = {"prune": True, "type": "begin", "parts": []}
    assert sent(case.session.begin(case.defined, {"prune": True}, CODE)) == [begin]


def test_apply_goes_through_all_states_until_finished() -> None:
    case = Case()
    assert case.session.state is SessionState.CONNECTING
    case.greet()
    assert case.hear(HELLO) == [] and case.session.state is SessionState.PLANNING
    assert case.hear({"type": "planned", "layer": 0, "nodes": case.nodes()}, {"type": "plan", "waits": True}) == [
        actions.PlanReceived()
    ]
    assert case.session.state is SessionState.WAITING
    assert sent(case.session.go(True)) == [{"type": "go"}]
    assert case.session.state is SessionState.ACTING
    layer = {"type": "layer", "layer": 0, "nodes": case.nodes()}
    assert case.hear(*done("file:/etc/motd"), layer, END) == [actions.ResultReceived()]
    case.session.report.conclude()
    assert case.session.state is SessionState.FINISHED
    assert case.session.report.data["status"] == "ok"
    assert case.session.report.data["summary"] == {"changed": 1}
    assert [name for name, _ in case.events] == [
        "planned", "node-started", "action-started", "action-finished", "node-finished",
    ]  # fmt: skip


def test_session_accepts_bytes_one_by_one() -> None:
    case = Case("plan")
    data = b"motd\n" + wire.GREETING + case.session.nonce.encode() + b"\n"
    data += b"".join(
        wire.encode(frame)
        for frame in (HELLO, {"type": "planned", "layer": 0, "nodes": case.nodes()}, {"type": "plan"}, END)
    )
    asked = [action for at in range(len(data)) for action in case.session.receive(data[at : at + 1])]
    assert asked == [actions.PlanReceived(), actions.ResultReceived()]
    assert case.session.report.data["warnings"] == [
        "its login shell prints 5 bytes in a session without a terminal: motd"
    ]


def test_declined_plan_is_not_applied() -> None:
    case = Case()
    case.plan()
    assert sent(case.session.go(False)) == [{"type": "no"}]
    assert case.session.state is SessionState.DECLINED
    case.hear({**END, "declined": True})
    case.session.report.conclude()
    report = case.session.report.data
    assert (report["status"], report["declined"], report["summary"]) == ("ok", True, {"skipped": 1})


def test_plan_without_changes_does_not_wait() -> None:
    case = Case()
    case.plan(waits=False, outcome="unchanged")
    assert case.session.state is SessionState.PLANNED


@pytest.mark.parametrize("mode", ["plan", "verify"])
def test_plan_and_verify_neither_wait_nor_act(mode: str) -> None:
    case = Case(mode)
    case.plan(waits=True)
    assert case.session.state is SessionState.PLANNED
    with pytest.raises(Broken, match="acts without permission"):
        case.hear(*done("file:/etc/motd"))


@each("state", ["CONNECTING", "PLANNING", "WAITING", "DECLINED", "PLANNED"])
def test_host_may_act_only_with_permission(state: str) -> None:
    case = Case()
    case.plan()
    case.session.report.state = SessionState[state]
    with pytest.raises(Broken, match="acts without permission") as broken:
        case.hear(*done("file:/etc/motd"))
    assert broken.value.hint == SUSPICIOUS


def test_executor_is_sent_only_once() -> None:
    case = Case()
    case.greet()
    (send,) = case.hear({"type": "need", "bundle": BUNDLE.sha256})
    assert isinstance(send, actions.Send)
    pieces = list(send.pieces)
    assert [header["last"] for header in sent(pieces)] == [False, False, True]
    with pytest.raises(Broken, match="the executor twice"):
        case.hear({"type": "need", "bundle": BUNDLE.sha256})


def test_node_types_of_orphans_are_found_once_by_the_driver() -> None:
    case = Case()
    case.greet()
    need = {"type": "need", "types": ["user", "gone"]}
    assert case.hear(need) == [actions.FindTypes(("user", "gone"))]
    module = (False, "resources/user.py", "")
    assert sent(case.session.supply_types({"user": module}, {"user": "user"})) == [
        {"type": "modules", "modules": {"user": [*module]}, "types": {"user": "user"}}
    ]
    with pytest.raises(Broken, match="node types that it can't need"):
        case.hear(need)


def test_progress_of_content_is_measured_with_the_clock_of_the_session() -> None:
    case = Case(defined=definition(file("/srv/data", content=random.Random(5).randbytes(5 << 20))))
    (sha256,) = case.defined.blobs
    case.greet()
    (send,) = case.hear({"type": "need", "blobs": [sha256]})
    assert isinstance(send, actions.Send)
    for _ in send.pieces:
        case.now += 2
    seconds = [data["seconds"] for name, data in case.events if name == "uploading" and "seconds" in data]
    assert seconds and seconds == [2.0 * (number + 1) for number in range(len(seconds))]


def test_content_is_sent_once_and_only_if_part_of_the_run() -> None:
    case = Case(defined=definition(file("/etc/motd", content="x" * 10_000)))
    (sha256,) = case.defined.blobs
    case.greet()
    (send,) = case.hear({"type": "need", "blobs": [sha256]})
    assert isinstance(send, actions.Send)
    assert sent(send.pieces) == [{"type": "blob", "sha256": sha256, "last": True}]
    for digest, why in ((sha256, "was sent already"), ("0" * 64, "is not part of this run")):
        with pytest.raises(Broken, match=why):
            case.hear({"type": "need", "blobs": [digest]})


def ask(name: str = "guard", node: str = "file:/etc/motd") -> dict[str, Any]:
    resource = {"name": node, "type": "file", "state": "", "position": "", "attributes": {}, "tags": [], "playbook": ""}
    return {"type": "hook", "id": 3, "hook": name, "event": "post-create", "seconds": 30, "resource": resource}


def test_hosts_of_a_run_get_the_same_frames_with_content() -> None:
    """So statecfg reads and compresses content once for all of them."""
    defined = definition(file("/etc/big", content="x" * 100_000))
    (sha256,) = defined.blobs
    common = CommonRequest("r1", "apply", "me@here")
    got = []
    for name in ("web1", "web2"):
        session = HostSession(HostRequest(Host(name), defined, "web.yml", BUNDLE, common), lambda name, data: None)
        session.begin(defined, {}, CODE)
        list(session.receive(wire.GREETING + session.nonce.encode() + b"\n" + wire.encode(HELLO)))
        (send,) = session.receive(wire.encode({"type": "need", "blobs": [sha256]}))
        assert isinstance(send, actions.Send)
        got.append(list(send.pieces))
    assert len(got[0]) == len(got[1]) > 0
    assert all(one is other for one, other in zip(*got, strict=True))


def test_session_answers_a_hook_that_the_host_requests() -> None:
    case = Case(hooks=[HOOK])
    case.act()
    (call,) = case.hear(ask())
    assert isinstance(call, actions.CallHook) and call.frame.hook == "guard"
    assert case.session.state is SessionState.ASKING
    case.wait(10)
    assert sent(case.session.hooked(3, {"ok": True})) == [{"ok": True, "type": "hooked", "id": 3}]
    assert case.session.state is SessionState.ACTING
    assert case.events[-1] == (
        "hook-started",
        {"hook": "guard", "event": "post-create", "name": "file:/etc/motd"},
    )


@pytest.mark.parametrize("frame", [ask("other"), ask(node="file:/etc/passwd")])
def test_host_may_request_only_hooks_and_resources_of_the_run(frame: dict[str, Any]) -> None:
    case = Case(hooks=[HOOK])
    case.act()
    with pytest.raises(Broken, match=r"hook that is not part|resource that is not part of this run"):
        case.hear(frame)


def test_host_may_request_only_one_answer_at_a_time() -> None:
    case = Case(hooks=[HOOK])
    case.act()
    case.hear(ask())
    with pytest.raises(Broken, match="not part of this run"):
        case.hear(ask())
    with pytest.raises(Broken, match="login that statecfg can't try"):
        case.hear({"type": "login"})


def test_login_is_tried_and_reported() -> None:
    case = Case()
    case.act()
    assert case.hear({"type": "login"}) == [actions.TryLogin()]
    assert sent(case.session.logged_in("no route")) == [{"type": "login", "error": "no route"}]
    assert case.session.report.data["login"] == {"ok": False, "error": "no route"}


def test_session_serves_units_until_the_host_may_continue() -> None:
    case = Case(units={"units": {"web/0": {}}})
    case.act()
    (told,) = case.hear({"type": "units", "phase": "before", "ok": True})
    assert told == actions.TellUnits({"type": "units", "phase": "before", "ok": True}, waits_for_others=False)
    assert case.session.state is SessionState.SERVING_UNITS
    order = {"type": "unit", "do": "hook", "id": 1, "step": {"unit": "web/0", "hook": "start"}}
    assert sent(case.session.tell_units(order)) == [order]
    ended = {"type": "unit-done", "id": 1, "ok": True, "ran": True, "error": "", "seconds": 1.0, "changes": {}}
    case.hear(ended)
    assert [data["status"] for name, data in case.events if name == "unit-hook"] == ["started", "ok"]
    case.session.tell_units({"type": "units-go"})
    assert case.session.state is SessionState.ACTING
    (last,) = case.hear({"type": "units", "phase": "after", "ok": True})
    assert isinstance(last, actions.TellUnits) and last.waits_for_others


def test_host_without_units_may_not_send_unit_frames() -> None:
    case = Case()
    case.act()
    with pytest.raises(Broken, match="units that are not part of this run"):
        case.hear({"type": "units", "phase": "before", "ok": True})


def test_cancel_is_sent_only_once() -> None:
    case = Case()
    assert sent(case.session.cancel()) == [{"type": "cancel"}]
    assert case.session.cancel() == b""


def test_executor_must_begin_in_time() -> None:
    case = Case()
    with pytest.raises(Broken, match="did not start within 60 s"):
        case.wait(deadlines.START + 1)


def test_session_gives_up_on_a_silent_host() -> None:
    case = Case()
    case.plan()
    case.wait(deadlines.DEAD - 1)
    case.hear({"type": "beat"})
    case.wait(deadlines.DEAD - 1)
    with pytest.raises(Broken, match="the host sent nothing for 15 s"):
        case.wait(2)


@pytest.mark.parametrize(("acting", "doing"), [(False, "its plan"), (True, "its apply")])
def test_heartbeats_do_not_count_as_progress(acting: bool, doing: str) -> None:
    case = Case()
    case.act() if acting else (case.greet(), case.hear(HELLO))
    with pytest.raises(Broken, match=f"it is alive, but {doing} made no progress for 1800 s"):
        for _ in range(200):
            case.hear({"type": "beat"})
            case.wait(10)


def test_host_that_waits_for_us_has_no_time_limit() -> None:
    case = Case()
    case.plan()
    for _ in range(400):
        case.hear({"type": "beat"})
        case.wait(10)
    assert case.session.state is SessionState.WAITING


def test_frame_must_end_in_time() -> None:
    case = Case()
    case.greet()
    case.hear(HELLO)
    half = wire.encode({"type": "beat"})[:-3]
    list(case.session.receive(half))
    with pytest.raises(Broken, match="a message did not arrive within 60 s"):
        for _ in range(100):
            list(case.session.receive(b""))
            case.wait(1)


def test_connection_lost_while_acting_leaves_unknown_outcomes() -> None:
    case = Case()
    case.act()
    case.hear(next(done("file:/etc/motd")))
    case.session.broke("the connection broke", "")
    case.session.report.conclude()
    report = case.session.report.data
    assert (report["status"], report["summary"]) == ("unknown", {"unknown": 1})
    run = case.session.request.order.run
    assert report["error"]["hint"] == f"{AGAIN}\nTo see what it did: statecfg run-history web1 --run {run}"


def test_a_bug_after_the_end_leaves_the_outcomes_of_the_host() -> None:
    case = Case()
    case.act()
    case.hear(*done("file:/etc/motd"), {"type": "layer", "layer": 0, "nodes": case.nodes()}, END)
    case.session.report.conclude()
    case.session.failed(ValueError("a bug"))
    report = case.session.report.data
    assert report["status"] == "failed"
    assert "a bug" in report["error"]["summary"]
    assert [node["outcome"] for layer in report["layers"] for node in layer] == ["changed"]


def test_connection_lost_before_acting_changes_nothing() -> None:
    case = Case()
    case.plan()
    case.session.broke("the connection broke", "")
    case.session.report.conclude()
    report = case.session.report.data
    assert (report["status"], report["summary"]) == ("unreachable", {"skipped": 1})
    assert report["error"]["detail"] == "Nothing was changed."


@each(
    ("status", "errors", "text"),
    [
        (96, "no python3", "no python3"),
        (1, "", "the executor ended without an answer (it ended with exit status 1)"),
        (-9, "", "the executor ended without an answer (it was killed by signal 9; perhaps the host is out of memory)"),
        (None, "sh: no", "the executor ended without an answer: sh: no"),
    ],
)
def test_silent_end_of_a_host_is_explained_by_its_status(status: int | None, errors: str, text: str) -> None:
    assert Case().session.silence(status, errors).summary == text


def test_connection_that_ends_inside_a_frame_is_reported() -> None:
    case = Case()
    case.greet()
    list(case.session.receive(wire.encode(HELLO)[:-2]))
    assert "the connection ended inside a frame" in case.session.silence(None, "").summary


def test_the_controller_waits_for_the_longest_timeout_and_the_longest_pause_before_a_repetition() -> None:
    graphs = [
        command("one", argv=["true"], timeout=1000),
        command("two", argv=["true"], timeout=20, retries=2, retry_delay=[5, 3000]),
        command("three", argv=["true"], timeout=30, retries=2, retry_delay=7),
    ]
    request = Case(defined=definition(*graphs)).session.request
    assert request.patience - request.order.limits.patience == 4000
