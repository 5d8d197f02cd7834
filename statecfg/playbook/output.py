"""Keeps standard output free for reports while code of users runs."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

_LOCK = threading.Lock()
_inside = 0  # how many are in `to_stderr`
_kept = -1  # where standard output led before


@contextlib.contextmanager
def to_stderr() -> Iterator[None]:
    """While entered, standard output leads to standard error: what user code and the programs it starts print too.

    Holds for the whole process. Entered in several threads, it ends when the last one leaves.
    """
    _enter()
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        _leave()


def _enter() -> None:
    global _inside, _kept
    with _LOCK:
        if _inside == 0:
            _flush()
            # A program that keeps running holds standard error only. Closed streams stay as they are.
            with contextlib.suppress(OSError):
                _kept = os.dup(1)
                os.dup2(2, 1)
        _inside += 1


def _leave() -> None:
    global _inside, _kept
    with _LOCK:
        _inside -= 1
        if _inside == 0 and _kept >= 0:
            _flush()
            os.dup2(_kept, 1)
            os.close(_kept)
            _kept = -1


def _flush() -> None:
    """Write what is buffered to where it was meant to go."""
    for stream in (sys.stdout, sys.__stdout__):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # nobody reads, or it is closed
            stream.flush()  # type: ignore[union-attr]  # pythonw has no streams, hence AttributeError
