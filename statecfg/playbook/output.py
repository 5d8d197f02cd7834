"""Redirect standard output while user code runs, because reports use standard output."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

_LOCK = threading.Lock()
_active = 0  # the number of blocks inside `to_stderr`
_saved = -1  # a duplicate of the original standard output


@contextlib.contextmanager
def to_stderr() -> Iterator[None]:
    """Redirect standard output to standard error, also for programs that the user's code starts.

    This affects the whole process. If several threads use it, the redirection ends with the last block.
    """
    _enter()
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        _leave()


def _enter() -> None:
    global _active, _saved
    with _LOCK:
        if _active == 0:
            _flush()
            # A program that continues to run keeps only standard error open. Closed streams stay closed.
            with contextlib.suppress(OSError):
                _saved = os.dup(1)
                os.dup2(2, 1)
        _active += 1


def _leave() -> None:
    global _active, _saved
    with _LOCK:
        _active -= 1
        if _active == 0 and _saved >= 0:
            _flush()
            os.dup2(_saved, 1)
            os.close(_saved)
            _saved = -1


def _flush() -> None:
    """Write buffered output to its current destination."""
    for stream in (sys.stdout, sys.__stdout__):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # the reader is gone, or the stream is closed
            stream.flush()  # type: ignore[union-attr]  # pythonw has no streams, hence AttributeError
