"""The documents of the API, as JSON schemas: requests are checked against them, and the OpenAPI document holds them."""

from __future__ import annotations

import functools
from typing import Any

from statecfg.entities import schemas
from statecfg.entities.model import LEVELS, STATES, STATUSES
from statecfg.server.request_documents import REQUESTS, reference

Schema = dict[str, Any]
_TEXT: Schema = {"type": "string"}
_MAYBE: Schema = {"type": ["string", "null"]}
_FREE: Schema = {"type": "object"}
_FREE_OR_NULL: Schema = {"type": ["object", "null"]}
_LIST: Schema = {"type": "array", "items": _FREE}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_BOOLEAN: Schema = {"type": "boolean"}
_STATE: Schema = {"type": "string", "enum": list(STATES)}
_LEVEL: Schema = {"type": "string", "enum": list(LEVELS)}


def _object(properties: Schema, *optional: str) -> Schema:
    """Return an object that has all of some keys, but for those that are optional."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _page(name: str) -> Schema:
    counts = dict.fromkeys(("resultTotal", "pageCount", "page", "pageSize"), _COUNT)
    return _object({**counts, "associations": _FREE_OR_NULL, "values": {"type": "array", "items": reference(name)}})


_NAMED = _object({"name": _TEXT, "id": _TEXT})
_COORDINATES = {"vendor": _TEXT, "nss": _TEXT, "version": _TEXT}
_ENTITY = {
    "id": _TEXT,
    "entityType": _TEXT,
    "name": _TEXT,
    "externalId": _MAYBE,
    "entity": _FREE,
    "state": _STATE,
    "entityState": _STATE,
    "owner": _NAMED,
    "org": _NAMED,
    "message": _MAYBE,
    "creationDate": _TEXT,
    "lastModificationDate": _TEXT,
}
_TYPE = {
    "id": _TEXT,
    "name": _TEXT,
    "description": _MAYBE,
    **_COORDINATES,
    "inheritedVersion": _MAYBE,
    "externalId": _MAYBE,
    "schema": _FREE,
    "interfaces": {"type": "array", "items": _TEXT},
    "hooks": {"type": ["object", "null"], "additionalProperties": _TEXT},
    "readonly": _BOOLEAN,
    "maxImplicitRight": _MAYBE,
}
_TASK = {
    "id": _TEXT,
    "href": _TEXT,
    "type": _TEXT,
    "name": _TEXT,
    "operation": _TEXT,
    "operationName": _TEXT,
    "status": {"type": "string", "enum": list(STATUSES)},
    "progress": {"type": "integer", "minimum": 0, "maximum": 100},
    "details": _MAYBE,
    "owner": _FREE,
    "user": _NAMED,
    "organization": _NAMED,
    "startTime": _TEXT,
    "endTime": _MAYBE,
    "result": {"type": ["object", "null"], "properties": {"resultContent": _TEXT}},
    "error": _FREE_OR_NULL,
}
_OF_SOME_VERSIONS = ("entityState", "message", "creationDate", "lastModificationDate", "entityType")

ANSWERS: dict[str, Schema] = {
    "Error": _object({"minorErrorCode": _TEXT, "message": _TEXT, "stackTrace": {"type": "null"}}),
    "Interface": _object({"id": _TEXT, "name": _TEXT, **_COORDINATES, "readonly": _BOOLEAN}),
    "Interfaces": _page("Interface"),
    "Behavior": _object({"id": _TEXT, "ref": _TEXT, "name": _TEXT, "description": _MAYBE, "execution": _FREE}),
    "Behaviors": _page("Behavior"),
    "EntityType": _object(_TYPE, "hooks", "maxImplicitRight"),
    "EntityTypes": _page("EntityType"),
    "BehaviorAccess": _object({"behaviorId": _TEXT, "accessLevelId": _LEVEL}),
    "BehaviorAccesses": _page("BehaviorAccess"),
    "Access": _object(
        {
            "id": _TEXT,
            "tenant": _FREE_OR_NULL,
            "grantType": _TEXT,
            "objectId": _TEXT,
            "accessLevelId": _LEVEL,
            "memberId": _TEXT,
        }
    ),
    "Accesses": _page("Access"),
    "AccessLevel": _object({"id": _LEVEL, "name": _TEXT, "description": _MAYBE, "readOnly": _BOOLEAN}),
    "AccessLevels": _page("AccessLevel"),
    "Entity": _object(_ENTITY, *_OF_SOME_VERSIONS),
    "Entities": _page("Entity"),
    "MetadataEntry": _object(
        {
            "id": _TEXT,
            "persistent": _BOOLEAN,
            "readOnly": _BOOLEAN,
            "keyValue": _object(
                {"domain": _TEXT, "namespace": _TEXT, "key": _TEXT, "value": reference("MetadataValue")}
            ),
        }
    ),
    "MetadataEntries": _page("MetadataEntry"),
    "Task": _object(_TASK),
    "Tasks": _page("Task"),
    "Versions": _object({"versionInfo": _LIST}),
    "Session": _object({"id": _TEXT, "user": _NAMED, "org": _NAMED, "roles": {"type": "array", "items": _TEXT}}),
    "Sessions": _page("Session"),
    "GivenToken": _object({"access_token": _TEXT, "token_type": _TEXT, "expires_in": _COUNT, "refresh_token": _TEXT}),
    "ApiSession": _object({**dict.fromkeys(("type", "href", "user", "userId", "org", "roles"), _TEXT), "link": _LIST}),
    "Orgs": _object({"type": _TEXT, "href": _TEXT, "org": _LIST}),
    "Org": _object(dict.fromkeys(("type", "href", "id", "name", "fullName"), _TEXT)),
    "OwnSession": _object({"user": _TEXT, "org": _TEXT, "role": _TEXT, "csrf": _TEXT}),
    "Page": _TEXT,
    "Event": _object({"event": _TEXT, "data": _TEXT}),
    "Host": _FREE,
    "Hosts": _object({"hosts": _LIST}),
    "Run": _FREE,
    "Runs": _object({"runs": _LIST}),
    "Report": _FREE,
    "Services": _object({"services": _LIST, "relations": _LIST}),
    "OpenAPI": _FREE,
}
SCHEMAS: dict[str, Schema] = {**REQUESTS, **ANSWERS}


def wrong(name: str, value: Any) -> str:
    """Return what is wrong with a request's body, "" for nothing."""
    either = [key for each in REQUESTS[name].get("anyOf", ()) for key in each["required"]]
    if either and isinstance(value, dict) and not any(key in value for key in either):
        return f"it has none of {', '.join(either)}"
    return schemas.wrong(_whole(name), value, ours=True)


@functools.cache
def _whole(name: str) -> Schema:
    """Return a document as a schema that stands alone, in the draft that has all that ours use."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "allOf": [reference(name)],
        "components": {"schemas": REQUESTS},
    }
