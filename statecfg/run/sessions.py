"""The sessions of a run: each starts in its own thread as soon as a slot is free, and leaves only its report.

A session that is interrupted starts again as soon as its host has something to do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from statecfg.run.host import repeated
from statecfg.run.host.driver import HostDriver
from statecfg.run.host.gate import Slots
from statecfg.run.host.request import HostRequest
from statecfg.run.report_model import HostData

POLL = 0.1  # seconds between two looks at the hosts whose sessions were interrupted
WAIT = 0.5  # seconds; a wait without timeout would delay Ctrl-C


class Sessions:
    """Starts the sessions in the order of the requests.

    :param driver: makes the driver of a host. It has a slot already
    :ivar reports: host → its report so far, for the hosts whose sessions have started
    """

    def __init__(
        self, requests: Sequence[HostRequest], driver: Callable[[HostRequest], HostDriver], slots: Slots
    ) -> None:
        self.reports: dict[str, HostData] = {}
        self._requests, self._driver, self._slots = requests, driver, slots
        self._lock = threading.Lock()
        self._left = len(requests)
        self._interrupted: list[HostDriver] = []
        self._changed = threading.Event()  # a session was interrupted, or the run has ended
        self._over = threading.Event()
        self._stopped = threading.Event()
        self._bug: Exception | None = None  # the first one that no host's report can show

    def start(self) -> None:
        """Start the sessions in other threads, and return."""
        if not self._requests:
            self._over.set()
        threading.Thread(target=self._start, daemon=True).start()

    def stop(self) -> None:
        """Start no more sessions, because the run has failed."""
        self._stopped.set()
        self._changed.set()

    def wait(self) -> None:
        """Wait until all sessions have ended.

        :raises Exception: the first error of a listener or reader that was told how a host finished
        """
        while not self._over.wait(WAIT):
            pass
        if self._bug is not None:
            raise self._bug

    def _start(self) -> None:
        for request in self._requests:
            self._repeat()
            self._slots.acquire()
            if self._stopped.is_set():
                return
            driver = self._driver(request)
            self.reports[driver.host] = driver.report
            self._begin(driver)
        while not self._over.is_set() and not self._stopped.is_set():
            self._changed.wait(POLL if self._interrupted else None)
            self._repeat()

    def _repeat(self) -> None:
        """Start the interrupted sessions whose hosts have something to do."""
        with self._lock:
            self._changed.clear()
            waiting, self._interrupted = self._interrupted, []
        for driver in waiting:
            if self._stopped.is_set():
                return
            try:
                ready = repeated.ready(driver)
            except Exception as problem:  # a bug of statecfg
                self._give_up(driver, problem)
                continue
            if ready:
                driver.gate_pass.acquire()
                self._begin(driver)
            else:
                self._interrupt(driver)

    def _begin(self, driver: HostDriver) -> None:
        try:
            threading.Thread(target=self._drive, args=(driver,), daemon=True).start()
        except RuntimeError as problem:  # this process may not start more threads
            self._give_up(driver, problem)

    def _give_up(self, driver: HostDriver, problem: Exception) -> None:
        driver.leave()
        self._report(driver, problem)
        self._ended()

    def _drive(self, driver: HostDriver) -> None:
        ended = True
        try:
            ended = driver.run()
        except Exception as problem:  # a bug of statecfg: this host's report shows it, and the other hosts continue
            self._report(driver, problem)
        finally:
            if ended:
                self._ended()
        if not ended:
            self._interrupt(driver)
            self._changed.set()

    def _interrupt(self, driver: HostDriver) -> None:
        with self._lock:
            self._interrupted.append(driver)

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
                self._changed.set()
