"""Reconciled objects: what HTTP hooks were told and said of a playbook on a host, and which calls are still owed."""

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

    :param id: its number; never given again
    :param spec: what hooks are told of it, without secrets
    :param digest: SHA-256 of its definition
    :param generation: 1 for the first definition, one more for each other one
    :param finalizers: what still stands between it and its end
    :param status: as hooks and runs left it
    :param created: seconds since 1970
    :param deleted: when its end was asked for; None: it was not
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
    """A call of a hook that failed and is to be tried again.

    :param phase: "pre-reconcile" or "finalize"
    :param attempts: how often it was tried
    :param since: when it first failed (seconds since 1970)
    :param next: when to try again
    :param error: why it failed last
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
    """Return the object of a playbook on a host, made where there is none, with its definition as it is now.

    An object whose end was asked for lives again: its playbook is applied.
    """

    def enter(connection: Connection) -> Reconciled:
        known = _find(connection, playbook, host)
        if known is None:
            values = {"digest": digest, "generation": 1, "finalizers": [], "status": {}, "created": time.time()}
            connection.execute(insert(reconciled).values(playbook=playbook, host=host, spec=dict(spec), **values))
        elif known.digest != digest or known.deleted is not None or known.spec != spec:
            generation = known.generation + (known.digest != digest)
            change = {"spec": dict(spec), "digest": digest, "generation": generation, "deleted": None}
            connection.execute(update(reconciled).where(reconciled.c.id == known.id).values(change))
            # What was owed to its end is so no more.
            ended = and_(requeue.c.object == known.id, requeue.c.phase == "finalize")
            connection.execute(delete(requeue).where(ended))
        found = _find(connection, playbook, host)
        assert found is not None
        return found

    return store.attempt(enter)


def get(store: Store, playbook: str, host: str) -> Reconciled | None:
    """Return the object of a playbook on a host, or None."""
    with store.reading() as connection:
        return _find(connection, playbook, host)


def of_host(store: Store, host: str) -> list[Reconciled]:
    """Return the objects on a host, by playbook."""
    with store.reading() as connection:
        rows = connection.execute(select(reconciled).where(reconciled.c.host == host).order_by(reconciled.c.playbook))
        return [_object(row) for row in rows]


def delete_asked(store: Store, known: Reconciled) -> Reconciled:
    """Enter that the end of an object was asked for, where that is not entered; return it."""
    return _change(store, known, deleted=known.deleted or time.time())


def keep_status(store: Store, known: Reconciled, status: Json) -> Reconciled:
    """Keep the status of an object; return it."""
    return known if known.status == status else _change(store, known, status=dict(status))


def keep_finalizers(store: Store, known: Reconciled, finalizers: list[str]) -> Reconciled:
    """Keep the finalizers of an object; return it."""
    return known if known.finalizers == finalizers else _change(store, known, finalizers=finalizers)


def _change(store: Store, known: Reconciled, **values: Any) -> Reconciled:
    def change(connection: Connection) -> Reconciled:
        connection.execute(update(reconciled).where(reconciled.c.id == known.id).values(values))
        row = connection.execute(select(reconciled).where(reconciled.c.id == known.id)).one()
        return _object(row)

    return store.attempt(change)


def forget(store: Store, known: Reconciled) -> None:
    """Take an object and what is owed to it out of the store."""
    store.attempt(lambda connection: connection.execute(delete(reconciled).where(reconciled.c.id == known.id)))


def owe(store: Store, known: Reconciled, hook: str, phase: str, attempts: int, wait: float, error: str) -> Owed:
    """Enter that a call of a hook failed and is to be tried again.

    :param attempts: how often it was tried since it last succeeded or was entered
    :param wait: seconds from now to the next try
    """
    now = time.time()

    def enter(connection: Connection) -> Owed:
        before = connection.execute(select(requeue).where(_key(known, hook, phase))).one_or_none()
        connection.execute(delete(requeue).where(_key(known, hook, phase)))
        total = attempts + (before.attempts if before is not None else 0)
        since = before.since if before is not None else now
        row = {"attempts": total, "since": since, "next": now + wait, "error": error}
        connection.execute(insert(requeue).values(object=known.id, hook=hook, phase=phase, **row))
        return Owed(known.playbook, known.host, hook, phase, total, since, now + wait, error)

    return store.attempt(enter)


def forget_owed(store: Store, known: Reconciled, hook: str, phase: str) -> None:
    """Delete an owed call of a hook, if there is one."""
    with store.reading() as connection:
        owed = connection.execute(select(requeue.c.object).where(_key(known, hook, phase))).first()
    if owed is not None:
        store.attempt(lambda connection: connection.execute(delete(requeue).where(_key(known, hook, phase))))


def owed(store: Store, due: float | None = None) -> list[Owed]:
    """Return the calls that are owed for playbooks of the store's project, by when to try again.

    :param due: only those to be tried by then (seconds since 1970); None for all
    """
    columns = (reconciled.c.playbook, reconciled.c.host, *(column for column in requeue.c if column.name != "object"))
    query = select(*columns).join(reconciled, reconciled.c.id == requeue.c.object).order_by(requeue.c.next)
    if store.project:
        query = query.where(reconciled.c.playbook.startswith(f"{store.project}/", autoescape=True))
    if due is not None:
        query = query.where(requeue.c.next <= due)
    with store.reading() as connection:
        return [Owed(**row._mapping) for row in connection.execute(query)]


def log(store: Store, known: Reconciled, severity: str, entry: Json) -> None:
    """Write what came of a call into the log of hooks.

    :param severity: "info", "warn" or "error"
    :param entry: as the log of programs has it, and `hook`, its name: an HTTP hook is no object of the store
    """
    row = {"at": time.time(), "playbook": known.playbook, "severity": severity, "detail": ""}

    def enter(connection: Connection) -> None:
        # The first call for a host comes before the host is met.
        number = hosts.ensure(connection, store.project, known.host).id
        connection.execute(insert(event).values(**row, host=number, entry=dict(entry)))

    store.attempt(enter)


def _key(known: Reconciled, hook: str, phase: str) -> Any:
    return and_(requeue.c.object == known.id, requeue.c.hook == hook, requeue.c.phase == phase)


def _find(connection: Connection, playbook: str, host: str) -> Reconciled | None:
    query = select(reconciled).where(and_(reconciled.c.playbook == playbook, reconciled.c.host == host))
    row = connection.execute(query).one_or_none()
    return None if row is None else _object(row)


def _object(row: Row[Any]) -> Reconciled:
    return Reconciled(**row._mapping)
