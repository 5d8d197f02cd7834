"""Sessions that are repeated, because a host waits without a connection, or because its worker was lost.

A session is repeated only if certainly no action has started on its host.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from statecfg.playbook.compile import Definition
from statecfg.remote.graph.errors import StatecfgError
from statecfg.remote.graph.names import HostStatus, Mode
from statecfg.run.awaited import RefusedHost
from statecfg.run.bundle import build, first_parts
from statecfg.run.host.code import needed
from statecfg.run.host.events import Late, Unjoined
from statecfg.run.host.gate import Pass
from statecfg.run.host.report import Emit
from statecfg.run.host.request import HostRequest
from statecfg.run.host.session import HostSession
from statecfg.run.host.state import SessionState
from statecfg.run.job import Job
from statecfg.transport import WorkerLost

STOPS = 45.0  # seconds in which an executor that lost its connection ends its action, and releases the host's lock


class Disconnected(StatecfgError):
    """Too many hosts wait, so this one waits without a connection."""


class RepeatDriver(Protocol):
    """The driver of one host.

    :ivar interrupted: why the session must be repeated, "" if no warning is necessary; None for the first session
    """

    session: HostSession
    emit: Emit
    late: Callable[[], Late]
    cancel: threading.Event
    gate_pass: Pass
    interrupted: str | None

    def ask(self, request: HostRequest) -> Mapping[str, Any]:
        """Return the report of another request to the host."""


def through(driver: RepeatDriver, session: Callable[[], None]) -> bool:
    """Run a session.

    If its worker is lost, the session can be repeated through another worker before the host was told to apply its
    plan. Afterwards, the host decides: it can be repeated if the former executor has released the host's lock, and the
    host knows nothing of this run.

    :param session: connects and runs the driver's session
    :returns: whether the session has ended. If not, it must be repeated when the host is `ready`
    :raises Exception: any error of the session
    """
    if driver.interrupted is not None and not _renew(driver, driver.interrupted):
        return True
    try:
        session()
    except Disconnected:
        driver.interrupted = ""
    except WorkerLost as problem:
        if driver.cancel.is_set() or not _untouched(driver):
            raise
        driver.interrupted = f"{problem.summary}; the host's part of the run is repeated"
    else:
        return True
    driver.gate_pass.disconnect()
    return False


def ready(driver: RepeatDriver) -> bool:
    """Return whether a host that must be repeated has something to do, or its session ends."""
    session, request = driver.session, driver.session.request
    try:
        if driver.cancel.is_set():
            return True
        if session.state is SessionState.TOLD_FACTS:
            return driver.gate_pass.barrier.ready(request.host.name)
        if session.state is SessionState.WAITING:
            return driver.gate_pass.answer is not None
        return request.waits_for_facts or request.order.mode not in Mode.ACTING or driver.gate_pass.barrier.open()
    except Unjoined:
        return True


def _untouched(driver: RepeatDriver) -> bool:
    """Return whether certainly no action of this run has started on the host."""
    report, request = driver.session.report, driver.session.request
    if not report.acting:
        return True
    if report.state is not SessionState.ACTING or report.progress.begun or request.has_units:
        return False
    history = {"run": request.order.run, "limit": 1, "settled": STOPS}
    question = HostRequest(
        request.host, Definition([]), request.playbook, build(()), replace(request.order, mode=Mode.HISTORY),
        more={"history": history}, peer=report.data["peer"], first_parts=first_parts(Mode.HISTORY, False),
    )  # fmt: skip
    answer = driver.ask(question)
    return answer["status"] == HostStatus.OK and answer.get("history") == []


def _renew(driver: RepeatDriver, why: str) -> bool:
    """Give the driver a new session.

    :param why: a warning for the user, "" for none
    :returns: False if the run ends for this host instead: its definition is wrong, or the user said no
    :raises Unjoined: the run has ended because another definition is wrong
    """
    old = driver.session
    if old.state is SessionState.TOLD_FACTS:
        step = driver.gate_pass.barrier.step(old.request.host.name)
        if isinstance(step, RefusedHost):
            old.refuse(HostStatus.FAILED, {"summary": step.summary, "detail": step.detail, "hint": step.hint})
            return False
        if isinstance(step, Job):
            code = needed(step.definition, old.request.more, old.request.bundle)
            list(old.define(step.definition, step.differs, code))
        else:
            old.ask(step)
    elif old.state is SessionState.WAITING and driver.gate_pass.answer is False:
        old.report.decline()
        return False
    request = old.request
    if old.defined:
        events, definition, more = driver.late()[2], request.definition, request.more
        driver.late = lambda: (definition, more, events)
        parts = first_parts(request.order.mode, facts=False)
        request = replace(request, bundle=build(definition.types), facts=None, first_parts=parts)
    shown: Any = dict(old.report.data)
    pinned = request.asks and "fingerprints" in shown
    if pinned:  # the user agrees to exactly this plan, on this host
        expect = shown["fingerprints"] if request.expect is None else request.expect
        request = replace(request, expect=expect, peer=request.peer or shown["peer"])
    limits = request.order.limits
    limits = replace(limits, lock_timeout=max(limits.lock_timeout, STOPS))
    request = replace(request, order=replace(request.order, limits=limits))
    driver.session = HostSession(request, driver.emit, decoding=old.reader.decoding)
    _take_over(driver.session, old)
    if pinned:
        driver.session.report.agreement.shown = old.report.agreement.shown or shown
    if why:
        driver.session.warn(why)
    return True


def _take_over(session: HostSession, old: HostSession) -> None:
    """Let a session continue the report of an earlier one, which others hold already."""
    data: Any = old.report.data
    warnings = data.get("warnings", ())
    data.clear()
    data.update(session.report.data)
    session.report.data = data
    session.report.warn(warnings)
