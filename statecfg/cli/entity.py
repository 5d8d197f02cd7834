"""`statecfg entity`: types of things, and the entities that are made of them, as the HTTP API has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from statecfg.cli import entity_access, entity_definitions, entity_tasks, exit_codes, options
from statecfg.cli.entity_calls import VERSION, EntityCalls, ended, given, write
from statecfg.cli.options import Command, Group

EXAMPLES = """
statecfg entity type create site.yml                   a type of entities, with its schema and hooks
statecfg entity create site blog --set title=Blog      an entity; its hooks are run, and it is resolved
statecfg entity list --type site                       the entities of a type, with their states
statecfg entity update blog --set title=News           change its content
statecfg entity invoke blog restart --set grace=5      invoke a behavior on it
statecfg entity delete blog                            delete it, by way of its hooks
statecfg entity task list                              what was done, and what is being done
"""


@click.group("entity", cls=Group, examples=EXAMPLES)
@options.store_option
@click.pass_context
def command(context: click.Context, store: str | None) -> None:
    """Offer types of things; create, change and delete entities of them, by way of their hooks.

    What is done here, and how, is what `statecfg serve` does over HTTP; here you are an administrator. A type, an
    interface or a behavior is named by its id (a URN) or its name, a type also as VENDOR/NSS/VERSION, an entity by its
    id, the UUID in it, or a name that no other has. Hooks and behaviors run here, unless a server does that.
    """
    context.obj = store


command.add_command(entity_definitions.interface)
command.add_command(entity_definitions.behavior)
command.add_command(entity_definitions.kind)
command.add_command(entity_tasks.task)
command.add_command(entity_access.token)
command.add_command(entity_access.access)

_file_option = click.option(
    "--file", "file", metavar="FILE", help="Take the content from this file, JSON or YAML; - is standard input."
)
_set_option = click.option(
    "--set",
    "pairs",
    metavar="KEY=VALUE",
    multiple=True,
    help="Set a key of the content, a.b=1 inside of it. The value is parsed as JSON if possible; otherwise it is a"
    " string. Repeatable.",
)
_hooks_option = click.option("--no-hooks", is_flag=True, help="Run no hooks. Needs Full Control of the type.")
_wait_option = click.option("--no-wait", is_flag=True, help="Return immediately. A running server executes the task.")
_match_option = click.option(
    "--if-match",
    metavar="ETAG",
    help="Apply the change only if the entity still has this revision; otherwise exit with code 5.",
)


@command.command("list", cls=Command, examples="statecfg entity list --type site --filter 'entityState==RESOLVED'")
@click.option("--type", "kind", metavar="TYPE", help="Only of this type.")
@click.option("--interface", metavar="INTERFACE", help="Only of types that implement this interface.")
@click.option("--filter", "fiql", metavar="FIQL", default="", help="Only those: name==a*;entityState!=RESOLVED, …")
@click.option("--sort", metavar="FIELD", default="", help="Sort by this field; -FIELD turns it round.")
@click.option("--page", type=click.IntRange(1), default=1, metavar="N", help="Which page. Default: 1.")
@click.option("--page-size", type=click.IntRange(1, 128), default=128, metavar="N", help="Default: 128, the most.")
@options.json_option
@options.no_color_option
@click.pass_obj
def show_all(
    store: str | None,
    /,
    kind: str | None,
    interface: str | None,
    fiql: str,
    sort: str,
    page: int,
    page_size: int,
    as_json: bool,
    no_color: bool,
) -> None:
    """Show entities with their states: all of them, or those of a type or an interface."""
    from statecfg.entities import shapes
    from statecfg.entities.model import Query
    from statecfg.views import entities as view

    if kind and interface:
        raise click.UsageError("--type and --interface exclude each other.")
    query = Query(fiql, sort.removeprefix("-"), sort.startswith("-"), page, page_size)
    with EntityCalls(store) as known:
        if kind:
            parts = known.type(kind).id.split(":")[-3:]
            found = known.calls.list_entities_of_type(known.me, parts[0], parts[1], parts[2], query)
        elif interface:
            parts = known.interface(interface).split(":")[-3:]
            found = known.calls.list_entities_of_interface(known.me, parts[0], parts[1], parts[2], query)
        else:
            found = known.calls.list_entities(known.me, query)
    write(view.entity_table(found.values, found.total), shapes.page(found, shapes.entity, VERSION), as_json, no_color)


@command.command("show", cls=Command, examples="statecfg entity show blog\nstatecfg entity show blog --json")
@click.argument("entity")
@options.json_option
@options.no_color_option
@click.pass_obj
def show(store: str | None, entity: str, as_json: bool, no_color: bool) -> None:
    """Show everything about an entity: its content, state and ETag."""
    with EntityCalls(store) as known:
        _shown(known.entity(entity), as_json, no_color)


@command.command(
    "create",
    cls=Command,
    examples="statecfg entity create site blog --set title=Blog --set host=web1\n"
    "statecfg entity create acme/site/1.0.0 blog --file blog.yml",
)
@click.argument("type")
@click.argument("name")
@_file_option
@_set_option
@click.option("--external-id", metavar="TEXT", help="What it is called elsewhere.")
@click.option("--no-resolve", is_flag=True, help="If no PostCreate hook exists, keep the entity in state PRE_CREATED.")
@_hooks_option
@_wait_option
@options.json_option
@options.no_color_option
@click.pass_obj
def create(
    store: str | None,
    /,
    type: str,
    name: str,
    file: str | None,
    pairs: Sequence[str],
    external_id: str | None,
    no_resolve: bool,
    no_hooks: bool,
    no_wait: bool,
    as_json: bool,
    no_color: bool,
) -> int:
    """Create an entity of a type. Its PostCreate hook is run, and when that is done it is resolved.

    Exit 1 where the hook fails, or the content does not fit the type's schema: the entity is there, RESOLUTION_ERROR.
    """
    from statecfg.entities.model import CREATE, RESOLUTION_ERROR

    body = {"name": name, "externalId": external_id, "entity": given(file, pairs)}
    with EntityCalls(store) as known:
        task = known.calls.create_entity(known.me, known.type(type).id, body, not no_resolve, not no_hooks)
        if task.name != CREATE:
            task = known.finish(task, not no_wait)
        made = known.calls.get_entity(known.me, task.entity)
        code = ended(task, as_json, no_color)
        if not as_json:
            _state(made, no_color)
    return exit_codes.FAILED if made.state == RESOLUTION_ERROR else code


@command.command(
    "update",
    cls=Command,
    examples="statecfg entity update blog --set title=News\nstatecfg entity update blog --state IN_DELETION",
)
@click.argument("entity")
@_file_option
@_set_option
@click.option("--name", metavar="NAME", help="Call it this.")
@click.option("--external-id", metavar="TEXT", help="What it is called elsewhere.")
@click.option(
    "--state",
    type=click.Choice(["IN_DELETION"]),
    help="Mark it for deletion, where its PreDelete hook agrees; whoever cleans up deletes it then.",
)
@_match_option
@_hooks_option
@_wait_option
@options.json_option
@options.no_color_option
@click.pass_obj
def update(
    store: str | None,
    /,
    entity: str,
    file: str | None,
    pairs: Sequence[str],
    name: str | None,
    external_id: str | None,
    state: str | None,
    if_match: str | None,
    no_hooks: bool,
    no_wait: bool,
    as_json: bool,
    no_color: bool,
) -> int:
    """Change an entity: --file replaces its content, --set changes keys of it. Its PostUpdate hook is run.

    A hook that fails leaves the entity in its state: exit 1.
    """
    from statecfg.entities import shapes

    with EntityCalls(store) as known:
        before = known.entity(entity)
        body: dict[str, Any] = {"name": name or before.name, "entity": given(file, pairs, before.content)}
        body["externalId"] = external_id if external_id is not None else before.external_id
        if state is not None:
            body["entityState"] = state
        done = known.calls.update_entity(known.me, before.id, body, _etag(if_match) or before.etag, not no_hooks)
        code = exit_codes.DONE
        if done.task is not None:
            code = ended(known.finish(done.task, not no_wait), as_json, no_color)
        after = known.calls.get_entity(known.me, before.id)
    if not as_json:
        _state(after, no_color)
    elif done.task is None:
        write([], shapes.entity(after, VERSION), True, True)
    return code


@command.command("resolve", cls=Command, examples="statecfg entity resolve blog")
@click.argument("entity")
@options.json_option
@options.no_color_option
@click.pass_obj
def resolve(store: str | None, entity: str, as_json: bool, no_color: bool) -> int:
    """Check an entity against its type's schema: RESOLVED, or RESOLUTION_ERROR with the reason (exit 1)."""
    from statecfg.entities import shapes
    from statecfg.entities.model import RESOLVED
    from statecfg.views import entities as view

    with EntityCalls(store) as known:
        found = known.calls.resolve_entity(known.me, known.entity(entity).id)
    write([view.state_line(found)], shapes.resolved(found, VERSION), as_json, no_color)
    return exit_codes.DONE if found.state == RESOLVED else exit_codes.FAILED


