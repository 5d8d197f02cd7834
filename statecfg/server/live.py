"""Tell open pages about changes in the store, by server-sent events. One read per second serves all pages."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable

from starlette.responses import Response, StreamingResponse

from statecfg.server.auth import ADMINISTRATOR, VIEWER
from statecfg.server.request import ApiRequest
from statecfg.server.routing import Routes
from statecfg.store import StoreError, marks, runs
from statecfg.store.database import Store

routes = Routes()
PERIOD = 1.0  # seconds between two reads of the store
BEAT = 10.0  # seconds without an event after which a page gets a heartbeat
LIFE = 600.0  # seconds after which a stream ends; the page reconnects, and the server checks its rights again
MOST = 500  # maximum number of pages that listen at the same time
# The topics for users who are not administrators.
OPEN_TOPICS = frozenset({"entities", "tasks"})


class _Listener:
    """A page that listens, and the changes that it has not received yet."""

    def __init__(self) -> None:
        self.changed: set[str] = set()
        self.trouble = ""
        self.woken = asyncio.Event()


class Live:
    """The pages that listen to a store, and the task that reads the store while there are such pages."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._listeners: set[_Listener] = set()
        self._marks: dict[str, str] = {}
        self._task: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()

    async def follow(self, topics: frozenset[str] | None, stopping: Callable[[], bool]) -> AsyncIterator[bytes]:
        """Yield events until the stream has reached its maximum age or the server is stopping.

        The events are `hello` at the start, `changed` with a list of topics, `trouble` if the store can't be read,
        `hello` when it can be read again, and `beat` as a heartbeat. If too many pages listen, the only event is
        `full`.

        :param topics: the topics to report; None for all
        :param stopping: returns whether the server is stopping
        """
        if len(self._listeners) >= MOST:
            yield _event("full", {"seconds": 30})
            return
        listener = _Listener()
        self._listeners.add(listener)
        end = time.monotonic() + LIFE
        try:
            # After this read, the page requests everything and is told about all later changes, so it misses none.
            async with self._starting:
                if self._task is None or self._task.done():
                    self._marks, _ = await self._read()
                    self._task = asyncio.create_task(self._watch())
            yield _event("hello", {"beat": BEAT})
            last, trouble = time.monotonic(), ""
            while not stopping() and not self._task.done() and time.monotonic() < end:
                # Wake up every second, so that streams don't delay the end of the server.
                if await _woken(listener.woken, PERIOD):
                    listener.woken.clear()
                    changed, listener.changed = listener.changed, set()
                    if listener.trouble != trouble:
                        trouble = listener.trouble
                        message = trouble if topics is None else "The store is temporarily unavailable."
                        # After trouble, `hello` makes the page request everything again.
                        yield _event("trouble", {"message": message}) if trouble else _event("hello", {"beat": BEAT})
                    topics_changed = sorted(changed if topics is None else changed & topics)
                    if topics_changed:
                        yield _event("changed", {"topics": topics_changed})
                        last = time.monotonic()
                if time.monotonic() - last >= BEAT:
                    yield _event("beat", {})
                    last = time.monotonic()
        finally:
            self._listeners.discard(listener)

    async def _watch(self) -> None:
        """While pages listen, read the store every second and wake them if it changed."""
        while self._listeners:
            marks_now, trouble = await self._read()
            changed = {topic for topic in marks_now if marks_now[topic] != self._marks.get(topic)}
            self._marks.update(marks_now)
            for listener in self._listeners:
                if changed or trouble != listener.trouble:
                    listener.changed |= changed
                    listener.trouble = trouble
                    listener.woken.set()
            await asyncio.sleep(PERIOD)

    async def _read(self) -> tuple[dict[str, str], str]:
        """Return topic → mark and "", or no marks and the reason why the store can't be read."""
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
    documented=False,  # a tool that tests all documented calls would listen for minutes
)
def _live(request: ApiRequest) -> Response:
    """Answer with the stream of changes that the caller may know of."""
    topics = None if request.principal.role == ADMINISTRATOR else OPEN_TOPICS
    state = request.app.state
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(state.live.follow(topics, state.stopping), 200, headers, "text/event-stream")
