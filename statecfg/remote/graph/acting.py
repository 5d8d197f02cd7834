"""The machine on which the `:fn` of a plain map in Hy acts while it runs."""

from __future__ import annotations

import threading
from typing import Any, Callable

from statecfg.remote.graph.names import named

_present = threading.local()


def acting_on(machine: Any, function: Callable[[], Any]) -> Any:
    """Call a function without arguments and return its result; `spit` and `slurp` in it act on `machine`."""
    before = getattr(_present, "machine", None)
    _present.machine = machine
    try:
        return function()
    finally:
        _present.machine = before


def present_machine() -> Any:
    """Return the machine of the current action, or this machine outside of an action."""
    return getattr(_present, "machine", None) or named("RealMachine")()