@command.command("delete", cls=Command, examples="statecfg entity delete blog")
@click.argument("entity")
@_match_option
@_hooks_option
@_wait_option
@options.json_option
@options.no_color_option
@click.pass_obj
def delete(
    store: str | None,
    /,
    entity: str,
    if_match: str | None,
    no_hooks: bool,
    no_wait: bool,
    as_json: bool,
    no_color: bool,
) -> int:
    """Delete an entity: its PreDelete hook is asked, its PostDelete hook cleans up, then it is gone.

    Where the first fails, the entity stays as it is; where the second does, it stays IN_DELETION (exit 1).
    """
    with EntityCalls(store) as known:
        task = known.calls.delete_entity(known.me, known.entity(entity).id, _etag(if_match), not no_hooks)
        return ended(known.finish(task, not no_wait), as_json, no_color)


@command.command("invoke", cls=Command, examples="statecfg entity invoke blog restart --set grace=5")
@click.argument("entity")
@click.argument("behavior")
@click.option("--file", metavar="FILE", help="Take the arguments from this file, JSON or YAML; - is standard input.")
@_set_option
@click.option("--metadata", metavar="KEY=VALUE", multiple=True, help="Metadata of the invocation. Repeatable.")
@_wait_option
@options.json_option
@options.no_color_option
@click.pass_obj
def invoke(
    store: str | None,
    /,
    entity: str,
    behavior: str,
    file: str | None,
    pairs: Sequence[str],
    metadata: Sequence[str],
    no_wait: bool,
    as_json: bool,
    no_color: bool,
) -> int:
    """Invoke a behavior on a resolved entity with arguments, and show what it returns. Exit 1 where it fails."""
    body = {"arguments": given(file, pairs), "metadata": given(None, metadata)}
    with EntityCalls(store) as known:
        found = known.entity(entity)
        behaviors = known.all(lambda me, query: known.calls.list_type_behaviors(me, found.type, query))
        task = known.calls.invoke(known.me, found.id, known.behavior(behavior, behaviors), body)
        return ended(known.finish(task, not no_wait), as_json, no_color)


def _etag(text: str | None) -> str | None:
    """Return an ETag as the header has it, with the quotes that a shell takes away."""
    return f'"{text}"' if text and not text.startswith(('"', "W/", "*")) else text


def _state(entity: Any, no_color: bool) -> None:
    from statecfg.views import entities as view

    write([view.state_line(entity)], None, False, no_color)


def _shown(entity: Any, as_json: bool, no_color: bool) -> None:
    from statecfg.entities import shapes
    from statecfg.views import entities as view

    data = {**shapes.entity(entity, VERSION), "etag": entity.etag}
    write(view.entity_lines(entity), data, as_json, no_color)
