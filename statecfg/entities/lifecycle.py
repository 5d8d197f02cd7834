"""Calls about entities: create, read, update, resolve and delete them, and invoke their behaviors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from statecfg.entities import access, bodies, rows, schemas, urn, work
from statecfg.entities.calls import Calls, listed
from statecfg.entities.filters import FilterField
from statecfg.entities.invocation import BehaviorResult
from statecfg.entities.model import (
    CREATE,
    DELETE,
    EXECUTE,
    FULL_CONTROL,
    IN_DELETION,
    POST_CREATE,
    POST_DELETE,
    POST_UPDATE,
    PRE_CREATED,
    PRE_DELETE,
    READ_ONLY,
    READ_WRITE,
    RESOLUTION_ERROR,
    RESOLVED,
    STATES,
    UPDATE,
    Entity,
    EntityType,
    Page,
    Principal,
    Query,
    Task,
    Updated,
)
from statecfg.entities.problems import bad, forbidden, stale
from statecfg.entities.types import seen_type, type_behavior
from statecfg.entities.work import TaskWork
from statecfg.store import records
from statecfg.store.entities import lists as entity_lists
from statecfg.store.entities import tables

NOT_RESOLVED = "RDE_ENTITY_NOT_RESOLVED"
FIELDS = {
    "id": FilterField("id"),
    "name": FilterField("name"),
    "externalId": FilterField("external_id"),
    "entityType": FilterField("type"),
    "entity": FilterField("content", "json"),
    "entityState": FilterField("state"),
    "state": FilterField("state"),
    "message": FilterField("message"),
    "owner.name": FilterField("owner"),
    "owner": FilterField("owner"),
    "org.name": FilterField("tenant"),
    "org": FilterField("tenant"),
    "creationDate": FilterField("created", "time"),
    "lastModificationDate": FilterField("modified", "time"),
}


class _EntityColumns(TypedDict, total=False):
    """The columns of an entity that a request sets."""

    name: str
    content: Mapping[str, Any]
    external_id: str | None


class EntityCalls(Calls):
    """Calls about entities. Missing and invisible entities get the same refusal, 403."""

    def create_entity(
        self,
        principal: Principal,
        type_id: str,
        body: Any,
        resolve: bool = False,
        invoke_hooks: bool = True,
        tenant: str = "",
    ) -> Task:
        """Create an entity (name, entity, externalId); the task's `entity` is its id.

        :param resolve: resolve it at once; has no effect if a PostCreate hook runs
        :param invoke_hooks: False requires Full Control of the type
        :param tenant: name of the organization that it is created for; "" for the user's own. It grants no access
        """
        now = self.clock()

        def enter(connection: Any) -> Task:
            entity_type = seen_type(connection, principal, type_id, READ_WRITE)
            wanted = access.hooks_wanted(connection, principal, type_id, invoke_hooks)
            fields = _values(bodies.whole(body))
            for key in ("name", "content"):
                if key not in fields:
                    raise bad(f"{'entity' if key == 'content' else key} is missing.")
            id = urn.entity(type_id)
            values = {"external_id": None, **fields, "id": id, "type": type_id, "state": PRE_CREATED}
            values |= {"message": "", "revision": 1, "owner": principal.name, "org": principal.org}
            values |= {"tenant": tenant or principal.org, "created": now, "modified": now}
            records.add(connection, tables.entity, values)
            entity = records.find(connection, tables.entity, id=id)
            assert entity is not None
            ref = entity_type.hooks.get(POST_CREATE)
            if wanted and ref is not None:
                return _hook(connection, principal, entity_type, entity, {"do": "create"}, ref, now)
            text = f"Creating {entity.name}({entity.id})"
            task = work.add_task(connection, principal, entity, CREATE, text, now)
            if resolve:
                work.resolve(connection, entity, now)
            return _task(connection, task)

        return self.store.attempt(enter)

    def get_entity(self, principal: Principal, id: str) -> Entity:
        """Return an entity; its `etag` is the value of the ETag header."""
        with self.store.reading() as connection:
            return rows.entity(_seen(connection, principal, id, READ_ONLY))

    def list_entities(self, principal: Principal, query: Query) -> Page[Entity]:
        """Return a page of all entities that the user may see."""
        with self.store.reading() as connection:
            return _listed(connection, principal, [], query)

    def list_entities_of_type(
        self, principal: Principal, vendor: str, nss: str, version: str, query: Query
    ) -> Page[Entity]:
        """Return a page of the entities of a type.

        :param version: a complete version or its first numbers: 1 matches every 1.x.y, "" every version
        """
        with self.store.reading() as connection:
            types = entity_lists.types_of(connection, vendor, nss, version)
            return _listed(connection, principal, entity_lists.of(tables.entity, type=types), query)

    def list_entities_of_interface(
        self, principal: Principal, vendor: str, nss: str, version: str, query: Query
    ) -> Page[Entity]:
        """Return a page of the entities of all types that implement an interface.

        :param version: as in `list_entities_of_type`
        """
        with self.store.reading() as connection:
            types = entity_lists.types_of_interface(connection, vendor, nss, version)
            return _listed(connection, principal, entity_lists.of(tables.entity, type=types), query)

    def update_entity(
        self, principal: Principal, id: str, body: Any, if_match: str | None = None, invoke_hooks: bool = True
    ) -> Updated:
        """Change an entity (name, entity, externalId, entityType).

        `entityState` or `state` with the value IN_DELETION marks it for deletion.

        :param if_match: the If-Match header, None if absent
        :param invoke_hooks: False requires Full Control of the type
        :raises ApiError: the request is invalid or not allowed; 412 if the entity has another revision than `if_match`
        """
        now = self.clock()

        def change(connection: Any) -> Updated:
            entity = _seen(connection, principal, id, READ_WRITE)
            wanted = access.hooks_wanted(connection, principal, entity.type, invoke_hooks)
            _matching(entity, if_match)
            fields = bodies.whole(body)
            entity_type = _type(connection, principal, entity, fields)
            # The new version of the type also needs Full Control, because its hooks are the ones skipped.
            access.hooks_wanted(connection, principal, entity_type.id, invoke_hooks)
            values = {**_values(fields), "type": entity_type.id}
            if _marks(entity, _state(fields)):
                access.need(access.to_entity(connection, principal, entity), FULL_CONTROL, id)
                return _mark(connection, principal, entity, values, wanted, now)
            entity = work.change(connection, entity, now, **values, **_checked(entity_type, entity, values))
            ref = entity_type.hooks.get(POST_UPDATE)
            if not wanted or ref is None or entity.state == IN_DELETION:
                return Updated(rows.entity(entity))
            task = _hook(connection, principal, entity_type, entity, {"do": "update"}, ref, now)
            return Updated(rows.entity(entity), task)

        with self.store.reading() as connection:
            seen = _seen(connection, principal, id, READ_WRITE)
            fields = bodies.whole(body)
            schema = _type(connection, principal, seen, fields).schema
        if seen.state == RESOLVED:  # in advance, because other changes wait for the transaction
            schemas.error(schema, _values(fields).get("content", seen.content), nulls=True)
        return self.store.attempt(change)

    def resolve_entity(self, principal: Principal, id: str) -> Entity:
        """Validate an entity with its type's schema. Return it as RESOLVED, or as RESOLUTION_ERROR with a message."""
        now = self.clock()

        def resolve(connection: Any) -> Entity:
            entity = _seen(connection, principal, id, READ_WRITE)
            if entity.state == IN_DELETION:
                raise bad(f"{id} is marked for deletion.", "RDE_ENTITY_IN_DELETION")
            return rows.entity(work.resolve(connection, entity, now))

        with self.store.reading() as connection:
            seen = _seen(connection, principal, id, READ_WRITE)
            schema, content = work.type_of(connection, seen).schema, seen.content
        schemas.error(schema, content, nulls=True)  # in advance, because other changes wait for the transaction
        return self.store.attempt(resolve)

    def delete_entity(
        self, principal: Principal, id: str, if_match: str | None = None, invoke_hooks: bool = True
    ) -> Task:
        """Delete an entity, with its hooks; return the task deleteDefinedEntity, which may have ended already.

        If a deletion is in progress, return its task.

        :param if_match: the If-Match header, None if absent
        :param invoke_hooks: False requires Full Control of the type
        """
        now = self.clock()

        def delete(connection: Any) -> Task:
            entity = _seen(connection, principal, id, FULL_CONTROL)
            wanted = access.hooks_wanted(connection, principal, entity.type, invoke_hooks)
            _matching(entity, if_match)
            if entity.state == PRE_CREATED:
                raise bad(f"{id} is not resolved: resolve it, then delete it.", NOT_RESOLVED)
            hooks = work.type_of(connection, entity).hooks if wanted else {}
            text = f"Deleting {entity.name}({id})"
            if POST_DELETE in hooks or (PRE_DELETE in hooks and entity.state != IN_DELETION):
                under_way = records.every(connection, tables.task, entity=id, name=DELETE, ended=None)
                if under_way:
                    return rows.task(under_way[0])
                job: TaskWork = {"do": "delete", "hooks": True}
                return _task(connection, work.queue(connection, principal, entity, DELETE, text, job, now))
            task = work.add_task(connection, principal, entity, DELETE, text, now)
            work.remove(connection, entity)
            work.finish(connection, task, now, BehaviorResult(True))
            return _task(connection, task)

        return self.store.attempt(delete)

    def invoke(self, principal: Principal, id: str, behavior: str, body: Any = None) -> Task:
        """Invoke a behavior on a RESOLVED entity.

        :param behavior: its id or ref
        :param body: may have `arguments` and `metadata`
        """
        now = self.clock()

        def enter(connection: Any) -> Task:
            entity = _seen(connection, principal, id, READ_ONLY)
            fields = {} if body is None else bodies.whole(body)
            arguments = bodies.optional(fields, "arguments", dict) or {}
            metadata = bodies.optional(fields, "metadata", dict) or {}
            invoked = type_behavior(connection, work.type_of(connection, entity), behavior)
            ids = [invoked.id, invoked.ref]
            grants = records.every(connection, tables.behavior_grant, type=entity.type, behavior=ids)
            if not grants:
                raise forbidden(f"invoking {invoked.ref}")
            least = min((row.level for row in grants), key=access.rank)
            access.need(access.to_entity(connection, principal, entity), least, f"invoking {invoked.ref}")
            if entity.state != RESOLVED:
                message = f"{id} is {entity.state}: behaviors can only be invoked on entities in state {RESOLVED}."
                raise bad(message, NOT_RESOLVED)
            text = work.invoked(invoked.name, entity)
            job: TaskWork = {"do": "invoke", "behavior": invoked.ref, "arguments": arguments, "metadata": metadata}
            return _task(connection, work.queue(connection, principal, entity, EXECUTE, text, job, now))

        return self.store.attempt(enter)


