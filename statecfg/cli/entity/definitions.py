"""`statecfg entity interface`, `behavior` and `type`: the definitions that entities use."""

from __future__ import annotations

from typing import Any

import click

from statecfg.cli import options
from statecfg.cli.entity.calls import VERSION, EntityCalls, read, say, write
from statecfg.cli.options import Command, Group

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


@interface.command("list", cls=Command, examples="statecfg entity interface list")
@options.json_option
@options.no_color_option
@click.pass_obj
def interfaces(store: str | None, as_json: bool, no_color: bool) -> None:
    """Show all interfaces."""
    from statecfg.entities import shapes
    from statecfg.views import entities as view

    with EntityCalls(store) as known:
        found = known.all(known.calls.list_interfaces)
    rows = [(each.name, f"{each.vendor}/{each.nss}/{each.version}", each.id) for each in found]
    lines = view.table(("INTERFACE", "NAME", "ID"), rows, "interface interfaces")
    write(lines, {"values": [shapes.interface(each, VERSION) for each in found]}, as_json, no_color)


@interface.command("create", cls=Command, examples="statecfg entity interface create sites.yml")
@_file
@options.json_option
@click.pass_obj
def create_interface(store: str | None, file: str, as_json: bool) -> None:
    """Create an interface: name, vendor, nss, version."""
    from statecfg.entities import shapes

    body = read(file)
    with EntityCalls(store) as known:
        made = known.calls.create_interface(known.me, body)
    _made(made.id, shapes.interface(made, VERSION), as_json)


@interface.command("update", cls=Command, examples="statecfg entity interface update sites sites.yml")
@click.argument("name")
@_file
@click.pass_obj
def update_interface(store: str | None, name: str, file: str) -> None:
    """Rename an interface. No entities may exist whose types implement it."""
    body = read(file)
    with EntityCalls(store) as known:
        say(known.calls.update_interface(known.me, known.interface(name), body).id)


@interface.command("delete", cls=Command, examples="statecfg entity interface delete sites")
@click.argument("name")
@click.pass_obj
def delete_interface(store: str | None, name: str) -> None:
    """Delete an interface that no type implements, with its behaviors."""
    with EntityCalls(store) as known:
        id = known.interface(name)
        known.calls.delete_interface(known.me, id)
    say(f"{id}: deleted")


@click.group("behavior", cls=Group, examples=BEHAVIORS)
def behavior() -> None:
    """Manage behaviors of interfaces: functions, webhooks, playbooks. FILE is JSON or YAML; - is standard input."""


@behavior.command("list", cls=Command, examples="statecfg entity behavior list sites")
@click.argument("interface", required=False)
@click.option(
    "--type", "kind", metavar="TYPE", help="The behaviors of a type: its overrides, and the rest from its interfaces."
)
@options.json_option
@options.no_color_option
@click.pass_obj
def behaviors(store: str | None, interface: str | None, kind: str | None, as_json: bool, no_color: bool) -> None:
    """Show the behaviors of an interface or a type. Secrets are not shown."""
    from statecfg.entities import shapes
    from statecfg.views import entities as view

    with EntityCalls(store) as known:
        found = _behaviors(known, interface, kind)
    rows = [
        (each.name, str(each.execution.get("type", "")), str(each.execution.get("id", "")), each.id) for each in found
    ]
    lines = view.table(("BEHAVIOR", "TYPE", "RUNS", "ID"), rows, "behavior behaviors")
    write(lines, {"values": [shapes.behavior(each, VERSION) for each in found]}, as_json, no_color)


@behavior.command("show", cls=Command, examples="statecfg entity behavior show provide sites")
@click.argument("name")
@click.argument("interface", required=False)
@click.option("--type", "kind", metavar="TYPE", help="The behavior that this type uses.")
@options.json_option
@options.no_color_option
@click.pass_obj
def show_behavior(
    store: str | None, name: str, interface: str | None, kind: str | None, as_json: bool, no_color: bool
) -> None:
    """Show a behavior of an interface or a type. Secrets are not shown."""
    from statecfg.entities import shapes
    from statecfg.views import entities as view

    with EntityCalls(store) as known:
        found = _behaviors(known, interface, kind)
        id = known.behavior(name, found)
    each = next(each for each in found if each.id == id)
    data = shapes.behavior(each, VERSION)
    write(view.behavior_lines(each, data["execution"]), data, as_json, no_color)


@behavior.command("create", cls=Command, examples="statecfg entity behavior create sites provide.yml")
@click.argument("interface")
@_file
@options.json_option
@click.pass_obj
def create_behavior(store: str | None, interface: str, file: str, as_json: bool) -> None:
    """Add a behavior to an interface: name, description, execution."""
    from statecfg.entities import shapes

    body = read(file)
    with EntityCalls(store) as known:
        made = known.calls.create_behavior(known.me, known.interface(interface), body)
    _made(made.id, shapes.behavior(made, VERSION), as_json)


