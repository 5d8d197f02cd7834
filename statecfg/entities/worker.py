"""Workers: threads that claim tasks, run their behaviors and record the outcomes.

A worker keeps a task as long as it renews its lease. If a worker is killed, another one claims the task.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import uuid
from dataclasses import replace

from statecfg.entities import behaviors, disclosure
from statecfg.entities.invocation import BehaviorResult, Invocation, Update
from statecfg.entities.model import Principal, Task
from statecfg.entities.operations import Operations
from statecfg.entities.problems import ApiError
from statecfg.entities.tasks import LEASE
from statecfg.playbook.project import Project
from statecfg.store import StoreError

POLL = 1.0  # seconds between two polls for tasks that other processes queued
APART = 0.5  # seconds between two writes of an invocation's progress
END = 15.0  # seconds that `stop` waits for running tasks
log = logging.getLogger("statecfg.entities")


class Worker:
    """Runs several tasks concurrently.

    :param operations: the calls, on an open store
    :param project: the project with the functions and playbooks of behaviors
    :param size: number of tasks that run concurrently
    """

    def __init__(self, operations: Operations, project: Project, size: int = 4) -> None:
        self.operations, self.project, self.size = operations, project, size
        self.problems: list[str] = []  # the last 10 errors, the newest last
        self._name = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._stop = threading.Event()
        self._due = threading.Condition()
        self._calls = 0
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start to claim tasks."""
        for number in range(self.size):
            thread = threading.Thread(target=self._work, args=(f"{self._name}-{number}",), daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """Claim no more tasks, stop the running ones, and wait for them. The next worker continues the stopped ones."""
        self._stop.set()
        self.wake()
        end = time.monotonic() + END
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))

    def wake(self) -> None:
        """Look for tasks now, because one was added."""
        with self._due:
            self._calls += 1
            self._due.notify_all()

    def finish(self, task_id: str, seconds: float, who: Principal) -> Task:
        """Run a task here unless another worker runs it. Return it when it has ended or the time is over.

        :param seconds: how long to wait
        :param who: the requesting user, as for `get_task`
        """
        end = time.monotonic() + seconds
        name = f"{self._name}-{threading.get_ident()}"
        while True:
            task = self.operations.get_task(who, task_id)
            if task.is_finished or time.monotonic() >= end:
                return task
            claimed = self.operations.claim(name, task.id)
            if claimed is None:
                time.sleep(0.1)
            else:
                self._run(claimed, name)

    def _work(self, name: str) -> None:
        while not self._stop.is_set():
            with self._due:
                before = self._calls
            try:
                claimed = self.operations.claim(name)
                if claimed is not None:
                    self._run(claimed, name)
                    continue
            except (StoreError, ApiError) as problem:
                self._note(problem)
            except Exception as problem:  # a bug in statecfg: retry this task later, and continue with others
                log.exception("statecfg has a bug: it cannot run a task")
                self._note(problem)
            with self._due:
                self._wait_for_call(before)

    def _wait_for_call(self, before: int) -> None:
        """Wait until `wake` is called, the worker stops, or `POLL` has passed. The caller holds the lock of `_due`."""
        self._due.wait_for(lambda: self._calls != before or self._stop.is_set(), POLL)

    def _note(self, problem: Exception) -> None:
        self.problems = [*self.problems[-9:], str(problem)]

    def _run(self, task_id: str, name: str) -> None:
        """Run the invocations of a claimed task, one after the other."""
        with _TaskLease(self.operations, task_id, name, self._stop) as lease:
            while not self._stop.is_set() and not lease.lost.is_set():
                invocation = self.operations.advance(task_id)
                if invocation is None:
                    return
                outcome = self._invoke(invocation, lease)
                if outcome is None:
                    break
                self._enter_outcome(invocation, outcome, lease)
        if not lease.lost.is_set():
            self.operations.release(task_id, name)
            self.wake()

    def _enter_outcome(self, invocation: Invocation, outcome: BehaviorResult, lease: _TaskLease) -> None:
        """Record an outcome. Retry while this worker has the lease: a busy store must not cause a second run."""
        entered = outcome
        while True:
            try:
                self.operations.enter_outcome(invocation.tasks.claimed, invocation.id, entered)
                return
            except StoreError as problem:
                self._note(problem)
                if lease.lost.wait(APART):
                    raise
            except Exception as problem:  # a bug in statecfg: don't run it again either; the task reports it
                if entered is not outcome:
                    raise
                log.exception("statecfg has a bug: it cannot record the outcome of a task")
                entered = _bug(problem)

    def _invoke(self, invocation: Invocation, lease: _TaskLease) -> BehaviorResult | None:
        """Run one invocation; return its outcome, None if it was stopped."""
        news = _News(self.operations, invocation.id)
        store = self.operations.store.address
        url = store.url.replace("postgresql+psycopg", "postgresql", 1) if store.path is None else str(store.path)
        try:
            return behaviors.run(
                invocation,
                self.project,
                url,
                lease.over,
                news.tell,
                lambda: self.operations.invocation_token(invocation.id),
            )
        except (StoreError, ApiError):
            raise
        except Exception as problem:  # a bug in statecfg: the task reports it, and others continue
            return _bug(problem)
        finally:
            news.flush()


def _bug(problem: Exception) -> BehaviorResult:
    name = type(problem).__name__
    outcome = BehaviorResult.failed(f"{name}: {problem}; this is a bug in statecfg", "INTERNAL_SERVER_ERROR")
    return replace(outcome, public=f"statecfg has a bug: {name}. {disclosure.ASK}")


class _TaskLease:
    """Keeps a claimed task: a thread renews its lease every third of `LEASE`.

    `over` is set when the invocation must end: the worker stops, or the lease is lost (`lost`).
    """

    def __init__(self, operations: Operations, task_id: str, worker: str, stop: threading.Event) -> None:
        self.operations, self.task_id, self.worker, self.stop = operations, task_id, worker, stop
        self.over, self.lost, self.done = threading.Event(), threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True)

    def __enter__(self) -> _TaskLease:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self._thread.join()

    def _keep(self) -> None:
        renewed = time.monotonic()
        while not self.done.wait(0.2):
            if self.stop.is_set():
                self.over.set()
            now = time.monotonic()
            if now - renewed < LEASE / 3:
                continue
            try:
                if not self.operations.renew(self.task_id, self.worker):
                    self.lost.set()
                    self.over.set()
                    return
                renewed = now
            except StoreError:
                # Retry at once until the lease expires. Then another worker may have claimed the task.
                if now - renewed > LEASE:
                    self.lost.set()
                    self.over.set()
                    return


class _News:
    """Records the progress of an invocation, at most twice a second."""

    def __init__(self, operations: Operations, invocation: str) -> None:
        self.operations, self.invocation = operations, invocation
        self._due: Update = {}
        self._written = 0.0
        self._lock = threading.Lock()

    def tell(self, news: Update) -> None:
        """Accept new values."""
        with self._lock:
            self._due.update(news)
        if time.monotonic() - self._written >= APART:
            self.flush()

    def flush(self) -> None:
        """Record all new values. If the store fails, keep them for later: the invocation must not wait."""
        with self._lock:
            due, self._due = self._due, {}
            self._written = time.monotonic()
        if not due:
            return
        try:
            self.operations.update_task(self.invocation, **due)
        except StoreError:
            with self._lock:
                self._due = {**due, **self._due}
