"""The application: from a request to its route, by way of everything that may refuse it, and back."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import anyio
from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from statecfg.entities.problems import FORBIDDEN, ApiError
from statecfg.server import auth, requests, routes, sessions, versions, writing
from statecfg.server.exchange import ANYONE, Answer, Asked, Route, Shared
from statecfg.store import Busy, StoreError

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from statecfg.entities.model import Principal

T = TypeVar("T")
THREADS = 16
log = logging.getLogger("statecfg.server")
_PARAMETER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Place:
    """All routes of one path. `pattern` matches it, with its parameters as groups."""

    pattern: re.Pattern[str]
    routes: Mapping[str, Route]


def places(table: Sequence[Route]) -> tuple[Place, ...]:
    """Return the routes by path, in the order of the table: what is written first matches first."""
    by_path: dict[str, dict[str, Route]] = {}
    for route in table:
        by_path.setdefault(route.path, {})[route.method] = route
    return tuple(Place(_pattern(path), methods) for path, methods in by_path.items())


def _pattern(path: str) -> re.Pattern[str]:
    pieces = _PARAMETER.split(path)
    texts = [
        re.escape(piece) if index % 2 == 0 else rf"(?P<{piece}>[^/\x00-\x1f\x7f]+)"
        for index, piece in enumerate(pieces)
    ]
    return re.compile("".join(texts))


class Application:
    """Answers requests.

    :param make: makes what requests share, called once in a thread when the server starts; with what ends it
    :param guard: which hosts and origins are answered at all
    :param table: the routes
    """

    def __init__(
        self,
        make: Callable[[], tuple[Shared, Callable[[], None]]],
        guard: auth.Guard,
        table: Sequence[Route] = routes.ROUTES,
    ) -> None:
        self._make = make
        self._guard = guard
        self._places = places(table)
        self._slowed = auth.Slowed()
        self._threads: CapacityLimiter
        self._shared: Shared

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Open what requests share, and close it at the end, in threads."""
        self._threads = CapacityLimiter(THREADS)
        self._shared, end = await to_thread.run_sync(self._make)
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(end)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request (ASGI)."""
        request = Request(scope, receive)
        identity = str(uuid.uuid4())
        path, headers = _target(request)
        version: float | None = None
        try:
            answer, version = await self._answer(request, path, headers)
        except ApiError as refused:
            answer = writing.error(refused, headers, path)
        except StoreError as problem:
            log.error("%s: %s", identity, problem.detail)
            code = "BUSY" if isinstance(problem, Busy) else "STORE_FAILED"
            failed = ApiError(503, code, "The store can't be used just now.", {"Retry-After": "5"})
            answer = writing.error(failed, headers, path)
        except Exception:
            log.exception("%s: a mistake in statecfg", identity)
            message = f"A mistake in statecfg. The server's log tells more about {identity}."
            answer = writing.error(ApiError(500, "INTERNAL_SERVER_ERROR", message), headers, path)
        response = _response(answer, version, {**writing.SECURITY, writing.REQUEST_ID: identity})
        await response(scope, receive, send)

    async def _answer(self, request: Request, target: str, headers: Mapping[str, str]) -> tuple[Answer, float]:
        refusal = self._guard.refusal(headers)
        if refusal:
            raise ApiError(403, "ORIGIN_NOT_ALLOWED", refusal)
        caller, session = await self._in_thread(self._who, headers)
        method = "GET" if request.method == "HEAD" else request.method
        route, path = self._route(target, method, caller)
        denied = _denial(route, caller)
        if denied is None and session and route.permission != ANYONE and request.method not in auth.SAFE:
            denied = self._forged(session, headers)
        if denied is not None and (route.denied is None or denied.status != 401):
            raise denied
        accepted = self._accepted(headers)
        xml = (route.xml == "asked" and accepted.xml) or (route.xml == "default" and not accepted.json)
        base = f"{request.url.scheme}://{headers['host']}"
        address = base + quote(target, safe="/:@!$&'()*+,;=~")
        if denied is not None and route.denied is not None:
            asked = Asked(self._shared, None, "", accepted.version, path, {}, None, headers, base, address)
            return await self._in_thread(route.denied, asked), accepted.version
        query = requests.query(request.scope["query_string"].decode("latin-1"), route.query)
        # In a thread: what is large takes its time to be looked at, and others are to be answered meanwhile.
        content = await self._in_thread(requests.content, route, await requests.body(request), headers)
        asked = Asked(
            self._shared, caller, session, accepted.version, path, query, content, headers, base, address, xml
        )
        return await self._slowly(request, route, asked), accepted.version

    async def _slowly(self, request: Request, route: Route, asked: Asked) -> Answer:
        """Call the handler; who gives wrong credentials waits for the refusal."""
        status = 0
        try:
            answer = await self._in_thread(route.handler, asked)
            status = answer.status
            return answer
        except ApiError as refused:
            status = refused.status
            raise
        finally:
            if route.permission == ANYONE and status == 401:
                await anyio.sleep(self._slowed.failed(request.client.host if request.client else ""))

    async def _in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        return await to_thread.run_sync(function, *arguments, limiter=self._threads)

    def _who(self, headers: Mapping[str, str]) -> tuple[Principal | None, str]:
        """Return who asks, and the browser session that says so. A token that is given counts alone."""
        token = auth.token(headers)
        if token is not None:
            return self._shared.operations.principal_of(token) if 0 < len(token) <= auth.LONGEST else None, ""
        session = auth.cookie(headers)
        caller = self._shared.sessions.principal(session) if session else None
        return caller, session if caller is not None else ""

    def _route(self, path: str, method: str, caller: Principal | None) -> tuple[Route, Mapping[str, str]]:
        """Find the route. Who is nobody does not learn which ones there are."""
        trimmed = path.rstrip("/") or "/"
        for place in self._places:
            found = place.pattern.fullmatch(trimmed)
            if found and method in place.routes:
                return place.routes[method], found.groupdict()
            if found and caller is not None:
                allowed = ", ".join(sorted({*place.routes, *(["HEAD"] if "GET" in place.routes else [])}))
                raise ApiError(405, "METHOD_NOT_ALLOWED", "This path has no such method.", {"Allow": allowed})
        if caller is None:
            raise _unknown()
        raise ApiError(404, "NOT_FOUND", "There is no such path.")

    def _forged(self, session: str, headers: Mapping[str, str]) -> ApiError | None:
        if sessions.matches(session, headers.get(auth.CSRF, "")):
            return None
        return ApiError(403, FORBIDDEN, "A page's changes need the header X-Statecfg-Csrf.")

    def _accepted(self, headers: Mapping[str, str]) -> versions.Accepted:
        try:
            return versions.accepted(headers.get("accept", ""))
        except versions.Unsupported as problem:
            known = ", ".join(map(str, versions.SUPPORTED))
            message = f"There is no version {problem.version!r} of this API. There are {known}."
            raise ApiError(406, "UNSUPPORTED_API_VERSION", message) from None


def _target(request: Request) -> tuple[str, dict[str, str]]:
    """Return a request's path, decoded, and its headers by name in lower case.

    The host of a target that is a whole URL counts in place of the header's. Source: RFC 9112, 3.2.2.
    """
    path: str = request.scope["path"]
    headers = {name.lower(): value for name, value in request.headers.items()}
    whole = re.match(r"(?is)https?://([^/]*)(.*)", path)
    return (path, headers) if whole is None else (whole[2] or "/", {**headers, "host": whole[1]})


def _unknown() -> ApiError:
    return ApiError(401, "UNAUTHORIZED", "This needs a valid token.", {"WWW-Authenticate": 'Bearer realm="statecfg"'})


def _denial(route: Route, caller: Principal | None) -> ApiError | None:
    """Return why somebody may not call a route, None where they may: nobody may what is not allowed."""
    if route.permission == ANYONE:
        return None
    if caller is None:
        return _unknown()
    if not auth.allows(route.permission, caller.role):
        return ApiError(403, FORBIDDEN, f"This needs the role {route.permission}.")
    return None


def _response(answer: Answer, version: float | None, headers: Mapping[str, str]) -> Response:
    """Return what starlette sends."""
    every = {name.lower(): value for name, value in (*headers.items(), *answer.headers.items())}
    if answer.stream is not None:
        return StreamingResponse(answer.stream, answer.status, every, answer.media_type)
    body = writing.body(answer)
    if body:
        every["content-type"] = writing.content_type(answer.media_type, version)
    return Response(body, answer.status, every)


def create(
    make: Callable[[], tuple[Shared, Callable[[], None]]], guard: auth.Guard, table: Sequence[Route] = routes.ROUTES
) -> Starlette:
    """Return the application, for any ASGI server.

    :param make: returns what requests share, and a function that ends it
    :param guard: which hosts and origins are answered
    """
    application = Application(make, guard, table)
    made = Starlette(lifespan=application.lifespan)
    # For every path there is: a route of Starlette's would answer some of them by itself.
    made.router.default = application
    return made
