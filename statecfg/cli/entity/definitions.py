"""`statecfg entity interface`, `behavior` and `type`: the definitions that entities use."""

from __future__ import annotations

from typing import Any

import click

from statecfg.cli.entity.calls import VERSION, EntityCalls, read
from statecfg.cli.entity.verbs import COLOR, JSON, Shown, said, verb
from statecfg.cli.options import Group

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


@click.group("interface", cls=Group, examples=INTERFACES)
def interface() -> None:
    """Manage interfaces: sets of behaviors that types implement. FILE is JSON or YAML; - is standard input."""


@verb(interface, "list", "statecfg entity interface list", JSON, COLOR)
def interfaces(known: EntityCalls) -> Shown:
    """Show all interfaces."""
    from statecfg.entities import shapes
    from statecfg.views import entities as view

    found = known.all(known.calls.list_interfaces)
    rows = [(each.name, str(each.coordinates), each.id) for each in found]
    lines = view.table(("INTERFACE", "NAME", "ID"), rows, "interface interfaces")
    return Shown(lines, {"values": [shapes.interface(each, VERSION) for each in found]})


@verb(interface, "create", "statecfg entity interface create sites.yml", JSON)
@_file
def create_interface(known: EntityCalls, file: str) -> Shown:
    """Create an interface: name, vendor, nss, version."""
    from statecfg.entities import shapes

    body = read(file)
    created = known.calls.create_interface(known.me, body)
    return said(created.id, shapes.interface(created, VERSION))


@verb(interface, "update", "statecfg entity interface update sites sites.yml")
@click.argument("name")
@_file
def update_interface(known: EntityCalls, name: str, file: str) -> str:
    """Rename an interface. No entities may exist whose types implement it."""
    body = read(file)
    return known.calls.update_interface(known.me, known.interface(name), body).id


@verb(interface, "delete", "statecfg entity interface delete sites")
@click.argument("name")
def delete_interface(known: EntityCalls, name: str) -> str:
    """Delete an interface that no type implements, with its behaviors."""
    id = known.interface(name)
    known.calls.delete_interface(known.me, id)
    return f"{id}: deleted"


@click.group("behavior", cls=Group, examples=BEHAVIORS)
def behavior() -> None:
    """Manage behaviors of interfaces: functions, webhooks, playbooks. FILE is JSON or YAML; - is standard input."""


@verb(behavior, "list", "statecfg entity behavior list sites", JSON, COLOR)
@click.argument("interface", required=False)
@click.option(
    "--type", "kind", metavar="TYPE", help="The behaviors of a type: its overrides, and the rest from its interfaces."
)
def behaviors(known: EntityCalls, interface: str | None, kind: str | None) -> Shown:
    """Show the behaviors of an interface or a type. Secrets are not shown."""
    from statecfg.entities import shapes
    from statecfg.views import entities as view

    found = _behaviors(known, interface, kind)
    rows = [
        (each.name, str(each.execution.get("type", "")), str(each.execution.get("id", "")), each.id) for each in found
    ]
    lines = view.table(("BEHAVIOR", "TYPE", "RUNS", "ID"), rows, "behavior behaviors")
    return Shown(lines, {"values": [shapes.behavior(each, VERSION) for each in found]})


@verb(behavior, "show", "statecfg entity behavior show provide sites", JSON, COLOR)
@click.argument("name")
@click.argument("interface", required=False)
@click.option("--type", "kind", metavar="TYPE", help="The behavior that this type uses.")
def show_behavior(known: EntityCalls, name: str, interface: str | None, kind: str | None) -> Shown:
    """Show a behavior of an interface or a type. Secrets are not shown."""
    from statecfg.entities import shapes
    from statecfg.views import entities as view

    found = _behaviors(known, interface, kind)
    id = known.behavior(name, found)
    each = next(each for each in found if each.id == id)
    data = shapes.behavior(each, VERSION)
    return Shown(view.behavior_lines(each, data["execution"]), data)


@verb(behavior, "create", "statecfg entity behavior create sites provide.yml", JSON)
@click.argument("interface")
@_file
def create_behavior(known: EntityCalls, interface: str, file: str) -> Shown:
    """Add a behavior to an interface: name, description, execution."""
    from statecfg.entities import shapes

    body = read(file)
    created = known.calls.create_behavior(known.me, known.interface(interface), body)
    return said(created.id, shapes.behavior(created, VERSION))


