"""Calls about metadata: notes on an entity besides its content, such as its cost center."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from statecfg.entities import access, bodies, rows, urn
from statecfg.entities.calls import Calls, listed
from statecfg.entities.filters import FilterField
from statecfg.entities.model import DOMAINS, READ_ONLY, READ_WRITE, TENANT, MetadataEntry, Page, Principal, Query
from statecfg.entities.problems import bad, forbidden, stale
from statecfg.store import records
from statecfg.store.entities import lists as entity_lists
from statecfg.store.entities import tables

FIELDS = {"id": FilterField("id"), **{f"keyValue.{name}": FilterField(name) for name in ("domain", "namespace", "key")}}
LONGEST = 4096  # characters of a string
_TYPES: Mapping[str, tuple[type, ...]] = {"StringEntry": (str,), "NumberEntry": (int, float), "BoolEntry": (bool,)}


class _TypedValue(TypedDict):
    """The columns of a typed value: one of `_TYPES`, and a value of this type."""

    type: str
    value: Any


class MetadataCalls(Calls):
    """Calls about metadata. Users who may read an entity read its entries; users who may change it change them.

    Only administrators see entries of the domain PROVIDER, and only they change read-only entries.
    """

    def list_metadata(self, principal: Principal, entity: str, query: Query) -> Page[MetadataEntry]:
        """Return a page of the metadata entries of an entity."""
        with self.store.reading() as connection:
            _need(connection, principal, entity, READ_ONLY)
            scope = entity_lists.of(tables.metadata_entry, entity=entity, domain=_seen(principal))
            return listed(connection, tables.metadata_entry, scope, query, FIELDS, rows.metadata_entry)

    def get_metadata(self, principal: Principal, entity: str, id: str) -> MetadataEntry:
        """Return a metadata entry."""
        with self.store.reading() as connection:
            _need(connection, principal, entity, READ_ONLY)
            return _entry(connection, principal, entity, id)

    def add_metadata(self, principal: Principal, entity: str, body: Any) -> MetadataEntry:
        """Add a metadata entry to an entity (keyValue: domain, namespace, key, value; persistent, readOnly)."""
        body = bodies.whole(body)
        key_value = bodies.optional(body, "keyValue", dict) or {}
        named = {
            "domain": bodies.one_of(key_value.get("domain") or TENANT, DOMAINS, "domain"),
            "namespace": bodies.optional(key_value, "namespace", str) or "",
            "key": bodies.text(key_value, "key"),
        }
        value, flags, id = _value(key_value), _flags(body), urn.metadata()
        provider = named["domain"] != TENANT
        if flags["readonly"] and provider:
            raise bad(f"readOnly is only allowed in the domain {TENANT}.", "VCD_META_CRUD_INVALID_FLAG")

        def enter(connection: Any) -> MetadataEntry:
            _need(connection, principal, entity, READ_WRITE)
            if flags["readonly"] or provider:
                access.administrators_only(principal, "metadata of the provider")
            if records.find(connection, tables.metadata_entry, entity=entity, **named) is not None:
                raise bad(f"{entity} already has an entry {named['key']}.", "RDE_ALREADY_EXISTS")
            values = {**named, **value, **flags, "id": id, "entity": entity, "revision": 1}
            records.add(connection, tables.metadata_entry, values)
            return _entry(connection, principal, entity, id)

        return self.store.attempt(enter)

    def update_metadata(
        self, principal: Principal, entity: str, id: str, body: Any, if_match: str | None = None
    ) -> MetadataEntry:
        """Change a metadata entry's value and whether it is persistent, nothing else.

        :param if_match: the If-Match header, None if absent
        :raises ApiError: the request is invalid or not allowed; 412 if the entry has another revision than `if_match`
        """
        body = bodies.whole(body)
        key_value = bodies.optional(body, "keyValue", dict) or {}
        value, flags = _value(key_value), _flags(body)

        def change(connection: Any) -> MetadataEntry:
            current = _changeable(connection, principal, entity, id)
            if not access.matches(if_match, current.etag):
                raise stale()
            same = {key: key_value.get(key) for key in ("domain", "namespace", "key")} | {"type": value["type"]}
            same |= {"readonly": body.get("readOnly")}
            for key, wanted in same.items():
                if wanted is not None and wanted != getattr(current, key):
                    raise bad(f"{key} can't be changed.", "RDE_IMMUTABLE")
            values = {**value, "persistent": flags["persistent"], "revision": current.revision + 1}
            records.change(connection, tables.metadata_entry, values, id=id)
            return _entry(connection, principal, entity, id)

        return self.store.attempt(change)

    def delete_metadata(self, principal: Principal, entity: str, id: str) -> None:
        """Remove a metadata entry."""

        def drop(connection: Any) -> None:
            _changeable(connection, principal, entity, id)
            records.drop(connection, tables.metadata_entry, id=id)

        self.store.attempt(drop)


def _need(connection: Any, principal: Principal, entity: str, level: str) -> None:
    """Check that a user has an access level for an entity.

    :raises ApiError: the user has less
    """
    row = rows.need(connection, tables.entity, entity)
    access.need(access.to_entity(connection, principal, row), level, entity)


def _seen(principal: Principal) -> list[str]:
    """Return the domains that a user may see."""
    return list(DOMAINS) if principal.is_administrator else [TENANT]


def _entry(connection: Any, principal: Principal, entity: str, id: str) -> MetadataEntry:
    row = records.find(connection, tables.metadata_entry, entity=entity, id=id, domain=_seen(principal))
    if row is None:
        raise forbidden(id[:200])
    return rows.metadata_entry(row)


def _changeable(connection: Any, principal: Principal, entity: str, id: str) -> MetadataEntry:
    """Return an entry that a user may change.

    :raises ApiError: the user may not change it
    """
    _need(connection, principal, entity, READ_WRITE)
    entry = _entry(connection, principal, entity, id)
    if entry.readonly:
        access.administrators_only(principal, id[:200])
    return entry


def _value(key_value: Mapping[str, Any]) -> _TypedValue:
    """Return the columns of a typed value.

    :raises ApiError: the value does not have its declared type
    """
    typed = bodies.optional(key_value, "value", dict) or {}
    type = bodies.one_of(typed.get("type"), tuple(_TYPES), "type")
    value = typed.get("value")
    if not isinstance(value, _TYPES[type]) or isinstance(value, bool) != (type == "BoolEntry"):
        raise bad(f"The value {str(value)[:100]} is not a {type}.")
    if isinstance(value, str) and len(value) > LONGEST:
        raise bad(f"The value is longer than {LONGEST} characters.")
    return {"type": type, "value": value}


def _flags(body: Mapping[str, Any]) -> dict[str, bool]:
    return {
        "persistent": bool(bodies.optional(body, "persistent", bool)),
        "readonly": bool(bodies.optional(body, "readOnly", bool)),
    }
