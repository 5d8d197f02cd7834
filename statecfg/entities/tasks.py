"""Tasks: calls that show them to users, and calls with which workers execute them step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from statecfg.entities import rows, urn, work
from statecfg.entities.calls import Calls, listed
from statecfg.entities.filters import FilterField
from statecfg.entities.invocation import BehaviorResult, Invocation
from statecfg.entities.model import Page, Principal, Query, Task
from statecfg.entities.problems import forbidden
from statecfg.store import records
from statecfg.store.entities import lists as entity_lists
from statecfg.store.entities import queue as entity_queue
from statecfg.store.entities import tables

LEASE = 30.0  # seconds after which an unrenewed lease of a task expires
FIELDS = {
    "id": FilterField("id"),
    "name": FilterField("name"),
    "operationName": FilterField("name"),
    "operation": FilterField("operation"),
    "status": FilterField("status"),
    "owner": FilterField("entity"),
    "owner.name": FilterField("entity_name"),
    "entity": FilterField("entity"),
    "user": FilterField("user"),
    "org": FilterField("org"),
    "parent": FilterField("parent"),
    "progress": FilterField("progress", "number"),
    "startTime": FilterField("started", "time"),
    "endTime": FilterField("ended", "time"),
    "creationDate": FilterField("created", "time"),
}


class TaskCalls(Calls):
    """Calls about tasks.

    A worker claims a task with `claim`. While `advance` returns an invocation, the worker runs it (with `renew` every
    third of `LEASE`) and reports its outcome with `enter_outcome`. If a worker dies, another one claims the task when
    the lease expires, and runs the current step again, with the same invocation id.
    """

    def get_task(self, principal: Principal, id: str) -> Task:
        """Return a task. Users see their own tasks and those of entities that they may see.

        :param id: its URN, or the UUID in it
        """
        with self.store.reading() as connection:
            scope = [*_seen(principal), *entity_lists.of(tables.task, id=urn.task(id) if id else "")]
            tasks, _ = entity_lists.page(connection, tables.task, scope, None, None, False, 0, 1)
        if not tasks:
            raise forbidden(id[:200])
        return _converter(principal)(tasks[0])

    def list_tasks(self, principal: Principal, query: Query) -> Page[Task]:
        """Return a page of the tasks that the user may see, by default the newest first.

        Filters and sorts by id, operationName (name), status, owner (entity), owner.name, user, org, parent, startTime,
        endTime.
        """
        if not query.sort:
            query = Query(query.filter, "", True, query.page, query.page_size)
        with self.store.reading() as connection:
            return listed(connection, tables.task, _seen(principal), query, FIELDS, _converter(principal))

    def subtasks(self, principal: Principal, id: str) -> list[Task]:
        """Return the subtasks of a task, in order."""
        parent = self.get_task(principal, id).id
        with self.store.reading() as connection:
            return [_converter(principal)(row) for row in records.every(connection, tables.task, parent=parent)]

    def claim(self, worker: str, task_id: str | None = None) -> str | None:
        """Claim a task that is due and that no worker has leased; return its id, None if there is none.

        Of an entity's tasks, only the oldest unfinished one can be claimed. Users' invocations are exempt from this.

        :param worker: a name that is unique among all workers of all processes
        :param task_id: claim only this task
        """
        due = self.next_due()
        now = self.clock()
        if due is None or due > now:
            return None
        return self.store.attempt(lambda connection: entity_queue.claim(connection, worker, now, now + LEASE, task_id))

    def renew(self, task_id: str, worker: str) -> bool:
        """Renew the lease of a claimed task for another `LEASE`.

        :returns: False if another worker has the task, or it has ended
        """
        until = self.clock() + LEASE
        return self.store.attempt(lambda connection: entity_queue.renew(connection, task_id, worker, until))

    def release(self, task_id: str, worker: str) -> None:
        """Release a claimed task, so that the next worker doesn't have to wait until the lease expires."""
        self.store.attempt(lambda connection: entity_queue.renew(connection, task_id, worker, 0.0))

    def advance(self, task_id: str) -> Invocation | None:
        """Return the next invocation of a claimed task; None if the task has ended."""
        now = self.clock()

        def step(connection: Any) -> Invocation | None:
            return work.advance(connection, rows.need(connection, tables.task, task_id), now)

        return self.store.attempt(step)

    def enter_outcome(self, task_id: str, invocation_id: str, outcome: BehaviorResult) -> bool:
        """Record the outcome of an invocation and its consequences, in one transaction.

        :param task_id: the claimed task
        :returns: whether the task waited for this invocation; False if its outcome was recorded before
        """
        now = self.clock()

        def enter(connection: Any) -> bool:
            task = records.find(connection, tables.task, id=task_id)
            return task is not None and work.enter_outcome(connection, task, invocation_id, outcome, now)

        return self.store.attempt(enter)

    def update_task(
        self,
        invocation_id: str,
        progress: int | None = None,
        details: str | None = None,
        operation: str | None = None,
        log: str | None = None,
    ) -> None:
        """Record the progress of a running invocation.

        :param progress: percent
        :param details, operation: texts of the task that shows it
        :param log: its details for administrators
        """
        values = {
            "progress": None if progress is None else min(max(progress, 0), 100),
            "details": None if details is None else work.newest(details),
            "operation": None if operation is None else work.plain(operation),
            "log": None if log is None else work.newest(log),
        }
        changed = {key: value for key, value in values.items() if value is not None}
        if changed:
            self.store.attempt(
                lambda connection: records.change(
                    connection, tables.task, changed, invocation=invocation_id, ended=None
                )
            )

    def next_due(self) -> float | None:
        """Return when the next task can be claimed (seconds since 1970); None if no task is waiting."""
        with self.store.reading() as connection:
            return entity_queue.next_due(connection)


def _converter(principal: Principal) -> Callable[[Any], Task]:
    """Return a function that converts rows to tasks: `details` shows administrators the log, other users get no log."""

    def shown(row: Any) -> Task:
        task = rows.task(row)
        for_administrators = {"details": row.log or row.details}
        changes = for_administrators if principal.is_administrator else {"log": ""}
        return replace(task, reported=replace(task.reported, **changes))

    return shown


def _seen(principal: Principal) -> list[Any]:
    if principal.is_administrator:
        return []
    return entity_lists.seen_tasks(principal.name, principal.org, [principal.id, principal.org_id])
