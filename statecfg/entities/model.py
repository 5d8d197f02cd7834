"""What the API deals in: interfaces, behaviors, types, entities, tasks, grants, and who asks for them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Json = Mapping[str, Any]

ROLES = ("administrator", "author", "viewer")
PROVIDER = "System"  # the organization of administrators

# What may be granted, weakest first, as URNs name it.
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
    """Return the URN of a user, the same each time."""
    return f"urn:vcloud:user:{uuid.uuid5(uuid.NAMESPACE_URL, f'statecfg:{org}/{name}')}"


def org_id(org: str) -> str:
    """Return the URN of an organization, the same each time."""
    return f"urn:vcloud:org:{uuid.uuid5(uuid.NAMESPACE_URL, f'statecfg:{org}')}"


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks.

    :param name: of the user
    :param org: name of the user's organization; `PROVIDER` for administrators
    :param role: "administrator" (everything), "author" (creates entities, changes what it may) or "viewer" (reads)
    :param invocation: id of the invocation whose token was used; "" for a user's own. Such calls run no hooks
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
        """Whether the role is the provider's."""
        return self.role == ROLES[0]


@dataclass(frozen=True, slots=True)
class Interface:
    """A named set of behaviors that types implement. `readonly`: it can't be changed or deleted."""

    id: str
    name: str
    vendor: str
    nss: str
    version: str
    readonly: bool


@dataclass(frozen=True, slots=True)
class Behavior:
    """Something that can be done with an entity.

    :param owner: id of the interface that has it, or of the type that overrides it
    :param id: `ref`, or, on a type, the override's own
    :param ref: of the interface's behavior
    :param execution: how it is run: `type` and what that needs, `_internal_*` and `_secure_*` included
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
    :param readonly: it can't be changed or deleted
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
    :param content: what its type's schema describes (`entity` in JSON)
    :param state: one of `STATES`
    :param message: why the state is RESOLUTION_ERROR; "" otherwise
    :param revision: one more with every change, of state too
    :param owner: name of the user who has it, of organization `org`
    :param tenant: name of the organization it was made for: `org`, or what an administrator said
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
    """Something that goes on or has ended.

    :param id: URN
    :param parent: id of the task that it is a part of; "" for none
    :param name: operationName, one of CREATE, UPDATE, DELETE, EXECUTE
    :param operation: the same in words, with the URNs of hooks
    :param entity: id of the entity it is about (`owner.id` in JSON)
    :param entity_name: its name at that time
    :param user, org: who started it
    :param status: one of `STATUSES`
    :param progress: percent
    :param details: what a behavior says of it meanwhile
    :param log: the same for administrators: with names of hosts and paths of the server
    :param result: what a behavior gave, any JSON value; None: none or null
    :param error: majorErrorCode (int), minorErrorCode, message; None: it did not fail
    :param created: seconds since 1970
    :param started, ended: the same; None: not yet
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
        """Whether it has ended, well or not."""
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
    """Something that is noted of an entity beside its content: keys and values, which no schema looks at.

    :param id: URN
    :param domain: "TENANT", or "PROVIDER" for what only administrators see
    :param namespace: "" for none
    :param type: "StringEntry", "NumberEntry" or "BoolEntry"
    :param value: of that type
    :param persistent: whether copies of the entity are to have it; it is kept, and does nothing here
    :param readonly: only administrators change it
    :param revision: one more with every change
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
    """Who of those that may access an entity of a type may invoke a behavior: those with this level or more."""

    behavior: str
    level: str


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a list.

    :param total: of the whole list
    :param page: its number, from 1
    :param page_size: 1 to 128
    """

    values: Sequence[T]
    total: int
    page: int
    page_size: int

    @property
    def page_count(self) -> int:
        """How many pages the whole list has."""
        return -(-self.total // self.page_size)


@dataclass(frozen=True, slots=True)
class Query:
    """What part of a list is asked for, as the query string has it.

    :param filter: FIQL, "" for all
    :param sort: name of a field, "" for the order in which they were made
    :param descending: whether sorted so
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
    """What came of an update.

    :param entity: as it is now
    :param task: the PostUpdate hook's (200 and X-VMWARE-VCLOUD-TASK-LOCATION), or, where `accepted`, the update's own
    :param accepted: 202 and Location: nothing has changed yet, a PreDelete hook is asked first
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
    """A behavior to be run.

    :param id: the same for every try of it: an idempotency key
    :param task_id: of the task executeBehavior that shows it
    :param parent_task_id: of the task it is a part of; "" for none
    :param claimed: of the task that was claimed: `task_id`, or `parent_task_id` where there is one
    :param behavior: the effective one: a type's override wins
    :param kind: a hook (one of `HOOKS`), or "" where a user invoked it
    :param execution: the behavior's, `_internal_*` and `_secure_*` included
    :param entity: the entity's content as it is now
    :param arguments, metadata: what the user gave; {} for hooks
    :param user: who asked for what leads to it
    :param rejected: what the type's schema says against the content; "" for nothing
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
        """Whether a playbook removes what it made: in the hooks of a deletion always, otherwise if it says so."""
        properties = self.execution.get("execution_properties") or {}
        return self.kind in (PRE_DELETE, POST_DELETE) or properties.get("destroy") is True

    @property
    def applies(self) -> bool:
        """Whether a playbook is applied with the content as its variables."""
        return self.execution.get("type") == "Playbook" and not self.destroys


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a behavior.

    :param ok: whether it succeeded
    :param result: any JSON value; a text is shown as it is, anything else as JSON
    :param error: majorErrorCode (int), minorErrorCode, message; for `ok` false
    :param public: the message for users who are not administrators, if `error` names hosts or paths of the server
    """

    ok: bool
    result: Any = None
    error: Json | None = None
    public: str | None = None


@dataclass(frozen=True, slots=True)
class Token:
    """A token that was given out; the secret itself is not kept.

    :param id: its number
    :param created, expires: seconds since 1970; `expires` None: never
    """

    id: int
    name: str
    org: str
    role: str
    created: float
    expires: float | None = field(default=None)
