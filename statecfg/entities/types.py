"""Calls about types, their overrides of behaviors, and who may invoke these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from statecfg.entities import access, bodies, rows, schemas, selection, shapes, urn
from statecfg.entities.calls import Calls, listed, part
from statecfg.entities.filters import FilterField
from statecfg.entities.interfaces import (
    BEHAVIOR_FIELDS,
    IN_USE,
    SCOPE,
    execution,
    may_change,
    namespace,
    refuse_same,
    same_id,
    unchanged,
)
from statecfg.entities.model import (
    ENTITY_STATE,
    FULL_CONTROL,
    HOOKS,
    READ_ONLY,
    Behavior,
    BehaviorGrant,
    EntityType,
    Page,
    Principal,
    Query,
)
from statecfg.entities.problems import ApiError, bad, forbidden
from statecfg.store import records
from statecfg.store.entities import lists as entity_lists
from statecfg.store.entities import tables

FIELDS = {key: FilterField(key) for key in ("id", "name", "vendor", "nss", "version", "description")} | {
    "externalId": FilterField("external_id")
}


class _TypeColumns(TypedDict):
    """The columns of a type that a request sets."""

    name: str
    description: str | None
    external_id: str | None
    schema: Mapping[str, Any]
    interfaces: list[str]
    hooks: Mapping[str, str]
    max_implicit_right: str | None


class TypeCalls(Calls):
    """Calls about types.

    Only administrators create types. Users with Full Control of a type change it; users with any grant see it.
    """

    def create_type(self, principal: Principal, body: Any) -> EntityType:
        """Create a type (name, vendor, nss, version, schema; interfaces, hooks, description, externalId, …)."""
        access.administrators_only(principal, "creating a type")
        body = bodies.whole(body)
        named = namespace(body)
        id = urn.entity_type(**named)
        same_id(body, id)
        values = _values(body)
        inherited = bodies.optional(body, "inheritedVersion", str)
        fixed = {**named, "inherited_version": inherited, "readonly": bool(bodies.optional(body, "readonly", bool))}

        def enter(connection: Any) -> EntityType:
            refuse_same(connection, tables.entity_type, id)
            _check_interfaces(connection, values["interfaces"], values["hooks"])
            records.add(connection, tables.entity_type, {"id": id, **fixed, **values})
            _implement(connection, id, values["interfaces"])
            self._inherit(connection, principal, id, named, inherited)
            return _type(connection, id)

        return self.store.attempt(enter)

    def _inherit(
        self, connection: Any, principal: Principal, id: str, named: Mapping[str, str], version: str | None
    ) -> None:
        """Add the grants of a new type: Full Control for its creator, and those of the version that it inherits."""
        records.add(connection, tables.grant, _grant(id, principal.id, FULL_CONTROL))
        if version in (None, "", "0"):
            return
        source = urn.entity_type(named["vendor"], named["nss"], str(version))
        if source == id or records.find(connection, tables.entity_type, id=source) is None:
            raise bad(f"The type to inherit from has no version {version}.", "RDE_NO_SUCH_VERSION")
        for row in records.every(connection, tables.grant, object=source):
            if row.member != principal.id:
                records.add(connection, tables.grant, _grant(id, row.member, row.level))
        refs = _refs(connection, _type(connection, id))
        for row in records.every(connection, tables.behavior_grant, type=source):
            if (ref := urn.ref_of(row.behavior)) in refs:
                values = {"type": id, "behavior": ref, "level": row.level}
                records.add(connection, tables.behavior_grant, values)

    def get_type(self, principal: Principal, id: str) -> EntityType:
        """Return a type."""
        with self.store.reading() as connection:
            return seen_type(connection, principal, id)

    def list_types(self, principal: Principal, query: Query) -> Page[EntityType]:
        """Return a page of the types that the user may see."""
        members = [principal.id, principal.org_id]
        scope = [] if principal.is_administrator else entity_lists.seen_types(members)
        with self.store.reading() as connection:
            return listed(connection, tables.entity_type, scope, query, FIELDS, rows.entity_type)

    def update_type(self, principal: Principal, id: str, body: Any) -> EntityType:
        """Change a type. Omitted keys keep their value.

        vendor, nss and version can't be changed, and nothing can be changed while the type has entities.
        """

        def change(connection: Any) -> EntityType:
            current = seen_type(connection, principal, id, FULL_CONTROL)
            fields = bodies.whole(body)
            same_id(fields, id)
            unchanged(fields, current.coordinates)
            values = _values({**shapes.entity_type(current, ENTITY_STATE), **fields})
            if any(getattr(current, key) != value for key, value in values.items()):
                selection.check_hooks(connection, principal, current.hooks, values["hooks"])
                may_change(current)
                _without_entities(connection, id)
                _check_interfaces(connection, values["interfaces"], values["hooks"])
                records.change(connection, tables.entity_type, values, id=id)
                _implement(connection, id, values["interfaces"])
                self._forget_behaviors(connection, _type(connection, id))
            return _type(connection, id)

        return self.store.attempt(change)

    def _forget_behaviors(self, connection: Any, entity_type: EntityType) -> None:
        """Remove a type's overrides and grants for behaviors of interfaces that it no longer implements."""
        refs = _refs(connection, entity_type)
        for row in records.every(connection, tables.behavior, owner=entity_type.id):
            if row.ref not in refs:
                records.drop(connection, tables.behavior, number=row.number)
        for row in records.every(connection, tables.behavior_grant, type=entity_type.id):
            if urn.ref_of(row.behavior) not in refs:
                records.drop(connection, tables.behavior_grant, number=row.number)

    def delete_type(self, principal: Principal, id: str) -> None:
        """Remove a type with its overrides and access controls. It must have no entities."""

        def drop(connection: Any) -> None:
            may_change(seen_type(connection, principal, id, FULL_CONTROL))
            _without_entities(connection, id)
            records.drop(connection, tables.behavior, owner=id)
            records.drop(connection, tables.grant, object=id)
            records.drop(connection, tables.entity_type, id=id)

        self.store.attempt(drop)

    def list_type_behaviors(self, principal: Principal, id: str, query: Query) -> Page[Behavior]:
        """Return a page of the behaviors of a type: its overrides, and its interfaces' other behaviors."""
        with self.store.reading() as connection:
            entity_type = seen_type(connection, principal, id)
            own = {row.ref: row.number for row in records.every(connection, tables.behavior, owner=id)}
            inherited = records.every(connection, tables.behavior, owner=list(entity_type.interfaces))
            scope = entity_lists.of(tables.behavior, number=[own.get(row.ref, row.number) for row in inherited])
            return listed(connection, tables.behavior, scope, query, BEHAVIOR_FIELDS, rows.behavior)

    def get_type_behavior(self, principal: Principal, id: str, behavior: str) -> Behavior:
        """Return a behavior of a type, by its id or ref; the override if there is one."""
        with self.store.reading() as connection:
            return type_behavior(connection, seen_type(connection, principal, id), behavior)

    def override_behavior(self, principal: Principal, id: str, behavior: str, body: Any) -> Behavior:
        """Override a behavior of an interface for a type (execution, description), or change the override."""

        def change(connection: Any) -> Behavior:
            entity_type = seen_type(connection, principal, id, FULL_CONTROL)
            fields = bodies.whole(body)
            current = type_behavior(connection, entity_type, behavior)
            description = bodies.optional(fields, "description", str)
            try:
                wanted = execution(fields, self.project, current.execution if current.owner == id else None)
            except ApiError:
                # The errors name files of the project.
                selection.check_definer(principal, fields)
                raise
            selection.check_override(connection, principal, wanted, current, entity_type)
            override = urn.override(current.name, id, urn.interface_of(current.ref))
            values = {"id": override, "name": current.name, "description": description, "execution": wanted}
            if current.owner == id:
                records.change(connection, tables.behavior, values, owner=id, ref=current.ref)
            else:
                records.add(connection, tables.behavior, values | {"owner": id, "ref": current.ref})
            return type_behavior(connection, entity_type, current.ref)

        return self.store.attempt(change)

    def delete_override(self, principal: Principal, id: str, behavior: str) -> None:
        """Remove an override, by its id or ref. The interface's behavior applies again."""

        def drop(connection: Any) -> None:
            entity_type = seen_type(connection, principal, id, FULL_CONTROL)
            override = type_behavior(connection, entity_type, behavior)
            selection.check_removal(principal, override)
            if not records.drop(connection, tables.behavior, owner=id, ref=override.ref):
                raise bad(f"{id} does not override {override.ref}.", SCOPE)
            records.change(connection, tables.behavior_grant, {"behavior": override.ref}, type=id, behavior=override.id)

        self.store.attempt(drop)

    def list_behavior_grants(self, principal: Principal, id: str, query: Query) -> Page[BehaviorGrant]:
        """Return a page of the behavior access controls of a type."""
        with self.store.reading() as connection:
            seen_type(connection, principal, id)
            return part(_behavior_grants(connection, id), query)

    def add_behavior_grant(self, principal: Principal, id: str, body: Any) -> BehaviorGrant:
        """Add a behavior access control (behaviorId, accessLevelId). It replaces those for the same behavior."""

        def add(connection: Any) -> BehaviorGrant:
            entity_type = seen_type(connection, principal, id, FULL_CONTROL)
            grant = _behavior_grant(connection, entity_type, bodies.whole(body))
            selection.check_grant(connection, principal, entity_type, grant.behavior, grant.level)
            for row in records.every(connection, tables.behavior_grant, type=id):
                if urn.ref_of(row.behavior) == urn.ref_of(grant.behavior):
                    records.drop(connection, tables.behavior_grant, number=row.number)
            values = {"type": id, "behavior": grant.behavior, "level": grant.level}
            records.add(connection, tables.behavior_grant, values)
            return grant

        return self.store.attempt(add)

    def replace_behavior_grants(self, principal: Principal, id: str, body: Any) -> Page[BehaviorGrant]:
        """Replace all behavior access controls by `values`; return the first page of them."""

        def replace(connection: Any) -> Page[BehaviorGrant]:
            entity_type = seen_type(connection, principal, id, FULL_CONTROL)
            grants = [_behavior_grant(connection, entity_type, item) for item in bodies.values(body)]
            for grant in grants:
                selection.check_grant(connection, principal, entity_type, grant.behavior, grant.level)
            records.drop(connection, tables.behavior_grant, type=id)
            for grant in {(urn.ref_of(grant.behavior), grant.level): grant for grant in grants}.values():
                values = {"type": id, "behavior": grant.behavior, "level": grant.level}
                records.add(connection, tables.behavior_grant, values)
            return part(_behavior_grants(connection, id), Query())

        return self.store.attempt(replace)


