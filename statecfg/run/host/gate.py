"""Where hosts wait for permission to apply their plans."""

from __future__ import annotations

import threading

from statecfg.run.host.barrier import Barrier
from statecfg.run.host.events import Events


class Gate:
    """Holds planned hosts until the user has read the plan and answered."""

    def __init__(self) -> None:
        self.answer: bool | None = None


class Pass:
    """One host's slot among the hosts that are processed concurrently, and its pass through the gate.

    Only the thread of the host's driver calls it.

    :param slots: the slots of the run
    :param gate: None if the user need not confirm the plan
    :param barrier: holds the hosts until all definitions are valid
    :ivar waiting: set when the host waits for the user's answer, or has ended
    """

    def __init__(self, slots: threading.Semaphore, gate: Gate | None, barrier: Barrier) -> None:
        self.slots, self.gate, self.barrier = slots, gate, barrier
        self.has_slot = False
        self.waiting = threading.Event()

    def start(self) -> None:
        """Wait for a slot."""
        self.slots.acquire()
        self.has_slot = True

    def hold(self) -> None:
        """Wait until all definitions are valid. A host that waits for no facts would record its run before.

        :raises Unjoined: the run has ended because a definition is wrong
        """
        if not self.barrier.open():
            self.rest()
            self.barrier.settled.wait()
            self.barrier.open()
            self.start()

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

    def rest(self) -> None:
        """Release the slot, because the host waits for other hosts or for the user."""
        if self.has_slot:
            self.has_slot = False
            self.slots.release()

    def wait(self) -> None:
        """Note that the host waits for the user's answer, or for the definitions of other hosts."""
        if self.gate is not None or not self.barrier.open():
            self.rest()
        if self.gate is not None:
            self.waiting.set()

    def leave(self) -> None:
        """Release the slot, because the host has finished or waits for other hosts."""
        self.rest()
        self.waiting.set()


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
