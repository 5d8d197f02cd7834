"""Entities and their behaviors over HTTP."""

from __future__ import annotations

from statecfg.entities import lifecycle, shapes
from statecfg.entities.model import CREATE, Task, org_id
from statecfg.server.exchange import AUTHOR, VIEWER, Answer, Asked, Route
from statecfg.server.lists import page
from statecfg.server.parameters import HOOKS, RESOLVE, listing, listing_by
from statecfg.server.writing import TASK_LOCATION, location

_ENTITIES = "/cloudapi/1.0.0/entities"
_LISTING = listing_by(lifecycle.FIELDS)
# The id of an organization, as URN or UUID: how clients say for whom they make something.
TENANT_CONTEXT = "x-vmware-vcloud-tenant-context"
_ENTITY = f"{_ENTITIES}/{{entity}}"


def _begun(asked: Asked, task: Task) -> str:
    """Return the address of a task, having told the worker of it where there is something to run."""
    if not task.is_finished and task.name != CREATE:
        asked.shared.wake()
    return location(asked, task.id)


def _tenant(asked: Asked) -> str:
    """Return the organization that a client says it acts for, of those that it may see; else its user's own."""
    given = asked.headers.get(TENANT_CONTEXT, "")
    found = (org for org in asked.operations.orgs(asked.principal) if given in (org_id(org), _uuid(org_id(org))))
    return next(found, "") if given else ""


def _uuid(id: str) -> str:
    return id.rpartition(":")[2]


def _create(asked: Asked) -> Answer:
    task = asked.operations.create_entity(
        asked.principal,
        asked.path["type"],
        asked.body,
        asked.query["resolveEntity"],
        asked.query["invokeHooks"],
        _tenant(asked),
    )
    return Answer(202, None, {"Location": _begun(asked, task)})


def _get(asked: Asked) -> Answer:
    entity = asked.operations.get_entity(asked.principal, asked.path["entity"])
    return Answer(200, shapes.entity(entity, asked.version), {"ETag": entity.etag})


def _list(asked: Asked) -> Answer:
    found = asked.operations.list_entities(asked.principal, listing(asked))
    return page(asked, found, shapes.entity)


def _list_of_type(asked: Asked) -> Answer:
    path = asked.path["vendor"], asked.path["nss"], asked.path.get("version", "")
    found = asked.operations.list_entities_of_type(asked.principal, *path, listing(asked))
    return page(asked, found, shapes.entity)


def _list_of_interface(asked: Asked) -> Answer:
    path = asked.path["vendor"], asked.path["nss"], asked.path["version"]
    found = asked.operations.list_entities_of_interface(asked.principal, *path, listing(asked))
    return page(asked, found, shapes.entity)


def _update(asked: Asked) -> Answer:
    updated = asked.operations.update_entity(
        asked.principal, asked.path["entity"], asked.body, asked.headers.get("if-match"), asked.query["invokeHooks"]
    )
    if updated.accepted and updated.task is not None:
        return Answer(202, None, {"Location": _begun(asked, updated.task)})
    headers = {"ETag": updated.etag}
    if updated.task is not None:
        headers[TASK_LOCATION] = _begun(asked, updated.task)
    return Answer(200, shapes.entity(updated.entity, asked.version), headers)


def _resolve(asked: Asked) -> Answer:
    entity = asked.operations.resolve_entity(asked.principal, asked.path["entity"])
    return Answer(200, shapes.resolved(entity, asked.version), {"ETag": entity.etag})


def _delete(asked: Asked) -> Answer:
    task = asked.operations.delete_entity(
        asked.principal, asked.path["entity"], asked.headers.get("if-match"), asked.query["invokeHooks"]
    )
    return Answer(202, None, {"Location": _begun(asked, task)})


def _invoke(asked: Asked) -> Answer:
    task = asked.operations.invoke(asked.principal, asked.path["entity"], asked.path["behavior"], asked.body)
    return Answer(202, None, {"Location": _begun(asked, task)})


ROUTES = (
    Route(
        "POST",
        "/cloudapi/1.0.0/entityTypes/{type}",
        AUTHOR,
        _create,
        "Create an entity of a type. The task in Location goes on until the entity is resolved.",
        {202: None},
        (RESOLVE, HOOKS),
        "NewEntity",
    ),
    Route("GET", _ENTITIES, VIEWER, _list, "List entities of all types.", {200: "Entities"}, _LISTING),
    Route(
        "GET",
        f"{_ENTITIES}/types/{{vendor}}/{{nss}}/{{version}}",
        VIEWER,
        _list_of_type,
        "List the entities of a type.",
        {200: "Entities"},
        _LISTING,
    ),
    Route(
        "GET",
        f"{_ENTITIES}/types/{{vendor}}/{{nss}}",
        VIEWER,
        _list_of_type,
        "List the entities of all versions of a type.",
        {200: "Entities"},
        _LISTING,
    ),
    Route(
        "GET",
        f"{_ENTITIES}/interfaces/{{vendor}}/{{nss}}/{{version}}",
        VIEWER,
        _list_of_interface,
        "List the entities of all types that implement an interface.",
        {200: "Entities"},
        _LISTING,
    ),
    Route("GET", _ENTITY, VIEWER, _get, "Show an entity. Its ETag goes into If-Match.", {200: "Entity"}),
    Route(
        "PUT",
        _ENTITY,
        AUTHOR,
        _update,
        "Change an entity, or mark it for deletion. 202 where a PreDelete hook is asked first.",
        {200: "Entity", 202: None},
        (HOOKS,),
        "ChangedEntity",
    ),
    Route(
        "DELETE",
        _ENTITY,
        AUTHOR,
        _delete,
        "Delete an entity, by way of its PreDelete and PostDelete hooks.",
        {202: None},
        (HOOKS,),
    ),
    Route(
        "POST",
        f"{_ENTITY}/resolve",
        AUTHOR,
        _resolve,
        "Check an entity against its type's schema: RESOLVED, or RESOLUTION_ERROR with a message.",
        {200: "Entity"},
    ),
    Route(
        "POST",
        f"{_ENTITY}/behaviors/{{behavior}}/invocations",
        AUTHOR,
        _invoke,
        "Invoke a behavior on an entity. Its result is the task's.",
        {202: None},
        (),
        "Invocation",
        optional=True,
    ),
)
