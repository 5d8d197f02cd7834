"""The API of services, units and relations of all projects, without their settings, for administrators."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from starlette.responses import JSONResponse, Response

from statecfg.entities.problems import bad
from statecfg.problems.frozen import dataclass
from statecfg.server.api_runs import FIND, HOST, NaturalKey, natural
from statecfg.server.auth import ADMINISTRATOR
from statecfg.server.parameters import OWN_API, number, text
from statecfg.server.request import ApiRequest
from statecfg.server.routing import Routes
from statecfg.store import service_changes
from statecfg.store.database import Store
from statecfg.store.run_lists import TROUBLE, matches
from statecfg.store.service_changes import ServicesSnapshot
from statecfg.store.units.records import End, ServiceRow, UnitRow

routes = Routes()
NO_UNIT = -1  # the number in the position of a service without units
_CURSOR = re.compile(r"(.*)/([^/]*)/(-?[0-9]{1,10})", re.S)
Position = tuple[NaturalKey, NaturalKey, int]
_FILTERS = (
    FIND,
    HOST,
    text("state", "Only units in this state, such as `started`; `trouble` means that a hook failed."),
)
_PAGES = (
    number("limit", 10_000, 10_000, "Maximum number of units. A service without units counts as one."),
    text("after", "Only units after this one: `next` of the page before.", longest=600),
)


@dataclass(frozen=True, slots=True)
class UnitResponse:
    """A unit (see `store.units.records.UnitRow`).

    :param failed: a hook of the unit or of one of its relations failed
    :param failed_in: ids of the runs in which these hooks failed
    """

    name: str
    service: str
    host: str
    state: str
    failed: bool
    failed_in: Sequence[str]
    dying: bool
    why: str
    relation_errors: Mapping[str, str]
    leader: bool
    ports: Sequence[str]
    status: str
    message: str
    since: float

    @classmethod
    def of(cls, unit: UnitRow) -> UnitResponse:
        """Return a unit in the form of the API."""
        condition = unit.condition
        return cls(
            name=unit.name,
            service=unit.service,
            host=unit.host,
            state=condition.state,
            failed=condition.failed,
            failed_in=condition.failed_in,
            dying=unit.dying,
            why=condition.why,
            relation_errors=condition.relation_errors,
            leader=unit.leader,
            ports=unit.network.ports,
            status=unit.announced.status,
            message=unit.announced.message,
            since=condition.since,
        )


@dataclass(frozen=True, slots=True)
class ServiceResponse:
    """A service of a project.

    :param alive: False if the service was destroyed
    :param count: number of its units
    :param failed: how many of them failed
    :param units: those of its units that are on the page
    """

    project: str
    name: str
    playbook: str
    alive: bool
    count: int
    failed: int
    units: Sequence[UnitResponse]

    @classmethod
    def of(cls, project: str, service: ServiceRow, units: Iterable[UnitRow]) -> ServiceResponse:
        """Return a service in the form of the API, without its units."""
        failures = [unit.condition.failed for unit in units]
        return cls(project, service.name, service.playbook, service.alive, len(failures), sum(failures), [])


@dataclass(frozen=True, slots=True)
class RelationResponse:
    """A relation of a project.

    :param dying: whether it is ending
    """

    project: str
    ends: Sequence[End]
    dying: bool


@dataclass(frozen=True, slots=True)
class ServicesResponse:
    """A page of services and their units.

    :param project: the project whose hosts and runs the API has
    :param relations: the relations of the services on the page
    :param total: how many units the store has
    :param matching: how many of them match the filters
    :param next: the value of `after` for the next page, None at the end
    """

    project: str
    services: Sequence[ServiceResponse]
    relations: Sequence[RelationResponse]
    total: int
    matching: int
    next: str | None


@dataclass(frozen=True, slots=True)
class _ListedService:
    """An entry of the list: a unit with its service, or a service without units."""

    service: ServiceResponse
    number: int
    unit: UnitResponse | None

    @property
    def name(self) -> str:
        return f"{self.service.project}/{self.service.name}/{self.number}"

    @property
    def position(self) -> Position:
        return natural(self.service.project), natural(self.service.name), self.number


@routes(
    "GET",
    f"{OWN_API}/services",
    ADMINISTRATOR,
    "List services, units and relations.",
    {200: "Services"},
    query=(*_PAGES, *_FILTERS),
)
def _list(request: ApiRequest) -> Response:
    """Answer with a page of units, sorted by service and number (web2 before web10)."""
    query, store = request.query, request.store
    after = _position(query["after"])
    snapshots = {project: service_changes.show(store, project) for project in service_changes.projects(store)}
    everything = [entry for project, snapshot in snapshots.items() for entry in _entries(project, snapshot)]
    matching = sorted((entry for entry in everything if _matches(entry, query)), key=lambda entry: entry.position)
    following = [entry for entry in matching if after is None or entry.position > after]
    page = following[: query["limit"]]
    response = ServicesResponse(
        project=store.project,
        services=_services(page),
        relations=list(_relations(snapshots, page)),
        total=_units(everything),
        matching=_units(matching),
        next=page[-1].name if len(following) > len(page) else None,
    )
    return JSONResponse(asdict(response))


def _position(after: str) -> Position | None:
    if not after:
        return None
    parts = _CURSOR.fullmatch(after)
    if parts is None:
        raise bad("after must be the `next` of another page.")
    project, service, unit = parts.groups()
    return natural(project), natural(service), int(unit)


def _entries(project: str, snapshot: ServicesSnapshot) -> Iterator[_ListedService]:
    units: dict[str, list[UnitRow]] = {}
    for unit in snapshot.units.values():
        units.setdefault(unit.service, []).append(unit)
    for row in snapshot.services.values():
        own = units.get(row.name, [])
        service = ServiceResponse.of(project, row, own)
        yield from (_ListedService(service, unit.number, UnitResponse.of(unit)) for unit in own)
        if not own:
            yield _ListedService(service, NO_UNIT, None)


def _matches(entry: _ListedService, query: Mapping[str, Any]) -> bool:
    unit, state = entry.unit, query["state"]
    if unit is None:
        return not query["host"] and not state and _has_words(entry, query["find"])
    has_state = not state or (unit.failed if state == TROUBLE else unit.state == state)
    return has_state and matches(unit.host, query["host"]) and _has_words(entry, query["find"])


def _has_words(entry: _ListedService, words: str) -> bool:
    service, unit = entry.service, entry.unit
    texts = [service.project, service.name, service.playbook]
    if unit is not None:
        texts += [unit.name, unit.host, unit.state, unit.status, unit.message, unit.why]
        texts += unit.relation_errors.values()
    everything = " ".join(texts).lower()
    return all(word in everything for word in words.lower().split())


def _services(page: Sequence[_ListedService]) -> list[ServiceResponse]:
    """Return the services of a page, each with its units there."""
    found: dict[tuple[str, str], tuple[ServiceResponse, list[UnitResponse]]] = {}
    for entry in page:
        _, units = found.setdefault((entry.service.project, entry.service.name), (entry.service, []))
        units += [entry.unit] if entry.unit is not None else []
    return [replace(service, units=units) for service, units in found.values()]


def _relations(snapshots: Mapping[str, ServicesSnapshot], page: Sequence[_ListedService]) -> Iterator[RelationResponse]:
    names = {(entry.service.project, entry.service.name) for entry in page}
    for project, snapshot in snapshots.items():
        for relation in snapshot.relations:
            if any((project, service) in names for service, _ in relation.ends):
                yield RelationResponse(project, relation.ends, relation.dying)


def _units(entries: Iterable[_ListedService]) -> int:
    return sum(entry.unit is not None for entry in entries)


def units_by_host(store: Store) -> Mapping[str, list[UnitResponse]]:
    """Return host → its units. It includes only the project that the store was opened for."""
    by_host: dict[str, list[UnitResponse]] = {}
    for unit in service_changes.show(store, store.project).units.values():
        by_host.setdefault(unit.host, []).append(UnitResponse.of(unit))
    return by_host
