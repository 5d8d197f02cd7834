"""The decision whether and when the session of a host is repeated."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from statecfg.run.host import repeated
from statecfg.run.host.barrier import Barrier
from statecfg.run.host.events import Late
from statecfg.run.host.gate import Gate, Pace, Pass, Slots
from statecfg.run.host.request import HostRequest
from statecfg.run.host.state import SessionState
from statecfg.transport import WorkerLost
from tests.each import each
from tests.unit.run.test_session import HELLO, Case, done

UNITS = {"units": {"units": [{"name": "web/0"}]}}
PEER = "ssh-ed25519 SHA256:abc"


class Driven:
    """The driver of a host whose session was cut off in a state; the host answers each question in the same way."""

    def __init__(self, case: Case, answer: Mapping[str, Any] | None = None) -> None:
        self.session, self.emit = case.session, case.emit
        self.session.report.data["peer"] = PEER
        self.cancel = threading.Event()
        self.gate = Gate(1)
        self.gate_pass = Pass(Slots(1, 1, Pace(None, threading.Event())), self.gate, Barrier(None, ()))
        self.interrupted: str | None = None
        self.late: Callable[[], Late] = lambda: (case.defined, {}, None)
        self.answer, self.asked, self.runs = answer, list[HostRequest](), 0

    def ask(self, request: HostRequest) -> Mapping[str, Any]:
        assert self.answer is not None, "the host was asked"
        self.asked.append(request)
        return self.answer

    def run(self) -> None:
        """Run the session; lose the worker of the first one."""
        self.runs += 1
        if self.runs == 1:
            raise WorkerLost("web1", "worker 1 was lost", "")

    def repeated(self) -> bool:
        """Run the session to its end; return whether it was repeated."""
        try:
            assert not repeated.through(self, self.run)
        except WorkerLost:
            assert self.runs == 1
            return False
        assert self.runs == 1 and not self.gate_pass.has_slot
        assert repeated.ready(self)
        self.gate_pass.acquire()
        assert repeated.through(self, self.run)
        assert self.runs == 2
        return True


def acting(more: Mapping[str, Any] | None = None) -> Case:
    """Return a session whose host was told to apply its plan."""
    case = Case(**(more or {}))
    case.act()
    return case


@each(
    ("answer", "again"),
    [
        ({"status": "ok", "history": []}, True),
        ({"status": "ok", "history": [{"run": "r1", "status": "unknown"}]}, False),
        ({"status": "ok"}, False),
        # The former executor still holds the lock after 45 s.
        ({"status": "failed", "error": {"summary": "another run still holds the lock"}}, False),
        ({"status": "unreachable", "history": []}, False),
        ({"status": "refused"}, False),
    ],
)
def test_a_host_that_was_told_to_act_is_repeated_only_if_it_knows_nothing_of_the_run(
    answer: Mapping[str, Any], again: bool
) -> None:
    driven = Driven(acting(), answer)
    assert driven.repeated() is again
    (question,) = driven.asked
    assert question.order.mode == "history" and question.peer == PEER
    assert question.more == {"history": {"run": "r1", "limit": 1, "settled": 45.0}}
    assert not question.definition.layers


def test_a_host_whose_worker_is_lost_while_it_acts_is_unknown_if_it_is_not_repeated() -> None:
    driven = Driven(acting(), {"status": "failed"})
    with pytest.raises(WorkerLost) as lost:
        repeated.through(driven, driven.run)
    driven.session.broke(lost.value.summary, lost.value.hint)
    driven.session.report.conclude()
    assert driven.session.report.data["status"] == "unknown"


def test_a_host_on_which_an_action_has_started_is_not_asked() -> None:
    case = acting()
    case.hear(next(iter(done("file:/etc/motd"))))
    assert not Driven(case).repeated()


@each("state", [SessionState.ASKING, SessionState.REBOOTING, SessionState.RETURNING, SessionState.SERVING_UNITS])
def test_a_host_that_runs_hooks_or_reboots_is_not_asked(state: SessionState) -> None:
    case = acting()
    case.session.report.state = state
    assert not Driven(case).repeated()


def test_a_host_whose_units_may_run_hooks_is_not_asked() -> None:
    assert not Driven(acting(UNITS)).repeated()


def test_a_host_is_not_repeated_after_the_user_stopped_the_run() -> None:
    driven = Driven(acting())
    driven.cancel.set()
    assert not driven.repeated()


def test_a_host_that_was_not_told_to_act_is_repeated_without_a_question() -> None:
    case = Case()
    case.greet()
    case.hear(HELLO)
    assert case.session.state is SessionState.PLANNING
    assert Driven(case).repeated()


def test_the_repeated_session_waits_for_the_lock_of_the_former_executor() -> None:
    case = acting()
    limits = replace(case.session.request.order.limits, lock_timeout=5.0)
    case.session.request = replace(case.session.request, order=replace(case.session.request.order, limits=limits))
    driven = Driven(case, {"status": "ok", "history": []})
    before = driven.session
    assert driven.repeated()
    assert driven.session is not before
    request = driven.session.request
    assert (request.order.run, request.order.mode) == ("r1", "apply")
    assert request.order.limits.lock_timeout == repeated.STOPS
    assert driven.session.report.data["warnings"] == ["worker 1 was lost; the host's part of the run is repeated"]


def _asked() -> Driven:
    """Return the driver of a host that has planned and waits for the user's answer."""
    case = Case()
    case.session.request = replace(case.session.request, asks=True)
    case.greet()
    planned = {"type": "planned", "layer": 0, "nodes": case.nodes(), "fingerprints": {"file:/etc/motd": "f1"}}
    case.hear(HELLO, planned, {"type": "plan", "waits": True})
    assert case.session.state is SessionState.WAITING
    return Driven(case)


def test_a_host_without_a_connection_continues_after_the_answer_with_the_plan_that_was_shown() -> None:
    driven, shown = _asked(), {"file:/etc/motd": "f1"}

    def disconnect() -> None:
        driven.runs += 1
        if driven.runs == 1:
            raise repeated.Disconnected

    assert not repeated.through(driven, disconnect)
    assert not repeated.ready(driven)
    driven.gate.answer = True
    assert repeated.ready(driven)
    assert repeated.through(driven, disconnect)
    request = driven.session.request
    assert request.expect == shown
    assert request.peer == PEER, "another host at this address is refused"
    assert "warnings" not in driven.session.report.data


def test_a_host_without_a_connection_is_not_contacted_after_the_user_said_no() -> None:
    driven = _asked()
    driven.interrupted, driven.gate.answer = "", False
    assert repeated.ready(driven)
    assert repeated.through(driven, driven.run)
    assert driven.runs == 0
    data = driven.session.report.data
    assert (data["status"], data["declined"]) == ("ok", True)
