"""The API of runs, for administrators: a list, and one run with its hosts."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from starlette.responses import JSONResponse, Response

from statecfg.entities.problems import ApiError, bad
from statecfg.problems.frozen import dataclass
from statecfg.remote.graph.names import Outcome, RunStatus
from statecfg.server.auth import ADMINISTRATOR
from statecfg.server.parameters import OWN_API, number, text
from statecfg.server.problems import NAMED, HostProblems
from statecfg.server.request import ApiRequest
from statecfg.server.routing import Routes
from statecfg.store import run_lists
from statecfg.store import runs as run_store
from statecfg.store.run_lists import OK, TROUBLE, Cursor, RunFilter
from statecfg.store.runs import HostResult, RunInProgress, RunRecord

routes = Routes()
NaturalKey = tuple[list[str | int], str]

_OUTCOME = text("outcome", "Only this outcome, such as `failed`; `trouble` means any but `ok`.")
FIND = text("find", "Only what contains all of these words.")
HOST = text("host", "Only hosts of this name; `*` matches any text.")
HOST_FILTERS = (
    FIND,
    HOST,
    text("playbook", "Only this playbook; `*` matches any text."),
    _OUTCOME,
)
TIMES = (
    number("since", 9_999_999_999, None, "Only from this time on (seconds since 1970)."),
    number("until", 9_999_999_999, None, "Only before this time (seconds since 1970)."),
)
ALL_HOSTS = (
    number("limit", 10_000, 10_000, "Maximum number of hosts."),
    text("after", "Only hosts after this one: `next` of the page before."),
)
_RUNS = (
    number("limit", 1000, 30, "Maximum number of runs."),
    text("after", "Only runs after this one: `next` of the page before."),
    *HOST_FILTERS[1:],
    *TIMES,
)


@dataclass(frozen=True, slots=True)
class RunResponse:
    """A run. Times are seconds since 1970.

    :param state: "running", "cut off" or "ended"
    :param ended: None before its end
    :param beat: time of the last heartbeat of a run that has not ended
    :param count: number of its hosts
    :param names: the first of these hosts
    :param statuses: status → number of hosts; "" for hosts that have not finished
    :param summary: outcome → number of resources
    :param trouble: the first hosts with a status other than ok
    """

    id: str
    mode: str
    who: str
    playbook: str
    started: float
    state: str
    ended: float | None
    beat: float | None
    count: int
    names: Sequence[str]
    statuses: Mapping[str, int]
    summary: Mapping[str, int]
    trouble: Sequence[str]


@routes("GET", f"{OWN_API}/runs", ADMINISTRATOR, "List runs, the newest first.", {200: "Runs"}, query=_RUNS)
def _list(request: ApiRequest) -> Response:
    query = request.query
    wanted = RunFilter(query["host"], query["playbook"], query["outcome"], query["since"], query["until"])
    records = run_lists.page(request.store, wanted, query["limit"] + 1, _cursor(query["after"]))
    page = records[: query["limit"]]
    following = f"{page[-1].started!r},{page[-1].id}" if len(records) > len(page) else None
    return JSONResponse({"runs": [asdict(run_response(run)) for run in page], "next": following})


def _cursor(text: str) -> Cursor | None:
    if not text:
        return None
    started, comma, id = text.partition(",")
    if not comma or not re.fullmatch(r"[0-9]{1,10}(\.[0-9]{1,9})?", started):
        raise bad("after must be the `next` of another page.")
    return Cursor(float(started), id)


@routes(
    "GET",
    f"{OWN_API}/runs/{{run}}",
    ADMINISTRATOR,
    "Show a run with its problems.",
    {200: "Run"},
    query=(*ALL_HOSTS, FIND, _OUTCOME),
)
def _get(request: ApiRequest) -> Response:
    """Answer with a run and a page of its hosts, those with problems first."""
    store, id, query = request.store, request.path_params["run"], request.query
    record = run_store.head(store, id) or next((run for run in run_store.under_way(store) if run.id == id), None)
    if record is None:
        raise missing(f"The store has no run {id}. It keeps the newest {run_store.KEPT:,} runs.")
    selected = _selected(request, record, query["find"].split())
    names = [name for name in selected if _has(selected[name], query["outcome"])]
    following = _following(names, record.hosts, query["after"])
    page = following[: query["limit"]]
    hosts = {name: asdict(problems) for name, problems in _problems(request, record, page).items()}
    more = {"matching": len(names), "next": page[-1] if len(following) > len(page) else None}
    return JSONResponse({**asdict(run_response(record)), "hosts": hosts, **more})


def _following(names: Iterable[str], hosts: Mapping[str, HostResult], after: str) -> list[str]:
    """Return the hosts that follow the host `after` in the page's order; all hosts if the run does not have it."""
    ordered = sorted(names, key=lambda name: _order(name, hosts))
    if after not in hosts:
        return ordered
    return [name for name in ordered if _order(name, hosts) > _order(after, hosts)]


