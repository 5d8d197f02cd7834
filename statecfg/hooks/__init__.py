"""Hooks: programs and services that are notified of events. May import `store`, `run`, `units` and lower rooms."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

# A documented module, by its name until 0.3. Tests of users may import it.
_RENAMED = {"http_hooks": "http.calls"}


def __getattr__(name: str) -> ModuleType:
    if name not in _RENAMED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import warnings

    new_name = f"{__name__}.{_RENAMED[name]}"
    warnings.warn(f"{__name__}.{name} is now {new_name}", FutureWarning, stacklevel=2)
    return import_module(new_name)
