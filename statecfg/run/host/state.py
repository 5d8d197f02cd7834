"""The state of a host session."""

from __future__ import annotations

from enum import Enum, auto


class SessionState(Enum):
    """How far the session with one host has come."""

    CONNECTING = auto()  # the executor has not greeted yet
    PLANNING = auto()
    TOLD_FACTS = auto()  # the host has sent facts, and waits for its definition or for a request for more facts
    PLANNED = auto()  # the plan is complete, and the host finishes without changes
    WAITING = auto()  # the plan is complete, and the host waits for permission to apply it
    DECLINED = auto()  # the host must not apply its plan
    ACTING = auto()
    ASKING = auto()  # the host applies its plan and waits for the result of a hook or of a login
    REBOOTING = auto()  # the host may reboot now, and its connection ends
    RETURNING = auto()  # the session has connected again, and waits until the host continues its run
    SERVING_UNITS = auto()  # the host waits for orders for its units, or runs their hooks
    FINISHED = auto()


AWAY = frozenset({SessionState.REBOOTING, SessionState.RETURNING})
ACTING = AWAY | {SessionState.ACTING, SessionState.ASKING, SessionState.SERVING_UNITS}
PLANNED = ACTING | {SessionState.PLANNED, SessionState.WAITING, SessionState.DECLINED}
