"""The server process: listen, serve until a signal, stop the worker."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn
from starlette.datastructures import State
from uvicorn.protocols.http.h11_impl import H11Protocol

from statecfg.playbook.project import Project
from statecfg.server import app, auth
from statecfg.server.live import Live
from statecfg.server.sessions import LoginSessions
from statecfg.store.database import Store

BACKLOG = 2048
KEEP_ALIVE = 30  # seconds for which an idle connection is kept
TIMEOUT = 30.0  # seconds in which the headers of a request must arrive, and in which a client must continue to read
GRACE = 20  # seconds that requests in progress get to finish when the server stops


class _Server(uvicorn.Server):
    """Uvicorn's server without its signal handlers, because `serve` has its own."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no signal handlers."""
        yield


class ServerConnection(H11Protocol):
    """Uvicorn's connection with timeouts for the headers of a request and for a client that stops reading.

    Without them, a client could keep connections open forever by sending nothing or a byte now and then.
    """

    timeout = TIMEOUT
    _late: asyncio.TimerHandle | None = None
    _full: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's own annotation
        """Start the timeout for the first request."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Process data. An incomplete request keeps its deadline."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timers."""
        super().connection_lost(exc)
        self._unwatch()
        self._emptied()

    def pause_writing(self) -> None:
        """Start the timeout for a client that stops reading."""
        super().pause_writing()
        self._full = self.loop.call_later(self.timeout, self.transport.abort)

    def resume_writing(self) -> None:
        """Cancel that timeout: the client has read."""
        super().resume_writing()
        self._emptied()

    @property
    def is_timed(self) -> bool:
        """Whether the connection waits for the headers of a request."""
        return self._late is not None

    def _watch(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._unwatch()
        elif not self.is_timed and not self.transport.is_closing():
            self._late = self.loop.call_later(self.timeout, self.transport.abort)

    def _emptied(self) -> None:
        if self._full is not None:
            self._full.cancel()
            self._full = None

    def _unwatch(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def listen(bind: str, port: int) -> socket.socket:
    """Return a listening socket.

    :raises OSError: the address is invalid or in use
    """
    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    listener = socket.create_server((bind.strip("[]"), port), family=family, backlog=BACKLOG)
    # Connections inherit this. Without it, the body of a response waits 40 ms for the acknowledgement of its headers.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def address(listener: socket.socket, bind: str, tls: bool) -> str:
    """Return the URL of the server."""
    host = bind.strip("[]")
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"


def context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return a TLS context for TLS 1.2 or later.

    :raises OSError: a file can't be read or is invalid (ssl.SSLError)
    """
    tls_context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls_context.load_cert_chain(certificate, key)
    return tls_context


def serve(
    listener: socket.socket,
    project: Project,
    store: Store,
    guard: auth.OriginGuard,
    ready: Callable[[], None],
    tls: ssl.SSLContext | None = None,
) -> int:
    """Serve until SIGTERM or SIGINT. Then finish the requests and task steps that are in progress, and return.

    :param ready: called when the server accepts requests
    :param tls: None serves without TLS
    :returns: the signal
    """
    return asyncio.run(_serve(listener, project, store, guard, ready, tls))


async def _serve(
    listener: socket.socket,
    project: Project,
    store: Store,
    guard: auth.OriginGuard,
    ready: Callable[[], None],
    tls: ssl.SSLContext | None,
) -> int:
    server: _Server

    def stopping() -> bool:
        return server.should_exit

    application = app.create(lambda state: _start(state, project, store, stopping), guard)
    config = uvicorn.Config(
        application,
        lifespan="on",
        http=ServerConnection,
        log_config=None,
        log_level="warning",
        access_log=False,
        proxy_headers=False,  # a client could claim any address
        server_header=False,
        ws="none",
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=GRACE,
        ssl_context_factory=None if tls is None else lambda *_: tls,
    )
    server = _Server(config)
    got: list[int] = []

    def end(number: int) -> None:
        got.append(number)
        server.force_exit = len(got) > 1
        server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end, number)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    if server.started:
        ready()
    await serving
    return got[0] if got else signal.SIGTERM


def _start(state: State, project: Project, store: Store, stopping: Callable[[], bool]) -> Callable[[], None]:
    """Start the worker, set what handlers use in the application's state, and return a function that stops the worker.

    In the state, `live` tells open pages about changes, `wake` tells the worker that there may be a task, and
    `stopping` returns whether the server is stopping, so that streams end as well.
    """
    from statecfg.entities.operations import Operations
    from statecfg.entities.worker import Worker

    state.project, state.store, state.stopping = project, store, stopping
    state.operations = Operations(store, project=project)
    state.sessions, state.live = LoginSessions(store), Live(store)
    worker = Worker(state.operations, project)
    worker.start()
    state.wake = worker.wake
    return worker.stop
