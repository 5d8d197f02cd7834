"""Where hosts wait for permission to apply their plans."""

from __future__ import annotations

import threading

from statecfg.run.host.events import Events


class Gate:
    """Holds planned hosts until the user has read the plan and answered.

    :param slots: a host must acquire a slot again before it applies its plan
    """

    def __init__(self, slots: threading.Semaphore) -> None:
        self.answer: bool | None = None
        self.slots = slots


class Pass:
    """One host's pass through the gate.

    :param gate: None if the user need not confirm the plan
    """

    def __init__(self, gate: Gate | None) -> None:
        self.gate = gate
        self.entered = False
        self.waiting = threading.Event()  # set when the host needs no slot for now

    @property
    def answer(self) -> bool | None:
        """The user's answer, None if the user has not answered yet."""
        return True if self.gate is None else self.gate.answer

    def enter(self) -> bool:
        """Acquire a slot if there is a gate; return whether the host may continue."""
        if self.gate is not None:
            if not self.gate.slots.acquire(blocking=False):
                return False
            self.entered = True
        return True

    def wait(self) -> None:
        """Note that the host waits for the user's answer."""
        if self.gate is not None:
            self.waiting.set()

    def leave(self) -> None:
        """Release the slot, because the host has finished or waits for other hosts."""
        self.waiting.set()
        if self.entered and self.gate is not None:
            self.entered = False
            self.gate.slots.release()


class Permit:
    """Asks hooks in a thread whether a host may continue; `answer` is None until they have answered."""

    def __init__(self, events: Events, host: str) -> None:
        self.answer: str | None = None
        threading.Thread(target=self._ask, args=(events, host), daemon=True).start()

    def _ask(self, events: Events, host: str) -> None:
        try:
            self.answer = events.may_go(host)
        except Exception as problem:  # a bug of statecfg: the host stays as it is, and its report says so
            self.answer = f"statecfg failed: {problem!r}"
