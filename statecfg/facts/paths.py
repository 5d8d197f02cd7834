"""Paths of facts: the keys that lead to a value."""

from __future__ import annotations

from typing import get_args, get_origin

from statecfg.facts.catalogue import OWN, Facts, fields_of, is_record

Path = tuple[str, ...]  # such as ("os", "family")


def fact_of(path: Path) -> str:
    """Return the name of the fact that a path leads to."""
    return ".".join(path[:2]) if path[0] == OWN else path[0]


def is_item(path: Path) -> bool:
    """Return whether a path leads to an item of a table that has several values, such as a user."""
    hints = get_args(fields_of(Facts).get(path[0])) if len(path) == 2 else ()
    return len(hints) == 2 and is_record(hints[1])


def written(path: Path) -> str:
    """Return a path as text: `os.family`, `packages[nginx]`."""
    name = path[0] if path else ""
    table = bool(path) and name != OWN and get_origin(fields_of(Facts).get(name)) is not None
    if table and len(path) > 1:
        return ".".join((f"{name}[{path[1]}]", *path[2:]))
    return ".".join(path)
