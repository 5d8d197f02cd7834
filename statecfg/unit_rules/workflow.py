"""Decide which hook a unit runs next: first its own hooks, then those that end relations, then those of events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from statecfg.problems.frozen import dataclass
from statecfg.unit_rules.scheduler import ADDED, REMOVED, Queue

NEW, INSTALLED, STARTED, STOPPED = "new", "installed", "started", "stopped"
INSTALL, CONFIG, START, STOP, UPGRADE = "install", "config-changed", "start", "stop", "upgrade-charm"
JOINED, CHANGED, DEPARTED, BROKEN = "joined", "changed", "departed", "broken"

# Hook → the state of a unit whose hook failed. Source: pyjuju's workflow.
ERRORS = {
    INSTALL: "install_error",
    CONFIG: "configure_error",
    START: "start_error",
    STOP: "stop_error",
    UPGRADE: "charm_upgrade_error",
}
_FAILED = {error: hook for hook, error in ERRORS.items()}
_REACHED = {INSTALL: INSTALLED, START: STARTED, STOP: STOPPED}


@dataclass(frozen=True, slots=True)
class Life:
    """The state of a unit.

    :param state: the last state that it reached: NEW, INSTALLED, STARTED or STOPPED
    :param error: one of the values of ERRORS; "" for none
    :param tried: the run in which its hook failed; "" if any run may retry it
    :param dying: whether it is being stopped and removed
    :param charm: digest of the charm that it knows
    :param digest: digest of its service's current charm
    :param configured: digest of the settings that it knows; "" for none
    :param config: digest of its service's current settings
    """

    state: str = NEW
    error: str = ""
    tried: str = ""
    dying: bool = False
    charm: str = ""
    digest: str = ""
    configured: str = ""
    config: str = "-"


@dataclass(frozen=True, slots=True)
class Entered:
    """The state of a unit in a relation that it has entered and not left.

    :param key: the store's key of the relation
    :param name: the relation's name in the unit's service
    :param dying: whether the relation is ending
    :param failed: the hook that failed there; "" for none
    :param tried: the run in which it failed; "" if any run may retry it
    :param members: the remote units that were announced to the unit
    :param events: (at, remote, op) of the queued events, in order
    :param id: the relation's id for hooks: NAME:NUMBER
    """

    key: int
    name: str
    dying: bool = False
    failed: str = ""
    tried: str = ""
    members: tuple[str, ...] = ()
    events: tuple[tuple[int, str, str], ...] = ()
    id: str = ""

    def queue(self) -> Queue:
        """Return the events that are due in the relation."""
        queue = Queue(self.members)
        for at, remote, op in self.events:
            queue.happened(remote, op, at)
        return queue


@dataclass(frozen=True, slots=True)
class Due:
    """A hook that is due.

    :param hook: its name, such as "install" or "db-relation-joined"
    :param relation: the store's key of its relation; None if it is not about a relation
    :param event: JOINED, CHANGED, DEPARTED or BROKEN; "" if it is not about a relation
    :param remote: the remote unit; "" for none
    :param members: the remote units that the hook sees in the relation, sorted
    """

    hook: str
    relation: int | None = None
    event: str = ""
    remote: str = ""
    members: tuple[str, ...] = ()


def files(hook: str) -> tuple[str, ...]:
    """Return the possible file names of a hook. The first one that exists is run."""
    return (UPGRADE, "upgrade") if hook == UPGRADE else (hook,)


def shown(state: str, error: str) -> str:
    """Return the state of a unit as one word: its error state, if it has one."""
    return error or state


def failed_hook(error: str) -> str:
    """Return the hook whose failure caused a unit's error state."""
    return _FAILED[error]


def reached(state: str, hook: str) -> str:
    """Return the state of a unit after one of its own hooks succeeded."""
    return _REACHED.get(hook, state)


def due(life: Life, relations: Sequence[Entered], run: str | None) -> Due | None:
    """Return the hook that is due for a unit; None if no hook is due.

    :param relations: the unit's relations, in any order
    :param run: don't retry hooks that failed in this run; None: retry all failed hooks
    """
    if life.error and life.tried and life.tried == run:
        return None
    ordered = sorted(relations, key=lambda relation: relation.key)
    if life.dying:
        # A dying unit leaves all its relations before it stops. Source: juju 2.
        return _ending(ordered, run) or _stop(life, ordered)
    own = _own(life)
    return (
        Due(own)
        if own
        else _ending([relation for relation in ordered if relation.dying], run) or _happened(ordered, run)
    )


def over(life: Life, relations: Sequence[Entered]) -> bool:
    """Return whether a unit is dying and has no hook left to run, in this run or another."""
    return life.dying and due(life, relations, None) is None


def _own(life: Life) -> str:
    """Return the due hook of a unit that is not about a relation; "" for none. The unit is not dying."""
    if life.state == NEW:
        return INSTALL
    if life.charm != life.digest:
        return UPGRADE
    if life.configured != life.config:
        return CONFIG
    # In these states a hook failed and must be repeated, even if the digests are equal again.
    again = failed_hook(life.error) if life.error in (ERRORS[CONFIG], ERRORS[UPGRADE]) else ""
    return again or (START if life.state == INSTALLED else "")


def _stop(life: Life, relations: Sequence[Entered]) -> Due | None:
    """Return the stop hook of a dying unit; None if it was never started or is still in relations."""
    started = life.state == STARTED or life.error == ERRORS[START]
    return Due(STOP) if started and not relations else None


def _ending(relations: Sequence[Entered], run: str | None) -> Due | None:
    """Return the next hook with which a unit leaves relations: departed for each member, then broken."""
    return next((ended(relation) for relation in relations if not _waits(relation, run)), None)


def ended(relation: Entered) -> Due:
    """Return the next hook with which a unit leaves a relation."""
    first, *others = sorted(relation.members) or [""]
    if not first:
        return Due(f"{relation.name}-relation-{BROKEN}", relation.key, BROKEN)
    return Due(f"{relation.name}-relation-{DEPARTED}", relation.key, DEPARTED, first, tuple(others))


def _happened(relations: Sequence[Entered], run: str | None) -> Due | None:
    """Return the hook for the first event in all relations that are not ending; None for no event."""
    waiting = []
    for relation in relations:
        event = None if relation.dying or _waits(relation, run) else relation.queue().first()
        if event is not None:
            waiting.append((event.at, relation))
    return happening(min(waiting, key=lambda pair: pair[0])[1]) if waiting else None


def happening(relation: Entered) -> Due | None:
    """Return the hook for the first event in a relation that is not ending; None for no event."""
    queue = relation.queue()
    event = queue.next()
    if event is None:
        return None
    remote, op = event
    event_type = JOINED if op == ADDED else DEPARTED if op == REMOVED else CHANGED
    return Due(f"{relation.name}-relation-{event_type}", relation.key, event_type, remote, queue.members)


def _waits(relation: Entered, run: str | None) -> bool:
    return bool(relation.failed and relation.tried and relation.tried == run)


def leader(units: Mapping[int, bool]) -> int | None:
    """Return the number of the leader: the lowest that is not dying, otherwise the lowest; None without units.

    :param units: number → whether the unit is dying, for the units that are not gone
    """
    return min((number for number, dying in units.items() if not dying), default=min(units, default=None))
