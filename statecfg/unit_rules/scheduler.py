"""Reduce the events in a relation to the hooks that a unit still has to run, in their order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

ADDED, REMOVED, MODIFIED = "added", "removed", "modified"


class DueEvent(NamedTuple):
    """A due event about a remote unit.

    :param remote: name of the remote unit
    :param op: ADDED, REMOVED or MODIFIED
    :param at: position; events with smaller positions come first
    """

    remote: str
    op: str
    at: int


# (due event, new event) → resulting due event, and whether it keeps its position. Source: observed behavior of pyjuju's
# scheduler.
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
    """The due events of one unit in one relation.

    A remote unit is a member from the moment its `added` is taken off the queue until its `removed` is. So a hook sees
    exactly the units that were announced to it. Events of units that are neither members nor about to become members
    are ignored.

    :param members: the remote units that were announced before
    """

    def __init__(self, members: Iterable[str] = ()) -> None:
        self._members = set(members)
        self._due: dict[str, DueEvent] = {}  # in order
        self._last = 0

    @property
    def members(self) -> tuple[str, ...]:
        """The remote units that were announced, sorted."""
        return tuple(sorted(self._members))

    def happened(self, remote: str, op: str, at: int | None = None) -> None:
        """Add an event of a remote unit.

        :param op: ADDED, REMOVED or MODIFIED
        :param at: position, larger than all earlier ones; None for the next number
        """
        self._last = at = self._last + 1 if at is None else at
        before = self._due.get(remote)
        if before is None:
            # A member is not announced again. Other units can neither leave nor change.
            if (op == ADDED) != (remote in self._members):
                self._due[remote] = DueEvent(remote, op, at)
            return
        reduced, stays = _REDUCED[before.op, op]
        if not stays or not reduced:
            del self._due[remote]
        if reduced:
            self._due[remote] = DueEvent(remote, reduced, before.at if stays else at)

    def first(self) -> DueEvent | None:
        """Return the first due event; None if there is none."""
        return next(iter(self._due.values()), None)

    def next(self) -> tuple[str, str] | None:
        """Take the first event off the queue and update the members; return (remote, op), or None if none is due."""
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
    """Return simultaneous events in the order in which to add them, as (remote, op).

    First the added units, then the removed ones, both sorted; then the modified ones. Source: pyjuju.
    """
    return [
        *((remote, ADDED) for remote in sorted(added)),
        *((remote, REMOVED) for remote in sorted(removed)),
        *((remote, MODIFIED) for remote in modified),
    ]