def _problems(request: ApiRequest, record: RunRecord | RunInProgress, names: Sequence[str]) -> dict[str, HostProblems]:
    reports = run_lists.reports(request.store, record.id, names)
    statuses = {name: HostProblems.of_result(record.hosts[name]) for name in names}
    return {**statuses, **{name: HostProblems.of(reports[name]) for name in names if name in reports}}


def _selected(request: ApiRequest, record: RunRecord | RunInProgress, words: Sequence[str]) -> Mapping[str, HostResult]:
    """Return the hosts of a run whose name or report contains each word; only the name while the run is in progress."""
    if isinstance(record, RunRecord):
        return run_lists.hosts_of_run(request.store, record.id, words) if words else record.hosts
    lowered = [word.lower() for word in words]
    return {name: result for name, result in record.hosts.items() if all(word in name.lower() for word in lowered)}


def _has(result: HostResult, outcome: str) -> bool:
    if outcome == TROUBLE:
        return result.status not in ("", OK)
    return not outcome or result.status == outcome


def _order(name: str, hosts: Mapping[str, HostResult]) -> tuple[bool, NaturalKey]:
    result = hosts[name]
    is_fine = result.status in ("", OK) and not any(map(result.summary.get, (Outcome.FAILED, Outcome.UNKNOWN)))
    return is_fine, natural(name)


@routes(
    "GET",
    f"{OWN_API}/runs/{{run}}/hosts/{{host}}",
    ADMINISTRATOR,
    "Show a host's part of the report of a run.",
    {200: "Report"},
)
def _get_host(request: ApiRequest) -> Response:
    report = run_store.host_report(request.store, request.path_params["run"], request.path_params["host"])
    if report is None:
        raise missing("The store has no report of this host in this run.")
    return JSONResponse(report)


def run_response(record: RunRecord | RunInProgress) -> RunResponse:
    """Return a run in the form of the API."""
    summary: Counter[str] = Counter()
    for result in record.hosts.values():
        summary.update(result.summary)
    trouble = [name for name, result in record.hosts.items() if result.status not in ("", OK)]
    ended: float | None = None
    beat: float | None = None
    if isinstance(record, RunRecord):
        state, ended = "ended", record.ended
    else:
        state, beat = RunStatus.CUT_OFF if record.cut_off(time.time()) else RunStatus.RUNNING, record.beat or None
    return RunResponse(
        id=record.id,
        mode=record.mode,
        who=record.who,
        playbook=record.playbook,
        started=record.started,
        state=state,
        ended=ended,
        beat=beat,
        count=len(record.hosts),
        names=list(record.hosts)[:NAMED],
        statuses=dict(Counter(result.status for result in record.hosts.values())),
        summary=dict(summary),
        trouble=trouble[:NAMED],
    )


def missing(message: str) -> ApiError:
    """Return the error 404 for an object that the store does not have."""
    return ApiError(404, "NOT_FOUND", message)


def natural(name: str) -> NaturalKey:
    """Return a sort key that compares numbers in names by value: web2 comes before web10."""
    parts = re.split(r"(\d+)", name, flags=re.ASCII)
    return [int(part) if number % 2 else part.lower() for number, part in enumerate(parts)], name
