"""Parse Python source in any thread."""

from __future__ import annotations

import ast
import threading

_lock = threading.Lock()


def parse(
    source: str | bytes, filename: str = "<unknown>", *, feature_version: tuple[int, int] | None = None
) -> ast.Module:
    """Return the syntax tree of a module, as `ast.parse` does.

    Python before 3.11.8 and 3.12.2 raises SystemError if two threads build trees at the same time (CPython issue
    106905), and a run prepares the code of several hosts at once.

    :raises SyntaxError: if the source does not compile
    :raises ValueError: if the source contains null bytes
    """
    with _lock:
        return ast.parse(source, filename, feature_version=feature_version)
