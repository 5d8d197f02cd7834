"""One undo: compare the former state of a thing, what the node set, and the present state.

What is still as the node set it gets its former state back. What others have changed since stays, and the
removal reports it. All node types whose things have fields use this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def stays(what: str, present: object) -> str:
    """Return the message about a field that others have changed.

    :param what: the field and its thing, such as "the GID of app"
    :param present: its present value
    """
    return f"{what} is now {'empty' if present in (None, '', [], ()) else _shown(present)}: it stays"


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def reverted(
    was: Mapping[str, Any],
    made: Mapping[str, Any],
    now: Mapping[str, Any],
    named: Callable[[str], str],
    same: Callable[[Any, Any], bool] | None = None,
) -> tuple[dict[str, Any], list[str]]:
    """Return the former values of the fields to restore, and the messages about those that others have changed.

    :param was: the former fields
    :param made: the fields that the node set, with their values
    :param now: the present fields
    :param named: returns the words for a field in a message
    :param same: tells whether a present value equals one that the node set; without it, `==` does
    """
    back, changed = compared(was, made, now, (lambda field, present, value: same(present, value)) if same else None)
    return back, [stays(named(field), now.get(field)) for field in changed]


def compared(
    was: Mapping[str, Any],
    made: Mapping[str, Any],
    now: Mapping[str, Any],
    same: Callable[[str, Any, Any], bool] | None = None,
) -> tuple[dict[str, Any], list[str]]:
    """Return the former values of the fields to restore, and the fields that others have changed.

    :param same: tells whether the present value of a field equals one that the node set; without it, `==` does
    """
    back: dict[str, Any] = {}
    changed: list[str] = []
    for field, value in made.items():
        present, former = now.get(field), was.get(field)
        if present == former:
            continue
        if present == value if same is None else same(field, present, value):
            back[field] = former
        else:
            changed.append(field)
    return back, changed


def items(was: Any, made: Any, now: Any, exact: bool, named: str) -> tuple[list[str], list[str]]:
    """Return a list without what the node added to it, and with the items that the node removed from it.

    :param made: the items that the node wanted
    :param exact: whether the node also removed all other items
    :param named: the words for the list in a message, such as "the members of app"
    :returns: the sorted list, and the messages about what others have changed since
    """
    former, wanted, present = set(was or ()), set(made or ()), set(now or ())
    left = []
    if exact:
        left += [f"{item} was added to {named} since: it stays" for item in sorted(present - wanted - former)]
    left += [f"{item} was removed from {named} since: it stays so" for item in sorted(former & wanted - present)]
    back = former - wanted if exact else set()
    return sorted((present & former) | (present - wanted) | back), left
