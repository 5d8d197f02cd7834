"""Tasks, the versions of the API, and this API's own description over HTTP."""

from __future__ import annotations

from typing import Any

from statecfg.entities import shapes, tasks
from statecfg.entities.model import Task
from statecfg.server import openapi, writing
from statecfg.server.exchange import ANYONE, VIEWER, Answer, Asked, Route
from statecfg.server.lists import page
from statecfg.server.parameters import listing, listing_by


def _task(asked: Asked) -> Answer:
    task = asked.operations.get_task(asked.principal, asked.path["task"])
    value = _shape(asked, task)
    if asked.xml:
        return Answer(200, writing.task_xml(value), media_type=writing.TASK_XML)
    return Answer(200, value)


def _shape(asked: Asked, task: Task) -> dict[str, Any]:
    return shapes.task(task, asked.version, writing.location(asked, task.id))


def _tasks(asked: Asked) -> Answer:
    found = asked.operations.list_tasks(asked.principal, listing(asked))
    return page(asked, found, lambda task, _: _shape(asked, task))


def _versions(asked: Asked) -> Answer:
    if asked.xml:
        return Answer(200, writing.versions_xml(asked.base), media_type=writing.VERSIONS_XML)
    return Answer(200, writing.versions_json(asked.base))


def _description(asked: Asked) -> Answer:
    from statecfg.server.routes import ROUTES

    return Answer(200, openapi.document(ROUTES, asked.base))


ROUTES = (
    Route(
        "GET",
        "/api/versions",
        ANYONE,
        _versions,
        "List the versions of the API, and where to log in.",
        {200: "Versions"},
        xml="default",
        xml_type=writing.VERSIONS_XML,
    ),
    Route(
        "GET",
        "/api/task/{task}",
        VIEWER,
        _task,
        "Show a task.",
        {200: "Task"},
        xml="asked",
        xml_type=writing.TASK_XML,
    ),
    Route(
        "GET",
        "/statecfg/1.0/tasks",
        VIEWER,
        _tasks,
        "List tasks, the newest first.",
        {200: "Tasks"},
        listing_by(tasks.FIELDS),
    ),
    Route("GET", "/openapi.json", VIEWER, _description, "Describe this API (OpenAPI 3.1).", {200: "OpenAPI"}),
)
