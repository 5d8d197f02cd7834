"""The API of hosts, for administrators. The state of a host is the worst state of its playbooks and services."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from starlette.responses import JSONResponse, Response

from statecfg.problems.frozen import dataclass
from statecfg.remote.graph.names import HostStatus
from statecfg.server import api_runs, api_services
from statecfg.server.api_runs import ALL_HOSTS, HOST_FILTERS, TIMES, missing, natural
from statecfg.server.api_services import UnitResponse
from statecfg.server.auth import ADMINISTRATOR
from statecfg.server.parameters import OWN_API, QueryParameter
from statecfg.server.problems import HostProblems
from statecfg.server.request import ApiRequest
from statecfg.server.routing import Routes
from statecfg.store import host_states, run_lists
from statecfg.store import hosts as host_store
from statecfg.store import runs as run_store
from statecfg.store.database import Store
from statecfg.store.hooks import log as hook_log
from statecfg.store.host_states import LastRun
from statecfg.store.hosts import HostRecord
from statecfg.store.run_lists import TROUBLE, RunFilter

routes = Routes()
RUNS, EVENTS = 20, 50  # maximum numbers that are shown for a host
_REASONS = QueryParameter("reasons", {"type": "boolean", "default": False}, "Whether to include the problems of hosts.")


@dataclass(frozen=True, slots=True)
class HostResponse:
    """A host. `state` is the worst of `states` and `units`, None before the first run; see `store.hosts.HostRecord`."""

    name: str
    system: str | None
    kernel: str | None
    tags: Sequence[str]
    metadata: Mapping[str, Any]
    playbooks: Sequence[str]
    registered: float | None
    last_checkin: float | None
    installed: str | None
    installed_at: float | None
    state: str | None
    states: Sequence[LastRun]
    units: Sequence[UnitResponse]
    last_run: LastRun | None
    under_way: str | None
    problems: HostProblems | None = None


@dataclass(frozen=True, slots=True)
class HostsResponse:
    """A page of hosts.

    :param total: how many hosts the store has
    :param matching: how many of them match the filters
    :param states: state → how many hosts of the store have it; "" for hosts without a run
    :param next: the value of `after` for the next page, None at the end
    """

    hosts: Sequence[HostResponse]
    total: int
    matching: int
    states: Mapping[str, int]
    next: str | None


@dataclass(frozen=True, slots=True)
class EventResponse:
    """An entry of the log of hooks."""

    at: float
    hook: str | None
    playbook: str | None
    severity: str
    entry: Mapping[str, Any]
    detail: str


@routes(
    "GET",
    f"{OWN_API}/hosts",
    ADMINISTRATOR,
    "List the hosts in the store.",
    {200: "Hosts"},
    query=(*ALL_HOSTS, *HOST_FILTERS, *TIMES, _REASONS),
)
def _list(request: ApiRequest) -> Response:
    """Answer with a page of hosts, sorted by name (web2 before web10)."""
    query = request.query
    everything = sorted(_responses(request.store, host_store.every(request.store)), key=lambda host: natural(host.name))
    matching = [host for host in everything if _matches(host, query)]
    following = [host for host in matching if not query["after"] or natural(host.name) > natural(query["after"])]
    page = following[: query["limit"]]
    if query["reasons"]:
        page = [_with_problems(request.store, host) for host in page]
    states = dict(Counter(host.state or "" for host in everything))
    rest = page[-1].name if len(following) > len(page) else None
    return JSONResponse(asdict(HostsResponse(page, len(everything), len(matching), states, rest)))


@routes("GET", f"{OWN_API}/hosts/{{host}}", ADMINISTRATOR, "Show a host.", {200: "Host"})
def _get(request: ApiRequest) -> Response:
    store, name = request.store, request.path_params["host"]
    record = host_store.get(store, name)
    if record is None:
        raise missing(f"The store has no host {name}.")
    (response,) = _responses(store, [record])
    events = [
        EventResponse(entry.at, entry.hook, entry.playbook, entry.severity, entry.entry, entry.detail)
        for entry in hook_log.events(store, limit=EVENTS, about=name)
    ]
    exact = RunFilter(host=name)
    recent = [run for run in run_lists.page(store, exact, RUNS) if name in run.hosts]
    runs = [asdict(api_runs.run_response(run)) for run in recent]
    more = {"facts": record.facts, "runs": runs, "events": [asdict(entry) for entry in events]}
    return JSONResponse({**asdict(_with_problems(store, response)), **more})


def _responses(store: Store, records: Sequence[HostRecord]) -> Iterable[HostResponse]:
    last = host_states.last_runs(store, records)
    units = api_services.units_by_host(store)
    busy, cut_off = _unfinished(store)
    for record in records:
        runs = host_states.with_cut_off(record, last[record.name], cut_off.get(record.name, ()))
        yield _response(record, runs, units.get(record.name, []), busy.get(record.name))


def _response(
    record: HostRecord, runs: Sequence[LastRun], units: Sequence[UnitResponse], busy: str | None
) -> HostResponse:
    system = record.facts.get("os")
    failed_units = ["failed" for unit in units if unit.failed]
    return HostResponse(
        name=record.name,
        system=system.get("pretty_name") or system.get("id") if isinstance(system, dict) else None,
        kernel=record.facts.get("kernel"),
        tags=record.tags,
        metadata=record.metadata,
        playbooks=record.playbooks,
        registered=record.registered,
        last_checkin=record.last_checkin,
        installed=record.installed,
        installed_at=record.installed_at,
        state=host_states.worst([*(run.status for run in runs), *failed_units]),
        states=runs,
        units=units,
        last_run=runs[0] if runs else None,
        under_way=busy,
    )


def _with_problems(store: Store, host: HostResponse) -> HostResponse:
    """Return a host with the reasons for its state, from the newest of its runs with that state."""
    run = next((last for last in host.states if last.status == host.state and last.status != HostStatus.OK), None)
    report = run_store.host_report(store, run.run, host.name) if run is not None else None
    return replace(host, problems=HostProblems.of(report)) if report is not None else host


def _unfinished(store: Store) -> tuple[Mapping[str, str], Mapping[str, Sequence[LastRun]]]:
    """Return host → id of the run that is processing it now, and host → its runs that were cut off, oldest first."""
    now = time.time()
    busy: dict[str, str] = {}
    cut_off: dict[str, list[LastRun]] = {}
    for run in reversed(run_store.under_way(store)):
        for name, result in run.hosts.items():
            if run.cut_off(now):
                status = result.status or HostStatus.UNKNOWN
                cut_off.setdefault(name, []).append(LastRun(run.id, run.playbook, run.started, status))
            elif not result.status:
                busy[name] = run.id
    return busy, cut_off


def _matches(host: HostResponse, query: Mapping[str, Any]) -> bool:
    checked_in = host.last_checkin or 0.0
    return (
        run_lists.matches(host.name, query["host"])
        and (
            not query["playbook"]
            or any(run_lists.matches(playbook, query["playbook"]) for playbook in _playbooks(host))
        )
        and (query["since"] is None or checked_in >= query["since"])
        and (query["until"] is None or checked_in < query["until"])
        and _has_outcome(host, query["outcome"])
        and _has_words(host, query["find"])
    )


def _playbooks(host: HostResponse) -> Iterable[str]:
    return (*host.playbooks, *(run.playbook for run in host.states))


def _has_outcome(host: HostResponse, outcome: str) -> bool:
    if outcome == TROUBLE:
        return host.state not in (None, "ok")
    return not outcome or host.state == outcome


def _has_words(host: HostResponse, words: str) -> bool:
    text = " ".join([host.name, host.system or "", *host.tags, *_playbooks(host), host.state or ""]).lower()
    return all(word in text for word in words.lower().split())
