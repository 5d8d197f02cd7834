"""Records of services, units and relations, as the store receives and returns them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, field
from typing import Any, TypedDict

from statecfg.problems.frozen import dataclass
from statecfg.remote.graph.errors import StatecfgError

Settings = Mapping[str, Any]  # option → value, JSON of the user
Schema = Mapping[str, Mapping[str, Any]]  # option → {"type", "default", "description"}
End = tuple[str, str]  # service, its name for the relation


class StoredChange(TypedDict, total=False):
    """Changes of a settings node: keys with new values (texts), and keys to delete."""

    set: Mapping[str, str]
    delete: Sequence[str]


class StoredChanges(TypedDict, total=False):
    """Changes that a hook made: relation id → change, and the leader's settings. Stored only if the hook succeeds."""

    relations: Mapping[str, StoredChange]
    leader: StoredChange


class UnitStatus(TypedDict):
    """The status of a unit, or "joined" for a service."""

    status: str


class Goal(TypedDict):
    """The current and expected units of a service and its related services, in the format of goal-state.

    `units`: name → status. `relations`: name of a relation → service or unit → status.
    """

    units: Mapping[str, UnitStatus]
    relations: Mapping[str, Mapping[str, UnitStatus]]


class UnitRequestError(StatecfgError):
    """The store refused a request of a unit.

    :param code: NoSuchUnit, NotRelationContext or UnitRelationStateNotFound: error codes of the hooks' protocol
    :param text: what is wrong
    """

    def __init__(self, code: str, text: str) -> None:
        self.code, self.text = code, text
        super().__init__(text)


@dataclass(frozen=True, slots=True)
class Declared:
    """A service as a playbook declares it.

    :param hosts: the hosts of its pattern, in the inventory's order
    :param charm: name of its charm
    :param digest: SHA-256 of the charm's files
    :param schema: option → {"type", "default", "description"}
    :param settings: option → value, without secret options
    :param timeout: seconds for each hook
    :param secrets: option → value, of secret options; the store compares them with earlier values and never stores them
    :param endpoints: all its relations: name → (provides, requires or peers; interface); empty if unknown
    """

    name: str
    hosts: tuple[str, ...]
    charm: str
    digest: str
    schema: Schema
    settings: Settings
    timeout: float
    secrets: Settings = field(default_factory=dict, repr=False)
    endpoints: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeclaredRelation:
    """A relation as a playbook declares it.

    :param ends: two, or one for peers; each is a service and its name for the relation
    """

    ends: tuple[End, ...]


@dataclass(frozen=True, slots=True)
class UnitCondition:
    """The state of a unit and its errors.

    :param state: new, installed, started, stopped, or a value of `unit_rules.workflow.ERRORS`
    :param since: time of its last change of state (seconds since 1970)
    :param why: the error of its failed hook; "" if no hook failed
    :param relation_errors: relation id → error of the hook that failed there
    :param failed_in: ids of the runs in which these hooks failed; without hooks that any run may retry
    """

    state: str
    since: float
    why: str
    relation_errors: Mapping[str, str]
    failed_in: tuple[str, ...]

    @property
    def failed(self) -> bool:
        """Whether a hook of the unit or of one of its relations failed."""
        return bool(self.why or self.relation_errors)


@dataclass(frozen=True, slots=True)
class Announced:
    """The status that a unit's hooks set.

    :param status: such as "active"; "" if they set none
    :param message: the message that they set with the status
    """

    status: str
    message: str


@dataclass(frozen=True, slots=True)
class UnitNetwork:
    """How a unit is reached.

    :param addresses: "private-address", "public-address"
    :param ports: its open ports, such as "80/tcp", in the order in which it opened them
    """

    addresses: Mapping[str, str]
    ports: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnitOrigin:
    """Where a unit comes from.

    :param charm: digest of the charm that it knows; "" before it is installed
    :param early: whether 0.3.0 created it; then its charm may still be in the directory of 0.3.0 on the host
    :param added: whether it was added manually; then it stays even if no pattern names its host
    """

    charm: str
    early: bool
    added: bool


@dataclass(frozen=True, slots=True)
class UnitRow:
    """A unit.

    :param id: its number in the store; never reused
    :param name: SERVICE/NUMBER
    :param dying: whether it is being stopped and removed
    :param leader: whether it is the leader of its service
    """

    id: int
    name: str
    service: str
    number: int
    host: str
    dying: bool
    leader: bool
    condition: UnitCondition
    announced: Announced
    network: UnitNetwork
    origin: UnitOrigin


