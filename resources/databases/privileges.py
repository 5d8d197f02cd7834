"""Privileges on objects of a database server, as maps of object → privileges: what a node changes and its undo."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Held = Mapping[str, Iterable[str]]


def both(now: Held, wanted: Sequence[str]) -> dict[str, list[str]]:
    """Return the objects with those of the wanted privileges that they have."""
    found = {each: [word for word in wanted if word in has] for each, has in now.items()}
    return {each: words for each, words in found.items() if words}


def without(some: Held, others: Held) -> dict[str, list[str]]:
    """Return the privileges that are in the first map only."""
    found = {each: [word for word in words if word not in others.get(each, ())] for each, words in some.items()}
    return {each: words for each, words in found.items() if words}


def undone(was: Held, now: Held, absent: bool) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the privileges to grant again, and those to revoke.

    :param was: the node's privileges that were granted before
    :param now: the privileges that are granted now
    :param absent: whether the node revoked them
    """
    return (without(was, now), {}) if absent else ({}, without(now, was))


def items(held: Mapping[str, list[str]]) -> list[list[list[str] | str]]:
    """Return a map as an argument of an op."""
    return [[each, words] for each, words in sorted(held.items())]
