"""Host events during a run: a thread calls their hooks, so that the hosts don't wait for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING

from statecfg.hooks import failed_events, waited
from statecfg.remote.machine.process import CHILDREN
from statecfg.store import hosts
from statecfg.store.hooks import queue

if TYPE_CHECKING:
    from statecfg.hooks.exec.engine import HookEngine
    from statecfg.hooks.store_problems import StoreProblems
    from statecfg.remote.hooks.result import Judged
    from statecfg.store.connection import Connection
    from statecfg.store.hooks.records import HookObject

DRAIN = 120.0  # seconds that the end of a run waits for hooks that are still queued


class EventQueue:
    """The host events of one run.

    :param silent: call no hook (`--no-hooks`)
    :param problems: receives errors of the store
    :param cancel: set when the user stops the run
    """

    def __init__(self, engine: HookEngine, silent: bool, problems: StoreProblems, cancel: threading.Event) -> None:
        self.engine, self.silent, self.problems, self.cancel = engine, silent, problems, cancel
        self.left = 0  # calls that were still queued at the end
        self.called: set[str] = set()  # hosts whose hooks were called
        self._interrupted = False  # by the user, while `failed` waited
        self._refused: dict[str, list[dict[str, str]]] = {}  # host → hooks whose program can't run
        self._queued: dict[int, str] = {}  # position in the queue → host, for the calls of this run
        self._triggered: SimpleQueue[bool] = SimpleQueue()
        self._worker: threading.Thread | None = None
        self._worked = threading.Event()

    def fire(
        self, event: str, host: str, playbook: str | None, change: Callable[[Connection], object] | None = None
    ) -> None:
        """Queue the hooks of a host's event. They run in order, concurrently with the run.

        :param change: changes the store together with the event, as in `HookEngine.trigger`
        """
        store = self.engine.store
        record = hosts.get(store, host) if not self.silent and self.engine.hooks.every() else None
        if record is None:
            if change is not None:
                store.attempt(change)
            return

        def refused(hook: HookObject, judged: Judged) -> None:
            self.called.add(host)
            self._refused.setdefault(host, []).append(failed_events.entry(hook.name, judged.entry, judged.detail))

        queued = self.engine.trigger(event, record, playbook, change, refused)
        if not queued:
            return
        self.called.add(host)
        self._queued.update(dict.fromkeys(queued, host))
        if self._worker is None:
            self._worker = threading.Thread(target=self._work, daemon=True)
            self._worker.start()
        self._triggered.put(True)

    def _work(self) -> None:
        try:
            while self._triggered.get():
                with self.problems.collecting():
                    self.engine.drain(DRAIN)
        finally:
            self._worked.set()

    def failed(self) -> dict[str, list[dict[str, str]]]:
        """Wait for the queued calls of this run; return the failed hooks by host."""
        try:
            self.wait()
        except KeyboardInterrupt:  # report the completed changes first; `close` raises it again
            self._interrupted = True
            self.stop()
        failed = {host: list(entries) for host, entries in self._refused.items()}
        with self.problems.collecting():
            for host, entry in failed_events.of(self.engine.store, self._queued):
                failed.setdefault(host, []).append(entry)
        return failed

    def wait(self) -> None:
        """Wait for the queued calls, for at most two minutes, and only until the user stops the run."""
        if self._worker is None:
            return
        self._triggered.put(False)
        begun, last, stops = time.monotonic(), "", (self.cancel, self.engine.over)
        while time.monotonic() < begun + DRAIN and not any(stop.is_set() for stop in stops):
            if self._worked.wait(0.2):
                break
            text = self.engine.caller.waited or "waits to call hooks: another statecfg is calling hooks now"
            if time.monotonic() > begun + waited.MOMENT and text != last:
                self.engine.tell(text)
                last = text

    def stop(self) -> None:
        """Stop the running hook, and start no other one."""
        CHILDREN.stop()
        self.engine.over.set()
        self.join()

    def check_interrupted(self) -> None:
        """Raise KeyboardInterrupt if the user stopped the run while `failed` waited."""
        if self._interrupted:
            raise KeyboardInterrupt

    def join(self) -> None:
        """Wait until no queued call is running."""
        if self._worker is not None:
            self._worked.wait()  # after an interrupted join(), a thread counts as ended

    def count(self) -> None:
        """Count the calls that are still queued.

        :raises StoreError: the store can't be read
        """
        self.left = queue.waiting(self.engine.store)