def seen_type(connection: Any, principal: Principal, id: str, level: str = READ_ONLY) -> EntityType:
    """Return a type.

    :raises ApiError: it does not exist, or the user has less than the access level
    """
    entity_type = _type(connection, id)
    access.need(access.to_type(connection, principal, id), level, id)
    return entity_type


def type_behavior(connection: Any, entity_type: EntityType, behavior: str) -> Behavior:
    """Return the behavior of a type by its id or ref.

    :raises ApiError: the type does not have it
    """
    named = records.every(connection, tables.behavior, owner=entity_type.id, id=behavior)
    effective = rows.effective(connection, entity_type, named[0].ref if named else behavior)
    if effective is None:
        raise bad(f"{behavior[:200]} is not a behavior of {entity_type.id}.", SCOPE)
    return effective


def _type(connection: Any, id: str) -> EntityType:
    return rows.entity_type(rows.need(connection, tables.entity_type, id))


def _values(body: Mapping[str, Any]) -> _TypeColumns:
    schema = bodies.optional(body, "schema", dict)
    if schema is None:
        raise bad("schema is missing.")
    schemas.check_schema(schema)
    right = bodies.optional(body, "maxImplicitRight", str)
    hooks = bodies.optional(body, "hooks", dict) or {}
    for name, behavior in hooks.items():
        bodies.one_of(name, HOOKS, "The name of a hook")
        if behavior is not None and not isinstance(behavior, str):
            raise bad(f"hooks.{name} must be the id of a behavior.")
    return {
        "name": bodies.text(body, "name"),
        "description": bodies.optional(body, "description", str),
        "external_id": bodies.optional(body, "externalId", str),
        "schema": schema,
        "interfaces": bodies.words(body, "interfaces"),
        "hooks": {name: behavior for name, behavior in hooks.items() if behavior},
        "max_implicit_right": None if right is None else access.level_of(right),
    }


