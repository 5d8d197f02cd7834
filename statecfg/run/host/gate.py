"""Where hosts wait for permission to apply their plans."""

from __future__ import annotations

import threading
import time

from statecfg.run.host.barrier import Barrier
from statecfg.run.host.events import Events

READ = 0.2  # seconds that a host waits for bytes before it checks the deadlines and the user's answer


class Gate:
    """Holds planned hosts until the user has read the plan and answered.

    :param hosts: the number of hosts of the run
    :ivar waiting: set when every host waits for the user's answer, or has ended
    """

    def __init__(self, hosts: int) -> None:
        self.answer: bool | None = None
        self.waiting = threading.Event()
        self._lock, self._left = threading.Lock(), hosts
        if not hosts:
            self.waiting.set()

    def arrive(self) -> None:
        """Note that one more host waits for the answer, or has ended."""
        with self._lock:
            self._left -= 1
            if not self._left:
                self.waiting.set()


class Pace:
    """Limits how many connections begin per second.

    :param rate: connections per second; None for no limit
    :param cancel: set when the user stops the run; then no connection waits
    """

    def __init__(self, rate: float | None, cancel: threading.Event) -> None:
        self._pause, self._cancel = 1 / rate if rate else 0.0, cancel
        self._lock, self._next = threading.Lock(), 0.0

    def wait(self) -> None:
        """Wait until the next connection may begin."""
        with self._lock:
            moment = max(self._next, time.monotonic())
            self._next = moment + self._pause
        self._cancel.wait(max(0.0, moment - time.monotonic()))


class Slots:
    """The slots of a run.

    :param forks: the number of hosts that are processed concurrently
    :param connected: the number of hosts that may stay connected while they wait without a slot
    :param pace: of new connections
    :ivar idle_connections: for further hosts that stay connected while they wait
    """

    def __init__(self, forks: int, connected: int, pace: Pace) -> None:
        self.pace, self.idle_connections = pace, threading.Semaphore(connected)
        self._free = max(1, forks)
        self._wanted = 0  # by connected hosts
        self._changed = threading.Condition()

    def acquire(self) -> None:
        """Wait for a slot. Connected hosts that want one come first."""
        with self._changed:
            self._changed.wait_for(lambda: self._free > self._wanted)
            self._free -= 1

    def try_acquire(self) -> bool:
        """Return whether a connected host gets a slot."""
        with self._changed:
            got = self._free > 0
            self._free -= got
            return got

    def release(self) -> None:
        """Release a slot."""
        with self._changed:
            self._free += 1
            self._changed.notify_all()

    def want(self, hosts: int) -> None:
        """Note that one more connected host wants a slot, or one less: 1 or -1."""
        with self._changed:
            self._wanted += hosts
            self._changed.notify_all()


class Pass:
    """One host's slot among the hosts that are processed concurrently, and its pass through the gate.

    It has a slot from the beginning. Only the thread of the host's driver calls it.

    :param gate: None if the user need not confirm the plan
    :param barrier: holds the hosts until all definitions are valid
    """

    def __init__(self, slots: Slots, gate: Gate | None, barrier: Barrier) -> None:
        self.slots, self.gate, self.barrier = slots, gate, barrier
        self.has_slot = True
        self.permit: Permit | None = None
        self._stays = self._wants = self._arrived = False

    def hold(self) -> bool:
        """Wait until all definitions are valid. A host that waits for no facts would record its run before.

        :returns: whether the host may stay connected; if not, this did not wait
        :raises Unjoined: the run has ended because a definition is wrong
        """
        if not self.barrier.open():
            if not self.rest():
                return False
            self.barrier.decided.wait()
            self.barrier.open()
            while not self.enter():
                time.sleep(READ)
        return True

    @property
    def answer(self) -> bool | None:
        """The user's answer, None if the user has not answered yet, or some definitions are still incomplete.

        :raises Unjoined: the run has ended because a definition is wrong
        """
        if not self.barrier.open():
            return None
        return True if self.gate is None else self.gate.answer

    def permitted(self, events: Events | None, host: str) -> bool | None:
        """Return whether a planned host may apply its plan, None if this is not known yet.

        :param events: asks the hooks after the user said yes; None if they are not asked
        :raises Unjoined: the run has ended because a definition is wrong
        """
        yes = self.answer
        if not yes or events is None:
            return yes
        if self.permit is None:
            self.permit = Permit(events, host)
        return None if self.permit.answer is None else not self.permit.answer

    def acquire(self) -> None:
        """Wait for a slot for a host without a connection."""
        self.slots.acquire()
        self.has_slot = True

    def enter(self) -> bool:
        """Acquire a slot again if the host has none; return whether it has one now."""
        if not self.has_slot:
            self.has_slot = self.slots.try_acquire()
            if self.has_slot:
                self._stop_waiting()
            elif not self._wants:
                self._wants = True
                self.slots.want(1)
        return self.has_slot

    def _stop_waiting(self) -> None:
        if self._wants:
            self.slots.want(-1)
        if self._stays:
            self.slots.idle_connections.release()
        self._wants = self._stays = False

    def rest(self) -> bool:
        """Release the slot, because the host waits for other hosts or for the user.

        :returns: whether the host may stay connected
        """
        if self.has_slot:
            self._stays = self.slots.idle_connections.acquire(blocking=False)
            self._release()
        return self._stays

    def _release(self) -> None:
        self.has_slot = False
        self.slots.release()

    def wait(self) -> bool:
        """Note that the host has planned. Unless the user has answered, it waits.

        :returns: whether the host may stay connected
        """
        stays = self.answer is not None or self.rest()
        self._arrive()
        return stays

    def disconnect(self) -> None:
        """Release the slot, because the host has no connection. It needs another slot to continue."""
        if self.has_slot:
            self._release()
        self._stop_waiting()

    def leave(self) -> None:
        """Release the slot, because the host has finished, or waits for the units of other hosts."""
        self.disconnect()
        self._arrive()

    def _arrive(self) -> None:
        if self.gate is not None and not self._arrived:
            self._arrived = True
            self.gate.arrive()


class Permit:
    """Asks hooks in a thread whether a host may continue; `answer` is None until they have answered."""

    def __init__(self, events: Events, host: str) -> None:
        self.answer: str | None = None
        threading.Thread(target=self._ask, args=(events, host), daemon=True).start()

    def _ask(self, events: Events, host: str) -> None:
        try:
            self.answer = events.may_go(host)
        except Exception as problem:  # a bug of statecfg: the host stays as it is, and its report shows the bug
            self.answer = f"statecfg failed: {problem!r}"
