"""Records of the store: hooks, queued calls and log entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NotRequired, Self, TypedDict

from statecfg.problems.frozen import dataclass
from statecfg.remote.graph.on_failure import ABORT
from statecfg.store.connection import Row, from_json

DEADLINE = "PT30S"
Configuration = Mapping[str, Any]  # key → JSON value


class LogEntry(TypedDict, total=False):
    """What a hook did, in the format of Razor's log. `msg` and `error` contain what the hook returned.

    `hook`, `where` and `status` exist for HTTP hooks, `resource` for events of resources, and `input` and `output` of
    the program if the project keeps them.
    """

    event: str
    exit_status: int
    msg: Any
    error: Any
    actions: str
    hook: str
    where: str
    status: str
    resource: str
    input: str
    output: str


class Count(TypedDict):
    """The number of a policy's nodes."""

    count: int


class Policy(TypedDict):
    """A playbook as Razor's API shows a policy. `nodes`: the number of hosts to which it is bound."""

    id: str
    name: str
    enabled: bool
    tags: list[str]
    nodes: Count


class NodeState(TypedDict, total=False):
    """The playbook whose apply finished last on a host, and when (ISO 8601)."""

    installed: str | bool
    installed_at: str


class HookedNode(TypedDict):
    """A host as Razor's API shows a node. Empty values are left out, except the metadata."""

    id: int
    name: str
    hw_info: NotRequired[Mapping[str, str | list[str]]]
    tags: NotRequired[list[str]]
    facts: NotRequired[Mapping[str, Any]]
    state: NotRequired[NodeState]
    hostname: NotRequired[str]
    last_checkin: NotRequired[str]
    metadata: Mapping[str, Any]


class HookInput(TypedDict, total=False):
    """The input of a hook's program except for its hook; {} for a hook that no program is called for.

    `policy` is None if the event has no playbook. `resource` is missing for host events.
    """

    node: HookedNode
    policy: Policy | None
    resource: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Spec:
    """For which hosts, resources and events a hook is called, and how. An empty field selects everything.

    :param hosts: pattern of the inventory
    :param types: node types
    :param names: node names; `*` and `?` are wildcards
    :param tags: tags of nodes
    :param events: names of events
    :param where: "controller" or "host"
    :param order: hooks of one resource event are called by order, then by name
    :param deadline: of one call, ISO 8601
    :param on_failure: the failure rule, one of `on_failure.RULES`
    :param declared: whether a project declares the hook; it is called only while a project does
    """

    hosts: str | None = None
    types: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    where: str = "controller"
    order: int = 100
    deadline: str = DEADLINE
    on_failure: str = ABORT
    declared: bool = False

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Return the spec that a row contains as JSON.

        :raises TypeError: a key is unknown
        """
        return cls(**{key: _frozen(value) for key, value in stored.items()})

    def to_json(self) -> Mapping[str, Any]:
        """Return the spec as a row contains it."""
        return asdict(self)


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class HookObject:
    """A hook.

    :param id: its number; never reused
    :param name: as the user wrote it
    :param type: name of its type
    :param folder: the directory of its type when the hook was created
    :param configuration: the current configuration
    :param spec: when the hook is called, and how
    :param access: the users who have Full Control
    :param created: seconds since 1970
    """

    id: int
    name: str
    type: str
    folder: str
    configuration: Configuration
    spec: Spec
    access: tuple[str, ...]
    created: float

    @classmethod
    def from_row(cls, row: Row) -> Self:
        """Return the hook of a row of the table `hook`."""
        return cls(
            *(row["id"], row["name"], row["type"], row["folder"], from_json(row["configuration"])),
            *(Spec.from_json(from_json(row["spec"])), tuple(from_json(row["access"])), row["created"]),
        )


@dataclass(frozen=True, slots=True)
class Queued:
    """A queued call of a hook.

    :param id: its position in the queue
    :param hook: the hook to call
    :param event: the event that caused the call
    :param host: number of the event's host; None if the event has no host
    :param hook_input: the input of the program when the call was queued
    :param playbook: the policy's name
    :param started: how often the call was started without ending, because its worker was killed
    """

    id: int
    hook: HookObject
    event: str
    host: int | None
    hook_input: HookInput
    playbook: str | None
    started: int = 0

    @classmethod
    def from_row(cls, row: Row, hook: HookObject) -> Self:
        """Return the call of a row of the table `invocation`."""
        given = from_json(row["given"])
        return cls(row["id"], hook, row["event"], row["host"], given, row["playbook"], row["started"])


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An entry of the log.

    :param at: seconds since 1970
    :param hook: name of the hook; None if it was deleted since
    :param host: name of the host; None if the event has no host or the host was forgotten since
    :param playbook: the policy's name
    :param severity: "info", "warn" or "error"
    :param entry: what the hook did
    :param detail: additional text
    :param invocation: position of the call in the queue; None for a call that was never queued
    """

    id: int
    at: float
    hook: str | None
    host: str | None
    playbook: str | None
    severity: str
    entry: LogEntry
    detail: str
    invocation: int | None

    @classmethod
    def from_row(cls, row: Row) -> Self:
        """Return the entry of a row of the table `event`, joined with the names of its hook and host."""
        return cls(
            *(row["id"], row["at"], row["hook_name"], row["host_name"], row["playbook"]),
            *(row["severity"], from_json(row["entry"]), row["detail"], row["invocation"]),
        )