@verb(behavior, "update", "statecfg entity behavior update sites provide provide.yml")
@click.argument("interface")
@click.argument("name")
@_file
def update_behavior(known: EntityCalls, interface: str, name: str, file: str) -> str:
    """Change the description and execution of a behavior. Secrets that you omit stay."""
    body = read(file)
    id = known.interface(interface)
    which = known.behavior(name, _behaviors(known, interface, None))
    return known.calls.update_behavior(known.me, id, which, body).id


@verb(behavior, "delete", "statecfg entity behavior delete sites provide")
@click.argument("interface")
@click.argument("name")
def delete_behavior(known: EntityCalls, interface: str, name: str) -> str:
    """Delete a behavior of an interface. No type may use it as a hook."""
    which = known.behavior(name, _behaviors(known, interface, None))
    known.calls.delete_behavior(known.me, known.interface(interface), which)
    return f"{which}: deleted"


@verb(behavior, "override", "statecfg entity behavior override site provide other.yml")
@click.argument("type")
@click.argument("name")
@_file
def override(known: EntityCalls, type: str, name: str, file: str) -> str:
    """Override a behavior of an interface for one type: description, execution."""
    body = read(file)
    found = known.type(type)
    which = known.behavior(name, _behaviors(known, None, type))
    return known.calls.override_behavior(known.me, found.id, which, body).id


@verb(behavior, "restore", "statecfg entity behavior restore site provide")
@click.argument("type")
@click.argument("name")
def restore(known: EntityCalls, type: str, name: str) -> str:
    """Remove a type's override of a behavior. The behavior of the interface applies again."""
    which = known.behavior(name, _behaviors(known, None, type))
    known.calls.delete_override(known.me, known.type(type).id, which)
    return f"{which}: taken back"


def _behaviors(known: EntityCalls, interface: str | None, kind: str | None) -> list[Any]:
    if (interface is None) == (kind is None):
        raise click.UsageError("Name an interface, or a type by --type.")
    if kind is not None:
        of_type = known.type(kind).id
        return known.all(lambda me, query: known.calls.list_type_behaviors(me, of_type, query))
    of_interface = known.interface(str(interface))
    return known.all(lambda me, query: known.calls.list_behaviors(me, of_interface, query))


@click.group("type", cls=Group, examples=TYPES)
def kind() -> None:
    """Manage types of entities: schema, interfaces, hooks. FILE is JSON or YAML; - is standard input."""


@verb(kind, "list", "statecfg entity type list", JSON, COLOR)
def types(known: EntityCalls) -> Shown:
    """Show all types and their hooks."""
    from statecfg.entities import shapes
    from statecfg.views import entities as view

    found = known.all(known.calls.list_types)
    rows = [(each.name, str(each.coordinates), ", ".join(each.hooks), each.id) for each in found]
    lines = view.table(("TYPE", "NAME", "HOOKS", "ID"), rows, "type types")
    return Shown(lines, {"values": [shapes.entity_type(each, VERSION) for each in found]})


@verb(kind, "show", "statecfg entity type show site", JSON, COLOR)
@click.argument("name")
def show_type(known: EntityCalls, name: str) -> Shown:
    """Show everything about a type."""
    from statecfg.entities import shapes
    from statecfg.views import entities as view

    found = known.type(name)
    return Shown(view.type_lines(found), shapes.entity_type(found, VERSION))


@verb(kind, "create", "statecfg entity type create site.yml", JSON)
@_file
def create_type(known: EntityCalls, file: str) -> Shown:
    """Create a type: name, vendor, nss, version, schema, interfaces, hooks, description, externalId."""
    from statecfg.entities import shapes

    body = read(file)
    created = known.calls.create_type(known.me, body)
    return said(created.id, shapes.entity_type(created, VERSION))


@verb(kind, "update", "statecfg entity type update site site.yml")
@click.argument("name")
@_file
def update_type(known: EntityCalls, name: str, file: str) -> str:
    """Change a type. It must not have entities. Its vendor, nss and version cannot change."""
    body = read(file)
    return known.calls.update_type(known.me, known.type(name).id, body).id


@verb(kind, "delete", "statecfg entity type delete site")
@click.argument("name")
def delete_type(known: EntityCalls, name: str) -> str:
    """Delete a type that has no entities."""
    found = known.type(name)
    known.calls.delete_type(known.me, found.id)
    return f"{found.id}: deleted"
