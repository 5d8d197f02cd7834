"""Sends heartbeats to all hosts of this process from one thread, independently of the threads of the sessions."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue

BEAT = 5.0  # seconds between heartbeats. A host gives up after 15 s without any
SOON = 1.0  # seconds that a heartbeat may take before the host gets a thread of its own


class _Pulse:
    """The heartbeats of one session.

    :param send: sends one; returns whether there may be further ones
    """

    def __init__(self, send: Callable[[], bool]) -> None:
        self.send = send
        self.ended = threading.Event()

    def beat(self) -> None:
        """Send one heartbeat, unless the session has ended."""
        if not self.ended.is_set() and not self.send():
            self.ended.set()


class Heartbeats:
    """The heartbeats of many sessions. Its threads live as long as there are sessions."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due: OrderedDict[_Pulse, float] = OrderedDict()  # when the next heartbeat is due, sorted by time
        self._running = False

    @property
    def sessions(self) -> int:
        """The number of sessions, roughly."""
        return len(self._due)

    @contextmanager
    def sending(self, send: Callable[[], bool]) -> Iterator[None]:
        """Send heartbeats during the block.

        :param send: sends one; returns whether there may be further ones
        """
        pulse = _Pulse(send)
        self._add(pulse)
        try:
            yield
        finally:
            with self._changed:
                pulse.ended.set()
                self._due.pop(pulse, None)
                self._changed.notify()

    def _add(self, pulse: _Pulse) -> None:
        with self._changed:
            if pulse.ended.is_set():
                return
            self._due[pulse] = time.monotonic() + BEAT
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        worker: _Worker | None = None
        while (pulse := self._next()) is not None:
            worker = worker or _Worker()
            if worker.beat(pulse):
                self._add(pulse)
            else:  # it continues with this host only
                worker = None
        if worker is not None:
            worker.end()

    def _next(self) -> _Pulse | None:
        """Wait until a heartbeat is due; return None if no session is left."""
        with self._changed:
            while self._due:
                left = next(iter(self._due.values())) - time.monotonic()
                if left <= 0:
                    return self._due.popitem(last=False)[0]
                self._changed.wait(left)
            self._running = False
            return None


class _Worker:
    """A thread that sends heartbeats. If a host accepts none soon, the thread keeps this host and serves no other one.

    So a host that reads nothing can't delay the heartbeats of other hosts.
    """

    def __init__(self) -> None:
        self._given: SimpleQueue[_Pulse | None] = SimpleQueue()
        self._sent = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._keeps = False
        threading.Thread(target=self._work, daemon=True).start()

    def beat(self, pulse: _Pulse) -> bool:
        """Send a heartbeat; return False if the thread keeps the host."""
        self._given.put(pulse)
        if self._sent.acquire(timeout=SOON):
            return True
        with self._lock:
            self._keeps = not self._sent.acquire(blocking=False)
        return not self._keeps

    def end(self) -> None:
        """End the thread."""
        self._given.put(None)

    def _work(self) -> None:
        while (pulse := self._given.get()) is not None:
            pulse.beat()
            with self._lock:
                if not self._keeps:
                    self._sent.release()
                    continue
            while not pulse.ended.wait(BEAT):
                pulse.beat()
            return


HEARTBEATS = Heartbeats()
