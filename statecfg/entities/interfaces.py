"""Calls about interfaces and their behaviors."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from typing import Any, TypedDict

from statecfg.entities import access, behaviors, bodies, rows, urn
from statecfg.entities.calls import Calls, listed
from statecfg.entities.filters import FilterField
from statecfg.entities.model import Behavior, Interface, Page, Principal, Query
from statecfg.entities.parts import Coordinates
from statecfg.entities.problems import bad, forbidden
from statecfg.playbook.project import Project
from statecfg.store import records
from statecfg.store.entities import lists as entity_lists
from statecfg.store.entities import tables

FIELDS = {key: FilterField(key) for key in ("id", "name", "vendor", "nss", "version")}
BEHAVIOR_FIELDS = {key: FilterField(key) for key in ("id", "ref", "name", "description")}
EXISTS = "RDE_BEHAVIOR_ALREADY_EXISTS"
SCOPE = "RDE_INVALID_BEHAVIOR_SCOPE"
IN_USE = "RDE_IN_USE"


class _NewBehavior(TypedDict):
    """The columns of a behavior that a request sets."""

    name: str
    description: str | None
    execution: Mapping[str, Any]


class InterfaceCalls(Calls):
    """Calls about interfaces and their behaviors. All users can read them; only administrators create and change
    them."""

    def create_interface(self, principal: Principal, body: Any) -> Interface:
        """Create an interface (name, vendor, nss, version; id and readonly are optional)."""
        access.administrators_only(principal, "creating an interface")
        body = bodies.whole(body)
        named = namespace(body)
        id = urn.interface(**named)
        same_id(body, id)
        row = {"id": id, "name": bodies.text(body, "name"), "readonly": bool(bodies.optional(body, "readonly", bool))}

        def enter(connection: Any) -> Interface:
            refuse_same(connection, tables.interface, id)
            records.add(connection, tables.interface, row | named)
            return rows.interface(rows.need(connection, tables.interface, id))

        return self.store.attempt(enter)

    def get_interface(self, principal: Principal, id: str) -> Interface:
        """Return an interface."""
        with self.store.reading() as connection:
            return rows.interface(rows.need(connection, tables.interface, id))

    def list_interfaces(self, principal: Principal, query: Query) -> Page[Interface]:
        """Return a page of the interfaces."""
        with self.store.reading() as connection:
            return listed(connection, tables.interface, [], query, FIELDS, rows.interface)

    def update_interface(self, principal: Principal, id: str, body: Any) -> Interface:
        """Change an interface's name, if no entities use it. Its vendor, nss and version can't be changed."""
        access.administrators_only(principal, id)
        body = bodies.whole(body)
        name = bodies.text(body, "name")

        def change(connection: Any) -> Interface:
            current = rows.interface(rows.need(connection, tables.interface, id))
            same_id(body, id)
            unchanged(body, current.coordinates)
            if name != current.name:
                may_change(current)
                _without_entities(connection, id)
            records.change(connection, tables.interface, {"name": name}, id=id)
            return rows.interface(rows.need(connection, tables.interface, id))

        return self.store.attempt(change)

    def delete_interface(self, principal: Principal, id: str) -> None:
        """Remove an interface and its behaviors. No type may implement it."""
        access.administrators_only(principal, id)

        def drop(connection: Any) -> None:
            may_change(rows.need(connection, tables.interface, id))
            if _types(connection, id):
                raise bad(f"{id} is implemented by a type: delete that first.", IN_USE)
            records.drop(connection, tables.behavior, owner=id)
            records.drop(connection, tables.interface, id=id)

        self.store.attempt(drop)

    def create_behavior(self, principal: Principal, interface: str, body: Any) -> Behavior:
        """Add a behavior (name, description, execution) to an interface."""
        access.administrators_only(principal, interface)
        values = _columns(bodies.whole(body), self.project)
        return self.store.attempt(lambda connection: _add(connection, interface, values))

    def get_behavior(self, principal: Principal, interface: str, behavior: str) -> Behavior:
        """Return a behavior of an interface."""
        with self.store.reading() as connection:
            return _behavior(connection, interface, behavior)

    def list_behaviors(self, principal: Principal, interface: str, query: Query) -> Page[Behavior]:
        """Return a page of the behaviors of an interface."""
        with self.store.reading() as connection:
            rows.need(connection, tables.interface, interface)
            scope = entity_lists.of(tables.behavior, owner=interface)
            return listed(connection, tables.behavior, scope, query, BEHAVIOR_FIELDS, rows.behavior)

    def update_behavior(self, principal: Principal, interface: str, behavior: str, body: Any) -> Behavior:
        """Change only the description and the execution. A write-only key that is not given keeps its value."""
        access.administrators_only(principal, interface)
        body = bodies.whole(body)
        return self.store.attempt(lambda connection: _change(connection, interface, behavior, body, self.project))

    def replace_behaviors(self, principal: Principal, interface: str, body: Any) -> Page[Behavior]:
        """Replace an interface's behaviors by `values`; return the first page of them.

        Existing behaviors, found by id or name, are changed. While types implement the interface, none can be added or
        removed.
        """
        access.administrators_only(principal, interface)
        items = bodies.values(body)

        def replace(connection: Any) -> Page[Behavior]:
            rows.need(connection, tables.interface, interface)
            refs = {row.ref for row in records.every(connection, tables.behavior, owner=interface)}
            wanted = {_ref(item, interface, refs): item for item in items}
            if refs != set(wanted) and _types(connection, interface):
                detail = "its behaviors can be changed, but not added or removed"
                raise bad(f"{interface} is implemented by a type: {detail}.", IN_USE)
            for ref in refs.difference(wanted):
                _drop(connection, interface, ref)
            for ref, item in wanted.items():
                if ref in refs:
                    _change(connection, interface, ref, item, self.project)
                else:
                    _add(connection, interface, _columns(item, self.project))
            scope = entity_lists.of(tables.behavior, owner=interface)
            return listed(connection, tables.behavior, scope, Query(), BEHAVIOR_FIELDS, rows.behavior)

        return self.store.attempt(replace)

    def delete_behavior(self, principal: Principal, interface: str, behavior: str) -> None:
        """Remove a behavior and its overrides. No type may use it as a hook."""
        access.administrators_only(principal, interface)
        self.store.attempt(lambda connection: _drop(connection, interface, behavior))


def namespace(body: Mapping[str, Any]) -> dict[str, str]:
    """Return vendor, nss and version of a body.

    :raises ApiError: one of them is missing or invalid
    """
    values = {key: bodies.text(body, key) for key in ("vendor", "nss", "version")}
    for key in ("vendor", "nss"):
        if not urn.NAMESPACE.fullmatch(values[key]):
            raise bad(f"{key} must consist of at most 64 letters, digits, `_` and `-`.")
    if not urn.VERSION.fullmatch(values["version"]):
        raise bad("version must be a semantic version such as 1.0.0.")
    return values


def same_id(body: Mapping[str, Any], id: str) -> None:
    """Check that the body has this id or no id.

    :raises ApiError: it has another id
    """
    if body.get("id") not in (None, "", id):
        raise bad(f"id must be {id}, or omitted.")


def unchanged(body: Mapping[str, Any], current: Coordinates) -> None:
    """Check that the body does not change vendor, nss or version.

    :raises ApiError: it changes one of them
    """
    for key in ("vendor", "nss", "version"):
        if body.get(key) not in (None, getattr(current, key)):
            raise bad(f"{key} can't be changed.", "RDE_IMMUTABLE")


def refuse_same(connection: Any, table: Any, id: str) -> None:
    """Check that an id is not in use.

    :raises ApiError: it exists already
    """
    if records.find(connection, table, id=id) is not None:
        raise bad(f"{id} already exists.", "RDE_ALREADY_EXISTS")


def may_change(row: Any) -> None:
    """Check that an object is not read-only.

    :raises ApiError: it is read-only
    """
    if row.readonly:
        raise bad(f"{row.id} is read-only.", "RDE_READONLY")


def execution(
    body: Mapping[str, Any], project: Project | None, current: Mapping[str, Any] | None = None
) -> Mapping[str, Any]:
    """Return the execution from a behavior's body.

    :param project: see `behaviors.check`
    :param current: the current execution, the source of omitted write-only keys (see `kept`); None for a new one
    :raises ApiError: the execution is missing or invalid
    """
    definition = bodies.optional(body, "execution", dict)
    if definition is None:
        raise bad("execution is missing.")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", bodies.text(definition, "type", 128)):
        raise bad("execution.type must be a word.")
    whole = definition if current is None else kept(definition, current)
    problems = [*behaviors.check(whole, project), *behaviors.undeclared(whole)]
    if problems:
        raise bad(f"execution: {'; '.join(problems)}.", "RDE_INVALID_BEHAVIOR_EXECUTION")
    return whole


def kept(new: Mapping[str, Any], old: Mapping[str, Any]) -> Mapping[str, Any]:
    """Copy the write-only keys that a new execution omits from the old one, because clients can't read them.

    Nothing is copied if the type differs.
    """
    if new.get("type") != old.get("type"):
        return new
    missing = {key: value for key, value in old.items() if key.startswith(("_internal_", "_secure_"))}
    inner = {
        key: kept(value, old[key])
        for key, value in new.items()
        if isinstance(value, dict) and isinstance(old.get(key), dict)
    }
    return {**missing, **new, **inner}


def _behavior(connection: Any, interface: str, behavior: str) -> Behavior:
    rows.need(connection, tables.interface, interface)
    row = records.find(connection, tables.behavior, owner=interface, ref=behavior)
    if row is None:
        raise forbidden(behavior[:200])
    return rows.behavior(row)


def _ref(body: Mapping[str, Any], interface: str, refs: Container[str]) -> str:
    """Return the ref of a behavior in a list: its id if that is one of `refs`, otherwise built from its name."""
    id = str(bodies.optional(body, "id", str))
    return id if id in refs else urn.behavior(bodies.text(body, "name"), interface)


def _columns(body: Mapping[str, Any], project: Project | None) -> _NewBehavior:
    """Return the columns of a new behavior.

    :raises ApiError: the body is invalid
    """
    name = bodies.text(body, "name")
    if not urn.BEHAVIOR.fullmatch(name):
        raise bad("name must consist of at most 128 letters, digits, `_`, `-` and `.`.")
    description = bodies.optional(body, "description", str)
    return {"name": name, "description": description, "execution": execution(body, project)}


def _add(connection: Any, interface: str, values: _NewBehavior) -> Behavior:
    rows.need(connection, tables.interface, interface)
    ref = urn.behavior(values["name"], interface)
    if records.find(connection, tables.behavior, owner=interface, ref=ref) is not None:
        raise bad(f"{interface} already has a behavior {values['name']}.", EXISTS)
    records.add(connection, tables.behavior, {**values, "owner": interface, "id": ref, "ref": ref})
    return _behavior(connection, interface, ref)


def _change(
    connection: Any, interface: str, behavior: str, body: Mapping[str, Any], project: Project | None
) -> Behavior:
    current = _behavior(connection, interface, behavior)
    values = {
        "description": bodies.optional(body, "description", str),
        "execution": execution(body, project, current.execution),
    }
    records.change(connection, tables.behavior, values, owner=interface, ref=current.ref)
    return _behavior(connection, interface, behavior)


def _drop(connection: Any, interface: str, behavior: str) -> None:
    """Remove a behavior and its overrides.

    :raises ApiError: a type uses it as a hook
    """
    ref = _behavior(connection, interface, behavior).ref
    types = _types(connection, interface)
    if any(ref in row.hooks.values() for row in records.every(connection, tables.entity_type, id=types)):
        raise bad(f"{ref} is a hook of a type: remove it from the type first.", IN_USE)
    ids = [row.id for row in records.every(connection, tables.behavior, ref=ref)]
    records.drop(connection, tables.behavior_grant, behavior=ids)
    records.drop(connection, tables.behavior, ref=ref)


def _types(connection: Any, interface: str) -> list[str]:
    return [row.type for row in records.every(connection, tables.implemented, interface=interface)]


def _without_entities(connection: Any, interface: str) -> None:
    if entity_lists.has_entities(connection, _types(connection, interface)):
        raise bad(f"{interface} is in use: types that implement it have entities.", IN_USE)
