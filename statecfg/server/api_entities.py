"""Entities and their behaviors over HTTP."""

from __future__ import annotations

from starlette.responses import Response

from statecfg.entities import lifecycle, shapes
from statecfg.entities.model import CREATE, Entity, Page, Principal, Query, Task, org_id
from statecfg.entities.operations import Operations
from statecfg.server.auth import AUTHOR, VIEWER
from statecfg.server.media import Body
from statecfg.server.parameters import HOOKS, RESOLVE, listing_by
from statecfg.server.request import ApiRequest
from statecfg.server.resource import ApiResource
from statecfg.server.responses import one
from statecfg.server.routing import Routes
from statecfg.server.writing import TASK_LOCATION, location

routes = Routes()
# In this header, clients name the organization for which they act, by URN or UUID.
TENANT_CONTEXT = "x-vmware-vcloud-tenant-context"
_ENTITIES = "/cloudapi/1.0.0/entities"
_ENTITY = f"{_ENTITIES}/{{entity}}"
_OF_TYPES, _OF_INTERFACES = f"{_ENTITIES}/types/{{vendor}}/{{nss}}", f"{_ENTITIES}/interfaces/{{vendor}}/{{nss}}"


@routes(
    "POST",
    "/cloudapi/1.0.0/entityTypes/{type}",
    AUTHOR,
    "Create an entity of a type. The task in Location runs until the entity is resolved.",
    {202: None},
    query=(RESOLVE, HOOKS),
    request=Body("NewEntity"),
)
def _create(request: ApiRequest) -> Response:
    task = request.operations.create_entity(
        request.principal,
        request.path_params["type"],
        request.content,
        request.query["resolveEntity"],
        request.query["invokeHooks"],
        _tenant(request),
    )
    return _accepted(request, task)


_entity = ApiResource(routes, "Entity", "Entities", shapes.entity, listing_by(lifecycle.FIELDS))
_entity.list(_ENTITIES, VIEWER, "List entities of all types.", Operations.list_entities)
_entity.list(f"{_OF_TYPES}/{{version}}", VIEWER, "List the entities of a type.", Operations.list_entities_of_type)


def _list_all_versions(operations: Operations, caller: Principal, vendor: str, nss: str, query: Query) -> Page[Entity]:
    return operations.list_entities_of_type(caller, vendor, nss, "", query)


_entity.list(_OF_TYPES, VIEWER, "List the entities of all versions of a type.", _list_all_versions)
_LIST = "List the entities of all types that implement an interface."
_entity.list(f"{_OF_INTERFACES}/{{version}}", VIEWER, _LIST, Operations.list_entities_of_interface)
_SHOW = "Show an entity. Send its ETag in If-Match with a change."
_entity.show(_ENTITY, VIEWER, _SHOW, Operations.get_entity)


@routes(
    "PUT",
    _ENTITY,
    AUTHOR,
    "Change an entity, or mark it for deletion. The answer is 202 if a PreDelete hook runs first.",
    {200: "Entity", 202: None},
    query=(HOOKS,),
    request=Body("ChangedEntity"),
)
def _update(request: ApiRequest) -> Response:
    updated = request.operations.update_entity(
        request.principal,
        request.path_params["entity"],
        request.content,
        request.headers.get("if-match"),
        request.query["invokeHooks"],
    )
    if updated.accepted and updated.task is not None:
        return _accepted(request, updated.task)
    headers = {} if updated.task is None else {TASK_LOCATION: _address(request, updated.task)}
    return one(request, shapes.entity, updated.entity, headers=headers)


@routes(
    "DELETE",
    _ENTITY,
    AUTHOR,
    "Delete an entity. Its PreDelete and PostDelete hooks run.",
    {202: None},
    query=(HOOKS,),
)
def _delete(request: ApiRequest) -> Response:
    task = request.operations.delete_entity(
        request.principal,
        request.path_params["entity"],
        request.headers.get("if-match"),
        request.query["invokeHooks"],
    )
    return _accepted(request, task)


@routes(
    "POST",
    f"{_ENTITY}/resolve",
    AUTHOR,
    "Validate an entity against its type's schema: RESOLVED, or RESOLUTION_ERROR with a message.",
    {200: "Entity"},
)
def _resolve(request: ApiRequest) -> Response:
    entity = request.operations.resolve_entity(request.principal, request.path_params["entity"])
    return one(request, shapes.resolved, entity)


@routes(
    "POST",
    f"{_ENTITY}/behaviors/{{behavior}}/invocations",
    AUTHOR,
    "Invoke a behavior on an entity. The task contains its result.",
    {202: None},
    request=Body("Invocation", optional=True),
)
def _invoke(request: ApiRequest) -> Response:
    path = request.path_params
    task = request.operations.invoke(request.principal, path["entity"], path["behavior"], request.content)
    return _accepted(request, task)


def _accepted(request: ApiRequest, task: Task) -> Response:
    return Response(None, 202, {"Location": _address(request, task)})


def _address(request: ApiRequest, task: Task) -> str:
    """Return the URL of a task. Wake the worker if the task has something to run."""
    if not task.is_finished and task.name != CREATE:
        request.app.state.wake()
    return location(request, task.id)


def _tenant(request: ApiRequest) -> str:
    """Return the organization in the header TENANT_CONTEXT if the caller may see it; otherwise ""."""
    given = request.headers.get(TENANT_CONTEXT, "")
    orgs = (org for org in request.operations.orgs(request.principal) if given in (org_id(org), _uuid(org_id(org))))
    return next(orgs, "") if given else ""


def _uuid(id: str) -> str:
    return id.rpartition(":")[2]