def _seen(connection: Any, principal: Principal, id: str, level: str) -> Any:
    """Return the row of an entity.

    :raises ApiError: it does not exist, or the user has less than the access level
    """
    row = rows.need(connection, tables.entity, id)
    access.need(access.to_entity(connection, principal, row), level, id)
    return row


def _listed(connection: Any, principal: Principal, scope: list[Any], query: Query) -> Page[Entity]:
    if not principal.is_administrator:
        members = [principal.id, principal.org_id]
        scope = [*scope, *entity_lists.seen_entities(principal.name, principal.org, members)]
    return listed(connection, tables.entity, scope, query, FIELDS, rows.entity)


def _matching(entity: Any, if_match: str | None) -> None:
    if not access.matches(if_match, rows.entity(entity).etag):
        raise stale()


def _values(body: Mapping[str, Any]) -> _EntityColumns:
    """Return the columns that a body changes; omitted keys keep their value."""
    values: _EntityColumns = {}
    if body.get("name") is not None:
        values["name"] = bodies.text(body, "name")
    if body.get("entity") is not None:
        values["content"] = bodies.optional(body, "entity", dict)
    if "externalId" in body:
        values["external_id"] = bodies.optional(body, "externalId", str)
    return values


def _state(body: Mapping[str, Any]) -> str | None:
    state = body.get("entityState", body.get("state"))
    return None if state is None else bodies.one_of(state, STATES, "entityState")


