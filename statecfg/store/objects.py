"""Reconciled objects: a playbook on a host as HTTP hooks see it, and the owed calls of these hooks."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, and_, delete, insert, select, update

from statecfg.store import hosts
from statecfg.store.database import Store
from statecfg.store.tables import event, reconciled, requeue

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
            values = {"digest": digest, "generation": 1, "finalizers": [], "status": {}, "created": time.time()}
            connection.execute(insert(reconciled).values(playbook=playbook, host=host, spec=dict(spec), **values))
        elif object.digest != digest or object.deleted is not None or object.spec != spec:
            generation = object.generation + (object.digest != digest)
            change = {"spec": dict(spec), "digest": digest, "generation": generation, "deleted": None}
            connection.execute(update(reconciled).where(reconciled.c.id == object.id).values(change))
            # Finalize calls are no longer owed.
            ended = and_(requeue.c.object == object.id, requeue.c.phase == "finalize")
            connection.execute(delete(requeue).where(ended))
        result = _find(connection, playbook, host)
        assert result is not None
        return result

    return store.attempt(enter)


def get(store: Store, playbook: str, host: str) -> Reconciled | None:
    """Return the object of a playbook on a host, or None."""
    with store.reading() as connection:
        return _find(connection, playbook, host)


def delete_asked(store: Store, object: Reconciled) -> Reconciled:
    """Store that the deletion of an object was requested; return the object."""
    return _change(store, object, deleted=object.deleted or time.time())


def keep_status(store: Store, object: Reconciled, status: Json) -> Reconciled:
    """Store the status of an object; return the object."""
    return object if object.status == status else _change(store, object, status=dict(status))


def keep_finalizers(store: Store, object: Reconciled, finalizers: list[str]) -> Reconciled:
    """Store the finalizers of an object; return the object."""
    return object if object.finalizers == finalizers else _change(store, object, finalizers=finalizers)


def _change(store: Store, object: Reconciled, **values: Any) -> Reconciled:
    def change(connection: Connection) -> Reconciled:
        connection.execute(update(reconciled).where(reconciled.c.id == object.id).values(values))
        row = connection.execute(select(reconciled).where(reconciled.c.id == object.id)).one()
        return _object(row)

    return store.attempt(change)


def forget(store: Store, object: Reconciled) -> None:
    """Delete an object and its owed calls from the store."""
    store.attempt(lambda connection: connection.execute(delete(reconciled).where(reconciled.c.id == object.id)))


def owe(store: Store, object: Reconciled, hook: str, phase: str, attempts: int, wait: float, error: str) -> Owed:
    """Store that a call of a hook failed and must be repeated.

    :param attempts: number of attempts since the last success or the last call of this function
    :param wait: seconds until the next attempt
    """
    now = time.time()

    def enter(connection: Connection) -> Owed:
        before = connection.execute(select(requeue).where(_key(object, hook, phase))).one_or_none()
        connection.execute(delete(requeue).where(_key(object, hook, phase)))
        total = attempts + (before.attempts if before is not None else 0)
        since = before.since if before is not None else now
        row = {"attempts": total, "since": since, "next": now + wait, "error": error}
        connection.execute(insert(requeue).values(object=object.id, hook=hook, phase=phase, **row))
        return Owed(object.playbook, object.host, hook, phase, total, since, now + wait, error)

    return store.attempt(enter)


def forget_owed(store: Store, object: Reconciled, hook: str, phase: str) -> None:
    """Delete an owed call of a hook, if there is one."""
    with store.reading() as connection:
        owed = connection.execute(select(requeue.c.object).where(_key(object, hook, phase))).first()
    if owed is not None:
        store.attempt(lambda connection: connection.execute(delete(requeue).where(_key(object, hook, phase))))


def owed(store: Store, due: float | None = None) -> list[Owed]:
    """Return the owed calls for playbooks of the store's project, sorted by the time of their next attempt.

    :param due: only calls whose next attempt is due by this time (seconds since 1970); None for all
    """
    columns = (reconciled.c.playbook, reconciled.c.host, *(column for column in requeue.c if column.name != "object"))
    query = select(*columns).join(reconciled, reconciled.c.id == requeue.c.object).order_by(requeue.c.next)
    if store.project:
        query = query.where(reconciled.c.playbook.startswith(f"{store.project}/", autoescape=True))
    if due is not None:
        query = query.where(requeue.c.next <= due)
    with store.reading() as connection:
        return [Owed(**row._mapping) for row in connection.execute(query)]


def log(store: Store, object: Reconciled, severity: str, entry: Json) -> None:
    """Write the result of a call to the log of hooks.

    :param severity: "info", "warn" or "error"
    :param entry: as in the log of program hooks, and `hook`: the name. The store has no objects for HTTP hooks
    """
    row = {"at": time.time(), "playbook": object.playbook, "severity": severity, "detail": ""}

    def enter(connection: Connection) -> None:
        # The first call for a host can precede the first contact with the host.
        number = hosts.ensure(connection, store.project, object.host).id
        connection.execute(insert(event).values(**row, host=number, entry=dict(entry)))

    store.attempt(enter)


def _key(object: Reconciled, hook: str, phase: str) -> Any:
    return and_(requeue.c.object == object.id, requeue.c.hook == hook, requeue.c.phase == phase)


def _find(connection: Connection, playbook: str, host: str) -> Reconciled | None:
    query = select(reconciled).where(and_(reconciled.c.playbook == playbook, reconciled.c.host == host))
    row = connection.execute(query).one_or_none()
    return None if row is None else _object(row)


def _object(row: Row[Any]) -> Reconciled:
    return Reconciled(**row._mapping)
