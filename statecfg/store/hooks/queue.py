"""The queue of hook calls. Calls run one at a time, in the order in which they were queued."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from statecfg.remote.hooks.result import Judged
from statecfg.store.database import Store
from statecfg.store.hooks import log
from statecfg.store.hooks.records import Configuration, HookObject, Queued
from statecfg.store.tables import hook, host, invocation

Metadata = Mapping[str, Any]  # of a host: key → JSON value
Judge = Callable[[Configuration, Metadata | None], Judged]


def enqueue(connection: Connection, items: Iterable[Queued]) -> list[int]:
    """Append calls to the queue; return their positions."""
    positions = []
    for item in items:
        values = {
            "hook": item.hook.id,
            "event": item.event,
            "host": item.host,
            "given": item.hook_input,
            "playbook": item.playbook,
            "queued": time.time(),
            "started": 0,
        }
        positions.append(log.number(connection.execute(insert(invocation).values(values))))
    return positions


def last(store: Store) -> int:
    """Return the last position in the queue, 0 if the queue is empty."""
    with store.reading() as connection:
        return int(connection.execute(select(func.coalesce(func.max(invocation.c.id), 0))).scalar_one())


def waiting(store: Store) -> int:
    """Return the number of queued calls."""
    with store.reading() as connection:
        return int(connection.execute(select(func.count()).select_from(invocation)).scalar_one())


def pending(store: Store) -> list[Queued]:
    """Return the queued calls in the order in which they will run."""
    with store.reading() as connection:
        rows = connection.execute(select(invocation).order_by(invocation.c.id)).all()
        owners = {row.id: HookObject.from_row(row) for row in connection.execute(select(hook))}
    return [Queued.from_row(row, owners[row.hook]) for row in rows]


def begin(connection: Connection, upto: int) -> Queued | None:
    """Return the first queued call, and count that it was started.

    :param upto: the last position to consider
    :returns: None if no call is queued up to that position
    """
    first = select(invocation).where(invocation.c.id <= upto).order_by(invocation.c.id).limit(1)
    row = connection.execute(first).one_or_none()
    if row is None:
        return None
    connection.execute(update(invocation).where(invocation.c.id == row.id).values(started=row.started + 1))
    owner = HookObject.from_row(connection.execute(select(hook).where(hook.c.id == row.hook)).one())
    return Queued.from_row(row, owner)


def finish(connection: Connection, item: Queued, judge: Judge) -> Judged:
    """Store the result of a call and remove the call from the queue; return the result.

    :param judge: gets the hook's configuration and the host's metadata, as they are now, and returns the result
    """
    configured = connection.execute(select(hook.c.configuration).where(hook.c.id == item.hook.id)).one_or_none()
    record = connection.execute(select(host.c.metadata).where(host.c.id == item.host)).one_or_none()
    metadata = _metadata(item) if record is None else record.metadata
    judged = judge(configured.configuration if configured is not None else item.hook.configuration, metadata)
    connection.execute(update(hook).where(hook.c.id == item.hook.id).values(configuration=judged.configuration))
    if record is not None:
        connection.execute(update(host).where(host.c.id == item.host).values(metadata=judged.metadata))
    connection.execute(delete(invocation).where(invocation.c.id == item.id))
    log.write(connection, item, judged)
    return judged


def _metadata(item: Queued) -> Metadata | None:
    """Return a host's metadata when a call was queued, for a host that was forgotten since; None without a host."""
    node = item.hook_input.get("node")
    return None if node is None else dict(node.get("metadata", {}))
