"""The objects of the API and their users.

A field with a `Key` is in the object's JSON; `shapes` adds the keys that are computed. The other fields are internal.
Some fields are grouped in parts (see `parts`).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any, Generic, TypeVar

from statecfg.entities import urn
from statecfg.entities.document import (
    BOOLEAN,
    IGNORED,
    OBJECT,
    OBJECT_OR_NULL,
    TEXT,
    Key,
    object_of,
    or_none,
    or_null,
    readable,
    text,
)
from statecfg.entities.parts import Coordinates, Ownership, Reported, Starter, TaskTimes
from statecfg.graph.json_schema import JsonSchema
from statecfg.problems.frozen import dataclass
from statecfg.remote.graph.names import State

T = TypeVar("T")
Json = Mapping[str, Any]

ROLES = ("administrator", "author", "viewer")
PROVIDER = "System"  # the organization of administrators
TENANT = "TENANT"
DOMAINS = (TENANT, "PROVIDER")  # of metadata; only administrators see entries of the second

# The access levels, weakest first, as URNs.
READ_ONLY, READ_WRITE, FULL_CONTROL = LEVELS = tuple(
    f"urn:vcloud:accessLevel:{name}" for name in ("ReadOnly", "ReadWrite", "FullControl")
)
MEMBERSHIP = "MembershipAccessControlGrant"

PRE_CREATED, RESOLVED, RESOLUTION_ERROR, IN_DELETION = STATES = State.ALL
POST_CREATE, POST_UPDATE, PRE_DELETE, POST_DELETE = HOOKS = ("PostCreate", "PostUpdate", "PreDelete", "PostDelete")

QUEUED, RUNNING, SUCCESS, ERROR = STATUSES = ("queued", "running", "success", "error")
CREATE, UPDATE, DELETE, EXECUTE = (
    "createDefinedEntity",
    "updateDefinedEntity",
    "deleteDefinedEntity",
    "executeBehavior",
)


def user_id(name: str, org: str) -> str:
    """Return the URN of a user. It never changes."""
    return f"urn:vcloud:user:{uuid.uuid5(uuid.NAMESPACE_URL, f'statecfg:{org}/{name}')}"


def org_id(org: str) -> str:
    """Return the URN of an organization. It never changes."""
    return f"urn:vcloud:org:{uuid.uuid5(uuid.NAMESPACE_URL, f'statecfg:{org}')}"


@dataclass(frozen=True, slots=True)
class Principal:
    """The user who sends a request.

    :param name: of the user
    :param org: name of the user's organization; `PROVIDER` for administrators
    :param role: "administrator" (everything), "author" (creates and changes entities) or "viewer" (reads)
    :param invocation: id of the invocation whose token was used, "" for a user's own token. Its changes run no hooks
    """

    name: str
    org: str
    role: str
    invocation: str = ""

    @property
    def id(self) -> str:
        """The user's URN."""
        return user_id(self.name, self.org)

    @property
    def org_id(self) -> str:
        """The organization's URN."""
        return org_id(self.org)

    @property
    def is_administrator(self) -> bool:
        """Whether the user is an administrator."""
        return self.role == ROLES[0]


ENTITY_STATE = 37.1  # since this version, entities have `entityState` besides `state`, a message and dates
TYPE_HOOKS = 36.0  # since this version, types have hooks and inheritedVersion
LEVEL = text(128, 1, enum=LEVELS)
EXECUTION = object_of({"id": or_null(text()), "type": text(128, 1, "[A-Za-z][A-Za-z0-9_-]*")}, ("type",))
INTERFACES: JsonSchema = {"type": ["array", "null"], "items": text(512), "maxItems": 100}
HOOKS_OR_NULL: JsonSchema = {**OBJECT_OR_NULL, "additionalProperties": TEXT}
HOOK_IDS: JsonSchema = {
    **OBJECT_OR_NULL,
    "properties": {name: or_null(text(512)) for name in HOOKS},
    "additionalProperties": False,
}
STATE = Key(response={**TEXT, "enum": list(STATES)}, request=or_null(text(32, enum=STATES)))

# Fields that several documents have.
Id = Annotated[str, Key(request=IGNORED)]
Name = Annotated[str, Key(request=text(256, 1))]
Description = Annotated[str | None, Key(request=or_null(text(4096)))]
ExternalId = Annotated[str | None, Key("externalId", request=or_null(text()))]
Flag = Annotated[bool, Key(request=BOOLEAN)]
Level = Annotated[str, Key("accessLevelId", response={**TEXT, "enum": list(LEVELS)}, request=LEVEL)]


@dataclass(frozen=True, slots=True)
class Interface:
    """A named set of behaviors that types implement. If `readonly`, it can't be changed or deleted."""

    id: Id
    name: Name
    coordinates: Coordinates
    readonly: Flag


@dataclass(frozen=True, slots=True)
class Behavior:
    """An operation on entities.

    :param owner: id of the interface that declares it, or of the type that overrides it
    :param id: equal to `ref`, or the id of a type's override
    :param ref: id of the interface's behavior
    :param execution: how it runs: `type` and its settings, including `_internal_*` and `_secure_*`
    """

    owner: str
    id: Id
    ref: Id
    name: Annotated[str, Key(request=text(128, 1, urn.BEHAVIOR.pattern), changes=False)]
    description: Description
    execution: Annotated[Json, Key(request=EXECUTION, convert=readable)]


