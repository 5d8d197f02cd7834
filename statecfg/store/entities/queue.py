"""The queue of tasks: which of them has something to run, and which worker has it."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, and_, delete, func, or_, select, update

from statecfg.store.entities.tables import task

KEPT = 10_000  # tasks that have ended; the oldest of more are forgotten


def claim(connection: Connection, worker: str, now: float, until: float, task_id: str | None) -> str | None:
    """Give a worker the oldest task that is due; return its id.

    :param until: when it is due for others again
    :param task_id: only this task
    """
    due = select(task.c.id).where(task.c.due <= now, _first())
    if task_id is not None:
        due = due.where(task.c.id == task_id)
    found = connection.execute(due.order_by(task.c.number).limit(1)).scalar_one_or_none()
    if found is not None:
        connection.execute(update(task).where(task.c.id == found).values(worker=worker, due=until))
    return found


def renew(connection: Connection, task_id: str, worker: str, until: float) -> bool:
    """Keep a worker's task, or, with `until` 0, give it back; False where it is not the worker's any more."""
    mine = update(task).where(task.c.id == task_id, task.c.worker == worker, task.c.due.is_not(None))
    return connection.execute(mine.values(due=until, worker=worker if until else "")).rowcount == 1


def next_due(connection: Connection) -> float | None:
    """Return when a task is due next; None: none is."""
    # The comparison lets the database look at those alone that wait, of all the tasks that there were.
    waiting = select(func.min(task.c.due)).where(task.c.due >= 0, _first())
    found: float | None = connection.execute(waiting).scalar_one()
    return found


def _first() -> ColumnElement[bool]:
    """Return the condition that no older task of the same entity stands before one."""
    older = task.alias("older")
    before = and_(
        older.c.entity == task.c.entity,
        older.c.serial,
        older.c.due.is_not(None),
        older.c.number < task.c.number,
    )
    return or_(~task.c.serial, ~select(older.c.number).where(before).exists())


def forget_old(connection: Connection) -> None:
    """Remove the oldest of the tasks that have ended, where there are more than `KEPT`."""
    newest = select(task.c.number).where(task.c.ended.is_not(None)).order_by(task.c.number.desc())
    last = connection.execute(newest.offset(KEPT).limit(1)).scalar_one_or_none()
    if last is not None:
        connection.execute(delete(task).where(task.c.ended.is_not(None), task.c.number <= last))
