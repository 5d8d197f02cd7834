"""`statecfg entity interface`, `behavior` and `type`: the definitions that entities use."""

from __future__ import annotations

from typing import Any

import click

from statecfg.cli.entity.calls import VERSION, LocalEntityCalls, read
from statecfg.cli.verbs import COLOR, JSON, StoreGroup, VerbResult, one_line
from statecfg.entities import shapes
from statecfg.views import entities as view

INTERFACES = """
statecfg entity interface create sites.yml        the file has name, vendor, nss, version
statecfg entity interface list                    all interfaces
"""
BEHAVIORS = """
statecfg entity behavior create sites provide.yml              the file has name, description, execution
statecfg entity behavior list sites                            the behaviors of an interface
statecfg entity behavior override site provide other.yml       replace a behavior for one type
"""
TYPES = """
statecfg entity type create site.yml              the file has name, vendor, nss, version, schema, interfaces, hooks
statecfg entity type show site                    its schema and its hooks
statecfg entity type update site site.yml         only while the type has no entities
"""
_file = click.argument("file", metavar="FILE")


@click.group("interface", cls=StoreGroup, opens=LocalEntityCalls, examples=INTERFACES)
def interface() -> None:
    """Manage interfaces: sets of behaviors that types implement. FILE is JSON or YAML; - is standard input."""


@interface.verb("list", "statecfg entity interface list", JSON, COLOR)
def interfaces(entities: LocalEntityCalls) -> VerbResult:
    """Show all interfaces."""
    all_interfaces = entities.all(entities.calls.list_interfaces)
    rows = [(item.name, str(item.coordinates), item.id) for item in all_interfaces]
    lines = view.table(("INTERFACE", "NAME", "ID"), rows, "interface interfaces")
    return VerbResult(lines, {"values": [shapes.interface(item, VERSION) for item in all_interfaces]})


@interface.verb("create", "statecfg entity interface create sites.yml", JSON)
@_file
def create_interface(entities: LocalEntityCalls, file: str) -> VerbResult:
    """Create an interface: name, vendor, nss, version."""
    body = read(file)
    created = entities.calls.create_interface(entities.me, body)
    return one_line(created.id, shapes.interface(created, VERSION))


@interface.verb("update", "statecfg entity interface update sites sites.yml")
@click.argument("name")
@_file
def update_interface(entities: LocalEntityCalls, name: str, file: str) -> str:
    """Rename an interface. The types that implement it must not have entities."""
    body = read(file)
    return entities.calls.update_interface(entities.me, entities.interface(name), body).id


@interface.verb("delete", "statecfg entity interface delete sites")
@click.argument("name")
def delete_interface(entities: LocalEntityCalls, name: str) -> str:
    """Delete an interface that no type implements, with its behaviors."""
    id = entities.interface(name)
    entities.calls.delete_interface(entities.me, id)
    return f"{id}: deleted"


@click.group("behavior", cls=StoreGroup, opens=LocalEntityCalls, examples=BEHAVIORS)
def behavior() -> None:
    """Manage behaviors of interfaces: functions, webhooks, playbooks. FILE is JSON or YAML; - is standard input."""


@behavior.verb("list", "statecfg entity behavior list sites", JSON, COLOR)
@click.argument("interface", required=False)
@click.option(
    "--type",
    "type_name",
    metavar="TYPE",
    help="The behaviors of a type: its overrides, and the rest from its interfaces.",
)
def behaviors(entities: LocalEntityCalls, interface: str | None, type_name: str | None) -> VerbResult:
    """Show the behaviors of an interface or a type. Secrets are not shown."""
    listed = _behaviors(entities, interface, type_name)
    rows = [
        (item.name, str(item.execution.get("type", "")), str(item.execution.get("id", "")), item.id) for item in listed
    ]
    lines = view.table(("BEHAVIOR", "TYPE", "RUNS", "ID"), rows, "behavior behaviors")
    return VerbResult(lines, {"values": [shapes.behavior(item, VERSION) for item in listed]})


@behavior.verb("show", "statecfg entity behavior show provide sites", JSON, COLOR)
@click.argument("name")
@click.argument("interface", required=False)
@click.option("--type", "type_name", metavar="TYPE", help="The behavior that this type uses.")
def show_behavior(entities: LocalEntityCalls, name: str, interface: str | None, type_name: str | None) -> VerbResult:
    """Show a behavior of an interface or a type. Secrets are not shown."""
    listed = _behaviors(entities, interface, type_name)
    id = entities.behavior(name, listed)
    item = next(item for item in listed if item.id == id)
    data = shapes.behavior(item, VERSION)
    return VerbResult(view.behavior_lines(item, data["execution"]), data)


