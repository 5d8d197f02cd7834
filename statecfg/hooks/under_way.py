"""A run's mark in the store while it goes on: made at its beginning, kept alive, gone once the run is entered."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from statecfg.store import StoreError, runs
from statecfg.store.database import Store


class UnderWay:
    """The mark of one run, with a thread that says every few seconds that the run goes on.

    :param run: the run's id
    """

    def __init__(self, store: Store, run: str) -> None:
        self._store, self._run = store, run
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, started: float, mode: str, who: str, playbook: str, hosts: Iterable[str]) -> None:
        """Enter that the run has begun; parameters as of `runs.begin`. Raises StoreError."""
        runs.begin(self._store, self._run, started, mode, who, playbook, hosts)
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        while not self._ended.wait(runs.BEAT):
            try:
                runs.beat(self._store, self._run)
            except StoreError:  # the next one may get through; where none does, entering the run fails aloud
                continue

    def end(self, entered: bool) -> None:
        """End the signs of life; a run that was not `entered` counts as cut off from now on. Raises StoreError."""
        self._ended.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()
            if not entered:
                runs.beat(self._store, self._run, over=True)
