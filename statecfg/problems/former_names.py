"""Warnings of names until 0.3 that files of users contain. Hosts print none, because no user would see them there."""

from __future__ import annotations

import sys
import warnings

_warned: set[tuple[str, str]] = set()


def warn_of_former(former: str, name: str, depth: int = 1) -> None:
    """Warn that a file uses a former name.

    :param depth: the number of functions between this one and the file
    """
    frame = sys._getframe(depth + 1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("importlib"):
        frame = frame.f_back  # an import looks for the name itself, before the file does
    import linecache  # takes time to import

    if "import *" in linecache.getline(frame.f_code.co_filename, frame.f_lineno):
        return  # the file may not use the name
    warn_at(former, name, frame.f_code.co_filename, frame.f_lineno)


def warn_at(former: str, name: str, file: str, line: int) -> None:
    """Warn that a file uses a former name, only once for each name and file.

    :param former: the name until 0.3
    :param name: the new name
    """
    if (former, file) not in _warned:
        _warned.add((former, file))
        text = f"{former} is now {name}. The former name will be removed in 1.0."
        warnings.warn_explicit(text, FutureWarning, file, line)
