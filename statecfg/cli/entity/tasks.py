"""`statecfg entity task`: queued, running and finished operations on entities."""

from __future__ import annotations

import click

from statecfg.cli import options
from statecfg.cli.entity.calls import VERSION, EntityCalls, ended
from statecfg.cli.entity.verbs import COLOR, JSON, Shown, verb
from statecfg.cli.options import Command, Group

EXAMPLES = """
statecfg entity task list --filter status==error       the failed tasks
statecfg entity task show 5ad1d3d6-e265-4c28-8b0e-…    one task with its details
statecfg entity task wait 5ad1d3d6-e265-4c28-8b0e-…    wait until it ends; run it here unless a server does
"""


@click.group("task", cls=Group, examples=EXAMPLES)
def task() -> None:
    """Show tasks: queued, running and finished operations on entities."""


@verb(task, "list", "statecfg entity task list --filter status==error", JSON, COLOR)
@click.option(
    "--filter", "fiql", metavar="FIQL", default="", help="Only matching tasks: status==error;operationName==…"
)
@click.option("--page", type=click.IntRange(1), default=1, metavar="N", help="Page number. Default: 1.")
@click.option("--page-size", type=click.IntRange(1, 128), default=25, metavar="N", help="Tasks per page. Default: 25.")
def tasks(known: EntityCalls, fiql: str, page: int, page_size: int) -> Shown:
    """Show tasks, newest first."""
    from statecfg.entities import shapes
    from statecfg.entities.model import Query
    from statecfg.views import entities as view

    found = known.calls.list_tasks(known.me, Query(fiql, page=page, page_size=page_size))
    return Shown(view.task_table(found.values, found.total), shapes.page(found, shapes.task, VERSION))


@verb(task, "show", "statecfg entity task show 5ad1d3d6-e265-4c28-8b0e-8c6b29d9c3f5", JSON, COLOR)
@click.argument("id")
def show(known: EntityCalls, id: str) -> Shown:
    """Show a task and its subtasks."""
    from statecfg.entities import shapes
    from statecfg.views import entities as view

    found = known.calls.get_task(known.me, id)
    parts = known.calls.subtasks(known.me, found.id)
    lines = [line for each in (found, *parts) for line in view.task_lines(each)]
    data = {**shapes.task(found, VERSION), "subtasks": [shapes.task(each, VERSION) for each in parts]}
    return Shown(lines, data)


@task.command("wait", cls=Command, examples="statecfg entity task wait 5ad1d3d6-e265-4c28-8b0e-8c6b29d9c3f5")
@click.argument("id")
@options.json_option
@options.no_color_option
@click.pass_obj
def wait(store: str | None, id: str, as_json: bool, no_color: bool) -> int:
    """Wait until a task has ended. The task runs here unless a server runs it. Exit 1 if it fails."""
    with EntityCalls(store) as known:
        return ended(known.finish(known.calls.get_task(known.me, id), True), as_json, no_color)
