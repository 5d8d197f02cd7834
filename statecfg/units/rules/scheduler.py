"""Reduces what happened in a relation to the hooks that a unit there still has to run, in their order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

ADDED, REMOVED, MODIFIED = "added", "removed", "modified"


class Event(NamedTuple):
    """What is due about a remote unit.

    :param remote: its name
    :param op: ADDED, REMOVED or MODIFIED
    :param at: its position: of two events, the one with the smaller number comes first
    """

    remote: str
    op: str
    at: int


# (due, happens) → what is due then, and whether it keeps its position. Source: pyjuju's scheduler, as seen to run.
_REDUCED: dict[tuple[str, str], tuple[str, bool]] = {
    (ADDED, ADDED): (ADDED, True),
    (ADDED, MODIFIED): (ADDED, True),
    (ADDED, REMOVED): ("", True),
    (MODIFIED, ADDED): (MODIFIED, True),
    (MODIFIED, MODIFIED): (MODIFIED, True),
    (MODIFIED, REMOVED): (REMOVED, False),
    (REMOVED, ADDED): (MODIFIED, False),
    (REMOVED, MODIFIED): (REMOVED, True),
    (REMOVED, REMOVED): (REMOVED, True),
}


class Queue:
    """What is still due for one unit in one relation.

    A unit is a member from the moment its `added` is taken off the queue until its `removed` is: a hook sees those
    that it was told of, and no other. What happens to a unit that is neither a member nor about to be one is ignored.

    :param members: the remote units that were announced before
    """

    def __init__(self, members: Iterable[str] = ()) -> None:
        self._members = set(members)
        self._due: dict[str, Event] = {}  # in order
        self._last = 0

    @property
    def members(self) -> tuple[str, ...]:
        """The remote units that were announced, sorted."""
        return tuple(sorted(self._members))

    def added(self, remote: str, at: int | None = None) -> None:
        """Enter that a remote unit is there. `at` as in `happened`."""
        self.happened(remote, ADDED, at)

    def removed(self, remote: str, at: int | None = None) -> None:
        """Enter that a remote unit has gone. `at` as in `happened`."""
        self.happened(remote, REMOVED, at)

    def modified(self, remote: str, at: int | None = None) -> None:
        """Enter that a remote unit has changed its settings. `at` as in `happened`."""
        self.happened(remote, MODIFIED, at)

    def happened(self, remote: str, op: str, at: int | None = None) -> None:
        """Enter what happened to a remote unit.

        :param op: ADDED, REMOVED or MODIFIED
        :param at: when: larger than all before; None for the next number
        """
        self._last = at = self._last + 1 if at is None else at
        before = self._due.get(remote)
        if before is None:
            # A member is not announced again, and nobody else can go or change.
            if (op == ADDED) != (remote in self._members):
                self._due[remote] = Event(remote, op, at)
            return
        reduced, stays = _REDUCED[before.op, op]
        if not stays or not reduced:
            del self._due[remote]
        if reduced:
            self._due[remote] = Event(remote, reduced, before.at if stays else at)

    def first(self) -> Event | None:
        """Return what is due first, None for nothing."""
        return next(iter(self._due.values()), None)

    def next(self) -> tuple[str, str] | None:
        """Take what is due first off the queue; return (remote, op), None for nothing. The members change with it."""
        event = self.first()
        if event is None:
            return None
        del self._due[event.remote]
        if event.op == ADDED:
            self._members.add(event.remote)
        elif event.op == REMOVED:
            self._members.discard(event.remote)
        return event.remote, event.op


def at_once(
    added: Iterable[str] = (), removed: Iterable[str] = (), modified: Iterable[str] = ()
) -> list[tuple[str, str]]:
    """Return what happened at the same moment in the order in which it is entered, as (remote, op).

    First who came, then who went, both sorted; then who changed. Source: pyjuju.
    """
    return [
        *((remote, ADDED) for remote in sorted(added)),
        *((remote, REMOVED) for remote in sorted(removed)),
        *((remote, MODIFIED) for remote in modified),
    ]
