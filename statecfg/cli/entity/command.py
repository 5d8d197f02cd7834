"""`statecfg entity`: types and their entities, as in the HTTP API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from statecfg.cli import exit_codes, options
from statecfg.cli.entity import access as entity_access
from statecfg.cli.entity import definitions as entity_definitions
from statecfg.cli.entity import tasks as entity_tasks
from statecfg.cli.entity.calls import VERSION, LocalEntityCalls, content_from, ended
from statecfg.cli.verbs import COLOR, JSON, StoreGroup, VerbResult
from statecfg.entities import shapes
from statecfg.entities.model import CREATE, RESOLUTION_ERROR, RESOLVED, Query
from statecfg.remote.graph.names import State
from statecfg.views import entities as view

EXAMPLES = """
statecfg entity type create site.yml                   create a type with its schema and hooks
statecfg entity create site blog --set title=Blog      create an entity, run its hooks and resolve it
statecfg entity list --type site                       the entities of a type, with their states
statecfg entity update blog --set title=News           change its content
statecfg entity invoke blog restart --set grace=5      invoke a behavior on it
statecfg entity delete blog                            run its hooks and delete it
statecfg entity task list                              finished and running tasks
"""


@click.group("entity", cls=StoreGroup, opens=LocalEntityCalls, examples=EXAMPLES)
@options.store_option
@click.pass_context
def command(context: click.Context, store: str | None) -> None:
    """Define types; create, change and delete entities of these types, and run their hooks.

    These commands do the same as `statecfg serve` does over HTTP; on the command line, you are an administrator. Name a
    type, an interface or a behavior by its id (a URN) or its name; a type also by VENDOR/NSS/VERSION. Name an entity by
    its id, by the UUID in its id, or by its name if the name is unique. Hooks and behaviors run in this process unless
    a server runs them.
    """
    context.obj = store


command.add_command(entity_definitions.interface)
command.add_command(entity_definitions.behavior)
command.add_command(entity_definitions.type_group)
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
    help="Set a key of the content; a.b=1 sets a nested key. The value is parsed as JSON if possible; otherwise it is"
    " a string. Repeatable.",
)
_hooks_option = click.option("--no-hooks", is_flag=True, help="Do not run hooks. Requires Full Control of the type.")
_wait_option = click.option("--no-wait", is_flag=True, help="Return immediately. A running server executes the task.")
_match_option = click.option(
    "--if-match",
    metavar="ETAG",
    help="Apply the change only if the entity still has this revision; otherwise exit with code 5.",
)


@command.verb("list", "statecfg entity list --type site --filter 'entityState==RESOLVED'", JSON, COLOR)
@click.option("--type", "type_name", metavar="TYPE", help="Only entities of this type.")
@click.option("--interface", metavar="INTERFACE", help="Only entities of types that implement this interface.")
@click.option(
    "--filter", "fiql", metavar="FIQL", default="", help="Only matching entities: name==a*;entityState!=RESOLVED, …"
)
@click.option("--sort", metavar="FIELD", default="", help="Sort by this field; -FIELD reverses the order.")
@click.option("--page", type=click.IntRange(1), default=1, metavar="N", help="Page number. Default: 1.")
@click.option(
    "--page-size",
    type=click.IntRange(1, 128),
    default=128,
    metavar="N",
    help="Entities per page. Default and maximum: 128.",
)
def show_all(
    entities: LocalEntityCalls,
    type_name: str | None,
    interface: str | None,
    fiql: str,
    sort: str,
    page: int,
    page_size: int,
) -> VerbResult:
    """Show entities with their states: all of them, or those of a type or an interface."""
    if type_name and interface:
        raise click.UsageError("--type and --interface can't be combined.")
    query = Query(fiql, sort.removeprefix("-"), sort.startswith("-"), page, page_size)
    if type_name:
        parts = entities.type(type_name).id.split(":")[-3:]
        results = entities.calls.list_entities_of_type(entities.me, parts[0], parts[1], parts[2], query)
    elif interface:
        parts = entities.interface(interface).split(":")[-3:]
        results = entities.calls.list_entities_of_interface(entities.me, parts[0], parts[1], parts[2], query)
    else:
        results = entities.calls.list_entities(entities.me, query)
    return VerbResult(view.entity_table(results.values, results.total), shapes.page(results, shapes.entity, VERSION))


@command.verb("show", "statecfg entity show blog\nstatecfg entity show blog --json", JSON, COLOR)
@click.argument("entity")
def show(entities: LocalEntityCalls, entity: str) -> VerbResult:
    """Show everything about an entity: its content, state and ETag."""
    record = entities.entity(entity)
    return VerbResult(view.entity_lines(record), {**shapes.entity(record, VERSION), "etag": record.etag})


@command.verb(
    "create",
    "statecfg entity create site blog --set title=Blog --set host=web1\n"
    "statecfg entity create acme/site/1.0.0 blog --file blog.yml",
    JSON,
    COLOR,
)
@click.argument("type")
@click.argument("name")
@_file_option
@_set_option
@click.option("--external-id", metavar="TEXT", help="Identifier of the entity in another system.")
@click.option("--no-resolve", is_flag=True, help="If no PostCreate hook exists, keep the entity in state PRE_CREATED.")
@_hooks_option
@_wait_option
def create(
    entities: LocalEntityCalls,
    type: str,
    name: str,
    file: str | None,
    pairs: Sequence[str],
    external_id: str | None,
    no_resolve: bool,
    no_hooks: bool,
    no_wait: bool,
) -> VerbResult:
    """Create an entity of a type. Its PostCreate hook runs first, then the entity is resolved.

    Exit 1 if the hook fails or the content does not match the type's schema. The entity then exists in state
    RESOLUTION_ERROR.
    """
    body = {"name": name, "externalId": external_id, "entity": content_from(file, pairs)}
    task = entities.calls.create_entity(entities.me, entities.type(type).id, body, not no_resolve, not no_hooks)
    if task.name != CREATE:
        task = entities.finish(task, not no_wait)
    created, outcome = entities.calls.get_entity(entities.me, task.entity), ended(task)
    code = exit_codes.FAILED if created.state == RESOLUTION_ERROR else outcome.code
    return VerbResult([*outcome.lines, view.state_line(created)], outcome.data, code)


@command.verb(
    "update",
    "statecfg entity update blog --set title=News\nstatecfg entity update blog --state IN_DELETION",
    JSON,
    COLOR,
)
@click.argument("entity")
@_file_option
@_set_option
@click.option("--name", metavar="NAME", help="New name of the entity.")
@click.option("--external-id", metavar="TEXT", help="Identifier of the entity in another system.")
@click.option(
    "--state",
    type=click.Choice([State.IN_DELETION]),
    help="Mark the entity for deletion if its PreDelete hook agrees. The program that cleans up then deletes it.",
)
@_match_option
@_hooks_option
@_wait_option
def update(
    entities: LocalEntityCalls,
    entity: str,
    file: str | None,
    pairs: Sequence[str],
    name: str | None,
    external_id: str | None,
    state: str | None,
    if_match: str | None,
    no_hooks: bool,
    no_wait: bool,
) -> VerbResult:
    """Change an entity: --file replaces its content, --set changes keys of it. Its PostUpdate hook runs.

    If the hook fails, the entity keeps its state; exit 1.
    """
    before = entities.entity(entity)
    body: dict[str, Any] = {"name": name or before.name, "entity": content_from(file, pairs, before.content)}
    body["externalId"] = external_id if external_id is not None else before.external_id
    if state is not None:
        body["entityState"] = state
    done = entities.calls.update_entity(entities.me, before.id, body, _etag(if_match) or before.etag, not no_hooks)
    outcome = ended(entities.finish(done.task, not no_wait)) if done.task is not None else None
    after = entities.calls.get_entity(entities.me, before.id)
    if outcome is None:
        return VerbResult([view.state_line(after)], shapes.entity(after, VERSION))
    return VerbResult([*outcome.lines, view.state_line(after)], outcome.data, outcome.code)


@command.verb("resolve", "statecfg entity resolve blog", JSON, COLOR)
@click.argument("entity")
def resolve(entities: LocalEntityCalls, entity: str) -> VerbResult:
    """Check an entity against its type's schema: RESOLVED, or RESOLUTION_ERROR with the reason (exit 1)."""
    resolved_entity = entities.calls.resolve_entity(entities.me, entities.entity(entity).id)
    code = exit_codes.DONE if resolved_entity.state == RESOLVED else exit_codes.FAILED
    return VerbResult([view.state_line(resolved_entity)], shapes.resolved(resolved_entity, VERSION), code)


