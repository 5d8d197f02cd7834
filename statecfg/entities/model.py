"""The objects of the API and their users, as Python values. `shapes` declares their JSON."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Json = Mapping[str, Any]

ROLES = ("administrator", "author", "viewer")
PROVIDER = "System"  # the organization of administrators

# The access levels, weakest first, as URNs.
READ_ONLY, READ_WRITE, FULL_CONTROL = LEVELS = tuple(
    f"urn:vcloud:accessLevel:{name}" for name in ("ReadOnly", "ReadWrite", "FullControl")
)
MEMBERSHIP = "MembershipAccessControlGrant"

PRE_CREATED, RESOLVED, RESOLUTION_ERROR, IN_DELETION = STATES = (
    "PRE_CREATED",
    "RESOLVED",
    "RESOLUTION_ERROR",
    "IN_DELETION",
)
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


@dataclass(frozen=True, slots=True)
class Interface:
    """A named set of behaviors that types implement. If `readonly`, it can't be changed or deleted."""

    id: str
    name: str
    vendor: str
    nss: str
    version: str
    readonly: bool


@dataclass(frozen=True, slots=True)
class Behavior:
    """An operation on entities.

    :param owner: id of the interface that declares it, or of the type that overrides it
    :param id: equal to `ref`, or the id of a type's override
    :param ref: id of the interface's behavior
    :param execution: how it runs: `type` and its settings, including `_internal_*` and `_secure_*`
    """

    owner: str
    id: str
    ref: str
    name: str
    description: str | None
    execution: Json


@dataclass(frozen=True, slots=True)
class EntityType:
    """A type of entities.

    :param schema: JSON Schema of an entity's content
    :param interfaces: ids of the interfaces that it implements
    :param hooks: PostCreate, PostUpdate, PreDelete, PostDelete → `ref` of a behavior of those interfaces
    :param readonly: whether it can't be changed or deleted
    """

    id: str
    name: str
    vendor: str
    nss: str
    version: str
    description: str | None
    external_id: str | None
    schema: Json
    interfaces: Sequence[str]
    hooks: Mapping[str, str]
    inherited_version: str | None
    max_implicit_right: str | None
    readonly: bool


@dataclass(frozen=True, slots=True)
class Entity:
    """A runtime defined entity.

    :param type: id of its type
    :param content: valid by its type's schema if `state` is RESOLVED (`entity` in JSON)
    :param state: one of `STATES`
    :param message: the reason for the state RESOLUTION_ERROR, otherwise ""
    :param revision: grows by one with every change, including changes of the state
    :param owner: name of its owner, a user of the organization `org`
    :param tenant: name of the organization it was created for: `org`, or the one that an administrator named
    :param created, modified: seconds since 1970
    """

    id: str
    type: str
    name: str
    external_id: str | None
    content: Json
    state: str
    message: str
    revision: int
    owner: str
    org: str
    tenant: str
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
    :param user, org: the user who started it
    :param status: one of `STATUSES`
    :param progress: percent
    :param details: the progress that a behavior reports
    :param log: details for administrators, with names of hosts and paths of the server
    :param result: the result of a behavior, any JSON value; None for no result or null
    :param error: majorErrorCode (int), minorErrorCode, message; None if it did not fail
    :param created: seconds since 1970
    :param started, ended: seconds since 1970; None before
    """

    id: str
    parent: str
    name: str
    operation: str
    entity: str
    entity_name: str
    user: str
    org: str
    status: str
    progress: int
    details: str
    log: str
    result: Any
    error: Json | None
    created: float
    started: float | None
    ended: float | None

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

    id: str
    object: str
    member: str
    level: str


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

    id: str
    domain: str
    namespace: str
    key: str
    type: str
    value: Any
    persistent: bool
    readonly: bool
    revision: int

    @property
    def etag(self) -> str:
        """The ETag header of this revision, with its quotes."""
        return f'"{self.revision}"'


@dataclass(frozen=True, slots=True)
class BehaviorGrant:
    """The access level of an entity that a user needs to invoke a behavior."""

    behavior: str
    level: str


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
class Invocation:
    """A run of a behavior.

    :param id: equal for all attempts, so that it serves as an idempotency key
    :param task_id: id of its task executeBehavior
    :param parent_task_id: id of the task that it belongs to, "" for none
    :param claimed: id of the task that the worker leased: `parent_task_id` if there is one, otherwise `task_id`
    :param behavior: the type's override if there is one, otherwise the interface's behavior
    :param kind: a hook (one of `HOOKS`), or "" if a user invoked it
    :param execution: the behavior's, including `_internal_*` and `_secure_*`
    :param entity: the current content of the entity
    :param arguments, metadata: given by the user; {} for hooks
    :param user: the user whose request caused it
    :param rejected: why the content is invalid by the type's schema, "" if it is valid
    """

    id: str
    task_id: str
    parent_task_id: str
    claimed: str
    behavior: Behavior
    kind: str
    execution: Json
    entity_id: str
    entity_name: str
    type_id: str
    entity: Json
    arguments: Json
    metadata: Json
    user: Principal
    rejected: str = ""

    @property
    def destroys(self) -> bool:
        """Whether a playbook removes its resources: always in deletion hooks, otherwise if its properties say so."""
        properties = self.execution.get("execution_properties") or {}
        return self.kind in (PRE_DELETE, POST_DELETE) or properties.get("destroy") is True

    @property
    def applies(self) -> bool:
        """Whether a playbook is applied, with the content as its variables."""
        return self.execution.get("type") == "Playbook" and not self.destroys


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a behavior.

    :param ok: whether it succeeded
    :param result: any JSON value; a string is shown unchanged, any other value as JSON
    :param error: majorErrorCode (int), minorErrorCode, message; if `ok` is false
    :param public: the message for users who are not administrators, if `error` has names of hosts or addresses
    """

    ok: bool
    result: Any = None
    error: Json | None = None
    public: str | None = None


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
