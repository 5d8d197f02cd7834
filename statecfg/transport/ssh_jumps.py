"""Share the connections to jump hosts: one per process for each chain of jump hosts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from . import SshSettings
from .errors import ConnectionLost
from .route import Hop
from .ssh import Transport, shut

NOTICE = 0.3
POLL = 0.01

Build = Callable[[list[Transport]], None]


class JumpChain:
    """A chain of connections to jump hosts. It stays open while connections use it."""

    def __init__(self, hops: tuple[Hop, ...], settings: SshSettings) -> None:
        self.hops = hops
        self.settings = settings
        self.transports: list[Transport] = []
        self.built: Future[None] = Future()
        self.users = 0

    def broken(self) -> str | None:
        """Return the name of the first jump host whose connection ended; None if there is none."""
        # There is one transport for each hop that was reached, also if a later hop failed.
        broken = (hop.name for hop, t in zip(self.hops, self.transports, strict=False) if not t.is_active())
        return next(broken, None) if self.built.done() else None

    def notice(self) -> str | None:
        """Wait a moment, then return the same as `broken`: the last hop can notice a failure before the first one."""
        deadline = time.monotonic() + NOTICE
        while (name := self.broken()) is None and self.hops and time.monotonic() < deadline:
            time.sleep(POLL)
        return name

    def leave(self) -> None:
        """Release the chain for one host. The last release closes it."""
        with _lock:
            self.users -= 1
            if self.users or not self.hops:
                return
            _forget(self)
        for transport in reversed(self.transports):
            shut(transport)


def enter(hops: tuple[Hop, ...], settings: SshSettings, build: Build) -> JumpChain:
    """Return the chain of connections over these hops. The caller must call its `leave` once.

    :param build: opens the connections if there is no intact chain; other callers wait until it has returned. Its
        exceptions are raised in all of them
    """
    with _lock:
        way = _ways.get((hops, settings))
        builds = way is None or way.broken() is not None
        if way is None or builds:
            way = _ways[hops, settings] = JumpChain(hops, settings)
        way.users += 1
    try:
        if builds:
            _build(way, build)
        way.built.result()
    except BaseException:
        way.leave()
        raise
    return way


def _build(way: JumpChain, build: Build) -> None:
    try:
        build(way.transports)
    except BaseException as error:
        with _lock:
            _forget(way)
        # An interrupt concerns only this thread, so the waiting threads get another error.
        interrupted = not isinstance(error, Exception)
        way.built.set_exception(ConnectionLost(way.hops[0].name, "interrupted") if interrupted else error)
        raise
    way.built.set_result(None)


def _forget(way: JumpChain) -> None:
    if _ways.get((way.hops, way.settings)) is way:
        del _ways[way.hops, way.settings]


_ways: dict[tuple[tuple[Hop, ...], SshSettings], JumpChain] = {}
_lock = threading.Lock()
