"""Repeats the session of a host whose worker was lost, if certainly no action has started there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from statecfg.playbook.compile import Definition
from statecfg.remote.graph.names import HostStatus, Mode
from statecfg.run.awaited import Refused
from statecfg.run.bundle import build, first_parts
from statecfg.run.host.broken import Broken
from statecfg.run.host.code import needed
from statecfg.run.host.events import Late
from statecfg.run.host.gate import Pass
from statecfg.run.host.report import Emit
from statecfg.run.host.request import Request
from statecfg.run.host.session import HostSession
from statecfg.run.host.state import State
from statecfg.run.job import Job
from statecfg.transport import WorkerLost

STOPS = 45.0  # seconds in which an executor that lost its connection ends its action, and releases the host's lock
POLL = 0.1  # seconds between two looks at what a host waits for


class Driver(Protocol):
    """The driver of one host."""

    session: HostSession
    emit: Emit
    late: Callable[[], Late]
    cancel: threading.Event
    gate_pass: Pass

    def ask(self, request: Request) -> Mapping[str, Any]:
        """Return the report of another request to the host."""


def through(driver: Driver, session: Callable[[], None]) -> None:
    """Run a session to its end. If its worker is lost, repeat it through another worker, if that is safe.

    It is safe before the host was told to apply its plan. Afterwards, the host decides: it is safe if the former
    executor has released the host's lock, and the host knows nothing of this run.

    :param session: connects and runs the driver's session
    :raises Exception: any error of the session
    """
    while True:
        try:
            session()
            return
        except WorkerLost as problem:
            if driver.cancel.is_set() or not _untouched(driver):
                raise
            if not _prepare(driver, f"{problem.summary}; the host's part of the run is repeated"):
                return


def _untouched(driver: Driver) -> bool:
    """Return whether certainly no action of this run has started on the host."""
    report, request = driver.session.report, driver.session.request
    if not report.acting:
        return True
    if report.state is not State.ACTING or report.progress.begun or request.has_units:
        return False
    history = {"run": request.order.run, "limit": 1, "settled": STOPS}
    question = Request(
        request.host, Definition([]), request.playbook, build(()), replace(request.order, mode=Mode.HISTORY),
        more={"history": history}, peer=report.data["peer"], first_parts=first_parts(Mode.HISTORY, False),
    )  # fmt: skip
    answer = driver.ask(question)
    return answer["status"] == HostStatus.OK and answer.get("history") == []


def _prepare(driver: Driver, why: str) -> bool:
    """Give the driver a new session, as soon as the host has something to do.

    :param why: a warning for the user
    :returns: False if the run ends for this host instead, because its definition is wrong
    """
    old = driver.session
    request = old.request
    planned = old.state is State.WAITING
    if old.state is State.TOLD_FACTS:
        _wait(driver, lambda: driver.gate_pass.barrier.ready(request.host.name))
        step = driver.gate_pass.barrier.step(request.host.name)
        if isinstance(step, Refused):
            old.refuse(HostStatus.FAILED, {"summary": step.summary, "detail": step.detail, "hint": step.hint})
            return False
        if isinstance(step, Job):
            list(old.define(step.definition, step.differs, needed(step.definition, request.more, request.bundle)))
        else:
            old.ask(step)
        request = old.request
    if planned:
        _wait(driver, lambda: driver.gate_pass.answer is not None)
    _wait(driver, driver.gate_pass.enter)
    if old.defined:
        events, definition, more = driver.late()[2], request.definition, request.more
        driver.late = lambda: (definition, more, events)
        request = replace(request, bundle=build(definition.types), facts=None, first_parts=())
    shown = old.report.data.get("fingerprints")
    if shown and request.asks and request.expect is None:
        request = replace(request, expect=shown)  # the user agrees to exactly this plan
    limits = request.order.limits
    limits = replace(limits, lock_timeout=max(limits.lock_timeout, STOPS))
    request = replace(request, order=replace(request.order, limits=limits))
    driver.session = HostSession(request, driver.emit, decoding=old.reader.decoding)
    _take_over(driver.session, old)
    driver.session.warn(why)
    return True


def _take_over(session: HostSession, old: HostSession) -> None:
    """Let a session continue the report of an earlier one, which others hold already."""
    data: Any = old.report.data
    warnings = {key: data[key] for key in ("warnings",) if key in data}
    data.clear()
    data.update({**session.report.data, **warnings})
    session.report.data = data


def _wait(driver: Driver, ready: Callable[[], bool]) -> None:
    """Wait until a condition is true.

    :raises Broken: the user stops the run
    """
    while not ready():
        if driver.cancel.wait(POLL):
            raise Broken("the run was stopped after its worker was lost")
