"""Access controls of types, entities and behaviors over HTTP."""

from __future__ import annotations

from starlette.responses import Response

from statecfg.entities import access_calls, shapes
from statecfg.entities.calls import part
from statecfg.entities.document import Shape
from statecfg.entities.model import LEVELS
from statecfg.entities.problems import forbidden
from statecfg.server.answers import nothing, one, page
from statecfg.server.auth import AUTHOR, VIEWER
from statecfg.server.media import Body
from statecfg.server.parameters import PAGED, listing, listing_by
from statecfg.server.request import Request
from statecfg.server.routing import Routes

routes = Routes()
_LISTING = listing_by(access_calls.FIELDS)
_LEVELS = "/cloudapi/1.0.0/accessLevels"
_TYPE, _ENTITY = "/cloudapi/1.0.0/entityTypes/{type}", "/cloudapi/1.0.0/entities/{entity}"
_BEHAVIORS = f"{_TYPE}/behaviorAccessControls"


@routes("GET", _LEVELS, VIEWER, "List the access levels.", {200: "AccessLevels"}, query=PAGED)
def _list_levels(request: Request) -> Response:
    return page(request, part(LEVELS, listing(request)), _level)


@routes("GET", f"{_LEVELS}/{{level}}", VIEWER, "Show an access level.", {200: "AccessLevel"})
def _get_level(request: Request) -> Response:
    if request.path_params["level"] not in LEVELS:
        raise forbidden(request.path_params["level"][:200])
    return one(request, _level, request.path_params["level"])


def _level(id: str, _: float) -> Shape:
    return {"id": id, "name": id.rpartition(":")[2], "description": None, "readOnly": True}


def _object(request: Request) -> str:
    id: str = request.path_params.get("type") or request.path_params["entity"]
    return id


def _list(request: Request) -> Response:
    return page(
        request, request.operations.list_grants(request.principal, _object(request), listing(request)), shapes.grant
    )


def _add(request: Request) -> Response:
    grant = request.operations.add_grant(request.principal, _object(request), request.content)
    return one(request, shapes.grant, grant, 201)


def _replace(request: Request) -> Response:
    grants = request.operations.replace_grants(request.principal, _object(request), request.content)
    return page(request, grants, shapes.grant)


def _get(request: Request) -> Response:
    grant = request.operations.get_grant(request.principal, _object(request), request.path_params["grant"])
    return one(request, shapes.grant, grant)


def _update(request: Request) -> Response:
    grant = request.operations.update_grant(
        request.principal, _object(request), request.path_params["grant"], request.content
    )
    return one(request, shapes.grant, grant)


def _delete(request: Request) -> Response:
    request.operations.delete_grant(request.principal, _object(request), request.path_params["grant"])
    return nothing()


def _declare(path: str, what: str) -> None:
    """Declare the routes of the access controls of a type or an entity."""
    all, single = f"{path}/accessControls", f"{path}/accessControls/{{grant}}"
    full = f"Requires Full Control of the {what}."
    several, access = {200: "Accesses"}, {200: "Access"}
    routes("GET", all, VIEWER, f"List the access controls of an {what}.", several, query=_LISTING)(_list)
    routes("POST", all, AUTHOR, f"Give access to an {what}. {full}", {201: "Access"}, request=Body("NewAccess"))(_add)
    replace = f"Replace all access controls of an {what}. {full}"
    routes("PUT", all, AUTHOR, replace, several, request=Body("NewAccesses"))(_replace)
    routes("GET", single, VIEWER, f"Show an access control of an {what}.", access)(_get)
    change = f"Change an access control of an {what}. {full}"
    routes("PUT", single, AUTHOR, change, access, request=Body("ChangedAccess"))(_update)
    routes("DELETE", single, AUTHOR, f"Revoke access to an {what}. {full}", {204: None})(_delete)


_declare(_TYPE, "entity type")
_declare(_ENTITY, "entity")


@routes(
    "GET",
    _BEHAVIORS,
    VIEWER,
    "List who may invoke the behaviors of a type.",
    {200: "BehaviorAccesses"},
    query=PAGED,
)
def _list_behaviors(request: Request) -> Response:
    grants = request.operations.list_behavior_grants(request.principal, request.path_params["type"], listing(request))
    return page(request, grants, shapes.behavior_grant)


@routes(
    "POST",
    _BEHAVIORS,
    AUTHOR,
    "Set who may invoke a behavior. Requires Full Control of the type.",
    {201: "BehaviorAccess"},
    request=Body("NewBehaviorAccess"),
)
def _add_behavior(request: Request) -> Response:
    grant = request.operations.add_behavior_grant(request.principal, request.path_params["type"], request.content)
    return one(request, shapes.behavior_grant, grant, 201)


@routes(
    "PUT",
    _BEHAVIORS,
    AUTHOR,
    "Replace the access controls of all behaviors of a type. Requires Full Control of the type.",
    {200: "BehaviorAccesses"},
    request=Body("NewBehaviorAccesses"),
)
def _replace_behaviors(request: Request) -> Response:
    grants = request.operations.replace_behavior_grants(request.principal, request.path_params["type"], request.content)
    return page(request, grants, shapes.behavior_grant)
