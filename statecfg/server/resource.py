"""The routes of objects that operations on entities list, show, create, change and delete."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.responses import Response

from statecfg.entities.model import Page
from statecfg.problems.frozen import dataclass
from statecfg.server.media import Body
from statecfg.server.parameters import QueryParameter, listing
from statecfg.server.request import ApiRequest
from statecfg.server.responses import ShapeOf, nothing, one, page
from statecfg.server.routing import Routes

Operation = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class ApiResource:
    """Declares routes for objects of one sort. Each route calls one method of `Operations` and answers with its result.

    The method receives the caller, the parameters of the path in their order, and the requested part of a list or the
    body. The documents of bodies are `New…` and `Changed…`.

    :param document: the name of the document of an object
    :param several: the name of the document of a list
    :param shape: the form of an object
    :param query: the parameters of lists
    :param for_users: the form for callers who are not administrators, if it differs
    """

    routes: Routes
    document: str
    several: str
    shape: ShapeOf[Any]
    query: tuple[QueryParameter, ...]
    for_users: ShapeOf[Any] | None = None

    def list(self, path: str, permission: str, summary: str, operation: Operation) -> None:
        """Declare the route that lists the objects."""
        given = {"responses": {200: self.several}, "query": self.query}
        self._declare("GET", path, permission, summary, operation, **given)

    def create(self, path: str, permission: str, summary: str, operation: Operation) -> None:
        """Declare the route that creates an object."""
        given = {"responses": {201: self.document}, "request": Body(f"New{self.document}")}
        self._declare("POST", path, permission, summary, operation, **given)

    def show(self, path: str, permission: str, summary: str, operation: Operation) -> None:
        """Declare the route that shows an object."""
        self._declare("GET", path, permission, summary, operation, responses={200: self.document})

    def change(self, path: str, permission: str, summary: str, operation: Operation) -> None:
        """Declare the route that changes an object."""
        given = {"responses": {200: self.document}, "request": Body(f"Changed{self.document}")}
        self._declare("PUT", path, permission, summary, operation, **given)

    def replace(self, path: str, permission: str, summary: str, operation: Operation) -> None:
        """Declare the route that replaces all objects."""
        given = {"responses": {200: self.several}, "request": Body(f"New{self.several}")}
        self._declare("PUT", path, permission, summary, operation, **given)

    def delete(self, path: str, permission: str, summary: str, operation: Operation) -> None:
        """Declare the route that deletes an object."""
        self._declare("DELETE", path, permission, summary, operation, responses={204: None})

    def _declare(
        self, method: str, path: str, permission: str, summary: str, operation: Operation, **more: Any
    ) -> None:
        (status,) = more["responses"]

        def handle(request: ApiRequest) -> Response:
            given = [listing(request)] if "query" in more else [request.content] if "request" in more else []
            result = operation(request.operations, request.principal, *request.path_params.values(), *given)
            if status == 204:
                return nothing()
            shape = self.for_users if self.for_users and not request.principal.is_administrator else self.shape
            return page(request, result, shape) if isinstance(result, Page) else one(request, shape, result, status)

        self.routes(method, path, permission, summary, **more)(handle)
