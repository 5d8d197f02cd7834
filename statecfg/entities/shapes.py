"""The documents of interfaces, types, entities, tasks and access controls.

Versions are numbers as Accept headers have them: 36.0, 37.1, 39.0.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from statecfg.entities import model, urn
from statecfg.entities.access_calls import MEMBER
from statecfg.entities.document import (
    BOOLEAN,
    IGNORED,
    IGNORED_OBJECT,
    OBJECT,
    OBJECT_OR_NULL,
    TEXT,
    TEXT_OR_NULL,
    Document,
    Key,
    Schema,
    Shape,
    object_of,
    or_null,
    reference,
    text,
    values_of,
)
from statecfg.entities.metadata import DOMAINS
from statecfg.entities.model import MEMBERSHIP, Page

T = TypeVar("T")

ENTITY_STATE = 37.1  # since this version, entities have `entityState` besides `state`, a message and dates
HOOKS = 36.0  # since this version, types have hooks and inheritedVersion
WRITE_ONLY = ("_internal_", "_secure_")
# What clients need to list behaviors and to select one of them.
PUBLIC_EXECUTION = ("type", "id", "selectable")

_NAME = text(256, 1)
_NAMESPACE = text(64, 1, urn.NAMESPACE.pattern)
_VERSION = text(64, 5, urn.VERSION.pattern)
_LEVEL = text(128, 1, enum=list(model.LEVELS))
_STATE = text(32, enum=list(model.STATES))
_NAMED = object_of({"name": TEXT, "id": TEXT}, ("name", "id"))


def shown(value: Any) -> Any:
    """Return JSON without the keys that are write-only."""
    if isinstance(value, Mapping):
        return {key: shown(item) for key, item in value.items() if not key.startswith(WRITE_ONLY)}
    return [shown(item) for item in value] if isinstance(value, list) else value


def as_text(result: Any) -> str:
    """Return the result of a behavior as text: a string unchanged, any other value as JSON."""
    return result if isinstance(result, str) else json.dumps(result, separators=(",", ":"))


def date(at: float) -> str:
    """Return a time (seconds since 1970) as ISO 8601, in UTC, to the millisecond."""
    moment = datetime.datetime.fromtimestamp(at, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _user(name: str, org: str) -> Shape:
    return {"name": name, "id": model.user_id(name, org)}


def _org(name: str) -> Shape:
    return {"name": name, "id": model.org_id(name)}


_COORDINATES = (
    Key("version", TEXT, "version", _VERSION, changes=False),
    Key("vendor", TEXT, "vendor", _NAMESPACE, changes=False),
    Key("nss", TEXT, "nss", _NAMESPACE, changes=False),
)
INTERFACE = Document(
    Key("name", TEXT, "name", _NAME),
    Key("id", TEXT, "id", IGNORED),
    *_COORDINATES,
    Key("readonly", BOOLEAN, "readonly", BOOLEAN),
)
_EXECUTION = object_of({"id": or_null(text()), "type": text(128, 1, "[A-Za-z][A-Za-z0-9_-]*")}, ("type",))
BEHAVIOR = Document(
    Key("name", TEXT, "name", text(128, 1, urn.BEHAVIOR.pattern), changes=False),
    Key("id", TEXT, "id", IGNORED),
    Key("ref", TEXT, "ref", IGNORED),
    Key("description", TEXT_OR_NULL, "description", or_null(text(4096))),
    Key("execution", OBJECT, lambda item: shown(item.execution), _EXECUTION),
)
_HOOKS: Schema = {
    "type": ["object", "null"],
    "properties": {name: or_null(text(512)) for name in model.HOOKS},
    "additionalProperties": False,
}
_INTERFACES: Schema = {"type": ["array", "null"], "items": text(512), "maxItems": 100}
ENTITY_TYPE = Document(
    Key("id", TEXT, "id", IGNORED),
    Key("name", TEXT, "name", _NAME),
    Key("description", TEXT_OR_NULL, "description", or_null(text(4096))),
    *_COORDINATES,
    Key("externalId", TEXT_OR_NULL, "external_id", or_null(text())),
    Key("schema", OBJECT, "schema", OBJECT),
    Key("interfaces", {"type": "array", "items": TEXT}, lambda item: list(item.interfaces), _INTERFACES),
    Key("readonly", BOOLEAN, "readonly", BOOLEAN),
    Key(
        "hooks",
        {**OBJECT_OR_NULL, "additionalProperties": TEXT},
        lambda item: dict(item.hooks) or None,
        _HOOKS,
        since=HOOKS,
    ),
    Key("inheritedVersion", TEXT_OR_NULL, "inherited_version", or_null(text(64)), since=HOOKS),
    Key("maxImplicitRight", TEXT_OR_NULL, "max_implicit_right", or_null(_LEVEL), since=ENTITY_STATE),
)
ENTITY = Document(
    Key("id", TEXT, "id", IGNORED),
    Key("entityType", TEXT, "type", or_null(text(512))),
    Key("name", TEXT, "name", _NAME),
    Key("externalId", TEXT_OR_NULL, "external_id", or_null(text())),
    Key("entity", OBJECT, "content", OBJECT),
    Key("state", {**TEXT, "enum": list(model.STATES)}, "state", or_null(_STATE)),
    Key("owner", _NAMED, lambda item: _user(item.owner, item.org), IGNORED_OBJECT),
    Key("org", _NAMED, lambda item: _org(item.tenant), IGNORED_OBJECT),
    Key("entityState", {**TEXT, "enum": list(model.STATES)}, "state", or_null(_STATE), since=ENTITY_STATE),
    Key("message", TEXT_OR_NULL, lambda item: item.message or None, IGNORED, since=ENTITY_STATE),
    Key("creationDate", TEXT, lambda item: date(item.created), IGNORED, since=ENTITY_STATE),
    Key("lastModificationDate", TEXT, lambda item: date(item.modified), IGNORED, since=ENTITY_STATE),
)
GRANT = Document(
    Key("id", TEXT, "id", IGNORED),
    Key("tenant", OBJECT_OR_NULL, lambda item: None),
    Key("grantType", TEXT, lambda item: MEMBERSHIP, text(128, enum=[MEMBERSHIP])),
    Key("objectId", TEXT, "object"),
    Key("accessLevelId", {**TEXT, "enum": list(model.LEVELS)}, "level", _LEVEL),
    Key("memberId", TEXT, "member", text(256, 1, MEMBER.pattern), changes=False),
)
BEHAVIOR_GRANT = Document(
    Key("behaviorId", TEXT, "behavior", text(512, 1)),
    Key("accessLevelId", {**TEXT, "enum": list(model.LEVELS)}, "level", _LEVEL),
)
_VALUES = {"StringEntry": text(4096), "NumberEntry": {"type": "number"}, "BoolEntry": BOOLEAN}
_KEY_VALUE = {
    "domain": text(32, enum=list(DOMAINS)),
    "namespace": text(128),
    "key": text(255, 1),
    "value": reference("MetadataValue"),
}


def _key_value(item: model.MetadataEntry) -> Shape:
    value = {"type": item.type, "value": item.value}
    return {"domain": item.domain, "namespace": item.namespace, "key": item.key, "value": value}


METADATA_ENTRY = Document(
    Key("id", TEXT, "id", IGNORED),
    Key("persistent", BOOLEAN, "persistent", BOOLEAN),
    Key("readOnly", BOOLEAN, "readonly", BOOLEAN),
    Key(
        "keyValue",
        object_of({**dict.fromkeys(_KEY_VALUE, TEXT), "value": reference("MetadataValue")}, tuple(_KEY_VALUE)),
        _key_value,
        object_of(_KEY_VALUE, ("key", "value")),
    ),
)


def _owner(item: model.Task) -> Shape:
    empty = {"otherAttributes": {}, "href": "", "vCloudExtension": []}
    return {**empty, "id": item.entity, "type": "application/json", "name": "entity"}


def _result(item: model.Task) -> Shape | None:
    return None if item.result is None else {"resultContent": as_text(item.result)}


TASK = Document(
    Key("href", TEXT, lambda item: ""),
    Key("type", TEXT, lambda item: "application/vnd.vmware.vcloud.task+json"),
    Key("id", TEXT, "id"),
    Key("name", TEXT, lambda item: "task"),
    Key("operationName", TEXT, "name"),
    Key("operation", TEXT, "operation"),
    Key("operationKey", TEXT_OR_NULL, lambda item: None),
    Key("description", TEXT_OR_NULL, lambda item: None),
    Key("tasks", OBJECT_OR_NULL, lambda item: None),
    Key("status", {**TEXT, "enum": list(model.STATUSES)}, "status"),
    Key("progress", {"type": "integer", "minimum": 0, "maximum": 100}, "progress"),
    Key("details", TEXT_OR_NULL, lambda item: item.details or None),
    Key("owner", OBJECT, _owner),
    Key("user", _NAMED, lambda item: _user(item.user, item.org)),
    Key("organization", _NAMED, lambda item: _org(item.org)),
    Key("startTime", TEXT, lambda item: date(item.created if item.started is None else item.started)),
    Key("endTime", TEXT_OR_NULL, lambda item: None if item.ended is None else date(item.ended)),
    Key("error", OBJECT_OR_NULL, lambda item: None if item.error is None else dict(item.error)),
    Key("result", {**OBJECT_OR_NULL, "properties": {"resultContent": TEXT}}, _result),
)

interface, behavior, entity_type, entity = INTERFACE.shape, BEHAVIOR.shape, ENTITY_TYPE.shape, ENTITY.shape
grant, behavior_grant, metadata_entry = GRANT.shape, BEHAVIOR_GRANT.shape, METADATA_ENTRY.shape


def page(found: Page[T], shape: Callable[[T, float], Shape], version: float) -> Shape:
    """Return a page of a list."""
    return {
        "resultTotal": found.total,
        "pageCount": found.page_count,
        "page": found.page,
        "pageSize": found.page_size,
        "associations": None,
        "values": [shape(item, version) for item in found.values],
    }


def behavior_for_users(item: model.Behavior, version: float) -> Shape:
    """Return a behavior as users see it who are not administrators: without hosts, addresses and settings."""
    execution = {key: item.execution[key] for key in PUBLIC_EXECUTION if key in item.execution}
    return behavior(item, version) | {"execution": execution}


def resolved(item: model.Entity, version: float) -> Shape:
    """Return an entity as the answer to resolving it: always with a message, and without its type in old versions."""
    found = entity(item, version) | {"message": item.message}
    if version < ENTITY_STATE:
        del found["entityType"]
    return found


def task(item: model.Task, version: float, href: str = "") -> Shape:
    """Return a task.

    :param href: its address
    """
    return TASK.shape(item, version) | {"href": href}


def _metadata_value(kind: str, value: Schema) -> Schema:
    return object_of({"type": text(enum=[kind]), "value": value}, ("type", "value"))


_COORDINATE_NAMES = tuple(key.name for key in _COORDINATES)
# The bodies of requests. The schema of a request says everything that can be checked without the store.
REQUESTS: dict[str, Schema] = {
    "NewInterface": INTERFACE.creation("name", *_COORDINATE_NAMES),
    "ChangedInterface": INTERFACE.change("name"),
    "NewBehavior": BEHAVIOR.creation("name", "execution"),
    "ChangedBehavior": BEHAVIOR.change("execution"),
    "NewBehaviors": values_of("NewBehavior"),
    "NewEntityType": ENTITY_TYPE.creation("name", *_COORDINATE_NAMES, "schema"),
    "ChangedEntityType": ENTITY_TYPE.change(),
    "NewEntity": ENTITY.creation("name", "entity", entityType=IGNORED),
    "ChangedEntity": ENTITY.change(),
    "NewAccess": GRANT.creation("grantType", "memberId", "accessLevelId"),
    "NewAccesses": values_of("NewAccess"),
    "ChangedAccess": GRANT.change("accessLevelId"),
    "NewBehaviorAccess": BEHAVIOR_GRANT.creation("behaviorId", "accessLevelId"),
    "NewBehaviorAccesses": values_of("NewBehaviorAccess"),
    "MetadataValue": {"anyOf": [_metadata_value(kind, value) for kind, value in _VALUES.items()]},
    "NewMetadataEntry": METADATA_ENTRY.creation("keyValue"),
    "ChangedMetadataEntry": METADATA_ENTRY.change("keyValue", keyValue=object_of(_KEY_VALUE, ("value",))),
    "Invocation": object_of({"arguments": OBJECT_OR_NULL, "metadata": OBJECT_OR_NULL}),
}
ANSWERS: dict[str, Schema] = {
    "Interface": INTERFACE.answer(),
    "Behavior": BEHAVIOR.answer(),
    "EntityType": ENTITY_TYPE.answer(),
    "BehaviorAccess": BEHAVIOR_GRANT.answer(),
    "Access": GRANT.answer(),
    "Entity": ENTITY.answer("entityType"),
    "MetadataEntry": METADATA_ENTRY.answer(),
    "Task": TASK.answer(),
}
