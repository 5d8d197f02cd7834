"""The queue reduces relation events like pyjuju's scheduler."""

from __future__ import annotations

from typing import Any

from statecfg.unit_rules.scheduler import ADDED, MODIFIED, REMOVED, Queue, at_once
from tests.each import each

HOOKS = {ADDED: "joined", REMOVED: "departed", MODIFIED: "changed"}
Tick = dict[str, Any]
Ran = list[tuple[str, str, list[str]]]


def tick(old: str = "", new: str = "", changed: str = "") -> Tick:
    """Return the changes of one moment: the units before it, the units after it, and the units with new settings."""
    before, after = set(old.split()), set(new.split())
    return {"added": after - before, "removed": before - after, "modified": changed.split()}


def enter(queue: Queue, moment: Tick) -> None:
    for remote, op in at_once(**moment):
        queue.happened(remote, op)


def ran(queue: Queue) -> Ran:
    """Empty the queue. Return each hook with its remote unit and the members that the hook sees."""
    hooks: Ran = []
    while (event := queue.next()) is not None:
        hooks.append((event[0], HOOKS[event[1]], list(queue.members)))
    return hooks


A, B, C = "u-1", "u-2", "u-3"
RUN = None
# Title → members at the start, moments, hooks that run. RUN means that all due hooks run before the next moment.
CASES: dict[str, tuple[str, list[Tick | None], Ran]] = {
    "added and modified: only joined": ("", [tick("", A), tick(changed=A)], [(A, "joined", [A])]),
    "added and removed: no hook": ("", [tick("", A), tick(A, "")], []),
    "modified three times: changed once": (
        "",
        [tick("", A), RUN, tick(changed=A), tick(changed=A), tick(changed=A)],
        [(A, "joined", [A]), (A, "changed", [A])],
    ),
    "joined hooks come first, changed hooks last": (
        "u-1 u-2",
        [tick("u-1 u-2", "u-2 u-3 u-4", "u-2")],
        [
            ("u-3", "joined", ["u-1", "u-2", "u-3"]),
            ("u-4", "joined", ["u-1", "u-2", "u-3", "u-4"]),
            (A, "departed", ["u-2", "u-3", "u-4"]),
            (B, "changed", ["u-2", "u-3", "u-4"]),
        ],
    ),
    "removed and added: changed at the new position": (
        "u-1 u-2",
        [tick(A, ""), tick(changed=B), tick("", A)],
        [(B, "changed", [A, B]), (A, "changed", [A, B])],
    ),
    "added and modified: joined at the old position": (
        "",
        [tick("", A), tick("", B), tick(changed=A)],
        [(A, "joined", [A]), (B, "joined", [A, B])],
    ),
    "modified and removed: departed at the new position": (
        "u-1 u-2",
        [tick(changed=A), tick(changed=B), tick(A, "")],
        [(B, "changed", [A, B]), (A, "departed", [B])],
    ),
    "modified twice: changed at the old position": (
        "u-1 u-2",
        [tick(changed=A), tick(changed=B), tick(changed=A)],
        [(A, "changed", [A, B]), (B, "changed", [A, B])],
    ),
    "removed and modified: departed at the old position": (
        "u-1 u-2",
        [tick(A, ""), tick(changed=B), tick(changed=A)],
        [(A, "departed", [B]), (B, "changed", [B])],
    ),
    "removed before its joined hook: no hook": (
        "",
        [tick("", "u-1 u-2"), tick("u-1 u-2", "u-2 u-3", "u-2")],
        [(B, "joined", [B]), (C, "joined", [B, C])],
    ),
    "modified or removed, but not a member: no hook": ("u-1", [tick(changed=B), tick("u-3", "")], []),
    "added, but already a member: no hook": ("u-1", [tick("", A)], []),
    "added twice and removed twice: one hook each": (
        "u-2",
        [tick("", A), tick("", A), tick(B, ""), tick(B, "")],
        [(A, "joined", [A, B]), (B, "departed", [A])],
    ),
    "added while changed is due: only changed": ("u-1", [tick(changed=A), tick("", A)], [(A, "changed", [A])]),
}


@each("case", CASES)
def test_queue_reduces_events_to_the_hooks_that_are_due(case: str) -> None:
    members, happens, expected = CASES[case]
    queue = Queue(members.split())
    hooks: Ran = []
    for moment in happens:
        if moment is RUN:
            hooks += ran(queue)
        else:
            enter(queue, moment)
    assert hooks + ran(queue) == expected


def test_first_event_has_the_position_where_it_happened() -> None:
    queue = Queue(["b"])
    queue.happened("a", ADDED, 3)
    queue.happened("a", MODIFIED, 5)
    queue.happened("b", MODIFIED, 7)
    first = queue.first()
    assert first is not None and (first.at, first.op, first.remote) == (3, ADDED, "a")
    assert queue.next() == ("a", ADDED)
    queue.happened("b", REMOVED, 9)
    first = queue.first()
    assert first is not None and (first.at, first.op, first.remote) == (9, REMOVED, "b")
