"""Responses with one object or one page of a list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar
from urllib.parse import urlencode

from starlette.responses import JSONResponse, Response

from statecfg.entities import shapes
from statecfg.entities.document import Shape
from statecfg.entities.model import Page
from statecfg.server.request import ApiRequest

T = TypeVar("T")
ShapeOf = Callable[[T, float], Shape]
NO_CONTENT = 204


def one(
    request: ApiRequest, shape: ShapeOf[T], item: T, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a response with an object, in the form of the requested version of the API, and with its ETag."""
    etag = getattr(item, "etag", None)
    return JSONResponse(shape(item, request.version), status, {**({"ETag": etag} if etag else {}), **(headers or {})})


def page(request: ApiRequest, values: Page[T], shape: ShapeOf[T]) -> Response:
    """Return a response with a page of a list, and a link to the next page if there is one."""
    body = shapes.page(values, shape, request.version)
    if values.page >= values.page_count:
        return JSONResponse(body)
    query = {name: request.query[name] for name in ("filter", "sortAsc", "sortDesc") if request.query.get(name)}
    following = urlencode({**query, "page": values.page + 1, "pageSize": values.page_size})
    # Clients of the original API expect `nextPage`, all others `next`. Source: RFC 8288, 3.3.
    links = ", ".join(f'<{request.address}?{following}>;rel="{relation}"' for relation in ("nextPage", "next"))
    return JSONResponse(body, headers={"Link": links})


def json_or_xml(request: ApiRequest, value: Shape, to_xml: Callable[[Shape], bytes], media_type: str) -> Response:
    """Return a response with an object, as an XML document if the client prefers that.

    :param media_type: of the XML document
    """
    return Response(to_xml(value), media_type=media_type) if request.wants_xml else JSONResponse(value)


def nothing() -> Response:
    """Return a response without a body."""
    return Response(status_code=NO_CONTENT)
