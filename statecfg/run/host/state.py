"""The state of a host session."""

from __future__ import annotations

from enum import Enum, auto


class State(Enum):
    """How far the session with one host has come."""

    CONNECTING = auto()  # the executor has not greeted yet
    PLANNING = auto()
    PLANNED = auto()  # the plan is complete, and the host ends without changes
    WAITING = auto()  # the plan is complete, and the host waits for permission to apply it
    DECLINED = auto()  # the permission was refused
    ACTING = auto()
    ASKING = auto()  # while it acts, the host waits for the result of a hook or of a login
    SERVING_UNITS = auto()  # the host waits for orders for its units, or runs their hooks
    FINISHED = auto()


ACTING = frozenset({State.ACTING, State.ASKING, State.SERVING_UNITS})
PLANNED = ACTING | {State.PLANNED, State.WAITING, State.DECLINED}
