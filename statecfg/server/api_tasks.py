"""Tasks, the versions of the API, and the description of the API over HTTP."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from statecfg.entities import shapes, tasks
from statecfg.entities.document import Shape
from statecfg.entities.model import Task
from statecfg.server import openapi, writing
from statecfg.server.auth import ANYONE, VIEWER
from statecfg.server.media import Xml
from statecfg.server.parameters import listing, listing_by
from statecfg.server.request import ApiRequest
from statecfg.server.responses import json_or_xml, page
from statecfg.server.routing import Routes

routes = Routes()


@routes(
    "GET",
    "/api/versions",
    ANYONE,
    "List the versions of the API, and the login addresses.",
    {200: "Versions"},
    xml=Xml(writing.VERSIONS_XML, default=True),
)
def _versions(request: ApiRequest) -> Response:
    if request.wants_xml:
        return Response(writing.versions_xml(request.base), media_type=writing.VERSIONS_XML)
    return JSONResponse(writing.versions_json(request.base))


@routes(
    "GET",
    "/api/task/{task}",
    VIEWER,
    "Show a task.",
    {200: "Task"},
    xml=Xml(writing.TASK_XML),
)
def _get(request: ApiRequest) -> Response:
    task = request.operations.get_task(request.principal, request.path_params["task"])
    return json_or_xml(request, _shape(request, task), writing.task_xml, writing.TASK_XML)


@routes(
    "GET",
    "/statecfg/1.0/tasks",
    VIEWER,
    "List tasks, the newest first.",
    {200: "Tasks"},
    query=listing_by(tasks.FIELDS),
)
def _list(request: ApiRequest) -> Response:
    values = request.operations.list_tasks(request.principal, listing(request))
    return page(request, values, lambda task, _: _shape(request, task))


def _shape(request: ApiRequest, task: Task) -> Shape:
    return shapes.task(task, request.version, writing.location(request, task.id))


@routes("GET", "/openapi.json", VIEWER, "Describe this API (OpenAPI 3.1).", {200: "OpenAPI"})
def _description(request: ApiRequest) -> Response:
    return JSONResponse(openapi.document(request.app.state.table, request.base))