@dataclass(frozen=True, slots=True)
class DueRelation:
    """The relation that a hook is about.

    :param id: NAME:NUMBER
    :param number: the same for both sides
    :param key: the store's key of the relation
    :param name: its name in the unit's service
    :param remote: the remote unit; "" for a broken hook
    :param members: the units that the hook sees, sorted
    :param broken: whether this hook ends the relation, or the unit's part in it
    """

    id: str
    number: int
    key: int
    name: str
    remote: str
    members: tuple[str, ...]
    broken: bool


@dataclass(frozen=True, slots=True)
class UnitNow:
    """The unit of a hook, when the hook becomes due.

    :param leader: whether it is the leader of its service
    :param ports: its open ports, such as "80/tcp", in the order in which it opened them
    :param status: {"status", "message"} as it last set them
    :param failed_before: whether the unit, or the hook's relation, is in an error state
    """

    leader: bool
    ports: tuple[str, ...]
    status: Mapping[str, str]
    failed_before: bool


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a hook sees around its unit.

    :param relations: id of each relation of the unit → the units that the hook sees there, sorted
    :param services: id of each of these relations → the service at its other end; for peers, the unit's own service
    :param goal: the current and expected units
    """

    relations: Mapping[str, tuple[str, ...]]
    services: Mapping[str, str]
    goal: Goal


@dataclass(frozen=True, slots=True)
class Handled:
    """What a unit has handled once its hook succeeds.

    :param digest: digest of the charm that the hook runs with
    :param config: digest of the settings that the hook runs with
    :param upto: the last event that the hook handles; 0 for none
    """

    digest: str
    config: str
    upto: int


@dataclass(frozen=True, slots=True)
class DueStep:
    """A hook that is due for a unit.

    :param unit: SERVICE/NUMBER
    :param unit_id: its number in the store
    :param charm: name of the charm
    :param hook: such as "install", "db-relation-joined"
    :param hooks: file names in the charm's hooks directory; the first one that exists is run
    :param timeout: seconds
    :param last: whether only the unit's removal remains after this hook
    :param relation: None if the hook is not about a relation
    """

    unit: str
    unit_id: int
    service: str
    charm: str
    hook: str
    hooks: tuple[str, ...]
    timeout: float
    last: bool
    relation: DueRelation | None
    now: UnitNow
    around: Surroundings
    handled: Handled

    def wire(self) -> Mapping[str, Any]:
        """Return the hook as JSON for its host: the values of `now`, `around` and `handled` on the same level."""
        found = asdict(self)
        for part in ("now", "around", "handled"):
            found |= found.pop(part)
        return found


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line in the log of the hooks.

    :param at: seconds since 1970
    :param unit: SERVICE/NUMBER
    :param level: as in Python's logging: 10 debug, 20 info, 30 warning, 40 error, 50 critical
    """

    at: float
    unit: str
    hook: str
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class UnitRelation:
    """A relation that a unit has entered, from the unit's point of view.

    :param id: NAME:NUMBER
    :param members: the other units that it knows there, sorted
    :param settings: the unit's settings there
    :param dying: whether the relation is ending
    :param error: the hook that failed there and its error; "" if none failed
    """

    id: str
    members: tuple[str, ...]
    settings: Mapping[str, str]
    dying: bool
    error: str


@dataclass(frozen=True, slots=True)
class RelationRow:
    """A relation.

    :param number: the same for both sides; never reused
    :param ends: two, or one for peers
    :param playbook: the playbook that declares it; "" if it was made manually
    :param dying: whether the relation is ending
    :param unsettled: the units whose hooks a run stopped there because they would never end, sorted
    """

    number: int
    ends: tuple[End, ...]
    playbook: str
    dying: bool
    unsettled: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServiceCharm:
    """The charm of a service, as `Declared` describes it."""

    name: str
    digest: str
    schema: Schema
    endpoints: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class ServiceRow:
    """A service.

    :param playbook: the playbook that declares it: PROJECT/PATH
    :param alive: False if the service was destroyed
    :param settings: option → value, from the playbook
    :param overrides: option → value, from `service set`
    :param timeout: seconds for each hook
    :param hosts: the hosts of its pattern at the last deployment
    :param without: {"hosts": those whose unit was removed manually, "relations": those that were ended manually}
    :param next: the number of its next unit
    """

    id: int
    name: str
    playbook: str
    alive: bool
    charm: ServiceCharm
    settings: Settings
    overrides: Settings
    timeout: float
    hosts: tuple[str, ...]
    without: Mapping[str, Sequence[str]]
    next: int
