"""`statecfg entity task`: queued, running and finished operations on entities."""

from __future__ import annotations

import click

from statecfg.cli.entity.calls import VERSION, LocalEntityCalls, ended
from statecfg.cli.verbs import COLOR, JSON, StoreGroup, VerbResult
from statecfg.entities import shapes
from statecfg.entities.model import Query
from statecfg.views import entities as view

EXAMPLES = """
statecfg entity task list --filter status==error       the failed tasks
statecfg entity task show 5ad1d3d6-e265-4c28-8b0e-…    one task with its details
statecfg entity task wait 5ad1d3d6-e265-4c28-8b0e-…    wait until it ends; run it here unless a server does
"""


@click.group("task", cls=StoreGroup, opens=LocalEntityCalls, examples=EXAMPLES)
def task() -> None:
    """Show tasks: queued, running and finished operations on entities."""


@task.verb("list", "statecfg entity task list --filter status==error", JSON, COLOR)
@click.option(
    "--filter", "fiql", metavar="FIQL", default="", help="Only matching tasks: status==error;operationName==…"
)
@click.option("--page", type=click.IntRange(1), default=1, metavar="N", help="Page number. Default: 1.")
@click.option("--page-size", type=click.IntRange(1, 128), default=25, metavar="N", help="Tasks per page. Default: 25.")
def tasks(entities: LocalEntityCalls, fiql: str, page: int, page_size: int) -> VerbResult:
    """Show tasks, newest first."""
    results = entities.calls.list_tasks(entities.me, Query(fiql, page=page, page_size=page_size))
    return VerbResult(view.task_table(results.values, results.total), shapes.page(results, shapes.task, VERSION))


@task.verb("show", "statecfg entity task show 5ad1d3d6-e265-4c28-8b0e-8c6b29d9c3f5", JSON, COLOR)
@click.argument("id")
def show(entities: LocalEntityCalls, id: str) -> VerbResult:
    """Show a task and its subtasks."""
    record = entities.calls.get_task(entities.me, id)
    parts = entities.calls.subtasks(entities.me, record.id)
    lines = [line for item in (record, *parts) for line in view.task_lines(item)]
    data = {**shapes.task(record, VERSION), "subtasks": [shapes.task(item, VERSION) for item in parts]}
    return VerbResult(lines, data)


@task.verb("wait", "statecfg entity task wait 5ad1d3d6-e265-4c28-8b0e-8c6b29d9c3f5", JSON, COLOR)
@click.argument("id")
def wait(entities: LocalEntityCalls, id: str) -> VerbResult:
    """Wait until a task has ended. The task runs here unless a server runs it. Exit 1 if it fails."""
    return ended(entities.finish(entities.calls.get_task(entities.me, id), True))
