"""The application: checks before Starlette's routing, and headers for each response."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import anyio
from anyio import to_thread
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders, State
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from statecfg.entities.model import Principal
from statecfg.entities.problems import ApiError
from statecfg.server import auth, writing
from statecfg.server.routes import ROUTES
from statecfg.server.routing import ApiRoute, Turns, endpoints
from statecfg.store import Busy, StoreError

THREADS = 16
log = logging.getLogger("statecfg.server")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Boundary:
    """Middleware that normalizes each request, and adds the security headers and a request id to each response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = _normal(scope)
        identity = Request(scope).state.id = str(uuid.uuid4())

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in {**writing.SECURITY, writing.REQUEST_ID: identity}.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)


def _normal(scope: Scope) -> Scope:
    """Return the scope without a slash at the end of the path.

    If the request target is a complete URL, its host replaces the Host header. Source: RFC 9112, 3.2.2.
    """
    path, headers = scope["path"], scope["headers"]
    whole = re.match(r"(?is)https?://([^/]*)(.*)", path)
    if whole is not None:
        others = [(name, value) for name, value in headers if name.lower() != b"host"]
        path, headers = whole[2], [(b"host", whole[1].encode("latin-1", "replace")), *others]
    return {**scope, "path": path.rstrip("/") or "/", "headers": headers, "state": dict(scope.get("state") or {})}


class RequestGuard:
    """Middleware that refuses requests that a foreign web page may have sent, and identifies the caller of the others.

    Starlette's TrustedHostMiddleware is not enough: it responds with 400 in plain text instead of 403 in JSON, and
    checks neither `Origin` nor `Sec-Fetch-Site`.
    """

    def __init__(self, app: ASGIApp, guard: auth.OriginGuard) -> None:
        self._app, self._guard = app, guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on.

        :raises ApiError: 403 if the guard refuses it
        :raises HTTPException: 404 if the path contains a control character
        """
        if scope["type"] == "http":
            request = Request(scope)
            refusal = self._guard.refusal(request.headers)
            if refusal:
                raise ApiError(403, "ORIGIN_NOT_ALLOWED", refusal)
            request.state.caller, request.state.browser_session = await run_in_threadpool(_who, request)
            if _CONTROL.search(scope["path"]):  # the `$` of Starlette's patterns ignores a line break at the end
                raise HTTPException(404)
        await self._app(scope, receive, send)


def _who(request: Request) -> tuple[Principal | None, str]:
    """Return the caller (None if unknown) and their browser session ("" if none). A token overrides a session."""
    state = request.app.state
    token = auth.token(request.headers)
    if token is not None:
        return state.operations.principal_of(token) if 0 < len(token) <= auth.LONGEST else None, ""
    session = request.cookies.get(auth.COOKIE, "")
    caller = state.sessions.principal(session) if session else None
    return caller, session if caller is not None else ""


async def _refused(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, ApiError)
    return writing.error(problem, request)


async def _no_route(request: Request, problem: Exception) -> Response:
    """Return the response for an unknown path or method. A caller without a token doesn't learn which paths exist."""
    assert isinstance(problem, HTTPException)
    if request.state.caller is None:
        return writing.error(auth.unauthorized(), request)
    if problem.status_code == 405:
        message = "This path does not support this method."
        return writing.error(ApiError(405, "METHOD_NOT_ALLOWED", message, dict(problem.headers or {})), request)
    return writing.error(ApiError(404, "NOT_FOUND", "This path does not exist."), request)


async def _store_failed(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, StoreError)
    log.error("%s: %s", request.state.id, problem.detail)
    code = "BUSY" if isinstance(problem, Busy) else "STORE_FAILED"
    failed = ApiError(503, code, "The store is temporarily unavailable.", {"Retry-After": "5"})
    return writing.error(failed, request)


async def _failed(request: Request, problem: Exception) -> Response:
    log.error("%s: a bug in statecfg", request.state.id, exc_info=problem)
    message = f"A bug in statecfg. The server's log contains the details under {request.state.id}."
    return writing.error(ApiError(500, "INTERNAL_SERVER_ERROR", message), request)


def create(
    start: Callable[[State], Callable[[], None]], guard: auth.OriginGuard, table: Sequence[ApiRoute] = ROUTES
) -> Starlette:
    """Return the application for any ASGI server.

    :param start: called once in a thread when the server starts. It sets what handlers use in the application's state
        (`project`, `store`, `operations`, `sessions`, `live`, `wake`, `stopping`), and returns a function that the
        application calls at the end
    :param guard: decides which hosts and origins are allowed
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = THREADS
        app.state.delays, app.state.turns, app.state.table = auth.Delays(), Turns(), table
        end = await to_thread.run_sync(start, app.state)
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(end)

    handlers = {ApiError: _refused, StoreError: _store_failed, Exception: _failed}
    app = Starlette(
        routes=endpoints(table),
        lifespan=lifespan,
        middleware=[
            Middleware(Boundary),
            # Starlette's own handler of Exception raises it again, so uvicorn would log it a second time.
            Middleware(ExceptionMiddleware, handlers={**handlers, HTTPException: _no_route}),
            Middleware(RequestGuard, guard),
        ],
        exception_handlers={HTTPException: _no_route},
    )
    app.router.redirect_slashes = False
    return app
