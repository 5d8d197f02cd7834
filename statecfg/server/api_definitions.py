"""Interfaces, entity types and their behaviors over HTTP."""

from __future__ import annotations

from statecfg.entities import interfaces, shapes, types
from statecfg.server.exchange import ADMINISTRATOR, AUTHOR, VIEWER, Answer, Asked, Route
from statecfg.server.lists import page
from statecfg.server.parameters import listing, listing_by

_INTERFACES = "/cloudapi/1.0.0/interfaces"
_TYPES = "/cloudapi/1.0.0/entityTypes"
_BY_BEHAVIOR = listing_by(interfaces.BEHAVIOR_FIELDS)
_INTERFACE, _TYPE = f"{_INTERFACES}/{{interface}}", f"{_TYPES}/{{type}}"


def _list_interfaces(asked: Asked) -> Answer:
    found = asked.operations.list_interfaces(asked.principal, listing(asked))
    return page(asked, found, shapes.interface)


def _create_interface(asked: Asked) -> Answer:
    return Answer(201, shapes.interface(asked.operations.create_interface(asked.principal, asked.body), asked.version))


def _get_interface(asked: Asked) -> Answer:
    return Answer(
        200, shapes.interface(asked.operations.get_interface(asked.principal, asked.path["interface"]), asked.version)
    )


def _update_interface(asked: Asked) -> Answer:
    made = asked.operations.update_interface(asked.principal, asked.path["interface"], asked.body)
    return Answer(200, shapes.interface(made, asked.version))


def _delete_interface(asked: Asked) -> Answer:
    asked.operations.delete_interface(asked.principal, asked.path["interface"])
    return Answer(204)


def _list_behaviors(asked: Asked) -> Answer:
    found = asked.operations.list_behaviors(asked.principal, asked.path["interface"], listing(asked))
    return page(asked, found, shapes.behavior)


def _create_behavior(asked: Asked) -> Answer:
    made = asked.operations.create_behavior(asked.principal, asked.path["interface"], asked.body)
    return Answer(201, shapes.behavior(made, asked.version))


def _get_behavior(asked: Asked) -> Answer:
    found = asked.operations.get_behavior(asked.principal, asked.path["interface"], asked.path["behavior"])
    return Answer(200, shapes.behavior(found, asked.version))


def _update_behavior(asked: Asked) -> Answer:
    place = asked.path["interface"], asked.path["behavior"]
    return Answer(
        200, shapes.behavior(asked.operations.update_behavior(asked.principal, *place, asked.body), asked.version)
    )


def _delete_behavior(asked: Asked) -> Answer:
    asked.operations.delete_behavior(asked.principal, asked.path["interface"], asked.path["behavior"])
    return Answer(204)


def _replace_behaviors(asked: Asked) -> Answer:
    found = asked.operations.replace_behaviors(asked.principal, asked.path["interface"], asked.body)
    return page(asked, found, shapes.behavior)


def _list_types(asked: Asked) -> Answer:
    return page(asked, asked.operations.list_types(asked.principal, listing(asked)), shapes.entity_type)


def _create_type(asked: Asked) -> Answer:
    return Answer(201, shapes.entity_type(asked.operations.create_type(asked.principal, asked.body), asked.version))


def _get_type(asked: Asked) -> Answer:
    return Answer(
        200, shapes.entity_type(asked.operations.get_type(asked.principal, asked.path["type"]), asked.version)
    )


def _update_type(asked: Asked) -> Answer:
    made = asked.operations.update_type(asked.principal, asked.path["type"], asked.body)
    return Answer(200, shapes.entity_type(made, asked.version))


def _delete_type(asked: Asked) -> Answer:
    asked.operations.delete_type(asked.principal, asked.path["type"])
    return Answer(204)


def _list_type_behaviors(asked: Asked) -> Answer:
    found = asked.operations.list_type_behaviors(asked.principal, asked.path["type"], listing(asked))
    return page(asked, found, shapes.behavior)


def _get_type_behavior(asked: Asked) -> Answer:
    found = asked.operations.get_type_behavior(asked.principal, asked.path["type"], asked.path["behavior"])
    return Answer(200, shapes.behavior(found, asked.version))


def _override_behavior(asked: Asked) -> Answer:
    place = asked.path["type"], asked.path["behavior"]
    return Answer(
        200, shapes.behavior(asked.operations.override_behavior(asked.principal, *place, asked.body), asked.version)
    )