def _check_interfaces(connection: Any, interfaces: list[str], hooks: Mapping[str, str]) -> None:
    """Check that the interfaces exist and that each hook is a behavior of one of them."""
    for id in interfaces:
        if records.find(connection, tables.interface, id=id) is None:
            raise forbidden(id[:200])
    refs = {row.ref for row in records.every(connection, tables.behavior, owner=interfaces)}
    for name, behavior in hooks.items():
        if behavior not in refs:
            detail = f"{behavior[:200]} is not a behavior of an interface that the type implements."
            raise bad(f"hooks.{name}: {detail}", SCOPE)


def _implement(connection: Any, id: str, interfaces: list[str]) -> None:
    records.drop(connection, tables.implemented, type=id)
    for interface in interfaces:
        records.add(connection, tables.implemented, {"interface": interface, "type": id})


def _without_entities(connection: Any, id: str) -> None:
    if entity_lists.has_entities(connection, [id]):
        raise bad(f"{id} is in use: it has entities.", IN_USE)


def _refs(connection: Any, entity_type: EntityType) -> set[str]:
    return {row.ref for row in records.every(connection, tables.behavior, owner=list(entity_type.interfaces))}


def _grant(object: str, member: str, level: str) -> dict[str, str]:
    return {"id": urn.grant(), "object": object, "member": member, "level": level}


def _behavior_grant(connection: Any, entity_type: EntityType, body: Mapping[str, Any]) -> BehaviorGrant:
    """Return the access control of a body, with the id as given (ref or override), because clients look for that."""
    id = bodies.text(body, "behaviorId")
    type_behavior(connection, entity_type, id)
    return BehaviorGrant(id, access.level_of(body.get("accessLevelId")))


def _behavior_grants(connection: Any, id: str) -> list[BehaviorGrant]:
    return [rows.behavior_grant(row) for row in records.every(connection, tables.behavior_grant, type=id)]
