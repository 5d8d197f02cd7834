"""What a run waits for while a hook is called: its name, the attempt and the deadline, in the words of progress."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

MOMENT = 2.0  # seconds that a hook may take before the user is told what is waited for


def text(hook: str, event: str, about: str, attempt: int, seconds: float) -> str:
    """Return what is waited for, in one line.

    :param about: the resource or host of the event; "" if the event says enough
    :param attempt: counts from 1
    :param seconds: how long the call may take from now on
    """
    until = time.strftime("%H:%M:%S", time.localtime(time.time() + seconds))
    of = f" of {about}" if about else ""
    return f"waits for hook {hook} ({event}{of}), attempt {attempt}, until {until}"


@contextlib.contextmanager
def telling(tell: Callable[[str], object], what: str) -> Iterator[None]:
    """Tell what is waited for if the block takes longer than a moment."""
    timer = threading.Timer(MOMENT, tell, [what])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
