"""The OpenAPI 3.1 document, generated from the routes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from statecfg.entities.document import reference
from statecfg.graph.json_schema import JsonSchema
from statecfg.server import parameters, writing
from statecfg.server.auth import ANYONE
from statecfg.server.documents import SCHEMAS
from statecfg.server.routing import ApiRoute
from statecfg.server.versions import LATEST

_DESCRIPTION = (
    "Interfaces, behaviors, types and entities with a lifecycle. Every request needs `Authorization: Bearer TOKEN`. "
    "`Accept: application/json;version=36.0` requests a version. The answer for a missing object and for one that the "
    "caller may not see is the same: 403."
)
OpenApi = Mapping[str, Any]  # an object of an OpenAPI document
_METADATA: Mapping[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "statecfg", "version": str(LATEST), "description": _DESCRIPTION},
}


def document(table: Iterable[ApiRoute], base: str) -> OpenApi:
    """Return the OpenAPI document for these routes.

    :param base: the URL that the client uses for the server
    """
    paths: dict[str, dict[str, Any]] = {}
    for route in (route for route in table if route.documented):
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        **_METADATA,
        "servers": [{"url": base}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "login": {"type": "http", "scheme": "basic"},
            },
        },
    }


def _operation(route: ApiRoute) -> OpenApi:
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": _identifier(route),
        "x-permission": route.permission,
        "parameters": _parameters(route),
        "responses": {
            **{str(status): _response(route, status, body) for status, body in route.responses.items()},
            "default": {"description": "Refused or failed.", "content": _errors(route)},
        },
    }
    if route.permission == ANYONE:
        operation["security"] = [{"login": []}] if "sessions" in route.path else []
    if route.request is not None:
        media_type = "application/x-www-form-urlencoded" if route.request.form else "application/json"
        operation["requestBody"] = {
            "required": not route.request.optional,
            "content": {media_type: {"schema": reference(route.request.document)}},
        }
    return operation


def _identifier(route: ApiRoute) -> str:
    words = re.findall(r"[A-Za-z0-9]+", route.path.removeprefix("/cloudapi/1.0.0"))
    return route.method.lower() + "".join(word[0].upper() + word[1:] for word in words)


def _parameters(route: ApiRoute) -> Sequence[OpenApi]:
    in_path = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": parameters.IN_PATH[name],
            "schema": {"type": "string", "minLength": 1, "pattern": r"^[^/\x00-\x1f\x7f]+$"},
        }
        for name in re.findall(r"\{(\w+)\}", route.path)
    ]
    in_query = [
        {"name": parameter.name, "in": "query", "description": parameter.summary, "schema": dict(parameter.schema)}
        for parameter in route.query
    ]
    return in_path + in_query


def _response(route: ApiRoute, status: int, body: str | JsonSchema | None) -> OpenApi:
    response: dict[str, Any] = {"description": HTTPStatus(status).phrase}
    if body is not None:
        schema = reference(body) if isinstance(body, str) else body
        response["content"] = {route.media_type: {"schema": schema}, **_xml(route)}
    return response


def _xml(route: ApiRoute) -> OpenApi:
    return {route.xml.media_type: {"schema": {"type": "string"}}} if route.xml is not None else {}


def _errors(route: ApiRoute) -> OpenApi:
    content = {"application/json": {"schema": reference("Error")}}
    if route.path.startswith("/api/"):
        content[writing.ERROR_XML] = {"schema": {"type": "string"}}
    if (route.request is not None and route.request.form) or route.denied is not None:
        content["text/html"] = {"schema": {"type": "string"}}
    return content
