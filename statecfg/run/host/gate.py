"""Where hosts wait for permission to apply their plans."""

from __future__ import annotations

import threading

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


class Slots:
    """The slots of a run.

    :param forks: the number of hosts that are processed concurrently
    :param connected: the number of hosts that may stay connected while they wait without a slot
    """

    def __init__(self, forks: int, connected: int) -> None:
        self.busy = threading.Semaphore(max(1, forks))
        self.connected = threading.Semaphore(connected)


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
        self._stays = self._arrived = False

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
            self.acquire()
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
        """Wait for a slot."""
        self.slots.busy.acquire()
        self._entered()

    def enter(self) -> bool:
        """Acquire a slot again if the host has none; return whether it has one now."""
        if not self.has_slot and self.slots.busy.acquire(blocking=False):
            self._entered()
        return self.has_slot

    def _entered(self) -> None:
        self.has_slot = True
        if self._stays:
            self._stays = False
            self.slots.connected.release()

    def rest(self) -> bool:
        """Release the slot, because the host waits for other hosts or for the user.

        :returns: whether the host may stay connected
        """
        if self.has_slot:
            self._stays = self.slots.connected.acquire(blocking=False)
            self._release()
        return self._stays

    def _release(self) -> None:
        self.has_slot = False
        self.slots.busy.release()

    def wait(self) -> bool:
        """Note that the host has planned. It waits if there is no answer yet.

        :returns: whether the host may stay connected
        """
        stays = self.answer is not None or self.rest()
        self._arrive()
        return stays

    def disconnect(self) -> None:
        """Release the slot, because the host has no connection. It needs another slot to continue."""
        if self.has_slot:
            self._release()
        elif self._stays:
            self._stays = False
            self.slots.connected.release()

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
