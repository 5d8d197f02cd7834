"""The documents of the API, as JSON schemas: requests are checked against them, and the OpenAPI document holds them."""

from __future__ import annotations

import functools
from typing import Any

from statecfg.entities.model import LEVELS, MEMBERSHIP, STATES, STATUSES

Schema = dict[str, Any]
_PART = "[A-Za-z0-9]+(?:[._-][A-Za-z0-9]+)*"
SEMVER = r"(?:0|[1-9][0-9]{0,8})\.(?:0|[1-9][0-9]{0,8})\.(?:0|[1-9][0-9]{0,8})(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?"


def _text(longest: int = 1024, shortest: int = 0, **more: Any) -> Schema:
    return {"type": "string", "minLength": shortest, "maxLength": longest, **more}


def _or_null(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]}


def _object(properties: Schema, required: tuple[str, ...] = ()) -> Schema:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def _list(name: str) -> Schema:
    counts = {key: {"type": "integer", "minimum": 0} for key in ("resultTotal", "pageCount", "page", "pageSize")}
    values = {"type": "array", "items": _reference(name)}
    return _object({**counts, "values": values}, (*counts, "values"))


def _reference(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


_ID = _text(1024)
_NAMED = _object({"name": _or_null(_text()), "id": _or_null(_text())})
_OWNER = {**_NAMED, "type": ["object", "null"]}
_FREE = {"type": "object"}
_COORDINATES = {
    "vendor": _text(128, 1, pattern=f"^{_PART}$"),
    "nss": _text(128, 1, pattern=f"^{_PART}$"),
    "version": _text(128, 5, pattern=f"^{SEMVER}$"),
}
_INTERFACE = {"id": _or_null(_ID), "name": _text(256, 1), **_COORDINATES, "readonly": {"type": "boolean"}}
_EXECUTION = _object({"id": _or_null(_text()), "type": _text(128, 1)}, ("type",))
_BEHAVIOR = {
    "id": _or_null(_ID),
    "ref": _or_null(_ID),
    "name": _text(128, 1),
    "description": _or_null(_text(4096)),
    "execution": _EXECUTION,
}
_TYPE = {
    "id": _or_null(_ID),
    "name": _text(256, 1),
    "description": _or_null(_text(4096)),
    **_COORDINATES,
    "externalId": _or_null(_text()),
    "schema": _FREE,
    "interfaces": {"type": ["array", "null"], "items": _ID, "maxItems": 100},
    "hooks": {"type": ["object", "null"], "additionalProperties": _or_null(_ID)},
    "inheritedVersion": _or_null(_text(128)),
    "maxImplicitRight": _or_null(_text(128)),
    "readonly": {"type": "boolean"},
}
_ENTITY = {
    "id": _or_null(_ID),
    "entityType": _or_null(_ID),
    "name": _text(256, 1),
    "externalId": _or_null(_text()),
    "entity": _FREE,
    "state": _or_null(_text(32)),
    "entityState": _or_null(_text(32)),
    "owner": _OWNER,
    "org": _OWNER,
    "message": _or_null(_text(1 << 20)),
    "creationDate": _or_null(_text(64)),
    "lastModificationDate": _or_null(_text(64)),
}
_GRANT = {
    "grantType": _text(128, enum=[MEMBERSHIP]),
    "memberId": _text(256, 1),
    "accessLevelId": _text(128, enum=list(LEVELS)),
}
_BEHAVIOR_GRANT = {"behaviorId": _ID, "accessLevelId": _text(128, enum=list(LEVELS))}
_STATE = {"type": ["string", "null"], "enum": [*STATES, None]}

SCHEMAS: dict[str, Schema] = {
    "Error": _object(
        {"minorErrorCode": _text(), "message": _text(), "stackTrace": {"type": "null"}},
        ("minorErrorCode", "message", "stackTrace"),
    ),
    "NewInterface": _object(_INTERFACE, ("name", *_COORDINATES)),
    "ChangedInterface": _object({"name": _INTERFACE["name"]}, ("name",)),
    "Interface": _object(_INTERFACE, ("id", "name", *_COORDINATES, "readonly")),
    "Interfaces": _list("Interface"),
    "NewBehavior": _object(_BEHAVIOR, ("name", "execution")),
    "ChangedBehavior": _object(_BEHAVIOR, ("execution",)),
    "Behavior": _object(_BEHAVIOR, ("id", "ref", "name", "execution")),
    "Behaviors": _list("Behavior"),
    "NewEntityType": _object(_TYPE, ("name", *_COORDINATES, "schema")),
    "ChangedEntityType": _object(_TYPE, ("name", "schema")),
    "EntityType": _object(_TYPE, ("id", "name", *_COORDINATES, "schema", "interfaces", "readonly")),
    "EntityTypes": _list("EntityType"),
    "BehaviorAccess": _object(_BEHAVIOR_GRANT, tuple(_BEHAVIOR_GRANT)),
    "NewBehaviorAccesses": _object(
        {"values": {"type": "array", "items": _reference("BehaviorAccess"), "maxItems": 1000}}, ("values",)
    ),
    "BehaviorAccesses": _list("BehaviorAccess"),
    "NewAccess": _object(_GRANT, tuple(_GRANT)),
    "Access": _object({"id": _ID, "objectId": _ID, "tenant": _OWNER, **_GRANT}, ("id", *_GRANT)),
    "NewAccesses": _object(
        {"values": {"type": "array", "items": _reference("NewAccess"), "maxItems": 1000}}, ("values",)
    ),
    "ChangedAccess": _object(_GRANT, ("accessLevelId",)),
    "Accesses": _list("Access"),
    "NewEntity": _object(_ENTITY, ("name", "entity")),
    "ChangedEntity": _object(_ENTITY, ("name", "entity")),
    "Entity": _object({**_ENTITY, "state": _STATE, "entityState": _STATE}, ("id", "name", "entity")),
    "Entities": _list("Entity"),
    "Invocation": _object({"arguments": {"type": ["object", "null"]}, "metadata": {"type": ["object", "null"]}}),
    "Task": _object(
        {
            "id": _ID,
            "href": _text(4096),
            "name": _text(),
            "type": _text(),
            "owner": _FREE,
            "operation": _or_null(_text(1 << 20)),
            "operationName": _text(),
            "status": {"type": "string", "enum": list(STATUSES)},
            "progress": {"type": ["integer", "null"], "minimum": 0, "maximum": 100},
            "result": {"type": ["object", "null"]},
            "error": {"type": ["object", "null"]},
        },
        ("id", "href", "status", "operation", "operationName", "owner"),
    ),
    "Tasks": _list("Task"),
    "Versions": _object({"versionInfo": {"type": "array", "items": _FREE}}, ("versionInfo",)),
    "Session": _object({"user": _NAMED, "org": _NAMED, "roles": {"type": "array", "items": _text()}, "id": _ID}),
    "OwnSession": _object({"user": _text(), "org": _text(), "role": _text(), "csrf": _text()}),
    "Login": _object({"token": _text(512, 1)}, ("token",)),
    "Page": {"type": "string"},
    "Host": _FREE,
    "Hosts": _object({"hosts": {"type": "array", "items": _FREE}}, ("hosts",)),
    "Run": _FREE,
    "Runs": _object({"runs": {"type": "array", "items": _FREE}}, ("runs",)),
    "Report": _FREE,
    "Services": _object(
        {key: {"type": "array", "items": _FREE} for key in ("services", "relations")}, ("services", "relations")
    ),
    "OpenAPI": _FREE,
}


@functools.cache
def resolved(name: str) -> Schema:
    """Return a document's schema with what it refers to put in place: a schema that stands alone."""
    found = _filled(SCHEMAS[name])
    assert isinstance(found, dict)
    return found


def _filled(value: Any) -> Any:
    if isinstance(value, dict):
        if "$ref" in value:
            return _filled(SCHEMAS[value["$ref"].rpartition("/")[2]])
        return {key: _filled(item) for key, item in value.items()}
    return [_filled(item) for item in value] if isinstance(value, list) else value
