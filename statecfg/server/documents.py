"""JSON schemas for all documents of the API. Requests are validated with them, and the OpenAPI document lists them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from statecfg.entities import schemas, shapes
from statecfg.entities.document import (
    BOOLEAN,
    OBJECT,
    OBJECT_OR_NULL,
    TEXT,
    TEXT_OR_NULL,
    object_of,
    reference,
    text,
)
from statecfg.entities.model import LEVELS
from statecfg.graph.json_schema import JsonSchema

_LIST: JsonSchema = {"type": "array", "items": OBJECT}
_TEXTS: JsonSchema = {"type": "array", "items": TEXT}
_COUNT: JsonSchema = {"type": "integer", "minimum": 0}
_LEVEL: JsonSchema = {"type": "string", "enum": [level.rpartition(":")[2] for level in LEVELS]}


def _object(**properties: JsonSchema) -> JsonSchema:
    """Return the schema of an object that requires all these keys."""
    return object_of(properties, tuple(properties))


def _page(name: str) -> JsonSchema:
    counts = dict.fromkeys(("resultTotal", "pageCount", "page", "pageSize"), _COUNT)
    return _object(**counts, associations=OBJECT_OR_NULL, values={"type": "array", "items": reference(name)})


def _texts(*names: str) -> dict[str, JsonSchema]:
    return dict.fromkeys(names, TEXT)


_NAMED = _object(name=TEXT, id=TEXT)
REQUESTS: dict[str, JsonSchema] = {
    **shapes.REQUESTS,
    "AskedToken": _object(grant_type=text(enum=["refresh_token"]), refresh_token=text(512, 1)),
    "Login": _object(token=text(512, 1)),
}
# Document of an entry → document of a list of them.
_LISTS = {
    "Interface": "Interfaces",
    "Behavior": "Behaviors",
    "EntityType": "EntityTypes",
    "BehaviorAccess": "BehaviorAccesses",
    "Access": "Accesses",
    "AccessLevel": "AccessLevels",
    "Entity": "Entities",
    "MetadataEntry": "MetadataEntries",
    "Task": "Tasks",
    "Session": "Sessions",
}
ANSWERS: dict[str, JsonSchema] = {
    "Error": _object(minorErrorCode=TEXT, message=TEXT, stackTrace={"type": "null"}),
    **shapes.ANSWERS,
    **{several: _page(one) for one, several in _LISTS.items()},
    "AccessLevel": _object(id={**TEXT, "enum": list(LEVELS)}, name=TEXT, description=TEXT_OR_NULL, readOnly=BOOLEAN),
    "Versions": _object(versionInfo=_LIST),
    "Session": _object(id=TEXT, user=_NAMED, org=_NAMED, roles=_TEXTS),
    "GivenToken": _object(access_token=TEXT, token_type=TEXT, expires_in=_COUNT, refresh_token=TEXT),
    "ApiSession": _object(**_texts("type", "href", "user", "userId", "org", "roles"), link=_LIST),
    "Orgs": _object(type=TEXT, href=TEXT, org=_LIST),
    "Org": _object(**_texts("type", "href", "id", "name", "fullName")),
    "OwnSession": _object(user=TEXT, org=TEXT, role=TEXT, csrf=TEXT),
    "Page": TEXT,
    "Event": _object(event=TEXT, data=TEXT),
    "Host": OBJECT,
    "Hosts": _object(hosts=_LIST, total=_COUNT, matching=_COUNT, states=OBJECT, next=TEXT_OR_NULL),
    "Run": OBJECT,
    "Runs": _object(runs=_LIST, next=TEXT_OR_NULL),
    "Report": OBJECT,
    "Services": _object(
        project=TEXT, services=_LIST, relations=_LIST, total=_COUNT, matching=_COUNT, next=TEXT_OR_NULL
    ),
    "Rights": _object(level=_LEVEL),
    "TypeRights": _object(types={**OBJECT, "additionalProperties": _LEVEL}),
    "OpenAPI": OBJECT,
}
SCHEMAS: dict[str, JsonSchema] = {**REQUESTS, **ANSWERS}


def error(name: str, value: Any) -> str:
    """Return why the body of a request is invalid, or "" if it is valid.

    :param name: the name of its document
    """
    needed = [key for choice in REQUESTS[name].get("anyOf", ()) for key in choice["required"]]
    if needed and isinstance(value, dict) and not any(key in value for key in needed):
        return f"it needs one of {', '.join(needed)}"
    return schemas.error(_whole(name), value, ours=True)


@functools.cache
def _whole(name: str) -> Mapping[str, Any]:
    """Return a complete schema for a document, in a draft that has all keywords that we use."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "allOf": [reference(name)],
        "components": {"schemas": REQUESTS},
    }
