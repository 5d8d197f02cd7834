"""Waits that end at once when the run is stopped."""

from __future__ import annotations

import time

from statecfg.remote.machine.process import CHILDREN


def waited(seconds: float) -> bool:
    """Wait; return False at once if the run is stopped meanwhile."""
    end = time.monotonic() + seconds
    while not (CHILDREN.stopping or CHILDREN.cancelled):
        left = end - time.monotonic()
        if left <= 0:
            return True
        time.sleep(min(left, 0.1))
    return False
