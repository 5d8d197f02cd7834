"""Hook objects: create, find, configure and delete them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from statecfg.remote.hooks.configuration import complete
from statecfg.store.connection import Connection, row_of, to_json
from statecfg.store.database import Store
from statecfg.store.hooks.records import HookObject, Spec

Schema = Mapping[str, Mapping[str, Any]]


def create(
    store: Store, name: str, type: str, folder: str, configuration: Mapping[str, Any], spec: Spec, user: str
) -> tuple[HookObject, list[str]]:
    """Create a hook unless a hook with this name exists.

    :param configuration: complete, including defaults
    :param user: the user who gets Full Control
    :returns: the hook, and the fields in which an existing hook differs
    """

    def make(connection: Connection) -> tuple[HookObject, list[str]]:
        current = find(connection, name)
        if current is not None:
            wanted = {"name": name, "hook_type": type, "configuration": dict(configuration), **spec.to_json()}
            existing = {"name": current.name, "hook_type": current.type, "configuration": current.configuration}
            existing.update(current.spec.to_json())
            return current, [field for field in wanted if not _same(wanted[field], existing[field])]
        connection.change(
            "INSERT INTO hook (name, folded, type, folder, configuration, spec, access, created)"
            " VALUES (:name, :folded, :type, :folder, :configuration, :spec, :access, :created)",
            name=name,
            folded=name.casefold(),
            type=type,
            folder=folder,
            configuration=to_json(dict(configuration)),
            spec=to_json(spec.to_json()),
            access=to_json([user]),
            created=time.time(),
        )
        created = find(connection, name)
        assert created is not None
        return created, []

    return store.attempt(make)


def _same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are the same. Unlike in Python, true is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def remove(store: Store, name: str) -> str:
    """Delete a hook and its queued calls; return a message in Razor's words. Its log entries stay."""

    def drop(connection: Connection) -> bool:
        return connection.change("DELETE FROM hook WHERE folded = :name", name=name.casefold()) == 1

    return f"hook {name} destroyed" if store.attempt(drop) else f"no changes; hook {name} does not exist"


def get(store: Store, name: str) -> HookObject | None:
    """Return a hook by its name, which is case-insensitive. Return None if it does not exist."""
    with store.reading() as connection:
        return find(connection, name)


def every(store: Store) -> list[HookObject]:
    """Return all hooks, oldest first."""
    with store.reading() as connection:
        return [HookObject.from_row(row) for row in connection.rows("SELECT * FROM hook ORDER BY id")]


def find(connection: Connection, name: str) -> HookObject | None:
    """Return a hook by its name, inside a transaction."""
    row = row_of(connection, "SELECT * FROM hook WHERE folded = :name", name=name.casefold())
    return None if row is None else HookObject.from_row(row)


def set_keys(store: Store, name: str, values: Mapping[str, Any], schema: Schema) -> tuple[list[str], list[str]]:
    """Set keys of a hook's configuration: all, or none if one is refused.

    :returns: messages about the changes, and messages about refused keys
    """

    def change(configuration: dict[str, Any], key: str) -> tuple[bool, str]:
        configuration[key] = values[key]
        if key not in schema:
            return False, f"configuration key {key} is not in the schema and must be cleared"
        return True, f"value for key {key} updated"

    return _configure(store, name, values, change)


def unset_keys(store: Store, name: str, keys: Iterable[str], schema: Schema) -> tuple[list[str], list[str]]:
    """Remove keys from a hook's configuration, or reset them to their defaults. Otherwise like `set_keys`."""

    def change(configuration: dict[str, Any], key: str) -> tuple[bool, str]:
        was_set = key in configuration
        configuration.pop(key, None)
        default, problems = complete({key: dict(schema[key])} if key in schema else {}, {})
        if problems:
            return False, f"cannot clear required configuration key {key}"
        configuration.update(default)
        if default:
            return True, f"value for key {key} reset to default"
        return True, f"key {key} removed from configuration" if was_set else f"no changes; key {key} already absent"

    return _configure(store, name, keys, change)


def _configure(
    store: Store, name: str, keys: Iterable[str], change: Callable[[dict[str, Any], str], tuple[bool, str]]
) -> tuple[list[str], list[str]]:
    keys = list(keys)

    def write(connection: Connection) -> tuple[list[str], list[str]]:
        current = find(connection, name)
        if current is None:
            return [], [f"hook {name} does not exist"]
        configuration = dict(current.configuration)
        outcomes = [change(configuration, key) for key in keys]
        refusals = [message for allowed, message in outcomes if not allowed]
        if refusals:
            return [], refusals
        write = "UPDATE hook SET configuration = :configuration WHERE id = :id"
        connection.change(write, configuration=to_json(configuration), id=current.id)
        return [message for _, message in outcomes], []

    return store.attempt(write)


def grant(store: Store, name: str, user: str, more: bool = True) -> bool:
    """Give a user Full Control of a hook, or take it away; return whether anything changed."""

    def change(connection: Connection) -> bool:
        current = find(connection, name)
        if current is None or (user in current.access) == more:
            return False
        access = [*current.access, user] if more else [other for other in current.access if other != user]
        connection.change("UPDATE hook SET access = :access WHERE id = :id", access=to_json(access), id=current.id)
        return True

    return store.attempt(change)
