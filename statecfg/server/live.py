"""Tells pages that are open what has changed in the store, as server-sent events: one look a second for all of them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable

from starlette.responses import Response, StreamingResponse

from statecfg.server.auth import ADMINISTRATOR, VIEWER
from statecfg.server.request import Request
from statecfg.server.routing import Routes
from statecfg.store import StoreError, marks, runs
from statecfg.store.database import Store

routes = Routes()
PERIOD = 1.0  # seconds between two looks at the store
BEAT = 10.0  # seconds after which a page hears that the connection is there, though nothing has changed
LIFE = 600.0  # seconds after which a stream ends: the page comes back, and may by then have lost its right to listen
MOST = 500  # pages that listen at a time
# What somebody who is no administrator hears of.
OPEN_TOPICS = frozenset({"entities", "tasks"})


class _Listener:
    """A page that listens: what has changed since it was last told."""

    def __init__(self) -> None:
        self.changed: set[str] = set()
        self.trouble = ""
        self.woken = asyncio.Event()


class Live:
    """Who listens to a store, and the one task that looks at it as long as somebody does."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._listeners: set[_Listener] = set()
        self._known: dict[str, str] = {}
        self._task: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()

    async def follow(self, topics: frozenset[str] | None, stopping: Callable[[], bool]) -> AsyncIterator[bytes]:
        """Yield events until the stream has had its time, or the server is about to end.

        `hello` comes first, `changed` with a list of topics, `trouble` where the store can't be read (and `hello` again
        when it can), and `beat`.

        :param topics: those to tell of, None for all
        """
        if len(self._listeners) >= MOST:
            yield _event("full", {"seconds": 30})
            return
        listener = _Listener()
        self._listeners.add(listener)
        end = time.monotonic() + LIFE
        try:
            # What a page reads after this, and what changes later, is all there is: nothing is lost between.
            async with self._starting:
                if self._task is None or self._task.done():
                    self._known, _ = await self._read()  # trouble that lasts is found again at once
                    self._task = asyncio.create_task(self._look())
            yield _event("hello", {"beat": BEAT})
            told, trouble = time.monotonic(), ""
            while not stopping() and not self._task.done() and time.monotonic() < end:
                # Every second, so that a server that stops is not held up.
                if await _woken(listener.woken, PERIOD):
                    listener.woken.clear()
                    changed, listener.changed = listener.changed, set()
                    if listener.trouble != trouble:
                        trouble = listener.trouble
                        message = trouble if topics is None else "The store can't be used just now."
                        # What changed meanwhile is not known: the page asks for everything again.
                        yield _event("trouble", {"message": message}) if trouble else _event("hello", {"beat": BEAT})
                    told_of = sorted(changed if topics is None else changed & topics)
                    if told_of:
                        yield _event("changed", {"topics": told_of})
                        told = time.monotonic()
                if time.monotonic() - told >= BEAT:
                    yield _event("beat", {})
                    told = time.monotonic()
        finally:
            self._listeners.discard(listener)

    async def _look(self) -> None:
        """Look at the store every second, and wake who listens, until nobody does."""
        while self._listeners:
            found, trouble = await self._read()
            changed = {topic for topic in found if found[topic] != self._known.get(topic)}
            self._known.update(found)
            for listener in self._listeners:
                if changed or trouble != listener.trouble:
                    listener.changed |= changed
                    listener.trouble = trouble
                    listener.woken.set()
            await asyncio.sleep(PERIOD)

    async def _read(self) -> tuple[dict[str, str], str]:
        """Return the marks, and "", or none, and why they can't be read."""
        try:
            return await asyncio.to_thread(marks.read, self._store, time.time() - runs.CUT_OFF), ""
        except StoreError as problem:
            return {}, str(problem)


async def _woken(event: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True


def _event(name: str, data: object) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()


@routes(
    "GET",
    "/statecfg/1.0/live",
    VIEWER,
    "Send server-sent events when something changes.",
    {200: "Event"},
    media_type="text/event-stream",
    documented=False,  # a tool that tries all documented calls would listen for minutes
)
def _live(request: Request) -> Response:
    """Answer with the stream of changes that the caller may know of."""
    topics = None if request.principal.role == ADMINISTRATOR else OPEN_TOPICS
    state = request.app.state
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(state.live.follow(topics, state.stopping), 200, headers, "text/event-stream")
