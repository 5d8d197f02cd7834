"""Sends heartbeats to the hosts. Each host has a thread for them, so that no other host can delay them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

BEAT = 5.0  # seconds between heartbeats. A host gives up after 15 s without any


@contextmanager
def sending(send: Callable[[], bool]) -> Iterator[None]:
    """Send heartbeats to a host during the block.

    :param send: sends one; returns whether there may be further ones
    :raises RuntimeError: the process can't start another thread
    """
    ended = threading.Event()
    threading.Thread(target=_beat, args=(send, ended), daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _beat(send: Callable[[], bool], ended: threading.Event) -> None:
    while not ended.wait(BEAT):
        if not send():
            return
