"""A run's mark in the store while it goes on: made at its beginning, kept alive, gone once the run is entered."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable
from typing import Any

from statecfg.store import StoreError, runs
from statecfg.store.database import Store


class UnderWay:
    """The mark of one run, made and kept alive by a thread of its own: nobody waits for it.

    A mark that can't be made is missing on pages and nowhere else; entering the run then fails aloud, where the store
    still does.

    :param run: the run's id
    """

    def __init__(self, store: Store, run: str) -> None:
        self._store, self._run = store, run
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, started: float, mode: str, who: str, playbook: str, hosts: Iterable[str]) -> None:
        """Enter that the run has begun; parameters as of `runs.begin`."""
        given = (self._store, self._run, started, mode, who, playbook, list(hosts))
        self._thread = threading.Thread(target=self._keep, args=given, daemon=True)
        self._thread.start()

    def _keep(self, *given: Any) -> None:
        with contextlib.suppress(StoreError):
            runs.begin(*given)
        while not self._ended.wait(runs.BEAT):
            with contextlib.suppress(StoreError):  # the next one may get through
                runs.beat(self._store, self._run)

    def end(self) -> bool:
        """End the signs of life, before the run is entered; return whether there were any until now."""
        self._ended.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()
        return thread is not None

    def give_up(self) -> None:
        """Let a run that was not entered count as cut off from now on. Raises StoreError."""
        if self.end():
            runs.beat(self._store, self._run, over=True)
