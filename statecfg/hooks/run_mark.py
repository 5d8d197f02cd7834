"""The mark of a running run in the store. The web pages show it until the run is stored."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from statecfg.store import StoreError, runs
from statecfg.store.database import Store

if TYPE_CHECKING:
    from statecfg.store.connection import Connection


class RunMark:
    """The mark of one run. A thread creates and renews it, so that the run does not wait for the store.

    If the thread can't create the mark, it tries again with each heartbeat. An error of the store is reported when a
    host finishes, and when the run is stored.

    :param run: the run's id
    :param who: "user@machine"
    :ivar mask: masks the secrets in a host's report; None to store no report before the end of the run
    """

    def __init__(self, store: Store, run: str, who: str) -> None:
        self.run, self.who, self.started = run, who, time.time()
        self.mask: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
        self._store = store
        self._create: Callable[[Connection], None] | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, mode: str, playbook: str, hosts: Iterable[str]) -> None:
        """Create the mark. Call it before a host can finish. See `runs.begin` for the parameters."""
        names = list(hosts)

        def create(connection: Connection) -> None:
            runs.begin_in(connection, self._store.project, self.run, self.started, mode, self.who, playbook, names)

        self._create = create
        self._thread = threading.Thread(target=self._keep, args=(create,), daemon=True)
        self._thread.start()

    def _keep(self, create: Callable[[Connection], None]) -> None:
        created = False
        while True:
            with contextlib.suppress(StoreError):  # the next beat may succeed
                if created:
                    runs.beat(self._store, self.run)
                else:
                    self._store.attempt(create)
                    created = True
            if self._ended.wait(runs.BEAT):
                return

    def host_finished(self, connection: Connection, host: str, report: Mapping[str, Any]) -> None:
        """Store how the run ended on a host, inside a transaction. A report on disk survives the end of this process.

        :param report: the host's report, with its secrets
        """
        masked = None if self.mask is None else self.mask(report)
        finish = partial(
            runs.host_finished, connection, self.run, host, report["status"], report.get("summary") or {}, masked
        )
        if not finish() and self._create is not None:  # the host was faster than the thread, or the store was busy
            self._create(connection)
            finish()

    def end(self) -> bool:
        """Stop renewing the mark, before the run is stored; return whether it was active until now."""
        self._ended.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()
        return thread is not None

    def give_up(self) -> None:
        """Mark a run that was not stored as interrupted.

        :raises StoreError: the store can't be written
        """
        if self.end():
            runs.beat(self._store, self.run, over=True)
