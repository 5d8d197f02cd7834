"""Everything as JSON, with the keys that a version of the API has: older clients break on those they don't know.

Versions are numbers as Accept headers have them: 36.0, 37.1, 39.0.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from statecfg.entities import model
from statecfg.entities.model import MEMBERSHIP, Page

T = TypeVar("T")
Shape = dict[str, Any]

ENTITY_STATE = 37.1  # from here on `entityState` beside `state`, creationDate and lastModificationDate
HOOKS = 36.0  # types have hooks and inheritedVersion, and behaviors exist
WRITE_ONLY = ("_internal_", "_secure_")


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


def interface(item: model.Interface, version: float) -> Shape:
    """Return an interface."""
    return {
        "name": item.name,
        "id": item.id,
        "version": item.version,
        "vendor": item.vendor,
        "nss": item.nss,
        "readonly": item.readonly,
    }


def behavior(item: model.Behavior, version: float) -> Shape:
    """Return a behavior, without what is write-only in its execution."""
    return {
        "name": item.name,
        "id": item.id,
        "ref": item.ref,
        "description": item.description,
        "execution": shown(item.execution),
    }


def shown(value: Any) -> Any:
    """Return JSON without the keys that are write-only."""
    if isinstance(value, Mapping):
        return {key: shown(item) for key, item in value.items() if not key.startswith(WRITE_ONLY)}
    return [shown(item) for item in value] if isinstance(value, list) else value


def entity_type(item: model.EntityType, version: float) -> Shape:
    """Return a type."""
    found = {
        "id": item.id,
        "name": item.name,
        "description": item.description,
        "nss": item.nss,
        "version": item.version,
        "inheritedVersion": item.inherited_version,
        "externalId": item.external_id,
        "schema": item.schema,
        "vendor": item.vendor,
        "interfaces": list(item.interfaces),
        "hooks": dict(item.hooks) or None,
        "readonly": item.readonly,
        "maxImplicitRight": item.max_implicit_right,
    }
    if version < HOOKS:
        del found["hooks"], found["inheritedVersion"]
    if version < ENTITY_STATE:
        del found["maxImplicitRight"]
    return found


def entity(item: model.Entity, version: float) -> Shape:
    """Return an entity."""
    found: Shape = {
        "id": item.id,
        "entityType": item.type,
        "name": item.name,
        "externalId": item.external_id,
        "entity": item.content,
        "state": item.state,
        "owner": {"name": item.owner, "id": model.user_id(item.owner, item.org)},
        "org": {"name": item.tenant, "id": model.org_id(item.tenant)},
    }
    if version < ENTITY_STATE:
        return found
    dates = {"creationDate": date(item.created), "lastModificationDate": date(item.modified)}
    return found | {"entityState": item.state, "message": item.message or None} | dates


def resolved(item: model.Entity, version: float) -> Shape:
    """Return an entity as the reply of resolving it: always with a message; of old, without its type."""
    found = entity(item, version) | {"message": item.message}
    if version < ENTITY_STATE:
        del found["entityType"]
    return found


def grant(item: model.Grant, version: float) -> Shape:
    """Return an access control of a type or an entity."""
    return {
        "id": item.id,
        "tenant": None,
        "grantType": MEMBERSHIP,
        "objectId": item.object,
        "accessLevelId": item.level,
        "memberId": item.member,
    }


def behavior_grant(item: model.BehaviorGrant, version: float) -> Shape:
    """Return a behavior access control."""
    return {"behaviorId": item.behavior, "accessLevelId": item.level}


def metadata_entry(item: model.MetadataEntry, version: float) -> Shape:
    """Return a metadata entry."""
    return {
        "id": item.id,
        "persistent": item.persistent,
        "readOnly": item.readonly,
        "keyValue": {
            "domain": item.domain,
            "namespace": item.namespace,
            "key": item.key,
            "value": {"type": item.type, "value": item.value},
        },
    }


def task(item: model.Task, version: float, href: str = "") -> Shape:
    """Return a task.

    :param href: where it can be asked for
    """
    result = None if item.result is None else {"resultContent": as_text(item.result)}
    return {
        "href": href,
        "type": "application/vnd.vmware.vcloud.task+json",
        "id": item.id,
        "name": "task",
        "operationName": item.name,
        "operation": item.operation,
        "operationKey": None,
        "description": None,
        "tasks": None,
        "status": item.status,
        "progress": item.progress,
        "details": item.details or None,
        "owner": {
            "otherAttributes": {},
            "href": "",
            "id": item.entity,
            "type": "application/json",
            "name": "entity",
            "vCloudExtension": [],
        },
        "user": {"name": item.user, "id": model.user_id(item.user, item.org)},
        "organization": {"name": item.org, "id": model.org_id(item.org)},
        "startTime": date(item.started if item.started is not None else item.created),
        "endTime": None if item.ended is None else date(item.ended),
        "error": None if item.error is None else dict(item.error),
        "result": result,
    }


def as_text(result: Any) -> str:
    """Return what a behavior gave as text: a text as it is, anything else as JSON."""
    return result if isinstance(result, str) else json.dumps(result, separators=(",", ":"))


def date(at: float) -> str:
    """Return a time (seconds since 1970) as ISO 8601, in UTC, to the millisecond."""
    moment = datetime.datetime.fromtimestamp(at, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