@behavior.command("update", cls=Command, examples="statecfg entity behavior update sites provide provide.yml")
@click.argument("interface")
@click.argument("name")
@_file
@click.pass_obj
def update_behavior(store: str | None, interface: str, name: str, file: str) -> None:
    """Change the description and execution of a behavior. Secrets that you omit stay."""
    body = read(file)
    with EntityCalls(store) as known:
        id = known.interface(interface)
        which = known.behavior(name, _behaviors(known, interface, None))
        say(known.calls.update_behavior(known.me, id, which, body).id)


@behavior.command("delete", cls=Command, examples="statecfg entity behavior delete sites provide")
@click.argument("interface")
@click.argument("name")
@click.pass_obj
def delete_behavior(store: str | None, interface: str, name: str) -> None:
    """Delete a behavior of an interface. No type may use it as a hook."""
    with EntityCalls(store) as known:
        which = known.behavior(name, _behaviors(known, interface, None))
        known.calls.delete_behavior(known.me, known.interface(interface), which)
    say(f"{which}: deleted")


@behavior.command("override", cls=Command, examples="statecfg entity behavior override site provide other.yml")
@click.argument("type")
@click.argument("name")
@_file
@click.pass_obj
def override(store: str | None, type: str, name: str, file: str) -> None:
    """Override a behavior of an interface for one type: description, execution."""
    body = read(file)
    with EntityCalls(store) as known:
        found = known.type(type)
        which = known.behavior(name, _behaviors(known, None, type))
        say(known.calls.override_behavior(known.me, found.id, which, body).id)


@behavior.command("restore", cls=Command, examples="statecfg entity behavior restore site provide")
@click.argument("type")
@click.argument("name")
@click.pass_obj
def restore(store: str | None, type: str, name: str) -> None:
    """Remove a type's override of a behavior. The behavior of the interface applies again."""
    with EntityCalls(store) as known:
        which = known.behavior(name, _behaviors(known, None, type))
        known.calls.delete_override(known.me, known.type(type).id, which)
    say(f"{which}: taken back")


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


@kind.command("list", cls=Command, examples="statecfg entity type list")
@options.json_option
@options.no_color_option
@click.pass_obj
def types(store: str | None, as_json: bool, no_color: bool) -> None:
    """Show all types and their hooks."""
    from statecfg.entities import shapes
    from statecfg.views import entities as view

    with EntityCalls(store) as known:
        found = known.all(known.calls.list_types)
    rows = [(each.name, f"{each.vendor}/{each.nss}/{each.version}", ", ".join(each.hooks), each.id) for each in found]
    lines = view.table(("TYPE", "NAME", "HOOKS", "ID"), rows, "type types")
    write(lines, {"values": [shapes.entity_type(each, VERSION) for each in found]}, as_json, no_color)


@kind.command("show", cls=Command, examples="statecfg entity type show site")
@click.argument("name")
@options.json_option
@options.no_color_option
@click.pass_obj
def show_type(store: str | None, name: str, as_json: bool, no_color: bool) -> None:
    """Show everything about a type."""
    from statecfg.entities import shapes
    from statecfg.views import entities as view

    with EntityCalls(store) as known:
        found = known.type(name)
    write(view.type_lines(found), shapes.entity_type(found, VERSION), as_json, no_color)


@kind.command("create", cls=Command, examples="statecfg entity type create site.yml")
@_file
@options.json_option
@click.pass_obj
def create_type(store: str | None, file: str, as_json: bool) -> None:
    """Create a type: name, vendor, nss, version, schema, interfaces, hooks, description, externalId."""
    from statecfg.entities import shapes

    body = read(file)
    with EntityCalls(store) as known:
        made = known.calls.create_type(known.me, body)
    _made(made.id, shapes.entity_type(made, VERSION), as_json)


@kind.command("update", cls=Command, examples="statecfg entity type update site site.yml")
@click.argument("name")
@_file
@click.pass_obj
def update_type(store: str | None, name: str, file: str) -> None:
    """Change a type. It must not have entities. Its vendor, nss and version cannot change."""
    body = read(file)
    with EntityCalls(store) as known:
        say(known.calls.update_type(known.me, known.type(name).id, body).id)


@kind.command("delete", cls=Command, examples="statecfg entity type delete site")
@click.argument("name")
@click.pass_obj
def delete_type(store: str | None, name: str) -> None:
    """Delete a type that has no entities."""
    with EntityCalls(store) as known:
        found = known.type(name)
        known.calls.delete_type(known.me, found.id)
    say(f"{found.id}: deleted")


def _made(id: str, data: Any, as_json: bool) -> None:
    from statecfg.views.lines import make

    write([make(id)], data, as_json, False)