def _delete_override(asked: Asked) -> Answer:
    asked.operations.delete_override(asked.principal, asked.path["type"], asked.path["behavior"])
    return Answer(204)


ROUTES = (
    Route(
        "GET",
        _INTERFACES,
        VIEWER,
        _list_interfaces,
        "List interfaces.",
        {200: "Interfaces"},
        listing_by(interfaces.FIELDS),
    ),
    Route(
        "POST",
        _INTERFACES,
        ADMINISTRATOR,
        _create_interface,
        "Create an interface.",
        {201: "Interface"},
        (),
        "NewInterface",
    ),
    Route("GET", _INTERFACE, VIEWER, _get_interface, "Show an interface.", {200: "Interface"}),
    Route(
        "PUT",
        _INTERFACE,
        ADMINISTRATOR,
        _update_interface,
        "Change the name of an interface.",
        {200: "Interface"},
        (),
        "ChangedInterface",
    ),
    Route("DELETE", _INTERFACE, ADMINISTRATOR, _delete_interface, "Delete an interface.", {204: None}),
    Route(
        "GET",
        f"{_INTERFACE}/behaviors",
        VIEWER,
        _list_behaviors,
        "List the behaviors of an interface.",
        {200: "Behaviors"},
        _BY_BEHAVIOR,
    ),
    Route(
        "POST",
        f"{_INTERFACE}/behaviors",
        ADMINISTRATOR,
        _create_behavior,
        "Add a behavior to an interface.",
        {201: "Behavior"},
        (),
        "NewBehavior",
    ),
    Route(
        "PUT",
        f"{_INTERFACE}/behaviors",
        ADMINISTRATOR,
        _replace_behaviors,
        "Replace all behaviors of an interface; what no type implements yet can get and lose some.",
        {200: "Behaviors"},
        (),
        "NewBehaviors",
    ),
    Route(
        "GET",
        f"{_INTERFACE}/behaviors/{{behavior}}",
        VIEWER,
        _get_behavior,
        "Show a behavior of an interface.",
        {200: "Behavior"},
    ),
    Route(
        "PUT",
        f"{_INTERFACE}/behaviors/{{behavior}}",
        ADMINISTRATOR,
        _update_behavior,
        "Change a behavior of an interface.",
        {200: "Behavior"},
        (),
        "ChangedBehavior",
    ),
    Route(
        "DELETE",
        f"{_INTERFACE}/behaviors/{{behavior}}",
        ADMINISTRATOR,
        _delete_behavior,
        "Remove a behavior from an interface.",
        {204: None},
    ),
    Route("GET", _TYPES, VIEWER, _list_types, "List entity types.", {200: "EntityTypes"}, listing_by(types.FIELDS)),
    Route(
        "POST", _TYPES, ADMINISTRATOR, _create_type, "Create an entity type.", {201: "EntityType"}, (), "NewEntityType"
    ),
    Route("GET", _TYPE, VIEWER, _get_type, "Show an entity type.", {200: "EntityType"}),
    Route(
        "PUT",
        _TYPE,
        AUTHOR,
        _update_type,
        "Change an entity type. Needs Full Control of it.",
        {200: "EntityType"},
        (),
        "ChangedEntityType",
    ),
    Route("DELETE", _TYPE, AUTHOR, _delete_type, "Delete an entity type. Needs Full Control of it.", {204: None}),
    Route(
        "GET",
        f"{_TYPE}/behaviors",
        VIEWER,
        _list_type_behaviors,
        "List the behaviors of an entity type.",
        {200: "Behaviors"},
        _BY_BEHAVIOR,
    ),
    Route(
        "GET",
        f"{_TYPE}/behaviors/{{behavior}}",
        VIEWER,
        _get_type_behavior,
        "Show a behavior of an entity type.",
        {200: "Behavior"},
    ),
    Route(
        "PUT",
        f"{_TYPE}/behaviors/{{behavior}}",
        AUTHOR,
        _override_behavior,
        "Override a behavior of an interface on an entity type.",
        {200: "Behavior"},
        (),
        "ChangedBehavior",
    ),
    Route(
        "DELETE",
        f"{_TYPE}/behaviors/{{behavior}}",
        AUTHOR,
        _delete_override,
        "Remove the override of a behavior from an entity type.",
        {204: None},
    ),
)
