"""The connections to jump hosts: one per process for each way, which all hosts behind it share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from . import Settings
from .errors import ConnectionLost
from .route import Hop
from .ssh import Transport, shut

NOTICE = 0.3
POLL = 0.01

Build = Callable[[list[Transport]], None]


class Way:
    """A chain of connections to jump hosts; open while somebody uses it."""

    def __init__(self, hops: tuple[Hop, ...], settings: Settings) -> None:
        self.hops = hops
        self.settings = settings
        self.transports: list[Transport] = []
        self.built: Future[None] = Future()
        self.users = 0

    def broken(self) -> str | None:
        """Return the name of the first jump host to which the connection is gone, or None."""
        # Built or failed, there are as many transports as hops that were reached.
        gone = (hop.name for hop, t in zip(self.hops, self.transports, strict=False) if not t.is_active())
        return next(gone, None) if self.built.done() else None

    def notice(self) -> str | None:
        """Return what `broken` does, once it can be known: the far end may learn of a death before the near end."""
        deadline = time.monotonic() + NOTICE
        while (name := self.broken()) is None and self.hops and time.monotonic() < deadline:
            time.sleep(POLL)
        return name

    def leave(self) -> None:
        """Say that one host does not need it any more; the last one closes it."""
        with _lock:
            self.users -= 1
            if self.users or not self.hops:
                return
            _forget(self)
        for transport in reversed(self.transports):
            shut(transport)


def enter(hops: tuple[Hop, ...], settings: Settings, build: Build) -> Way:
    """Return the way over these hops, which `build` opens if nobody has, or it broke; who comes meanwhile waits for it.

    Raises what `build` raises, also to those who waited. Call `leave` of what is returned, once.
    """
    with _lock:
        way = _ways.get((hops, settings))
        mine = way is None or way.broken() is not None
        if way is None or mine:
            way = _ways[hops, settings] = Way(hops, settings)
        way.users += 1
    try:
        if mine:
            _build(way, build)
        way.built.result()
    except BaseException:
        way.leave()
        raise
    return way


def _build(way: Way, build: Build) -> None:
    try:
        build(way.transports)
    except BaseException as error:
        with _lock:
            _forget(way)
        # Those who wait get an error of their own where this one was only about us, as an interrupt is.
        ours = not isinstance(error, Exception)
        way.built.set_exception(ConnectionLost(way.hops[0].name, "given up") if ours else error)
        raise
    way.built.set_result(None)


def _forget(way: Way) -> None:
    if _ways.get((way.hops, way.settings)) is way:
        del _ways[way.hops, way.settings]


_ways: dict[tuple[tuple[Hop, ...], Settings], Way] = {}
_lock = threading.Lock()
