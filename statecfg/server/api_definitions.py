"""Interfaces, entity types and their behaviors over HTTP."""

from __future__ import annotations

from collections.abc import Callable

from starlette.responses import Response

from statecfg.entities import interfaces, shapes, types
from statecfg.entities.document import Shape
from statecfg.entities.model import Behavior
from statecfg.server.answers import nothing, one, page
from statecfg.server.auth import ADMINISTRATOR, AUTHOR, VIEWER
from statecfg.server.media import Body
from statecfg.server.parameters import listing, listing_by
from statecfg.server.request import Request
from statecfg.server.routing import Routes

routes = Routes()
_INTERFACES, _TYPES = "/cloudapi/1.0.0/interfaces", "/cloudapi/1.0.0/entityTypes"
_INTERFACE, _TYPE = f"{_INTERFACES}/{{interface}}", f"{_TYPES}/{{type}}"
_INTERFACE_BEHAVIORS, _TYPE_BEHAVIORS = f"{_INTERFACE}/behaviors", f"{_TYPE}/behaviors"
_INTERFACE_BEHAVIOR, _TYPE_BEHAVIOR = f"{_INTERFACE}/behaviors/{{behavior}}", f"{_TYPE}/behaviors/{{behavior}}"
_BY_BEHAVIOR = listing_by(interfaces.BEHAVIOR_FIELDS)


def _shape(request: Request) -> Callable[[Behavior, float], Shape]:
    """Return the form of behaviors for the caller. Only administrators see hosts, addresses and settings."""
    return shapes.behavior if request.principal.is_administrator else shapes.behavior_for_users


@routes("GET", _INTERFACES, VIEWER, "List interfaces.", {200: "Interfaces"}, query=listing_by(interfaces.FIELDS))
def _list_interfaces(request: Request) -> Response:
    values = request.operations.list_interfaces(request.principal, listing(request))
    return page(request, values, shapes.interface)


@routes("POST", _INTERFACES, ADMINISTRATOR, "Create an interface.", {201: "Interface"}, request=Body("NewInterface"))
def _create_interface(request: Request) -> Response:
    interface = request.operations.create_interface(request.principal, request.content)
    return one(request, shapes.interface, interface, 201)


@routes("GET", _INTERFACE, VIEWER, "Show an interface.", {200: "Interface"})
def _get_interface(request: Request) -> Response:
    interface = request.operations.get_interface(request.principal, request.path_params["interface"])
    return one(request, shapes.interface, interface)


@routes("PUT", _INTERFACE, ADMINISTRATOR, "Rename an interface.", {200: "Interface"}, request=Body("ChangedInterface"))
def _update_interface(request: Request) -> Response:
    interface = request.operations.update_interface(
        request.principal, request.path_params["interface"], request.content
    )
    return one(request, shapes.interface, interface)


@routes("DELETE", _INTERFACE, ADMINISTRATOR, "Delete an interface.", {204: None})
def _delete_interface(request: Request) -> Response:
    request.operations.delete_interface(request.principal, request.path_params["interface"])
    return nothing()


@routes(
    "GET",
    _INTERFACE_BEHAVIORS,
    VIEWER,
    "List the behaviors of an interface.",
    {200: "Behaviors"},
    query=_BY_BEHAVIOR,
)
def _list_behaviors(request: Request) -> Response:
    behaviors = request.operations.list_behaviors(request.principal, request.path_params["interface"], listing(request))
    return page(request, behaviors, _shape(request))


@routes(
    "POST",
    _INTERFACE_BEHAVIORS,
    ADMINISTRATOR,
    "Add a behavior to an interface.",
    {201: "Behavior"},
    request=Body("NewBehavior"),
)
def _create_behavior(request: Request) -> Response:
    behavior = request.operations.create_behavior(request.principal, request.path_params["interface"], request.content)
    return one(request, _shape(request), behavior, 201)


@routes(
    "PUT",
    _INTERFACE_BEHAVIORS,
    ADMINISTRATOR,
    "Replace all behaviors of an interface. Behaviors can be added or removed until a type implements the interface.",
    {200: "Behaviors"},
    request=Body("NewBehaviors"),
)
def _replace_behaviors(request: Request) -> Response:
    behaviors = request.operations.replace_behaviors(
        request.principal, request.path_params["interface"], request.content
    )
    return page(request, behaviors, _shape(request))


