"""The declarations of routes, and the endpoint that handles the requests to one path.

These declarations are the only source for routing, permissions and the OpenAPI document.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakValueDictionary

import anyio
from starlette import routing
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from statecfg.entities.model import Principal
from statecfg.entities.problems import FORBIDDEN, ApiError
from statecfg.graph.json_schema import JsonSchema
from statecfg.problems.frozen import dataclass
from statecfg.server import auth, reading, sessions, versions
from statecfg.server.auth import ANYONE
from statecfg.server.media import Body, Xml
from statecfg.server.parameters import QueryParameter
from statecfg.server.request import ApiRequest

JSON = "application/json"
SHARE = 6  # threads that the requests of one caller may occupy
Handler = Callable[[ApiRequest], Response]
Responses = Mapping[int, str | JsonSchema | None]


@dataclass(frozen=True, slots=True)
class ApiRoute:
    """One call of the API.

    :param path: with parameters in braces; a slash at the end of a request's path is ignored
    :param permission: one of `auth.PERMISSIONS`
    :param summary: one sentence for the documentation
    :param responses: status → name of the document in the body, its JSON Schema, or None for no body; errors are not
        listed
    :param handler: called in a thread
    :param query: the query parameters
    :param request: the body of requests; None if a request must not have a body
    :param xml: the XML of responses; None if the route has only one media type
    :param media_type: the media type of responses that are not in XML, without errors
    :param denied: returns the response for a caller without a valid token; None for an error in JSON
    :param documented: the call belongs to the API; other calls are only for the page
    """

    method: str
    path: str
    permission: str
    summary: str
    responses: Responses
    handler: Handler
    query: tuple[QueryParameter, ...] = ()
    request: Body | None = None
    xml: Xml | None = None
    media_type: str = JSON
    denied: Handler | None = None
    documented: bool = True


class Routes:
    """The routes of one module, in the order of their declaration."""

    def __init__(self) -> None:
        self.declared: list[ApiRoute] = []

    def __call__(
        self,
        method: str,
        path: str,
        permission: str,
        summary: str,
        responses: Responses,
        **more: Any,
    ) -> Callable[[Handler], Handler]:
        """Return a decorator that declares a route with its function as the handler. `ApiRoute` has the parameters."""

        def declare(handler: Handler) -> Handler:
            self.declared.append(ApiRoute(method, path, permission, summary, responses, handler, **more))
            return handler

        return declare


class Turns:
    """Lets each caller occupy some of the server's threads. The others are left for other callers."""

    def __init__(self) -> None:
        self._of: WeakValueDictionary[tuple[str, str], asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def of(self, caller: Principal | None) -> AsyncIterator[None]:
        """Wait until a caller has fewer than `SHARE` requests in threads.

        :param caller: None for a request without a valid token, which does not wait
        """
        if caller is None:
            yield
            return
        key = caller.org, caller.name
        turn = self._of.get(key)
        if turn is None:
            turn = self._of[key] = asyncio.Semaphore(SHARE)
        async with turn:
            yield


class ApiPath:
    """The routes of one path, as an ASGI application."""

    def __init__(self, routes: Iterable[ApiRoute]) -> None:
        self._routes = {route.method: route for route in routes}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request with the route for its method.

        :raises HTTPException: 405 if the path has no route for this method
        """
        request = ApiRequest(scope, receive)
        route = self._routes.get("GET" if request.method == "HEAD" else request.method)
        if route is None:
            allowed = {*self._routes, *(["HEAD"] if "GET" in self._routes else [])}
            raise HTTPException(405, headers={"Allow": ", ".join(sorted(allowed))})
        response = await _respond(route, request)
        await response(scope, receive, send)


def endpoints(table: Iterable[ApiRoute]) -> list[routing.Route]:
    """Return one Starlette route per path. With one per method, its error for a wrong method would name only one."""
    by_path: dict[str, list[ApiRoute]] = {}
    for route in table:
        by_path.setdefault(route.path, []).append(route)
    return [routing.Route(path, ApiPath(routes)) for path, routes in by_path.items()]


async def _respond(route: ApiRoute, request: ApiRequest) -> Response:
    """Check a request against its route, and call the handler."""
    denial = _denial(route, request)
    if denial is not None and (route.denied is None or denial.status != 401):
        raise denial
    accepted = _accepted(request.headers.get("accept", ""))
    request.version = accepted.version
    xml = route.xml
    request.wants_xml = xml is not None and (not accepted.json if xml.default else accepted.xml)
    if denial is not None and route.denied is not None:
        return await run_in_threadpool(route.denied, request)
    request.query = reading.query(request.scope["query_string"].decode("latin-1"), route.query)
    data = await reading.body(request)
    async with request.app.state.turns.of(request.caller):
        # In a thread, because checking a large body takes time.
        request.content = await run_in_threadpool(_content, route, data, request)
        response = await _call(route, request)
    return _versioned(response, accepted.version)


def _denial(route: ApiRoute, request: ApiRequest) -> ApiError | None:
    """Return the error if the caller may not call a route, otherwise None."""
    if route.permission == ANYONE:
        return None
    if request.caller is None:
        return auth.unauthorized()
    if not auth.allows(route.permission, request.caller.role):
        return ApiError(403, FORBIDDEN, f"This call requires the role {route.permission}.")
    if request.browser_session and request.method not in auth.SAFE and not _is_from_page(request):
        return ApiError(403, FORBIDDEN, "Changes from a browser session require the header X-Statecfg-Csrf.")
    return None


def _is_from_page(request: ApiRequest) -> bool:
    return sessions.matches(request.browser_session, request.headers.get(auth.CSRF, ""))


def _accepted(header: str) -> versions.Accepted:
    try:
        return versions.accepted(header)
    except versions.Unsupported as problem:
        supported = ", ".join(map(str, versions.SUPPORTED))
        message = f"This server has no version {problem.version!r} of the API. It has {supported}."
        raise ApiError(406, "UNSUPPORTED_API_VERSION", message) from None


def _content(route: ApiRoute, data: bytes, request: ApiRequest) -> Any:
    return reading.content(route.request, data, request.headers.get("content-type", ""))


async def _call(route: ApiRoute, request: ApiRequest) -> Response:
    """Call the handler. A client that sent wrong credentials waits for the refusal."""
    status = 0
    try:
        response = await run_in_threadpool(route.handler, request)
        status = response.status_code
        return response
    except ApiError as refused:
        status = refused.status
        raise
    finally:
        if route.permission == ANYONE and status == 401:
            await anyio.sleep(request.app.state.delays.failed(request.client.host if request.client else ""))


def _versioned(response: Response, version: float) -> Response:
    """Return the response. If it is JSON or XML of the API, add the version to its media type."""
    media_type = response.headers.get("content-type", "")
    if media_type == JSON or media_type.endswith("+xml"):
        response.headers["content-type"] = f"{media_type};version={version}"
    return response
