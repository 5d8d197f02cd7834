"""Finds names in the table of `statecfg`, so that this half can call what only the controller has."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def named(name: str) -> Any:
    """Return what the table in `statecfg/__init__.py` has under a name; None on a host that lacks it."""
    return getattr(sys.modules["statecfg"], name, None)