@command.verb("delete", "statecfg entity delete blog", JSON, COLOR)
@click.argument("entity")
@_match_option
@_hooks_option
@_wait_option
def delete(entities: LocalEntityCalls, entity: str, if_match: str | None, no_hooks: bool, no_wait: bool) -> VerbResult:
    """Delete an entity: its PreDelete hook must agree, its PostDelete hook cleans up, then the entity is deleted.

    If PreDelete fails, the entity stays as it is. If PostDelete fails, the entity stays in state IN_DELETION (exit 1).
    """
    task = entities.calls.delete_entity(entities.me, entities.entity(entity).id, _etag(if_match), not no_hooks)
    return ended(entities.finish(task, not no_wait))


@command.verb("invoke", "statecfg entity invoke blog restart --set grace=5", JSON, COLOR)
@click.argument("entity")
@click.argument("behavior")
@click.option("--file", metavar="FILE", help="Take the arguments from this file, JSON or YAML; - is standard input.")
@_set_option
@click.option("--metadata", metavar="KEY=VALUE", multiple=True, help="Metadata of the invocation. Repeatable.")
@_wait_option
def invoke(
    entities: LocalEntityCalls,
    entity: str,
    behavior: str,
    file: str | None,
    pairs: Sequence[str],
    metadata: Sequence[str],
    no_wait: bool,
) -> VerbResult:
    """Invoke a behavior on a resolved entity with arguments, and show what it returns. Exit 1 if it fails."""
    body = {"arguments": content_from(file, pairs), "metadata": content_from(None, metadata)}
    record = entities.entity(entity)
    behaviors = entities.all(lambda me, query: entities.calls.list_type_behaviors(me, record.type, query))
    task = entities.calls.invoke(entities.me, record.id, entities.behavior(behavior, behaviors), body)
    return ended(entities.finish(task, not no_wait))


def _etag(text: str | None) -> str | None:
    """Return an ETag in the form of the HTTP header: add the quotes that the shell removed."""
    return f'"{text}"' if text and not text.startswith(('"', "W/", "*")) else text
