"""Tasks: shown to users, and handed to workers one step after the other."""

from __future__ import annotations

from statecfg.entities.calls import Calls
from statecfg.entities.model import Invocation, Outcome, Page, Principal, Query, Task

LEASE = 30.0  # seconds for which a worker that says nothing more still has its task


class TaskCalls(Calls):
    """Calls about tasks.

    A worker's round: `claim` a task; while `advance` gives an invocation, run that (with `renew` every third of
    `LEASE`) and `settle` what came of it. What a worker that died had is claimed by another when its lease is over;
    the step it was at is then run again, under the same invocation id.
    """

    def get_task(self, principal: Principal, id: str) -> Task:
        """Return a task, by its URN or the UUID in it. Users see theirs and those of entities that they see."""
        raise NotImplementedError

    def list_tasks(self, principal: Principal, query: Query) -> Page[Task]:
        """Return a page of the tasks that may be seen; the newest first where nothing else is asked for.

        Filters and sorts by id, operationName (name), status, owner (entity), user, org, parent, startTime, endTime.
        """
        raise NotImplementedError

    def subtasks(self, principal: Principal, id: str) -> list[Task]:
        """Return the tasks that a task is made of, in their order."""
        raise NotImplementedError

    def claim(self, worker: str, task_id: str | None = None) -> str | None:
        """Take a task that has something to run and is nobody's; return its id, None for none.

        Of one entity's tasks, only the oldest that is not finished can be claimed; invocations by users run beside.

        :param worker: unique for each worker of each process
        :param task_id: this one only
        """
        raise NotImplementedError

    def renew(self, task_id: str, worker: str) -> bool:
        """Keep a claimed task for another `LEASE`; return False where it is another's by now, or has ended."""
        raise NotImplementedError

    def release(self, task_id: str, worker: str) -> None:
        """Give a claimed task back, so that the next worker needn't wait for the lease's end."""
        raise NotImplementedError

    def advance(self, task_id: str) -> Invocation | None:
        """Return what a claimed task has to run next; None: nothing, it has ended."""
        raise NotImplementedError

    def settle(self, task_id: str, invocation_id: str, outcome: Outcome) -> bool:
        """Enter what came of an invocation, and do what follows from it, in one transaction.

        :param task_id: the claimed one
        :returns: whether it was this that was waited for; False where it was entered before
        """
        raise NotImplementedError

    def update_task(
        self,
        invocation_id: str,
        progress: int | None = None,
        details: str | None = None,
        operation: str | None = None,
    ) -> None:
        """Enter how far an invocation that runs has come.

        :param progress: percent
        :param details, operation: texts of the task that shows it
        """
        raise NotImplementedError

    def next_due(self) -> float | None:
        """Return when a task can be claimed next (seconds since 1970), None for never as things are."""
        raise NotImplementedError
