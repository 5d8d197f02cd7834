"""Reconciled objects: a playbook on a host as HTTP hooks see it, and the owed calls of these hooks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from statecfg.problems.frozen import dataclass
from statecfg.store import hosts
from statecfg.store.connection import Connection, Row, from_json, row_of, to_json
from statecfg.store.database import Store

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reconciled:
    """A playbook on a host.

    :param id: its number; never reused
    :param spec: what hooks receive, without secrets
    :param digest: SHA-256 of its definition
    :param generation: number of the definition, from 1
    :param finalizers: those that must be removed before the object can be deleted
    :param status: set by hooks and runs
    :param created: seconds since 1970
    :param deleted: when its deletion was requested; None if it was not
    """

    id: int
    playbook: str
    host: str
    spec: Json
    digest: str
    generation: int
    finalizers: list[str]
    status: Json
    created: float
    deleted: float | None


@dataclass(frozen=True, slots=True)
class Owed:
    """A failed call of a hook that must be repeated.

    :param phase: "pre-reconcile" or "finalize"
    :param attempts: number of failed attempts
    :param since: when the call first failed (seconds since 1970)
    :param next: time of the next attempt
    :param error: error of the last attempt
    """

    playbook: str
    host: str
    hook: str
    phase: str
    attempts: int
    since: float
    next: float
    error: str


def ensure(store: Store, playbook: str, host: str, spec: Json, digest: str) -> Reconciled:
    """Return the object of a playbook on a host with the current definition. Create it if it does not exist.

    Cancel a requested deletion, because the playbook is applied again.
    """

    def enter(connection: Connection) -> Reconciled:
        object = _find(connection, playbook, host)
        if object is None:
            connection.change(
                "INSERT INTO object (playbook, host, spec, digest, generation, finalizers, status, created)"
                " VALUES (:playbook, :host, :spec, :digest, 1, '[]', '{}', :created)",
                playbook=playbook,
                host=host,
                spec=to_json(dict(spec)),
                digest=digest,
                created=time.time(),
            )
        elif object.digest != digest or object.deleted is not None or object.spec != spec:
            generation = object.generation + (object.digest != digest)
            change = {"spec": to_json(dict(spec)), "digest": digest, "generation": generation, "deleted": None}
            connection.change(f"UPDATE object SET {_set(change)} WHERE id = :id", id=object.id, **change)
            # Finalize calls are no longer owed.
            connection.change("DELETE FROM requeue WHERE object = :id AND phase = 'finalize'", id=object.id)
        result = _find(connection, playbook, host)
        assert result is not None
        return result

    return store.attempt(enter)


def exist(store: Store) -> bool:
    """Return whether the store has any object."""
    with store.reading() as connection:
        return bool(connection.rows("SELECT id FROM object LIMIT 1"))


def get(store: Store, playbook: str, host: str) -> Reconciled | None:
    """Return the object of a playbook on a host, or None."""
    with store.reading() as connection:
        return _find(connection, playbook, host)


def delete_asked(store: Store, object: Reconciled) -> Reconciled:
    """Store that the deletion of an object was requested; return the object."""
    return _change(store, object, deleted=object.deleted or time.time())


def keep_status(store: Store, object: Reconciled, status: Json) -> Reconciled:
    """Store the status of an object; return the object."""
    return object if object.status == status else _change(store, object, status=to_json(dict(status)))


def keep_finalizers(store: Store, object: Reconciled, finalizers: list[str]) -> Reconciled:
    """Store the finalizers of an object; return the object."""
    return object if object.finalizers == finalizers else _change(store, object, finalizers=to_json(finalizers))


def _change(store: Store, object: Reconciled, **values: Any) -> Reconciled:
    def change(connection: Connection) -> Reconciled:
        connection.change(f"UPDATE object SET {_set(values)} WHERE id = :id", id=object.id, **values)
        [row] = connection.rows("SELECT * FROM object WHERE id = :id", id=object.id)
        return _object(row)

    return store.attempt(change)


def _set(columns: Iterable[str]) -> str:
    """Return the SQL text that sets columns to the values with the same names."""
    return ", ".join(f"{column} = :{column}" for column in columns)


def forget(store: Store, object: Reconciled) -> None:
    """Delete an object and its owed calls from the store."""
    store.attempt(lambda connection: connection.change("DELETE FROM object WHERE id = :id", id=object.id))


def owe(store: Store, object: Reconciled, hook: str, phase: str, attempts: int, wait: float, error: str) -> Owed:
    """Store that a call of a hook failed and must be repeated.

    :param attempts: number of attempts since the last success or the last call of this function
    :param wait: seconds until the next attempt
    """
    now = time.time()

    def enter(connection: Connection) -> Owed:
        key = {"object": object.id, "hook": hook, "phase": phase}
        before = row_of(connection, f"SELECT * FROM requeue WHERE {_KEY}", **key)
        connection.change(f"DELETE FROM requeue WHERE {_KEY}", **key)
        total = attempts + (before["attempts"] if before is not None else 0)
        since = before["since"] if before is not None else now
        connection.change(
            "INSERT INTO requeue (object, hook, phase, attempts, since, next, error)"
            " VALUES (:object, :hook, :phase, :attempts, :since, :next, :error)",
            {**key, "attempts": total, "since": since, "next": now + wait, "error": error},
        )
        return Owed(object.playbook, object.host, hook, phase, total, since, now + wait, error)

    return store.attempt(enter)


def forget_owed(store: Store, object: Reconciled, hook: str, phase: str) -> None:
    """Delete an owed call of a hook, if there is one."""
    key = {"object": object.id, "hook": hook, "phase": phase}
    with store.reading() as connection:
        owed = connection.rows(f"SELECT object FROM requeue WHERE {_KEY}", **key)
    if owed:
        store.attempt(lambda connection: connection.change(f"DELETE FROM requeue WHERE {_KEY}", **key))


def owed(store: Store, due: float | None = None) -> list[Owed]:
    """Return the owed calls for playbooks of the store's project, sorted by the time of their next attempt.

    :param due: only calls whose next attempt is due by this time (seconds since 1970); None for all
    """
    names = ", ".join(f"requeue.{column}" for column in ("hook", "phase", "attempts", "since", "next", "error"))
    query = f"SELECT object.playbook, object.host, {names} FROM requeue JOIN object ON object.id = requeue.object"
    with store.reading() as connection:
        calls = [Owed(**row) for row in connection.rows(f"{query} ORDER BY requeue.next")]
    within = f"{store.project}/" if store.project else ""
    return [call for call in calls if call.playbook.startswith(within) and (due is None or call.next <= due)]


def log(store: Store, object: Reconciled, severity: str, entry: Json) -> None:
    """Write the result of a call to the log of hooks.

    :param severity: "info", "warn" or "error"
    :param entry: as in the log of program hooks, and `hook`: the name. The store has no objects for HTTP hooks
    """

    def enter(connection: Connection) -> None:
        # The first call for a host can precede the first contact with the host.
        number = hosts.ensure(connection, store.project, object.host).id
        connection.change(
            "INSERT INTO event (at, host, playbook, severity, entry, detail)"
            " VALUES (:at, :host, :playbook, :severity, :entry, '')",
            at=time.time(),
            host=number,
            playbook=object.playbook,
            severity=severity,
            entry=to_json(dict(entry)),
        )

    store.attempt(enter)


_KEY = "object = :object AND hook = :hook AND phase = :phase"


def _find(connection: Connection, playbook: str, host: str) -> Reconciled | None:
    query = "SELECT * FROM object WHERE playbook = :playbook AND host = :host"
    row = row_of(connection, query, playbook=playbook, host=host)
    return None if row is None else _object(row)


def _object(row: Row) -> Reconciled:
    return Reconciled(**{**row, **{name: from_json(row[name]) for name in ("spec", "finalizers", "status")}})
