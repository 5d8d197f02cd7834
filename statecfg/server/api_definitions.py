"""Interfaces, entity types and their behaviors over HTTP."""

from __future__ import annotations

from statecfg.entities import interfaces, shapes, types
from statecfg.entities.operations import Operations
from statecfg.server.auth import ADMINISTRATOR, AUTHOR, VIEWER
from statecfg.server.parameters import listing_by
from statecfg.server.resource import ApiResource
from statecfg.server.routing import Routes

routes = Routes()
_ALL, _ONE = "/cloudapi/1.0.0/interfaces", "/cloudapi/1.0.0/interfaces/{interface}"
_interface = ApiResource(routes, "Interface", "Interfaces", shapes.interface, listing_by(interfaces.FIELDS))
_interface.list(_ALL, VIEWER, "List interfaces.", Operations.list_interfaces)
_interface.create(_ALL, ADMINISTRATOR, "Create an interface.", Operations.create_interface)
_interface.show(_ONE, VIEWER, "Show an interface.", Operations.get_interface)
_interface.change(_ONE, ADMINISTRATOR, "Rename an interface.", Operations.update_interface)
_interface.delete(_ONE, ADMINISTRATOR, "Delete an interface.", Operations.delete_interface)

_ALL, _ONE = f"{_ONE}/behaviors", f"{_ONE}/behaviors/{{behavior}}"
_REPLACE = (
    "Replace all behaviors of an interface. Behaviors can be added or removed until a type implements the interface."
)
# Only administrators see hosts, addresses and settings.
_for_users, _fields = shapes.behavior_for_users, listing_by(interfaces.BEHAVIOR_FIELDS)
_behavior = ApiResource(routes, "Behavior", "Behaviors", shapes.behavior, _fields, _for_users)
_behavior.list(_ALL, VIEWER, "List the behaviors of an interface.", Operations.list_behaviors)
_behavior.create(_ALL, ADMINISTRATOR, "Add a behavior to an interface.", Operations.create_behavior)
_behavior.replace(_ALL, ADMINISTRATOR, _REPLACE, Operations.replace_behaviors)
_behavior.show(_ONE, VIEWER, "Show a behavior of an interface.", Operations.get_behavior)
_behavior.change(_ONE, ADMINISTRATOR, "Change a behavior of an interface.", Operations.update_behavior)
_behavior.delete(_ONE, ADMINISTRATOR, "Remove a behavior from an interface.", Operations.delete_behavior)

_ALL, _ONE = "/cloudapi/1.0.0/entityTypes", "/cloudapi/1.0.0/entityTypes/{type}"
_CHANGE = "Change an entity type. Requires Full Control of the type."
_DELETE = "Delete an entity type. Requires Full Control of the type."
_type = ApiResource(routes, "EntityType", "EntityTypes", shapes.entity_type, listing_by(types.FIELDS))
_type.list(_ALL, VIEWER, "List entity types.", Operations.list_types)
_type.create(_ALL, ADMINISTRATOR, "Create an entity type.", Operations.create_type)
_type.show(_ONE, VIEWER, "Show an entity type.", Operations.get_type)
_type.change(_ONE, AUTHOR, _CHANGE, Operations.update_type)
_type.delete(_ONE, AUTHOR, _DELETE, Operations.delete_type)

_ALL, _ONE = f"{_ONE}/behaviors", f"{_ONE}/behaviors/{{behavior}}"
_OVERRIDE = "Override a behavior of an interface on an entity type."
_behavior.list(_ALL, VIEWER, "List the behaviors of an entity type.", Operations.list_type_behaviors)
_behavior.show(_ONE, VIEWER, "Show a behavior of an entity type.", Operations.get_type_behavior)
_behavior.change(_ONE, AUTHOR, _OVERRIDE, Operations.override_behavior)
_behavior.delete(_ONE, AUTHOR, "Remove the override of a behavior from an entity type.", Operations.delete_override)
