"""Texts for the progress display about the hook that a run waits for: name, attempt and deadline."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

MOMENT = 2.0  # seconds after which the progress shows the hook


def text(hook: str, event: str, about: str, attempt: int, seconds: float) -> str:
    """Return one line about a running hook.

    :param about: the resource or host of the event; "" to leave it out
    :param attempt: counts from 1
    :param seconds: until the deadline
    """
    until = time.strftime("%H:%M:%S", time.localtime(time.time() + seconds))
    of = f" of {about}" if about else ""
    return f"waits for hook {hook} ({event}{of}), attempt {attempt}, until {until}"


@contextlib.contextmanager
def telling(tell: Callable[[str], object], what: str) -> Iterator[None]:
    """Call `tell` with a string if the block takes longer than `MOMENT`."""
    timer = threading.Timer(MOMENT, tell, [what])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