def _marks(entity: Any, wanted: str | None) -> bool:
    """Return whether a change marks an entity for deletion. Other states are ignored: clients can't set them."""
    if wanted == IN_DELETION and entity.state == PRE_CREATED:
        raise bad(f"{entity.id} is not resolved: resolve it first.", NOT_RESOLVED)
    if wanted not in (None, IN_DELETION) and entity.state == IN_DELETION:
        raise bad(f"{entity.id} is marked for deletion; this cannot be undone.", "RDE_ENTITY_IN_DELETION")
    return wanted == IN_DELETION and entity.state != IN_DELETION


def _type(connection: Any, principal: Principal, entity: Any, body: Mapping[str, Any]) -> EntityType:
    """Return the type for an entity: its own, or another version of it if the body names one."""
    own = work.type_of(connection, entity)
    wanted = bodies.optional(body, "entityType", str)
    if wanted in (None, "", own.id):
        return own
    other = seen_type(connection, principal, wanted, READ_WRITE)
    there, here = other.coordinates, own.coordinates
    if (there.vendor, there.nss) != (here.vendor, here.nss):
        raise bad(f"entityType can only be another version of {own.id}.", "RDE_IMMUTABLE")
    return other


def _checked(entity_type: EntityType, entity: Any, values: Mapping[str, Any]) -> dict[str, str]:
    """Return the new state of an entity after a change. Only a RESOLVED entity is validated again."""
    if entity.state != RESOLVED:
        return {}
    message = schemas.error(entity_type.schema, values.get("content", entity.content), nulls=True)
    return {"state": RESOLUTION_ERROR, "message": message} if message else {}


def _mark(
    connection: Any, principal: Principal, entity: Any, values: Mapping[str, Any], wanted: bool, now: float
) -> Updated:
    """Mark an entity for deletion: at once, or after the PreDelete hook of its current type allows it."""
    if not wanted or PRE_DELETE not in work.type_of(connection, entity).hooks:
        marked = work.change(connection, entity, now, **{**values, "state": IN_DELETION, "message": ""})
        return Updated(rows.entity(marked))
    job: TaskWork = {"do": "mark", "hooks": True, "values": dict(values), "revision": entity.revision}
    text = f"Updating {entity.name}({entity.id})"
    id = work.queue(connection, principal, entity, UPDATE, text, job, now)
    return Updated(rows.entity(entity), _task(connection, id), accepted=True)


def _hook(
    connection: Any, principal: Principal, entity_type: EntityType, entity: Any, job: TaskWork, ref: str, now: float
) -> Task:
    behavior = rows.effective(connection, entity_type, ref)
    assert behavior is not None
    text = work.invoked(behavior.name, entity)
    return _task(connection, work.queue(connection, principal, entity, EXECUTE, text, job, now))


def _task(connection: Any, id: str) -> Task:
    return rows.task(records.find(connection, tables.task, id=id))
