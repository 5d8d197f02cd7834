"""Waiting for the turn to run a hook: the threads of a process in a line, and its first one among other processes'."""

from __future__ import annotations

import collections
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from statecfg.store import Busy

if TYPE_CHECKING:
    from statecfg.store.database import Store
    from statecfg.store.turns import Turn

TURN = "hooks"
NEXT = "hooks-next"  # who has it gets the turn next: whoever just had the turn can't take it again and again
LOOK = 1.0  # seconds after which who waits looks whether to go on waiting
GIVEN_UP = "it was stopped before its turn came"


def never() -> bool:
    """Say that nobody stops."""
    return False


class Line:
    """The threads of this process that wait for the turn of a store, first come first served."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.waiting: collections.deque[object] = collections.deque()
        self.moved = threading.Condition()

    @contextlib.contextmanager
    def turn(self, wait: float, stopped: Callable[[], bool] = never) -> Iterator[Turn]:
        """Have the turn, over all threads and processes.

        :param wait: seconds
        :param stopped: tells whether to wait no longer
        :raises Busy: others had it for so long, or it was stopped
        """
        end, me = time.monotonic() + wait, object()
        with self.moved:
            self.waiting.append(me)
        try:
            with self.moved:
                while self.waiting[0] is not me:
                    if stopped():
                        raise Busy(GIVEN_UP)
                    if time.monotonic() >= end:
                        raise Busy(f"others ran hooks for {wait:g} s", "wait until they are done")
                    self.moved.wait(min(LOOK, max(end - time.monotonic(), 0.001)))
            with contextlib.ExitStack() as ours:
                with self._held(NEXT, end, stopped):
                    turn = ours.enter_context(self._held(TURN, end, stopped))
                yield turn
        finally:
            with self.moved:
                self.waiting.remove(me)
                self.moved.notify_all()

    @contextlib.contextmanager
    def _held(self, name: str, end: float, stopped: Callable[[], bool]) -> Iterator[Turn]:
        with contextlib.ExitStack() as stack:
            while True:
                left = end - time.monotonic()
                try:
                    turn = stack.enter_context(self.store.turn(name, min(LOOK, max(left, 0.0))))
                    break
                except Busy:
                    if stopped():
                        raise Busy(GIVEN_UP) from None
                    if left <= LOOK:
                        raise
            yield turn
