"""The sessions of a run: each starts in its own thread as soon as a slot is free, and leaves only its report."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from statecfg.run.host.driver import HostDriver
from statecfg.run.host.request import Request
from statecfg.run.report_model import HostData

WAIT = 0.5  # seconds; a wait without timeout would delay Ctrl-C


class Sessions:
    """Starts the sessions in the order of the requests.

    :param driver: makes the driver of a host. It has a slot already
    :param slots: one for each host that is processed at the same time
    :param rate: maximum number of sessions to start per second; None for no limit
    :param cancel: set when the user stops the run; then the remaining sessions end at once
    :ivar reports: host → its report so far, for the hosts whose sessions have started
    """

    def __init__(
        self,
        requests: Sequence[Request],
        driver: Callable[[Request], HostDriver],
        slots: threading.Semaphore,
        rate: float | None,
        cancel: threading.Event,
    ) -> None:
        self.reports: dict[str, HostData] = {}
        self._requests, self._driver, self._slots = requests, driver, slots
        self._pause, self._cancel = 1 / rate if rate else 0.0, cancel
        self._lock = threading.Lock()
        self._left = len(requests)
        self._over = threading.Event()
        self._stopped = False
        self._bug: Exception | None = None  # the first one that no host's report can show

    def start(self) -> None:
        """Start the sessions in other threads, and return."""
        if not self._requests:
            self._over.set()
        threading.Thread(target=self._start, daemon=True).start()

    def stop(self) -> None:
        """Start no more sessions, because the run has failed."""
        self._stopped = True

    def wait(self) -> None:
        """Wait until all sessions have ended.

        :raises Exception: the first error of a listener or reader that was told how a host finished
        """
        while not self._over.wait(WAIT):
            pass
        if self._bug is not None:
            raise self._bug

    def _start(self) -> None:
        earliest = 0.0
        for request in self._requests:
            self._slots.acquire()
            self._cancel.wait(max(0.0, earliest - time.monotonic()))
            earliest = time.monotonic() + self._pause
            if self._stopped:
                return
            driver = self._driver(request)
            self.reports[driver.host] = driver.report
            try:
                threading.Thread(target=self._drive, args=(driver,), daemon=True).start()
            except RuntimeError as problem:  # this process may not start more threads
                driver.leave()
                self._report(driver, problem)
                self._ended()

    def _drive(self, driver: HostDriver) -> None:
        try:
            driver.run()
        except Exception as problem:  # a bug of statecfg: this host's report shows it, and the other hosts continue
            self._report(driver, problem)
        finally:
            self._ended()

    def _report(self, driver: HostDriver, problem: Exception) -> None:
        """Show an error in the report of its host. If the listener or a reader fails too, `wait` raises the error."""
        try:
            driver.failed(problem)
        except Exception:  # usually the same error: a broken listener fails at each event
            with self._lock:
                self._bug = self._bug or problem

    def _ended(self) -> None:
        with self._lock:
            self._left -= 1
            if not self._left:
                self._over.set()
