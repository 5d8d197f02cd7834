"""The lock for running exec hooks: threads of a process wait in order, and the first one waits for other processes."""

from __future__ import annotations

import collections
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from statecfg.store import Busy, locks

if TYPE_CHECKING:
    from statecfg.store.database import Store
    from statecfg.store.lock import StoreLock

RUN = "hooks"
NEXT = "hooks-next"  # its holder gets the lock next, so that the last holder can't take it again and again
LOOK = 1.0  # seconds after which a waiting thread asks whether to continue waiting
GIVEN_UP = "it was stopped while it waited for other hooks"


def never() -> bool:
    """Return False: the wait is never stopped."""
    return False


class HookLock:
    """The lock of a store for running hooks. Threads of this process get it in the order of their requests."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.waiting: collections.deque[object] = collections.deque()
        self.moved = threading.Condition()

    @contextlib.contextmanager
    def hold(self, wait: float, stopped: Callable[[], bool] = never) -> Iterator[StoreLock]:
        """Hold the lock against all threads and processes.

        :param wait: seconds
        :param stopped: returns whether to stop waiting
        :raises Busy: others held it for that time, or it was stopped
        """
        end, me = time.monotonic() + wait, object()
        with self.moved:
            self.waiting.append(me)
        try:
            self._come_first(me, wait, end, stopped)
            with contextlib.ExitStack() as ours:
                with self._lock(NEXT, end, stopped):
                    lock = ours.enter_context(self._lock(RUN, end, stopped))
                yield lock
        finally:
            with self.moved:
                self.waiting.remove(me)
                self.moved.notify_all()

    def _come_first(self, me: object, wait: float, end: float, stopped: Callable[[], bool]) -> None:
        """Wait until this thread is the first one of this process.

        :raises Busy: the time is over, or it was stopped
        """
        with self.moved:
            while self.waiting[0] is not me:
                if stopped():
                    raise Busy(GIVEN_UP)
                if time.monotonic() >= end:
                    raise Busy(f"other hooks ran for {wait:g} s", "wait until they are done")
                self.moved.wait(min(LOOK, max(end - time.monotonic(), 0.001)))

    @contextlib.contextmanager
    def _lock(self, name: str, end: float, stopped: Callable[[], bool]) -> Iterator[StoreLock]:
        with contextlib.ExitStack() as stack:
            while True:
                left = end - time.monotonic()
                try:
                    lock = stack.enter_context(locks.taken(self.store, name, min(LOOK, max(left, 0.0))))
                    break
                except Busy:
                    if stopped():
                        raise Busy(GIVEN_UP) from None
                    if left <= LOOK:
                        raise
            yield lock
