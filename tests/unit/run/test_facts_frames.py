"""The session with a host that sends facts before it gets its definition. The tests only exchange bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from statecfg.playbook.compile import Definition
from statecfg.playbook.inventory import Host
from statecfg.remote.wire import frames as wire
from statecfg.resources import file, group
from statecfg.run import bundle
from statecfg.run.host import actions
from statecfg.run.host.broken import Broken
from statecfg.run.host.code import needed
from statecfg.run.host.request import CommonRequest, HostRequest
from statecfg.run.host.session import HostSession
from statecfg.run.host.state import SessionState
from tests.each import each
from tests.unit.run.no_files import no_files
from tests.unit.run.test_session import END, HELLO, definition, sent

ASKED = {"names": ["cpus", "own.rack"], "own": {"rack": ["facts/rack.py", "def fact(): return 1\n"]}}
VALUES = {"cpus": 2, "own.rack": "r7"}
TOLD = {"type": "facts", "values": VALUES, "failed": {}}
PLAN = {"type": "plan", "waits": False}


class Case:
    """A session with a host that waits for facts."""

    def __init__(self, mode: str = "plan") -> None:
        known = definition(file("/etc/certain", content="x"))
        sent_bundle = bundle.build(known.types)
        common = CommonRequest("r1", mode, "me@here")
        first = bundle.first_parts(mode, True)
        request = HostRequest(Host("web1"), known, "web.yml", sent_bundle, common, facts=ASKED, first_parts=first)
        self.now = 100.0
        self.session = HostSession(request, lambda name, data: None, clock=lambda: self.now)
        self.opening = sent(self.session.opening())
        self.begun = self.session.begin(known, {"prune": True}, None)
        list(self.session.receive(wire.GREETING + self.session.nonce.encode() + b"\n"))

    def hear(self, *frames: dict[str, Any]) -> list[actions.Action]:
        return list(self.session.receive(b"".join(wire.encode(frame) for frame in frames)))

    def define(self, whole: Definition, *differs: str) -> list[dict[str, Any]]:
        request = self.session.request
        return sent(self.session.define(whole, differs, needed(whole, request.more, request.bundle)))


@pytest.fixture
def case() -> Iterator[Case]:
    yield Case()


def test_the_opening_asks_for_facts_and_sends_no_nodes(case: Case) -> None:
    assert [header["type"] for header in case.opening] == ["hello", "run"]
    assert case.opening[1]["facts"] == ASKED
    assert case.opening[1]["parts"] == [part.sha256 for part in bundle.first_parts("plan", True)]
    assert case.begun == b""


def test_the_definition_follows_the_facts_with_new_node_types(case: Case) -> None:
    assert case.hear(HELLO, TOLD) == [actions.TellFacts(VALUES, {})]
    assert case.session.state is SessionState.TOLD_FACTS
    headers = case.define(definition(file("/etc/a", content="x"), group("web")), "fact cpus: changed")
    assert [header["type"] for header in headers] == ["nodes", "begin"]
    begin = headers[1]
    assert set(begin["types"]) == {"file", "group"}
    assert (begin["prune"], begin["differs"], begin["secrets"]) == (True, ["fact cpus: changed"], {})
    part, _ = begin["parts"]  # the node types, and the check that the login stays possible
    assert part in case.session.supplies.parts
    assert case.session.state is SessionState.PLANNING


def test_a_session_that_sends_new_node_types_accesses_no_files(case: Case) -> None:
    whole = definition(file("/etc/a", content="x", mode="u=rw"), group("web"))
    request = case.session.request
    code, orphans = needed(whole, request.more, request.bundle), bundle.modules_of(["user"])
    node = {"type": "file", "outcome": "unchanged", "changes": [], "actions": [], "position": ""}
    nodes = [{**node, "name": "file:/etc/a"}, {**node, "name": "group:web", "type": "group"}]
    with no_files():
        assert case.hear(HELLO, TOLD) == [actions.TellFacts(VALUES, {})]
        _, begin = sent(case.session.define(whole, [], code))
        assert len(begin["parts"]) == 3  # the node types, the symbolic mode, and the check of the login
        for part in begin["parts"]:
            (send,) = case.hear({"type": "need", "bundle": part})
            assert isinstance(send, actions.Send) and list(send.pieces)
        assert case.hear({"type": "need", "types": ["user"]}) == [actions.FindTypes(("user",))]
        (modules,) = sent(case.session.supply_types(*orphans))
        assert set(modules["types"]) == {"user"}
        planned = {"type": "planned", "layer": 0, "nodes": nodes}
        assert case.hear(planned, PLAN, END) == [actions.PlanReceived(), actions.ResultReceived()]


def test_no_part_follows_if_the_host_has_all_node_types(case: Case) -> None:
    case.hear(HELLO, TOLD)
    assert len(case.define(definition(file("/etc/a", content="x")))[-1]["parts"]) == 1  # the check of the login


def test_a_host_can_be_asked_for_more_facts(case: Case) -> None:
    case.hear(HELLO, TOLD)
    assert sent(case.session.ask({"names": ["kernel"], "own": {}})) == [
        {"type": "facts", "names": ["kernel"], "own": {}}
    ]
    more = {**TOLD, "values": {"kernel": "6.1"}}
    assert case.hear(more) == [actions.TellFacts({"kernel": "6.1"}, {})]


def test_the_plan_of_the_definition_is_accepted(case: Case) -> None:
    case.hear(HELLO, TOLD)
    whole = definition(file("/etc/a", content="x"))
    case.define(whole)
    node = {"name": "file:/etc/a", "type": "file", "outcome": "unchanged", "changes": [], "actions": [], "position": ""}
    case.hear({"type": "planned", "layer": 0, "nodes": [node]}, PLAN, END)
    assert case.session.report.data["status"] == "ok"
    assert [one["name"] for layer in case.session.report.data["layers"] for one in layer] == ["file:/etc/a"]


def test_waiting_for_other_hosts_is_progress(case: Case) -> None:
    case.hear(HELLO, TOLD)
    for _ in range(400):
        case.now += 10
        case.hear({"type": "beat"})
        case.session.check()


@each(
    "frame",
    [
        {**TOLD, "values": {"cpus": 2}},
        {**TOLD, "values": {**VALUES, "kernel": "x"}},
        {**TOLD, "values": {**VALUES, "cpus": "2"}},
        {**TOLD, "more": 1},
        PLAN,
        {"type": "planned", "layer": 0, "nodes": []},
        END,
    ],
)
def test_a_host_that_sends_something_else_is_broken(case: Case, frame: dict[str, Any]) -> None:
    with pytest.raises(Broken):
        case.hear(HELLO, frame)


def test_facts_are_accepted_only_once_and_only_if_requested(case: Case) -> None:
    case.hear(HELLO, TOLD)
    with pytest.raises(Broken):
        case.hear(TOLD)
    plain = HostSession(
        HostRequest(
            Host("web1"), definition(), "web.yml", bundle.build(["file"]), CommonRequest("r1", "plan", "me@here")
        ),
        lambda name, data: None,
    )
    list(plain.receive(wire.GREETING + plain.nonce.encode() + b"\n"))
    with pytest.raises(Broken):
        list(plain.receive(wire.encode(HELLO) + wire.encode(TOLD)))


def test_a_failed_fact_is_passed_on_with_its_reason(case: Case) -> None:
    failed = {"own.rack": "facts/rack.py:1: KeyError: 'x'"}
    told = case.hear(HELLO, {"type": "facts", "values": {"cpus": 2}, "failed": failed})
    assert told == [actions.TellFacts({"cpus": 2}, failed)]
