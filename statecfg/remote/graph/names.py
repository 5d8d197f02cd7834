"""The names that both halves share: outcomes, statuses, states, modes and events. Reports and stores contain them.

The names of events that only the controller knows are in `events`, which no host needs.
"""

from __future__ import annotations

from typing import Final


class Outcome:
    """How the plan or the run of a node ended."""

    UNCHANGED: Final = "unchanged"
    CHANGED: Final = "changed"
    UNKNOWN: Final = "unknown"
    FAILED: Final = "failed"
    SKIPPED: Final = "skipped"
    ALL: Final = (UNCHANGED, CHANGED, UNKNOWN, FAILED, SKIPPED)
    SOUND: Final = (CHANGED, UNCHANGED)  # the node is as defined
    ACTS: Final = (CHANGED, UNKNOWN)  # in a plan: the node has, or may have, something to do
    STOPPED: Final = (FAILED, SKIPPED)  # nodes that require this one are skipped


class ActionStatus:
    """How an action ended."""

    PLANNED: Final = "planned"
    OK: Final = "ok"
    ERROR: Final = "error"
    NOT_ATTEMPTED: Final = "not-attempted"
    UNKNOWN: Final = "unknown"  # it may have started, and its result is unknown
    ALL: Final = (PLANNED, OK, ERROR, NOT_ATTEMPTED, UNKNOWN)


class HostStatus:
    """How a run ended on a host. The host itself reports one of `OF_HOST`."""

    OK: Final = "ok"
    FAILED: Final = "failed"
    UNREACHABLE: Final = "unreachable"
    UNKNOWN: Final = "unknown"
    REFUSED: Final = "refused"
    LOCKED: Final = "locked"
    CANCELLED: Final = "cancelled"
    ALL: Final = (OK, FAILED, UNREACHABLE, UNKNOWN, REFUSED, LOCKED, CANCELLED)
    OF_HOST: Final = (OK, FAILED, LOCKED, REFUSED)
    UNTOUCHED: Final = (UNREACHABLE, REFUSED, LOCKED, CANCELLED)  # nothing was changed on the host


class RunStatus:
    """The status of a run without a result, in a ledger or a store."""

    RUNNING: Final = "running"
    CUT_OFF: Final = "cut off"  # it was interrupted before its end
    ALL: Final = (RUNNING, CUT_OFF)


class HookStatus:
    """How a hook ended, according to its failure rule."""

    OK: Final = "ok"
    FAILED: Final = "failed"
    CONTINUED: Final = "continued"
    OWED: Final = "owed"
    ALL: Final = (OK, FAILED, CONTINUED, OWED)


class State:
    """The state of a resource or an entity. Source: Runtime Defined Entities."""

    PRE_CREATED: Final = "PRE_CREATED"
    RESOLVED: Final = "RESOLVED"
    RESOLUTION_ERROR: Final = "RESOLUTION_ERROR"
    IN_DELETION: Final = "IN_DELETION"
    ALL: Final = (PRE_CREATED, RESOLVED, RESOLUTION_ERROR, IN_DELETION)


PLAN_FAILS: Final = "its plan fails"  # why a run did not start on a host

# Limits that the host observes and the controller checks.
MOST_ITEMS: Final = 1000  # items of one node
HOOKS_OF_EVENT: Final = 120.0  # seconds for all hooks of one event of one resource


class Mode:
    """What a run does."""

    PLAN: Final = "plan"
    VERIFY: Final = "verify"
    APPLY: Final = "apply"
    PRUNE: Final = "prune"
    DESTROY: Final = "destroy"
    FACTS: Final = "facts"
    HISTORY: Final = "history"
    REVEAL: Final = "reveal"
    ALL: Final = (PLAN, VERIFY, APPLY, PRUNE, DESTROY, FACTS, HISTORY, REVEAL)
    ACTING: Final = (APPLY, PRUNE, DESTROY)  # these change hosts
    REMOVING: Final = (PRUNE, DESTROY)  # these only remove
    ASKING: Final = (FACTS, HISTORY, REVEAL)  # these make no plan


class ResourceEvent:
    """The events in the life of a resource, for which hooks are called."""

    PRE_RECONCILE: Final = "pre-reconcile"
    POST_CREATE: Final = "post-create"
    POST_UPDATE: Final = "post-update"
    PRE_DELETE: Final = "pre-delete"
    FINALIZE: Final = "finalize"
    POST_DELETE: Final = "post-delete"
    ALL: Final = (PRE_RECONCILE, POST_CREATE, POST_UPDATE, PRE_DELETE, FINALIZE, POST_DELETE)
