"""The bodies of requests as JSON schemas: what is right by these can only be refused for the state of things."""

from __future__ import annotations

from typing import Any

from statecfg.entities import urn
from statecfg.entities.access_calls import MEMBER
from statecfg.entities.metadata import DOMAINS
from statecfg.entities.model import HOOKS, LEVELS, MEMBERSHIP, STATES

Schema = dict[str, Any]
WORD = "[A-Za-z][A-Za-z0-9_-]*"


def reference(name: str) -> Schema:
    """Return what stands for another document."""
    return {"$ref": f"#/components/schemas/{name}"}


def text(longest: int = 1024, shortest: int = 0, pattern: str = "", **more: Any) -> Schema:
    """Return a text; `pattern` is all of it, "" for any."""
    whole = {"pattern": f"^(?:{pattern})$"} if pattern else {}
    return {"type": "string", "minLength": shortest, "maxLength": longest, **whole, **more}


def or_null(schema: Schema) -> Schema:
    """Return the same, or null."""
    more = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [schema["type"], "null"], **more}


def objects(properties: Schema, required: tuple[str, ...] = ()) -> Schema:
    """Return an object that may have further keys, of any JSON."""
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def some_of(properties: Schema) -> Schema:
    """Return an object that has at least one of these keys that are ours to take."""
    settable = [name for name, schema in properties.items() if not schema.get("readOnly")]
    return {**objects(properties), "anyOf": [{"required": [name]} for name in settable]}


_FREE: Schema = {"type": "object"}
# What clients send back as they got it, and what is given by us.
_GIVEN: Schema = {"type": ["string", "null"], "readOnly": True}
_GIVEN_OBJECT: Schema = {"type": ["object", "null"], "readOnly": True}

NAME = text(256, 1)
NAMESPACE = text(64, 1, urn.NAMESPACE.pattern)
VERSION = text(64, 5, urn.VERSION.pattern)
LEVEL = text(128, 1, enum=list(LEVELS))
_COORDINATES = {"vendor": NAMESPACE, "nss": NAMESPACE, "version": VERSION}
_GIVEN_COORDINATES = dict.fromkeys(_COORDINATES, _GIVEN)
_INTERFACE = {"id": _GIVEN, "name": NAME, "readonly": {"type": "boolean"}}
_EXECUTION = objects({"id": or_null(text()), "type": text(128, 1, WORD)}, ("type",))
_BEHAVIOR = {"id": _GIVEN, "ref": _GIVEN, "description": or_null(text(4096)), "execution": _EXECUTION}
_HOOKS = {name: or_null(text(512)) for name in HOOKS}
_TYPE = {
    "id": _GIVEN,
    "name": NAME,
    "description": or_null(text(4096)),
    "externalId": or_null(text()),
    "schema": _FREE,
    "interfaces": {"type": ["array", "null"], "items": text(512), "maxItems": 100},
    "hooks": {"type": ["object", "null"], "properties": _HOOKS, "additionalProperties": False},
    "inheritedVersion": or_null(text(64)),
    "maxImplicitRight": or_null(LEVEL),
    "readonly": {"type": "boolean"},
}
_ENTITY = {
    "id": _GIVEN,
    "entityType": or_null(text(512)),
    "name": NAME,
    "externalId": or_null(text()),
    "entity": _FREE,
    "state": or_null(text(32, enum=list(STATES))),
    "entityState": or_null(text(32, enum=list(STATES))),
    **dict.fromkeys(("message", "creationDate", "lastModificationDate"), _GIVEN),
    **dict.fromkeys(("owner", "org"), _GIVEN_OBJECT),
}
_ACCESS = {
    "id": _GIVEN,
    "grantType": text(128, enum=[MEMBERSHIP]),
    "memberId": text(256, 1, MEMBER.pattern),
    "accessLevelId": LEVEL,
}
_BEHAVIOR_ACCESS = {"behaviorId": text(512, 1), "accessLevelId": LEVEL}

_VALUES = {"StringEntry": text(4096), "NumberEntry": {"type": "number"}, "BoolEntry": {"type": "boolean"}}
_KEY_VALUE = {
    "domain": text(32, enum=list(DOMAINS)),
    "namespace": text(128),
    "key": text(255, 1),
    "value": reference("MetadataValue"),
}
_METADATA = {"id": _GIVEN, "persistent": {"type": "boolean"}, "readOnly": {"type": "boolean"}}


def _typed(kind: str, value: Schema) -> Schema:
    return objects({"type": text(enum=[kind]), "value": value}, ("type", "value"))


def _values(name: str) -> Schema:
    return objects({"values": {"type": "array", "items": reference(name), "maxItems": 1000}}, ("values",))


REQUESTS: dict[str, Schema] = {
    "NewInterface": objects({**_INTERFACE, **_COORDINATES}, ("name", *_COORDINATES)),
    "ChangedInterface": objects({**_INTERFACE, **_GIVEN_COORDINATES}, ("name",)),
    "NewBehavior": objects({**_BEHAVIOR, "name": text(128, 1, urn.BEHAVIOR.pattern)}, ("name", "execution")),
    "ChangedBehavior": objects({**_BEHAVIOR, "name": _GIVEN}, ("execution",)),
    "NewBehaviors": _values("NewBehavior"),
    "NewEntityType": objects({**_TYPE, **_COORDINATES}, ("name", *_COORDINATES, "schema")),
    "ChangedEntityType": some_of({**_TYPE, **_GIVEN_COORDINATES}),
    "NewBehaviorAccess": objects(_BEHAVIOR_ACCESS, tuple(_BEHAVIOR_ACCESS)),
    "NewBehaviorAccesses": _values("NewBehaviorAccess"),
    "NewAccess": objects(_ACCESS, ("grantType", "memberId", "accessLevelId")),
    "NewAccesses": _values("NewAccess"),
    "ChangedAccess": objects({**_ACCESS, "memberId": _GIVEN}, ("accessLevelId",)),
    "NewEntity": objects({**_ENTITY, "entityType": _GIVEN}, ("name", "entity")),
    "ChangedEntity": some_of(_ENTITY),
    "MetadataValue": {"anyOf": [_typed(kind, value) for kind, value in _VALUES.items()]},
    "NewMetadataEntry": objects({**_METADATA, "keyValue": objects(_KEY_VALUE, ("key", "value"))}, ("keyValue",)),
    "ChangedMetadataEntry": objects({**_METADATA, "keyValue": objects(_KEY_VALUE, ("value",))}, ("keyValue",)),
    "Invocation": objects(
        {"arguments": {**_FREE, "type": ["object", "null"]}, "metadata": {**_FREE, "type": ["object", "null"]}}
    ),
    "AskedToken": {
        "type": "object",
        "properties": {"grant_type": text(enum=["refresh_token"]), "refresh_token": text(512, 1)},
        "required": ["grant_type", "refresh_token"],
    },
    "Login": {
        "type": "object",
        "properties": {"token": {"type": "string", "minLength": 1, "maxLength": 512}},
        "required": ["token"],
    },
}
