"""Warnings of names until 0.3 that files of users contain. Hosts print none, because no user would see them there."""

from __future__ import annotations

import sys
import warnings

_warned: set[tuple[str, str]] = set()


def warn_of_former(former: str, name: str, depth: int = 1) -> None:
    """Warn that a file uses a former name.

    :param depth: the number of functions between this one and the file
    """
    warn_at(former, name, *_user(depth + 1))


def warn_of_former_export(former: str, name: str, depth: int = 1) -> None:
    """Warn that a file uses a former name of a package, but not if it imports all names: it may not use this one."""
    import linecache  # takes time to import

    file, line = _user(depth + 1)
    if "import *" not in linecache.getline(file, line):
        warn_at(former, name, file, line)


def _user(depth: int) -> tuple[str, int]:
    """Return the file and the line that called a number of functions."""
    frame = sys._getframe(depth + 1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("importlib"):
        frame = frame.f_back  # an import looks for the name itself, before the file does
    return frame.f_code.co_filename, frame.f_lineno


def warn_at(former: str, name: str, file: str, line: int) -> None:
    """Warn that a file uses a former name, only once for each name and file.

    :param former: the name until 0.3
    :param name: the new name
    """
    if (former, file) not in _warned:
        _warned.add((former, file))
        text = f"{former} is now {name}. The former name will be removed in 1.0."
        warnings.warn_explicit(text, FutureWarning, file, line)
