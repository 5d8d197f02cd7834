"""Sends heartbeats to the hosts. Each host has a thread for them, so that no other host can delay them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

BEAT = 5.0  # seconds between heartbeats. A host gives up after 15 s without any


class Heartbeats:
    """The heartbeats of the sessions of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions = 0

    @property
    def sessions(self) -> int:
        """The number of sessions."""
        return self._sessions

    @contextmanager
    def sending(self, send: Callable[[], bool]) -> Iterator[None]:
        """Send heartbeats during the block.

        :param send: sends one; returns whether there may be further ones
        :raises RuntimeError: the process can't start another thread
        """
        ended = threading.Event()
        threading.Thread(target=_beat, args=(send, ended), daemon=True).start()
        with self._lock:
            self._sessions += 1
        try:
            yield
        finally:
            ended.set()
            with self._lock:
                self._sessions -= 1


def _beat(send: Callable[[], bool], ended: threading.Event) -> None:
    while not ended.wait(BEAT):
        if not send():
            return


HEARTBEATS = Heartbeats()
