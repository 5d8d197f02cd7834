"""Where hosts wait for permission to apply their plans."""

from __future__ import annotations

import threading

from statecfg.run.host.barrier import Barrier
from statecfg.run.host.events import Events

READ = 0.2  # seconds that a host waits for bytes before it checks the deadlines and the user's answer
LONGEST = 2.0  # maximum of that for a host without a slot, if many hosts wait
WAKES = 500  # hosts without a slot that check per second, unless each then waits for longer than LONGEST


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


class Pass:
    """One host's slot among the hosts that are processed concurrently, and its pass through the gate.

    It has a slot from the beginning. Only the thread of the host's driver calls it.

    :param slots: the slots of the run
    :param gate: None if the user need not confirm the plan
    :param barrier: holds the hosts until all definitions are valid
    """

    def __init__(self, slots: threading.Semaphore, gate: Gate | None, barrier: Barrier) -> None:
        self.slots, self.gate, self.barrier = slots, gate, barrier
        self.has_slot = True
        self._arrived = False

    def hold(self) -> None:
        """Wait until all definitions are valid. A host that waits for no facts would record its run before.

        :raises Unjoined: the run has ended because a definition is wrong
        """
        if not self.barrier.open():
            self.rest()
            self.barrier.decided.wait()
            self.barrier.open()
            self.slots.acquire()
            self.has_slot = True

    @property
    def answer(self) -> bool | None:
        """The user's answer, None if the user has not answered yet, or some definitions are still incomplete.

        :raises Unjoined: the run has ended because a definition is wrong
        """
        if not self.barrier.open():
            return None
        return True if self.gate is None else self.gate.answer

    def enter(self) -> bool:
        """Acquire a slot again if the host has none; return whether it has one now."""
        self.has_slot = self.has_slot or self.slots.acquire(blocking=False)
        return self.has_slot

    def pause(self, sessions: int) -> float:
        """Return for how many seconds to wait for bytes before the host checks whether it may continue.

        :param sessions: the number of hosts that do this now
        """
        return READ if self.has_slot else min(LONGEST, max(READ, sessions / WAKES))

    def rest(self) -> None:
        """Release the slot, because the host waits for other hosts or for the user."""
        if self.has_slot:
            self.has_slot = False
            self.slots.release()

    def wait(self) -> None:
        """Note that the host waits for the user's answer, or for the definitions of other hosts."""
        if self.gate is not None or not self.barrier.open():
            self.rest()
        self._arrive()

    def leave(self) -> None:
        """Release the slot, because the host has finished or waits for other hosts."""
        self.rest()
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
