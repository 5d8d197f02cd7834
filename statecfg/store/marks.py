"""Detect changes in the store. Each topic has a mark, which changes whenever the topic's data changes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Text, func, select, type_coerce

from statecfg.store.connection import Connection
from statecfg.store.database import Store
from statecfg.store.entities.tables import entity, entity_type, task
from statecfg.store.service_tables import relation, relation_unit, service, unit
from statecfg.store.tables import binding, event, going, going_host, host, invocation, run


def read(store: Store, dead: float) -> dict[str, str]:
    """Return topic → mark. This is cheap: it reads rows only of small tables, and aggregates of the others.

    :param dead: unfinished runs with their last heartbeat before this time count as interrupted (seconds since 1970)
    """
    with store.reading() as connection:
        return {topic: _digest(connection, queries) for topic, queries in _topics(dead).items()}


def _topics(dead: float) -> dict[str, Sequence[Any]]:
    raw = [type_coerce(column, Text) for column in (host.c.tags, host.c.metadata)]
    stated = [type_coerce(column, Text) for column in (unit.c.ports, unit.c.status, unit.c.message)]
    return {
        "hosts": (
            select(host.c.id, host.c.last_checkin, host.c.installed_at, *raw).order_by(host.c.id),
            select(func.count(), func.max(binding.c.since)).select_from(binding),
        ),
        "runs": (
            select(func.count(), func.max(run.c.started), func.max(run.c.ended)).select_from(run),
            select(going.c.id, going.c.beat < dead).order_by(going.c.id),
            select(going_host.c.run, func.count())
            .where(going_host.c.status != "")
            .group_by(going_host.c.run)
            .order_by(going_host.c.run),
        ),
        "hooks": (
            select(func.max(event.c.id)),
            select(func.count(), func.max(invocation.c.id), func.sum(invocation.c.started)).select_from(invocation),
        ),
        "services": (
            select(func.count(), func.max(service.c.id), func.sum(service.c.next)).select_from(service),
            select(service.c.id, service.c.alive).order_by(service.c.id),
            select(unit.c.id, unit.c.state, unit.c.error, unit.c.dying, unit.c.gone, unit.c.since, *stated).order_by(
                unit.c.id
            ),
            select(relation.c.id, relation.c.dying).order_by(relation.c.id),
            select(func.count()).select_from(relation_unit).where(relation_unit.c.failed != ""),
        ),
        "entities": (
            select(func.count(), func.max(entity.c.number), func.sum(entity.c.revision)).select_from(entity),
            select(entity.c.state, func.count(), func.max(entity.c.modified))
            .group_by(entity.c.state)
            .order_by(entity.c.state),
            select(func.count(), func.max(entity_type.c.number)).select_from(entity_type),
        ),
        "tasks": (
            select(task.c.status, func.count(), func.max(task.c.number))
            .group_by(task.c.status)
            .order_by(task.c.status),
            select(func.max(task.c.ended)),
            select(task.c.number, task.c.progress, task.c.operation)
            .where(task.c.status == "running")
            .order_by(task.c.number),
        ),
    }


def _digest(connection: Connection, queries: Iterable[Any]) -> str:
    digest = hashlib.blake2b(digest_size=12)
    for query in queries:
        for row in connection.execute(query):
            digest.update(repr(tuple(row)).encode())
        digest.update(b"\n")
    return digest.hexdigest()
