"""What the store tells and is told of services and their units, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

from statecfg.remote.graph.errors import StatecfgError

Json = Mapping[str, Any]
End = tuple[str, str]  # service, its name for the relation


class Change(TypedDict, total=False):
    """Keys of a settings node: those that get a value (a text), and those that go."""

    set: Mapping[str, str]
    delete: Sequence[str]


class Changes(TypedDict, total=False):
    """What a hook has written, to be kept when it has succeeded: relation id → change, and the leader's settings."""

    relations: Mapping[str, Change]
    leader: Change


class UnitError(StatecfgError):
    """A unit asked for what it can't have.

    :param code: NoSuchUnit, NotRelationContext or UnitRelationStateNotFound: the words of the hooks' protocol
    :param text: what is wrong
    """

    def __init__(self, code: str, text: str) -> None:
        self.code, self.text = code, text
        super().__init__(text)


@dataclass(frozen=True, slots=True)
class Declared:
    """A service as a playbook declares it.

    :param hosts: those of its pattern, in the inventory's order
    :param charm: name of its charm
    :param digest: SHA-256 of the charm's files
    :param schema: option → {"type", "default", "description"}
    :param settings: option → value; none that is secret
    :param timeout: of each hook, seconds
    :param secrets: option → value, of the secret ones; they are compared with what they were, and never stored
    :param endpoints: relation → (provides, requires or peers; interface): all that there are; empty where nothing says
    """

    name: str
    hosts: tuple[str, ...]
    charm: str
    digest: str
    schema: Json
    settings: Json
    timeout: float
    secrets: Json = field(default_factory=dict, repr=False)
    endpoints: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeclaredRelation:
    """A relation as a playbook declares it.

    :param ends: two, or one for peers; each is a service and its name for the relation
    """

    ends: tuple[End, ...]


@dataclass(frozen=True, slots=True)
class UnitRow:
    """A unit.

    :param id: its number in the store, never given again
    :param name: SERVICE/NUMBER
    :param state: new, installed, started, stopped, or one of `units.workflow.ERRORS`
    :param dying: it is to be stopped and removed
    :param why: what went wrong, "" where nothing did
    :param relation_errors: relation id → what went wrong there
    :param leader: whether it is the leader of its service
    :param addresses: "private-address", "public-address"
    :param ports: those it opened, such as "80/tcp", in the order in which it did
    :param status: what it said of itself, such as "active"; "" for nothing
    :param message: the words beside that
    :param since: when it last got another state (seconds since 1970)
    :param charm: digest of the charm it has been told of, "" before it is installed
    :param early: 0.3.0 made it, and its charm may still be where that kept it on the host
    :param added: it was added by hand, and stays if no pattern names its host
    """

    id: int
    name: str
    service: str
    number: int
    host: str
    state: str
    dying: bool
    why: str
    relation_errors: Mapping[str, str]
    leader: bool
    addresses: Mapping[str, str]
    ports: tuple[str, ...]
    status: str
    message: str
    since: float
    charm: str
    early: bool = False
    added: bool = False


@dataclass(frozen=True, slots=True)
class StepRelation:
    """The relation that a hook is about.

    :param id: NAME:NUMBER
    :param number: the same for both sides
    :param key: the store's key of the relation
    :param name: as the unit's service calls it
    :param remote: the unit it is about, "" for broken
    :param members: the units that the hook sees, sorted
    :param broken: whether the relation, or the unit's part in it, ends with this hook
    """

    id: str
    number: int
    key: int
    name: str
    remote: str
    members: tuple[str, ...]
    broken: bool


@dataclass(frozen=True, slots=True)
class Step:
    """A hook that is due for a unit.

    :param unit: SERVICE/NUMBER
    :param unit_id: its number in the store
    :param charm: name of the charm
    :param hook: such as "install", "db-relation-joined"
    :param hooks: files in the charm's hooks directory: the first one that is there is run
    :param relation: None for a hook that is about none
    :param relations: id of each relation that the unit is in → the units that the hook sees there, sorted
    :param services: id of each of these relations → the service at its other end, the unit's own among peers
    :param leader: whether the unit is the leader of its service now
    :param timeout: seconds
    :param failed_before: the unit, or its relation, is in an error state
    :param last: nothing is left to do after it but to remove the unit
    :param digest: of the charm that it is run with
    :param config: digest of the settings that it is run with
    :param upto: the last event that it answers, 0 for none
    :param ports: those the unit has open, such as "80/tcp", in the order in which it opened them
    :param status: {"status", "message"} as the unit last set them
    :param goal: {"units": {name: {"status"}}, "relations": {name of a relation: {unit: {"status"}}}}: the units that
        are there, and will be
    """

    unit: str
    unit_id: int
    service: str
    charm: str
    hook: str
    hooks: tuple[str, ...]
    relation: StepRelation | None
    relations: Mapping[str, tuple[str, ...]]
    services: Mapping[str, str]
    leader: bool
    timeout: float
    failed_before: bool
    last: bool
    digest: str
    config: str
    upto: int
    ports: tuple[str, ...]
    status: Mapping[str, str]
    goal: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that a hook has said.

    :param at: seconds since 1970
    :param unit: SERVICE/NUMBER
    :param level: as Python's logging has them: 10 debug, 20 info, 30 warning, 40 error, 50 critical
    """

    at: float
    unit: str
    hook: str
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class UnitRelation:
    """A relation that a unit has entered, as it sees it.

    :param id: NAME:NUMBER
    :param members: the units that it was told of, sorted
    :param settings: what it has set there
    :param dying: the relation is to be broken off
    :param error: the hook that failed there and why, "" for none
    """

    id: str
    members: tuple[str, ...]
    settings: Mapping[str, str]
    dying: bool
    error: str


@dataclass(frozen=True, slots=True)
class RelationRow:
    """A relation.

    :param number: the same for both sides; never given again
    :param ends: two, or one for peers
    :param playbook: which declares it, "" for one made by hand
    :param dying: it is to be broken off
    :param unsettled: the units that a run stopped because their hooks in it would have gone on for ever, sorted
    """

    number: int
    ends: tuple[End, ...]
    playbook: str
    dying: bool
    unsettled: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServiceRow:
    """A service.

    :param playbook: which declares it: PROJECT/PATH
    :param alive: it was not destroyed
    :param schema: option → {"type", "default", "description"}
    :param settings: option → value, of the playbook
    :param overrides: option → value, as `service set` left them
    :param hosts: of its pattern when it was last deployed
    :param without: {"hosts": those whose unit was removed by hand, "relations": those that were ended by hand}
    :param endpoints: as in `Declared`
    :param next: the number of its next unit
    """

    id: int
    name: str
    playbook: str
    alive: bool
    charm: str
    digest: str
    schema: Json
    settings: Json
    overrides: Json
    timeout: float
    hosts: tuple[str, ...]
    without: Mapping[str, Sequence[str]]
    endpoints: Mapping[str, Sequence[str]]
    next: int
