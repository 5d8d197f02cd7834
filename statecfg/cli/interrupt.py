"""Ctrl-C: the first starts nothing new and lets running actions finish; the second exits immediately."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from statecfg.cli import exit_codes

# Signal → the exit status of a run that it stopped: 128 and its number, as in shells.
_SIGNALS = {
    signal.SIGINT: exit_codes.INTERRUPTED,
    signal.SIGTERM: exit_codes.TERMINATED,
    signal.SIGHUP: exit_codes.HANGUP,
}
_CURSOR = b"\x1b[?25h"


class Interrupts:
    """While entered, set `cancel` on the first SIGINT, SIGTERM or SIGHUP, and end the process on the second."""

    def __init__(self) -> None:
        self.cancel = threading.Event()
        self.code = exit_codes.INTERRUPTED  # exit status of a run that a signal stopped
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # `nohup` ignores SIGHUP on purpose
                self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """While entered, let Ctrl-C raise KeyboardInterrupt, which answers the open question."""
        handler = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, handler)

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self.cancel.is_set():
            # Threads may be stuck in reads from dead hosts, so don't wait for their clean-up.
            show_cursor = _CURSOR if os.isatty(2) else b""
            _tell(show_cursor + b"\nInterrupted again: quit immediately. The result of running actions is unknown.\n")
            os._exit(_SIGNALS[signal.Signals(number)])
        self.code = _SIGNALS[signal.Signals(number)]
        self.cancel.set()
        # Written with os.write, which takes no lock: a signal handler interrupts the main thread anywhere.
        _tell(b"\nStopping: waiting for running actions. Press Ctrl-C again to quit immediately.\n")


def confirmed(question: str) -> bool:
    """Ask on stderr and return whether the answer on stdin is yes. End of input, Ctrl-C and an empty line mean no.

    It waits for input in short intervals, because a Ctrl-C would be lost while a line editor sets itself up.
    """
    try:
        while True:
            sys.stderr.write(question)
            sys.stderr.flush()
            while not select.select([sys.stdin], [], [], 0.2)[0]:
                pass
            line = sys.stdin.readline()
            answer = line.strip().lower()
            if answer in ("y", "yes"):
                return True
            if not line or answer in ("", "n", "no"):
                return False
            sys.stderr.write("Error: answer y or n.\n")
    except KeyboardInterrupt:
        return False


def _tell(text: bytes) -> None:
    with contextlib.suppress(OSError):  # the terminal may be closed
        os.write(2, text)


def interactive() -> bool:
    """Return whether a user can answer questions: stdin and stderr are terminals, and CI is not set."""
    return sys.stdin.isatty() and sys.stderr.isatty() and not os.environ.get("CI")
