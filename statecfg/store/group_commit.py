"""Commits the changes of many threads together: one transaction for everything that arrived since the last commit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from statecfg.store.connection import Connection
from statecfg.store.errors import Busy, StoreError

T = TypeVar("T")


class _Change:
    """A change that waits for its commit.

    :param function: works only through the connection that it receives
    """

    def __init__(self, function: Callable[[Connection], Any]) -> None:
        self.function = function
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None

    def end(self, result: Any = None, error: BaseException | None = None) -> None:
        """Note the result or the error."""
        self.result, self.error, self.done = result, error, True


class GroupCommit:
    """Lets one thread at a time commit the changes of all waiting threads.

    If the function of one change fails, nothing of the others is lost: each change then gets its own transaction.

    :param commit: runs a function in one transaction, and stores its changes exactly once
    :param label: the address of the store, for messages
    :param wait: the longest time in seconds until a change is begun
    """

    def __init__(self, commit: Callable[[Callable[[Connection], Any]], Any], label: str, wait: float) -> None:
        self._commit, self._label, self._wait = commit, label, wait
        self._committing = threading.Lock()
        self._queue = threading.Lock()  # held for moments
        self._waiting: list[_Change] = []

    def attempt(self, function: Callable[[Connection], T]) -> T:
        """Run a function in a transaction, perhaps with the functions of other threads; return its result.

        :param function: may be called more than once, and from another thread
        :raises Busy: other threads wrote for too long
        :raises StoreError: the transaction failed, or its outcome is unknown
        """
        change = _Change(function)
        with self._queue:
            self._waiting.append(change)
        if not self._committing.acquire(timeout=self._wait):
            self._give_up(change)
            self._committing.acquire()
        try:
            if not change.done:
                self._commit_waiting()
        finally:
            self._committing.release()
        if change.error is not None:
            raise change.error
        result: T = change.result
        return result

    def _give_up(self, change: _Change) -> None:
        """Stop waiting, unless another thread commits the change now.

        :raises Busy: no thread has begun the change
        """
        with self._queue:
            if change in self._waiting:
                self._waiting.remove(change)
                raise Busy(f"{self._label}: another thread has written for {self._wait:.0f} s")

    def _commit_waiting(self) -> None:
        with self._queue:
            changes, self._waiting = self._waiting, []
        try:
            if len(changes) == 1 or not self._together(changes):
                for change in changes:
                    self._alone(change)
        finally:
            for change in changes:  # an interrupt of this thread
                if not change.done:
                    text = f"{self._label}: it was interrupted; it is unknown whether the last change was stored"
                    change.end(error=StoreError(text, "run the command again"))

    def _together(self, changes: Sequence[_Change]) -> bool:
        """Commit changes in one transaction; return False if the function of one of them fails."""
        running = False
        results: list[Any] = []

        def enter(connection: Connection) -> None:
            nonlocal running
            running = True
            results[:] = ()
            for change in changes:
                results.append(change.function(connection))
            running = False

        try:
            self._commit(enter)
        except Exception as problem:
            if running:
                return False
            for change in changes:  # the database failed, not a function
                change.end(error=problem)
            return True
        for change, result in zip(changes, results, strict=True):
            change.end(result)
        return True

    def _alone(self, change: _Change) -> None:
        try:
            change.end(self._commit(change.function))
        except Exception as problem:
            change.end(error=problem)