@behavior.verb("create", "statecfg entity behavior create sites provide.yml", JSON)
@click.argument("interface")
@_file
def create_behavior(entities: LocalEntityCalls, interface: str, file: str) -> VerbResult:
    """Add a behavior to an interface: name, description, execution."""
    body = read(file)
    created = entities.calls.create_behavior(entities.me, entities.interface(interface), body)
    return one_line(created.id, shapes.behavior(created, VERSION))


@behavior.verb("update", "statecfg entity behavior update sites provide provide.yml")
@click.argument("interface")
@click.argument("name")
@_file
def update_behavior(entities: LocalEntityCalls, interface: str, name: str, file: str) -> str:
    """Change the description and execution of a behavior. Secrets that you omit stay."""
    body = read(file)
    id = entities.interface(interface)
    which = entities.behavior(name, _behaviors(entities, interface, None))
    return entities.calls.update_behavior(entities.me, id, which, body).id


@behavior.verb("delete", "statecfg entity behavior delete sites provide")
@click.argument("interface")
@click.argument("name")
def delete_behavior(entities: LocalEntityCalls, interface: str, name: str) -> str:
    """Delete a behavior of an interface. No type may use it as a hook."""
    which = entities.behavior(name, _behaviors(entities, interface, None))
    entities.calls.delete_behavior(entities.me, entities.interface(interface), which)
    return f"{which}: deleted"


@behavior.verb("override", "statecfg entity behavior override site provide other.yml")
@click.argument("type")
@click.argument("name")
@_file
def override(entities: LocalEntityCalls, type: str, name: str, file: str) -> str:
    """Override a behavior of an interface for one type: description, execution."""
    body = read(file)
    entity_type = entities.type(type)
    which = entities.behavior(name, _behaviors(entities, None, type))
    return entities.calls.override_behavior(entities.me, entity_type.id, which, body).id


@behavior.verb("restore", "statecfg entity behavior restore site provide")
@click.argument("type")
@click.argument("name")
def restore(entities: LocalEntityCalls, type: str, name: str) -> str:
    """Remove a type's override of a behavior. The behavior of the interface applies again."""
    which = entities.behavior(name, _behaviors(entities, None, type))
    entities.calls.delete_override(entities.me, entities.type(type).id, which)
    return f"{which}: override removed"


def _behaviors(entities: LocalEntityCalls, interface: str | None, type_name: str | None) -> list[Any]:
    if (interface is None) == (type_name is None):
        raise click.UsageError("Name an interface, or a type by --type.")
    if type_name is not None:
        of_type = entities.type(type_name).id
        return entities.all(lambda me, query: entities.calls.list_type_behaviors(me, of_type, query))
    of_interface = entities.interface(str(interface))
    return entities.all(lambda me, query: entities.calls.list_behaviors(me, of_interface, query))


@click.group("type", cls=StoreGroup, opens=LocalEntityCalls, examples=TYPES)
def type_group() -> None:
    """Manage types of entities: schema, interfaces, hooks. FILE is JSON or YAML; - is standard input."""


@type_group.verb("list", "statecfg entity type list", JSON, COLOR)
def types(entities: LocalEntityCalls) -> VerbResult:
    """Show all types and their hooks."""
    all_types = entities.all(entities.calls.list_types)
    rows = [(item.name, str(item.coordinates), ", ".join(item.hooks), item.id) for item in all_types]
    lines = view.table(("TYPE", "NAME", "HOOKS", "ID"), rows, "type types")
    return VerbResult(lines, {"values": [shapes.entity_type(item, VERSION) for item in all_types]})


@type_group.verb("show", "statecfg entity type show site", JSON, COLOR)
@click.argument("name")
def show_type(entities: LocalEntityCalls, name: str) -> VerbResult:
    """Show everything about a type."""
    entity_type = entities.type(name)
    return VerbResult(view.type_lines(entity_type), shapes.entity_type(entity_type, VERSION))


@type_group.verb("create", "statecfg entity type create site.yml", JSON)
@_file
def create_type(entities: LocalEntityCalls, file: str) -> VerbResult:
    """Create a type: name, vendor, nss, version, schema, interfaces, hooks, description, externalId."""
    body = read(file)
    created = entities.calls.create_type(entities.me, body)
    return one_line(created.id, shapes.entity_type(created, VERSION))


@type_group.verb("update", "statecfg entity type update site site.yml")
@click.argument("name")
@_file
def update_type(entities: LocalEntityCalls, name: str, file: str) -> str:
    """Change a type. It must not have entities. Its vendor, nss and version cannot change."""
    body = read(file)
    return entities.calls.update_type(entities.me, entities.type(name).id, body).id


@type_group.verb("delete", "statecfg entity type delete site")
@click.argument("name")
def delete_type(entities: LocalEntityCalls, name: str) -> str:
    """Delete a type that has no entities."""
    entity_type = entities.type(name)
    entities.calls.delete_type(entities.me, entity_type.id)
    return f"{entity_type.id}: deleted"
