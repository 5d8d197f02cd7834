"""Waits for a host that reboots in the middle of a run, and connects to it again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

from statecfg.remote.graph.events import RunEvent
from statecfg.run.host.absence import ABSENT, Absence
from statecfg.run.host.broken import SUSPICIOUS, Broken
from statecfg.run.host.report import Emit
from statecfg.run.host.session import HostSession
from statecfg.run.host.state import AWAY, SessionState
from statecfg.run.report_model import HostData
from statecfg.transport import AuthenticationFailed, HostKeyRejected, TransportError

PAUSE = 2.0  # seconds between two attempts
REFUSALS = 3  # refused logins until statecfg gives up: a booting host may refuse users other than root
AFTER_REFUSAL = 10.0  # seconds until the next attempt


class RebootDriver(Protocol):
    """The driver of one host."""

    session: HostSession
    emit: Emit
    cancel: threading.Event

    @property
    def report(self) -> HostData: ...


def through(driver: RebootDriver, connect: Callable[..., None]) -> None:
    """Run a session to its end, with a new connection after each reboot of the host.

    :param connect: connects and runs the session until its end, or until the host reboots; its argument tells whether
        the host has rebooted
    :raises Exception: any error of the session
    """
    try:
        connect()
        return
    except (TransportError, Broken) as problem:
        if driver.session.state is not SessionState.REBOOTING or problem.hint == SUSPICIOUS:
            raise
    while not _again(driver, connect):
        pass


def _again(driver: RebootDriver, connect: Callable[..., None]) -> bool:
    """Connect to a host until it continues its run; return whether the session has ended, not with another reboot.

    :raises Broken: if it is not up in time, or the user stops the run
    """
    absence = driver.session.absence
    assert absence is not None
    _tell(driver, absence, f"the host reboots; statecfg waits for it up to {absence.seconds:g} s")
    refusals, why = 0, ""
    pause = PAUSE
    while True:
        if driver.cancel.wait(pause):
            raise Broken("the run was stopped while the host rebooted")
        pause = PAUSE
        try:
            connect(again=True)
            return True
        except HostKeyRejected:
            raise
        except (TransportError, Broken) as problem:
            if driver.session.absence is not absence and driver.session.state is SessionState.REBOOTING:
                return False  # it has come back, and reboots once more
            if driver.session.state not in AWAY or problem.hint == SUSPICIOUS:
                raise
            why = problem.summary
            if isinstance(problem, AuthenticationFailed):
                refusals, pause = refusals + 1, AFTER_REFUSAL
                if refusals == REFUSALS:
                    raise
        if time.monotonic() > absence.since + absence.seconds:
            raise Broken(f"the host did not come back within {absence.seconds:g} s after its reboot: {why}", ABSENT)


def _tell(driver: RebootDriver, absence: Absence, text: str) -> None:
    driver.emit(RunEvent.OUTPUT, {"node": absence.node, "stream": "out", "text": text + "\n"})
