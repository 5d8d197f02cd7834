"""Hooks: programs and services that are notified of events. May import `store`, `run`, `units` and lower rooms."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    """Return a module under its old name, which users' tests may import until 0.3."""
    if name != "http_hooks":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import warnings

    warnings.warn("statecfg.hooks.http_hooks is now statecfg.hooks.http.calls", FutureWarning, stacklevel=2)
    return import_module("statecfg.hooks.http.calls")
