"""Entities, their types and behaviors, tasks and access controls, for people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from statecfg.views import safe, states
from statecfg.views.changes import value_text
from statecfg.views.host_records import when
from statecfg.views.lines import BLANK, Line, Style, make

if TYPE_CHECKING:
    from statecfg.entities.model import Behavior, Entity, EntityType, Task

_STATUSES: Mapping[str, Style] = {"success": "add", "error": "remove", "running": "change"}
_SHOWN = 60  # lines of details


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], words: str, total: int | None = None) -> Iterator[Line]:
    """Yield a table with a bold first column, and the number of rows below it.

    :param heads: the titles of the columns
    :param rows: the strings of each row
    :param words: singular and plural of the counted things, such as "task tasks"
    :param total: number of rows on all pages
    """
    widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(len(heads))]
    if rows:
        yield make(("  ".join(f"{head:<{width}}" for head, width in zip(heads, widths, strict=True)).rstrip(), "dim"))
    for row in rows:
        first, *others = (f"{text:<{width}}" for text, width in zip(row, widths, strict=True))
        yield make((first, "bold"), f"  {'  '.join(others)}".rstrip(), hang=widths[0] + 2)
    single, many = words.split()
    more = f" of {total:,}" if total is not None and total > len(rows) else ""
    yield make((f"{len(rows):,}{more} {single if len(rows) == 1 and not more else many}", "dim"))


def one(title: str, right: str, pairs: Mapping[str, str], more: Mapping[str, Any] | None = None) -> Iterator[Line]:
    """Yield the details of an object.

    :param title: its name
    :param right: text at the right edge of the heading
    :param pairs: label → text; empty strings are left out
    :param more: label → data to show as JSON
    """
    yield make(("── ", "dim"), (title, "bold"), right=right, rule=True)
    width = max(map(len, pairs), default=0)
    for key, text in pairs.items():
        if text:
            yield make("  ", (f"{key:<{width}}", "skip"), f"  {text}", hang=width + 4)
    for key, value in (more or {}).items():
        yield BLANK
        yield make((f"  {key}", "dim"))
        for line in json.dumps(value, indent=2, ensure_ascii=False).splitlines():
            yield make(f"    {line}", hang=6)


def entity_table(entities: Sequence[Entity], total: int) -> Iterator[Line]:
    """Yield a line for each entity."""
    rows = [
        (
            entity.name,
            states.of_entity(entity.state),
            entity.type.partition("type:")[2],
            entity.ownership.owner,
            entity.id,
        )
        for entity in entities
    ]
    yield from table(("ENTITY", "STATE", "TYPE", "OWNER", "ID"), rows, "entity entities", total)


def entity_lines(entity: Entity) -> Iterator[Line]:
    """Yield the details of an entity."""
    details = {
        "id": entity.id,
        "type": entity.type,
        "external id": entity.external_id or "",
        "owner": f"{entity.ownership.owner} ({entity.ownership.org})",
        "created": when(entity.created),
        "changed": when(entity.modified),
        "etag": entity.etag,
        "message": entity.message,
    }
    yield from one(entity.name, states.of_entity(entity.state), details, {"entity": entity.content})


def state_line(entity: Entity) -> Line:
    """Return a line with the name, state and id of an entity."""
    message = f": {entity.message}" if entity.message else ""
    state = (states.of_entity(entity.state), states.style(entity.state))
    return make((entity.name, "bold"), "  ", state, f"{message}  {entity.id}")


def type_lines(entity_type: EntityType) -> Iterator[Line]:
    """Yield the details of a type."""
    details = {
        "id": entity_type.id,
        "description": entity_type.description or "",
        "interfaces": ", ".join(entity_type.interfaces),
        **{hook: entity_type.hooks[hook] for hook in entity_type.hooks},
        "inherited": entity_type.inherited_version or "",
    }
    yield from one(
        entity_type.name,
        str(entity_type.coordinates),
        details,
        {"schema": entity_type.schema},
    )


def behavior_lines(behavior: Behavior, execution: Any) -> Iterator[Line]:
    """Yield the details of a behavior.

    :param execution: its execution without write-only values
    """
    details = {"id": behavior.id, "ref": behavior.ref, "description": behavior.description or ""}
    yield from one(behavior.name, str(behavior.execution.get("type", "")), details, {"execution": execution})


def task_table(tasks: Sequence[Task], total: int) -> Iterator[Line]:
    """Yield a line for each task."""
    rows = [
        (
            task.id.rpartition(":")[2],
            task.status,
            f"{task.reported.progress} %",
            task.name,
            task.entity_name,
            when(task.times.created),
        )
        for task in tasks
    ]
    yield from table(("TASK", "STATUS", "DONE", "OPERATION", "ENTITY", "CREATED"), rows, "task tasks", total)


def task_lines(task: Task) -> Iterator[Line]:
    """Yield the details of a task: its operation, progress, result and error."""
    style = _STATUSES.get(task.status, "")
    done = f" ({task.reported.progress} %)" if not task.is_finished else ""
    yield make((task.status, style), f"{done}  {task.operation or task.name}", hang=4)
    yield make(("  task    ", "skip"), task.id, hang=10)
    yield make(("  entity  ", "skip"), f"{task.entity_name}  {task.entity}", hang=10)
    if task.error is not None:
        code = f"{task.error.get('minorErrorCode', '')} ({task.error.get('majorErrorCode', '')})"
        yield make(("  error   ", "skip"), (code, "remove"), hang=10)
        for text in safe.block(str(task.error.get("message", ""))):
            yield make(("    ", ""), (text, "remove"), hang=6)
    if task.result is not None and not task.error:
        text = task.result if isinstance(task.result, str) else value_text(task.result)
        yield make(("  result  ", "skip"), text, hang=10)
    lines = safe.block(task.reported.details) if task.reported.details else []
    for text in list(lines)[-_SHOWN:]:
        yield make(("  │ ", "dim"), text, hang=4)
