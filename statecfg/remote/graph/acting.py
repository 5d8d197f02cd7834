"""The machine on which the `:fn` of a plain map in Hy acts while it runs."""

from __future__ import annotations

import threading
from typing import Any, Callable

present = threading.local()  # its `machine` is that of the current action


def acting_on(machine: Any, function: Callable[[], Any]) -> Any:
    """Call a function without arguments and return its result; `spit` and `slurp` in it act on `machine`."""
    before = getattr(present, "machine", None)
    present.machine = machine
    try:
        return function()
    finally:
        present.machine = before
