"""Refuses access to files, for code that must not need any."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from statecfg.run import bundle, host_modules

# Events of Python's audit hooks. Every way to read or write a file, also `import`, raises `open`.
REFUSED = {"open", "os.listdir", "os.mkdir", "os.remove", "os.rename", "os.scandir"}
_refusing = False


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    global _refusing
    if _refusing and event in REFUSED:
        _refusing = False  # pytest reads files to show the failure
        pytest.fail(f"{event} of {arguments[0]}, and the session must not access files")


sys.addaudithook(_audit)  # Python can't remove an audit hook, so a flag switches it off


@contextmanager
def no_files() -> Iterator[None]:
    """Fail the test if code accesses a file. This first clears caches that could hide access to source files."""
    global _refusing
    for module in (bundle, host_modules):
        for function in vars(module).values():
            if getattr(function, "__module__", "") == module.__name__ and hasattr(function, "cache_clear"):
                function.cache_clear()
    _refusing = True
    try:
        yield
    finally:
        _refusing = False
