"""Warnings of names until 0.3 that files of users contain. Hosts print none, because no user would see them there."""

from __future__ import annotations

import sys
import warnings

_warned: set[tuple[str, str]] = set()


def warn_of_former(former: str, name: str) -> None:
    """Warn that a file uses a former name. What the file calls must call `above.renamed`, which calls this."""
    frame = sys._getframe(3)
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
