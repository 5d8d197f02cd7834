"""The JSON of interfaces, types, entities, tasks and access controls, and the bodies of requests.

Versions are numbers as Accept headers have them: 36.0, 37.1, 39.0.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from typing import Any, TypeVar

from statecfg.entities import model
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
    Shape,
    object_of,
    reference,
    text,
    values_of,
)
from statecfg.entities.model import DOMAINS, ENTITY_STATE, MEMBERSHIP, STATE, Page
from statecfg.entities.parts import TaskTimes
from statecfg.graph.json_schema import JsonSchema, Properties

T = TypeVar("T")
# What clients need to list behaviors and to select one of them.
PUBLIC_EXECUTION = ("type", "id", "selectable")
_NAMED = object_of({"name": TEXT, "id": TEXT}, ("name", "id"))


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


def _computed(name: str, response: JsonSchema, value: Callable[[Any], Any], since: float = 0.0) -> Key:
    """Return a key that requests ignore."""
    request = IGNORED_OBJECT if response is _NAMED else IGNORED
    return Key(name, response, request, since=since, value=value)


INTERFACE, BEHAVIOR, ENTITY_TYPE = Document(model.Interface), Document(model.Behavior), Document(model.EntityType)
ENTITY = Document(
    model.Entity,
    _computed("owner", _NAMED, lambda item: _user(item.ownership.owner, item.ownership.org)),
    _computed("org", _NAMED, lambda item: _org(item.ownership.tenant)),
    Key("entityState", STATE.response, STATE.request, since=ENTITY_STATE, value=lambda item: item.state),
    _computed("message", TEXT_OR_NULL, lambda item: item.message or None, ENTITY_STATE),
    _computed("creationDate", TEXT, lambda item: date(item.created), ENTITY_STATE),
    _computed("lastModificationDate", TEXT, lambda item: date(item.modified), ENTITY_STATE),
)
BEHAVIOR_GRANT = Document(model.BehaviorGrant)
GRANT = Document(
    model.Grant,
    Key("tenant", OBJECT_OR_NULL, value=lambda item: None),
    Key("grantType", TEXT, text(128, enum=[MEMBERSHIP]), value=lambda item: MEMBERSHIP),
)
_VALUES: Properties = {"StringEntry": text(4096), "NumberEntry": {"type": "number"}, "BoolEntry": BOOLEAN}
_KEY_VALUE = {
    "domain": text(32, enum=DOMAINS),
    "namespace": text(128),
    "key": text(255, 1),
    "value": reference("MetadataValue"),
}


def _key_value(item: model.MetadataEntry) -> Shape:
    value = {"type": item.type, "value": item.value}
    return {"domain": item.domain, "namespace": item.namespace, "key": item.key, "value": value}


METADATA_ENTRY = Document(
    model.MetadataEntry,
    Key(
        "keyValue",
        object_of({**dict.fromkeys(_KEY_VALUE, TEXT), "value": reference("MetadataValue")}, tuple(_KEY_VALUE)),
        object_of(_KEY_VALUE, ("key", "value")),
        value=_key_value,
    ),
)


def _owner(item: model.Task) -> Shape:
    empty = {"otherAttributes": {}, "href": "", "vCloudExtension": []}
    return {**empty, "id": item.entity, "type": "application/json", "name": "entity"}


def _start(times: TaskTimes) -> str:
    return date(times.created if times.started is None else times.started)


def _result(item: model.Task) -> Shape | None:
    return None if item.result is None else {"resultContent": as_text(item.result)}


TASK = Document(
    model.Task,
    Key("href", TEXT, value=lambda item: ""),
    Key("type", TEXT, value=lambda item: "application/vnd.vmware.vcloud.task+json"),
    Key("name", TEXT, value=lambda item: "task"),
    Key("operationKey", TEXT_OR_NULL, value=lambda item: None),
    Key("description", TEXT_OR_NULL, value=lambda item: None),
    Key("tasks", OBJECT_OR_NULL, value=lambda item: None),
    Key("owner", OBJECT, value=_owner),
    Key("user", _NAMED, value=lambda item: _user(item.starter.user, item.starter.org)),
    Key("organization", _NAMED, value=lambda item: _org(item.starter.org)),
    Key("startTime", TEXT, value=lambda item: _start(item.times)),
    Key("endTime", TEXT_OR_NULL, value=lambda item: None if item.times.ended is None else date(item.times.ended)),
    Key("result", {**OBJECT_OR_NULL, "properties": {"resultContent": TEXT}}, value=_result),
)

interface, behavior, entity_type, entity = INTERFACE.shape, BEHAVIOR.shape, ENTITY_TYPE.shape, ENTITY.shape
grant, behavior_grant, metadata_entry = GRANT.shape, BEHAVIOR_GRANT.shape, METADATA_ENTRY.shape


def page(values: Page[T], shape: Callable[[T, float], Shape], version: float) -> Shape:
    """Return a page of a list."""
    return {
        "resultTotal": values.total,
        "pageCount": values.page_count,
        "page": values.page,
        "pageSize": values.page_size,
        "associations": None,
        "values": [shape(item, version) for item in values.values],
    }


def behavior_for_users(item: model.Behavior, version: float) -> Shape:
    """Return a behavior for users who are not administrators: without hosts, addresses and settings."""
    execution = {key: item.execution[key] for key in PUBLIC_EXECUTION if key in item.execution}
    return {**behavior(item, version), "execution": execution}


def resolved(item: model.Entity, version: float) -> Shape:
    """Return an entity as the answer to resolving it: always with a message, and without its type in old versions."""
    shape = {**entity(item, version), "message": item.message}
    if version < ENTITY_STATE:
        del shape["entityType"]
    return shape


def task(item: model.Task, version: float, href: str = "") -> Shape:
    """Return a task.

    :param href: its address
    """
    return {**TASK.shape(item, version), "href": href}


def _metadata_value(type: str, value: JsonSchema) -> JsonSchema:
    return object_of({"type": text(enum=[type]), "value": value}, ("type", "value"))


_COORDINATES = ("vendor", "nss", "version")
# The bodies of requests. The schema of a request checks everything that can be checked without the store.
REQUESTS: dict[str, JsonSchema] = {
    "NewInterface": INTERFACE.creation("name", *_COORDINATES),
    "ChangedInterface": INTERFACE.change("name"),
    "NewBehavior": BEHAVIOR.creation("name", "execution"),
    "ChangedBehavior": BEHAVIOR.change("execution"),
    "NewBehaviors": values_of("NewBehavior"),
    "NewEntityType": ENTITY_TYPE.creation("name", *_COORDINATES, "schema"),
    "ChangedEntityType": ENTITY_TYPE.change(),
    "NewEntity": ENTITY.creation("name", "entity", entityType=IGNORED),
    "ChangedEntity": ENTITY.change(),
    "NewAccess": GRANT.creation("grantType", "memberId", "accessLevelId"),
    "NewAccesses": values_of("NewAccess"),
    "ChangedAccess": GRANT.change("accessLevelId"),
    "NewBehaviorAccess": BEHAVIOR_GRANT.creation("behaviorId", "accessLevelId"),
    "NewBehaviorAccesses": values_of("NewBehaviorAccess"),
    "MetadataValue": {"anyOf": [_metadata_value(type, value) for type, value in _VALUES.items()]},
    "NewMetadataEntry": METADATA_ENTRY.creation("keyValue"),
    "ChangedMetadataEntry": METADATA_ENTRY.change("keyValue", keyValue=object_of(_KEY_VALUE, ("value",))),
    "Invocation": object_of({"arguments": OBJECT_OR_NULL, "metadata": OBJECT_OR_NULL}),
}
ANSWERS: dict[str, JsonSchema] = {
    "Interface": INTERFACE.response(),
    "Behavior": BEHAVIOR.response(),
    "EntityType": ENTITY_TYPE.response(),
    "BehaviorAccess": BEHAVIOR_GRANT.response(),
    "Access": GRANT.response(),
    "Entity": ENTITY.response("entityType"),
    "MetadataEntry": METADATA_ENTRY.response(),
    "Task": TASK.response(),
}