@dataclass(frozen=True, slots=True)
class EntityType:
    """A type of entities.

    :param schema: JSON Schema of an entity's content
    :param interfaces: ids of the interfaces that it implements
    :param hooks: PostCreate, PostUpdate, PreDelete, PostDelete → `ref` of a behavior of those interfaces
    :param readonly: whether it can't be changed or deleted
    """

    id: Id
    name: Name
    coordinates: Coordinates
    description: Description
    external_id: ExternalId
    schema: Annotated[Json, Key(request=OBJECT)]
    interfaces: Annotated[Sequence[str], Key(request=INTERFACES, convert=list)]
    hooks: Annotated[
        Mapping[str, str], Key(response=HOOKS_OR_NULL, request=HOOK_IDS, since=TYPE_HOOKS, convert=or_none)
    ]
    inherited_version: Annotated[str | None, Key("inheritedVersion", request=or_null(text(64)), since=TYPE_HOOKS)]
    max_implicit_right: Annotated[str | None, Key("maxImplicitRight", request=or_null(LEVEL), since=ENTITY_STATE)]
    readonly: Flag


@dataclass(frozen=True, slots=True)
class Entity:
    """A runtime defined entity.

    :param type: id of its type
    :param content: valid by its type's schema if `state` is RESOLVED (`entity` in JSON)
    :param state: one of `STATES`
    :param message: the reason for the state RESOLUTION_ERROR, otherwise ""
    :param revision: grows by one with every change, including changes of the state
    :param created, modified: seconds since 1970
    """

    id: Id
    type: Annotated[str, Key("entityType", request=or_null(text(512)))]
    name: Name
    external_id: ExternalId
    content: Annotated[Json, Key("entity", request=OBJECT)]
    state: Annotated[str, STATE]
    message: str
    revision: int
    ownership: Ownership
    created: float
    modified: float

    @property
    def etag(self) -> str:
        """The ETag header of this revision, with its quotes."""
        return f'"{self.revision}"'


@dataclass(frozen=True, slots=True)
class Task:
    """An operation that is in progress or has ended.

    :param id: URN
    :param parent: id of the task that it belongs to, "" for none
    :param name: operationName, one of CREATE, UPDATE, DELETE, EXECUTE
    :param operation: a description for people, with the URNs of hooks
    :param entity: id of its entity (`owner.id` in JSON)
    :param entity_name: the entity's name at that time
    :param status: one of `STATUSES`
    :param result: the result of a behavior, any JSON value; None for no result or null
    :param error: majorErrorCode (int), minorErrorCode, message; None if it did not fail
    """

    id: Annotated[str, Key()]
    parent: str
    name: Annotated[str, Key("operationName")]
    operation: Annotated[str, Key()]
    entity: str
    entity_name: str
    starter: Starter
    status: Annotated[str, Key(response={**TEXT, "enum": list(STATUSES)})]
    reported: Reported
    result: Any
    error: Annotated[Json | None, Key()]
    times: TaskTimes

    @property
    def is_finished(self) -> bool:
        """Whether it has ended, with or without an error."""
        return self.status in (SUCCESS, ERROR)


@dataclass(frozen=True, slots=True)
class Grant:
    """An access control of a type or an entity.

    :param id: URN
    :param object: id of the type or entity
    :param member: URN of a user or an organization
    :param level: one of `LEVELS`
    """

    id: Id
    object: Annotated[str, Key("objectId")]
    member: Annotated[str, Key("memberId", request=text(256, 1, urn.MEMBER.pattern), changes=False)]
    level: Level


@dataclass(frozen=True, slots=True)
class MetadataEntry:
    """A key and a value of an entity besides its content. No schema checks it.

    :param id: URN
    :param domain: "TENANT", or "PROVIDER" for entries that only administrators see
    :param namespace: "" for none
    :param type: "StringEntry", "NumberEntry" or "BoolEntry"
    :param value: of that type
    :param persistent: whether copies of the entity get it. statecfg stores it and never copies entities
    :param readonly: whether only administrators may change it
    :param revision: grows by one with every change
    """

    id: Id
    domain: str
    namespace: str
    key: str
    type: str
    value: Any
    persistent: Flag
    readonly: Annotated[bool, Key("readOnly", request=BOOLEAN)]
    revision: int

    @property
    def etag(self) -> str:
        """The ETag header of this revision, with its quotes."""
        return f'"{self.revision}"'


@dataclass(frozen=True, slots=True)
class BehaviorGrant:
    """The access level of an entity that a user needs to invoke a behavior."""

    behavior: Annotated[str, Key("behaviorId", request=text(512, 1))]
    level: Level


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of a list.

    :param total: number of entries of the whole list
    :param page: its number, from 1
    :param page_size: 1 to 128
    """

    values: Sequence[T]
    total: int
    page: int
    page_size: int

    @property
    def page_count(self) -> int:
        """The number of pages of the whole list."""
        return -(-self.total // self.page_size)


@dataclass(frozen=True, slots=True)
class Query:
    """The requested part of a list, as in the query string.

    :param filter: FIQL, "" for all
    :param sort: name of a field, "" for the order of creation
    :param descending: whether to sort in descending order
    :param page: from 1
    :param page_size: 1 to 128
    """

    filter: str = ""
    sort: str = ""
    descending: bool = False
    page: int = 1
    page_size: int = 25


@dataclass(frozen=True, slots=True)
class Updated:
    """The result of an update.

    :param entity: its current state
    :param task: of the PostUpdate hook (200 and X-VMWARE-VCLOUD-TASK-LOCATION), or, if `accepted`, of the update
    :param accepted: nothing has changed yet, because a PreDelete hook runs first (202 and Location)
    """

    entity: Entity
    task: Task | None = None
    accepted: bool = False

    @property
    def etag(self) -> str:
        """The ETag header."""
        return self.entity.etag


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a user. The store does not have its secret.

    :param id: its number
    :param created, expires: seconds since 1970; None for a token that never expires
    """

    id: int
    name: str
    org: str
    role: str
    created: float
    expires: float | None = field(default=None)
