"""Where hosts wait for permission to apply their plans."""

from __future__ import annotations

import threading

from statecfg.run.host.events import Events


class Gate:
    """Holds planned hosts until the user has read the plan and answered.

    :param slots: a host needs one of these again to go on
    """

    def __init__(self, slots: threading.Semaphore) -> None:
        self.answer: bool | None = None
        self.slots = slots


class Pass:
    """One host's way through the gate.

    :param gate: None if the user is not asked
    """

    def __init__(self, gate: Gate | None) -> None:
        self.gate = gate
        self.entered = False
        self.waiting = threading.Event()  # set when the host needs no slot for now

    @property
    def answer(self) -> bool | None:
        """The user's answer, None if there is none yet."""
        return True if self.gate is None else self.gate.answer

    def enter(self) -> bool:
        """Take a slot if there is a gate; return whether the host may go on."""
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
        """Give up the slot: the host is done, or waits for other hosts."""
        self.waiting.set()
        if self.entered and self.gate is not None:
            self.entered = False
            self.gate.slots.release()


class Permit:
    """Asks in a thread whether hooks let a host go on; `answer` is None until that is known."""

    def __init__(self, events: Events, host: str) -> None:
        self.answer: str | None = None
        threading.Thread(target=self._ask, args=(events, host), daemon=True).start()

    def _ask(self, events: Events, host: str) -> None:
        try:
            self.answer = events.may_go(host)
        except Exception as problem:  # a bug of ours: the host stays as it is, and its report says so
            self.answer = f"statecfg failed: {problem!r}"
