"""The queue of tasks: which tasks are due, and which worker holds the lease of a task."""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, delete, func, or_, select, update

from statecfg.store.connection import Connection
from statecfg.store.entities.tables import task

KEPT = 10_000  # maximum number of ended tasks in the store


def claim(connection: Connection, worker: str, now: float, until: float, task_id: str | None) -> str | None:
    """Lease the oldest due task to a worker; return the task's id, or None if no task is due.

    :param until: end of the lease; then other workers can claim the task
    :param task_id: consider only this task; None for all
    """
    due = select(task.c.id).where(task.c.due <= now, _first())
    if task_id is not None:
        due = due.where(task.c.id == task_id)
    id = connection.execute(due.order_by(task.c.number).limit(1)).scalar_one_or_none()
    if id is not None:
        connection.execute(update(task).where(task.c.id == id).values(worker=worker, due=until))
    return id


def renew(connection: Connection, task_id: str, worker: str, until: float) -> bool:
    """Renew the lease of a worker's task; with `until` 0, release it. Return False if the worker lost the lease."""
    mine = update(task).where(task.c.id == task_id, task.c.worker == worker, task.c.due.is_not(None))
    return connection.execute(mine.values(due=until, worker=worker if until else "")).rowcount == 1


def next_due(connection: Connection) -> float | None:
    """Return when the next task is due; None if no task is waiting."""
    # The comparison lets the database use the index and read only waiting tasks.
    waiting = select(func.min(task.c.due)).where(task.c.due >= 0, _first())
    first: float | None = connection.execute(waiting).scalar_one()
    return first


def _first() -> ColumnElement[bool]:
    """Return the condition that a task need not wait for an older serial task of the same entity."""
    older = task.alias("older")
    before = and_(
        older.c.entity == task.c.entity,
        older.c.serial,
        older.c.due.is_not(None),
        older.c.number < task.c.number,
    )
    return or_(~task.c.serial, ~select(older.c.number).where(before).exists())


def forget_old(connection: Connection) -> None:
    """Delete the oldest ended tasks if there are more than `KEPT`."""
    newest = select(task.c.number).where(task.c.ended.is_not(None)).order_by(task.c.number.desc())
    last = connection.execute(newest.offset(KEPT).limit(1)).scalar_one_or_none()
    if last is not None:
        connection.execute(delete(task).where(task.c.ended.is_not(None), task.c.number <= last))
