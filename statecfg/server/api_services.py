"""Services, units and relations of all projects, without their settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from starlette.responses import JSONResponse, Response

from statecfg.server.auth import ADMINISTRATOR
from statecfg.server.parameters import OWN_API
from statecfg.server.request import Request
from statecfg.server.routing import Routes
from statecfg.store import service_changes
from statecfg.store.database import Store
from statecfg.store.units.records import UnitRow

routes = Routes()


@dataclass(frozen=True, slots=True)
class UnitAnswer:
    """A unit (see `store.units.records.UnitRow`).

    :param failed: a hook of the unit or of one of its relations failed
    """

    name: str
    service: str
    host: str
    state: str
    failed: bool
    dying: bool
    why: str
    relation_errors: Mapping[str, str]
    leader: bool
    ports: Sequence[str]
    status: str
    message: str
    since: float

    @classmethod
    def of(cls, unit: UnitRow) -> UnitAnswer:
        """Return a unit in the form of the API."""
        condition = unit.condition
        return cls(
            name=unit.name,
            service=unit.service,
            host=unit.host,
            state=condition.state,
            failed=condition.failed,
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
class ServiceAnswer:
    """A service of a project, with its units."""

    project: str
    name: str
    playbook: str
    alive: bool
    units: Sequence[UnitAnswer]


@routes("GET", f"{OWN_API}/services", ADMINISTRATOR, "List services, units and relations.", {200: "Services"})
def _list(request: Request) -> Response:
    services: list[ServiceAnswer] = []
    relations: list[object] = []
    for project in service_changes.projects(request.store):
        shown = service_changes.show(request.store, project)
        units = [UnitAnswer.of(unit) for unit in shown.units.values()]
        for service in shown.services.values():
            own = [unit for unit in units if unit.service == service.name]
            services.append(ServiceAnswer(project, service.name, service.playbook, service.alive, own))
        for relation in shown.relations:
            relations.append({"project": project, "ends": relation.ends, "dying": relation.dying})
    return JSONResponse({"services": [asdict(service) for service in services], "relations": relations})


def units_by_host(store: Store) -> Mapping[str, list[UnitAnswer]]:
    """Return host → its units. It includes only the project that the store was opened for."""
    by_host: dict[str, list[UnitAnswer]] = {}
    for unit in service_changes.show(store, store.project).units.values():
        by_host.setdefault(unit.host, []).append(UnitAnswer.of(unit))
    return by_host
