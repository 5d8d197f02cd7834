"""Says which hook a unit runs next: those of its own life, then the end of relations, then what happened in others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from statecfg.units.rules.scheduler import ADDED, REMOVED, Queue

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
    """Where a unit stands.

    :param state: NEW, INSTALLED, STARTED or STOPPED: the one it reached last
    :param error: one of the values of ERRORS, "" for none
    :param tried: the run in which its hook failed, "" where it is to be tried again in any
    :param dying: it is to be stopped and removed
    :param charm: digest of the charm it was told of, `digest` that of its service's now
    :param configured: digest of the settings it was told of, "" for none; `config` that of its service's now
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
    """Where a unit stands in a relation that it has entered and not left.

    :param number: the store's key of the relation
    :param name: as the unit's service calls it
    :param id: as hooks know the relation: NAME:NUMBER
    :param dying: the relation is to be broken off
    :param failed: the hook that failed there, "" for none
    :param tried: the run in which it did, "" where it is to be tried again in any
    :param members: the remote units it was told of
    :param events: (at, remote, op) of what has happened since, in this order
    """

    number: int
    name: str
    dying: bool = False
    failed: str = ""
    tried: str = ""
    members: tuple[str, ...] = ()
    events: tuple[tuple[int, str, str], ...] = ()
    id: str = ""

    def queue(self) -> Queue:
        """Return what is due there."""
        queue = Queue(self.members)
        for at, remote, op in self.events:
            queue.happened(remote, op, at)
        return queue


@dataclass(frozen=True, slots=True)
class Due:
    """A hook that is due.

    :param hook: its name, such as "install" or "db-relation-joined"
    :param relation: number of the relation that it is about, None for none
    :param kind: JOINED, CHANGED, DEPARTED or BROKEN; "" where it is about no relation
    :param remote: the unit it is about, "" for none
    :param members: the remote units that it sees there, sorted
    """

    hook: str
    relation: int | None = None
    kind: str = ""
    remote: str = ""
    members: tuple[str, ...] = ()


def files(hook: str) -> tuple[str, ...]:
    """Return the names that the program of a hook may have: the first one that is there is run."""
    return (UPGRADE, "upgrade") if hook == UPGRADE else (hook,)


def shown(state: str, error: str) -> str:
    """Return the state of a unit in one word: the error, where it is in one."""
    return error or state


def failed_hook(error: str) -> str:
    """Return the hook whose failure a unit's error state comes from."""
    return _FAILED[error]


def reached(state: str, hook: str) -> str:
    """Return the state of a unit after a hook of its own has succeeded."""
    return _REACHED.get(hook, state)


def due(life: Life, relations: Sequence[Entered], run: str | None) -> Due | None:
    """Return the hook that is due for a unit, None for none.

    :param relations: those it is in, in any order
    :param run: what failed in this run is not tried in it again; None: it is
    """
    if life.error and life.tried and life.tried == run:
        return None
    ordered = sorted(relations, key=lambda each: each.number)
    if life.dying:
        # A unit that goes leaves all its relations before it stops. Source: juju 2.
        return _ending(ordered, run) or _stop(life, ordered)
    own = _own(life)
    return Due(own) if own else _ending([each for each in ordered if each.dying], run) or _happened(ordered, run)


def over(life: Life, relations: Sequence[Entered]) -> bool:
    """Say whether a dying unit has no hook left to run, in this run or another."""
    return life.dying and due(life, relations, None) is None


def _own(life: Life) -> str:
    """Return the hook of a living unit's own life that is due, "" for none."""
    if life.state == NEW:
        return INSTALL
    if life.charm != life.digest:
        return UPGRADE
    if life.configured != life.config:
        return CONFIG
    # What is in one of these states has had its hook fail, though nothing else says so any more.
    again = failed_hook(life.error) if life.error in (ERRORS[CONFIG], ERRORS[UPGRADE]) else ""
    return again or (START if life.state == INSTALLED else "")


def _stop(life: Life, relations: Sequence[Entered]) -> Due | None:
    """Return the last hook of a dying unit: one that was never started has none."""
    started = life.state == STARTED or life.error == ERRORS[START]
    return Due(STOP) if started and not relations else None


def _ending(relations: Sequence[Entered], run: str | None) -> Due | None:
    """Return the next hook by which a unit leaves relations: departed for each member, then broken."""
    return next((ended(each) for each in relations if not _waits(each, run)), None)


def ended(relation: Entered) -> Due:
    """Return the next hook by which a unit leaves a relation."""
    first, *others = sorted(relation.members) or [""]
    if not first:
        return Due(f"{relation.name}-relation-{BROKEN}", relation.number, BROKEN)
    return Due(f"{relation.name}-relation-{DEPARTED}", relation.number, DEPARTED, first, tuple(others))


def _happened(relations: Sequence[Entered], run: str | None) -> Due | None:
    """Return the hook for what happened first in all relations that do not end."""
    waiting = []
    for each in relations:
        event = None if each.dying or _waits(each, run) else each.queue().first()
        if event is not None:
            waiting.append((event.at, each))
    return happening(min(waiting, key=lambda pair: pair[0])[1]) if waiting else None


def happening(relation: Entered) -> Due | None:
    """Return the hook for what happened first in a relation that does not end, None for nothing."""
    queue = relation.queue()
    event = queue.next()
    if event is None:
        return None
    remote, op = event
    kind = JOINED if op == ADDED else DEPARTED if op == REMOVED else CHANGED
    return Due(f"{relation.name}-relation-{kind}", relation.number, kind, remote, queue.members)


def _waits(relation: Entered, run: str | None) -> bool:
    return bool(relation.failed and relation.tried and relation.tried == run)


def leader(units: Mapping[int, bool]) -> int | None:
    """Return the number of the leader: the lowest one that is not dying, else the lowest; None where there is none.

    :param units: number → whether it is dying, of the units that are not gone
    """
    return min((number for number, dying in units.items() if not dying), default=min(units, default=None))