@routes("GET", _INTERFACE_BEHAVIOR, VIEWER, "Show a behavior of an interface.", {200: "Behavior"})
def _get_behavior(request: Request) -> Response:
    path = request.path_params
    return one(
        request,
        _shape(request),
        request.operations.get_behavior(request.principal, path["interface"], path["behavior"]),
    )


@routes(
    "PUT",
    _INTERFACE_BEHAVIOR,
    ADMINISTRATOR,
    "Change a behavior of an interface.",
    {200: "Behavior"},
    request=Body("ChangedBehavior"),
)
def _update_behavior(request: Request) -> Response:
    path = request.path_params
    behavior = request.operations.update_behavior(
        request.principal, path["interface"], path["behavior"], request.content
    )
    return one(request, _shape(request), behavior)


@routes("DELETE", _INTERFACE_BEHAVIOR, ADMINISTRATOR, "Remove a behavior from an interface.", {204: None})
def _delete_behavior(request: Request) -> Response:
    path = request.path_params
    request.operations.delete_behavior(request.principal, path["interface"], path["behavior"])
    return nothing()


@routes("GET", _TYPES, VIEWER, "List entity types.", {200: "EntityTypes"}, query=listing_by(types.FIELDS))
def _list_types(request: Request) -> Response:
    return page(request, request.operations.list_types(request.principal, listing(request)), shapes.entity_type)


@routes("POST", _TYPES, ADMINISTRATOR, "Create an entity type.", {201: "EntityType"}, request=Body("NewEntityType"))
def _create_type(request: Request) -> Response:
    return one(request, shapes.entity_type, request.operations.create_type(request.principal, request.content), 201)


@routes("GET", _TYPE, VIEWER, "Show an entity type.", {200: "EntityType"})
def _get_type(request: Request) -> Response:
    entity_type = request.operations.get_type(request.principal, request.path_params["type"])
    return one(request, shapes.entity_type, entity_type)


@routes(
    "PUT",
    _TYPE,
    AUTHOR,
    "Change an entity type. Requires Full Control of the type.",
    {200: "EntityType"},
    request=Body("ChangedEntityType"),
)
def _update_type(request: Request) -> Response:
    entity_type = request.operations.update_type(request.principal, request.path_params["type"], request.content)
    return one(request, shapes.entity_type, entity_type)


@routes("DELETE", _TYPE, AUTHOR, "Delete an entity type. Requires Full Control of the type.", {204: None})
def _delete_type(request: Request) -> Response:
    request.operations.delete_type(request.principal, request.path_params["type"])
    return nothing()


@routes("GET", _TYPE_BEHAVIORS, VIEWER, "List the behaviors of an entity type.", {200: "Behaviors"}, query=_BY_BEHAVIOR)
def _list_type_behaviors(request: Request) -> Response:
    behaviors = request.operations.list_type_behaviors(request.principal, request.path_params["type"], listing(request))
    return page(request, behaviors, _shape(request))


@routes("GET", _TYPE_BEHAVIOR, VIEWER, "Show a behavior of an entity type.", {200: "Behavior"})
def _get_type_behavior(request: Request) -> Response:
    path = request.path_params
    return one(
        request,
        _shape(request),
        request.operations.get_type_behavior(request.principal, path["type"], path["behavior"]),
    )


@routes(
    "PUT",
    _TYPE_BEHAVIOR,
    AUTHOR,
    "Override a behavior of an interface on an entity type.",
    {200: "Behavior"},
    request=Body("ChangedBehavior"),
)
def _override_behavior(request: Request) -> Response:
    path = request.path_params
    behavior = request.operations.override_behavior(request.principal, path["type"], path["behavior"], request.content)
    return one(request, _shape(request), behavior)


@routes("DELETE", _TYPE_BEHAVIOR, AUTHOR, "Remove the override of a behavior from an entity type.", {204: None})
def _delete_override(request: Request) -> Response:
    path = request.path_params
    request.operations.delete_override(request.principal, path["type"], path["behavior"])
    return nothing()
