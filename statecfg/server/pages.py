"""The page, and the JSON behind it: hosts, runs and services as an administrator sees them."""

from __future__ import annotations

import functools
import hashlib
import html
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any

from starlette.responses import JSONResponse, Response

from statecfg.entities.problems import ApiError
from statecfg.server import sessions
from statecfg.server.auth import ADMINISTRATOR, ANYONE, VIEWER
from statecfg.server.parameters import Parameter
from statecfg.server.request import Request
from statecfg.server.routing import Routes
from statecfg.store import hosts as host_store
from statecfg.store import runs as run_store
from statecfg.store import service_changes as service_store
from statecfg.store.hooks import log as hook_log
from statecfg.store.hosts import HostRecord
from statecfg.store.runs import Going, RunRecord
from statecfg.store.units.records import ServiceRow, UnitRow

HTML = "text/html; charset=utf-8"
_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
# Names that a list gives at most; what is left out is counted.
NAMED = 20
EVENTS = 50
_HOOK = ("hook", "event", "status", "error")
Json = dict[str, Any]
routes = Routes()
_OWN = "/statecfg/1.0"
_NAME = {"type": "string", "maxLength": 255}
_RUNS = (
    Parameter("limit", {"type": "integer", "minimum": 1, "maximum": 1000, "default": 30}, "Maximum number of entries."),
    Parameter("host", _NAME, "Only runs that this host was part of."),
    Parameter("playbook", _NAME, "Only runs of this playbook."),
)


# The page itself


@functools.cache
def _files() -> Mapping[str, bytes]:
    found = resources.files("statecfg.server") / "static"
    return {each.name: each.read_bytes() for each in found.iterdir() if each.is_file()}


def denied(request: Request) -> Response:
    """Answer who is not signed in with the form to do so."""
    return sign_in("", 401)


@routes("GET", "/", VIEWER, "Show the page.", {200: "Page"}, media_type=HTML, denied=denied, documented=False)
def page(request: Request) -> Response:
    """Answer with the page. What it shows it asks for by itself, as whoever is signed in."""
    caller = request.principal
    values = {"csrf": sessions.csrf(request.browser_session), "user": caller.name, "role": caller.role}
    text = _files()["index.html"].decode()
    for name, value in values.items():
        text = text.replace(f"{{{{{name}}}}}", html.escape(value))
    return Response(text, media_type=HTML)


def sign_in(message: str, status: int) -> Response:
    """Answer with the form that takes a token.

    :param message: why the last try failed, "" for none
    """
    text = _files()["login.html"].decode().replace("{{message}}", html.escape(message))
    return Response(text, status, media_type=HTML)


@routes(
    "GET", "/static/{file}", ANYONE, "Get a file of the page.", {200: "Page"}, media_type="text/*", documented=False
)
def static(request: Request) -> Response:
    """Answer with one of the files that the page is made of. Raises ApiError 404."""
    name = request.path_params["file"]
    kind = _TYPES.get(name.rpartition(".")[2])
    if kind is None or name not in _files():
        raise _missing(f"There is no file {name}.")
    data = _files()[name]
    tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
    headers = {"etag": tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(None, 304, headers)
    return Response(data, 200, headers, kind)


def _missing(message: str) -> ApiError:
    return ApiError(404, "NOT_FOUND", message)


# Hosts


@routes("GET", f"{_OWN}/hosts", ADMINISTRATOR, "List the hosts in the store.", {200: "Hosts"})
def hosts(request: Request) -> Response:
    """Answer with all hosts that the store knows, each with its last run."""
    store = request.store
    last = run_store.last_of_hosts(store)
    busy = _busy(run_store.under_way(store))
    return JSONResponse({"hosts": [_host(each, last, busy) for each in host_store.every(store)]})


@routes("GET", f"{_OWN}/hosts/{{host}}", ADMINISTRATOR, "Show a host.", {200: "Host"})
def host(request: Request) -> Response:
    """Answer with everything that the store knows of a host. Raises ApiError 404."""
    store, name = request.store, request.path_params["host"]
    record = host_store.get(store, name)
    if record is None:
        raise _missing(f"The store has no host {name}.")
    known = _host(record, run_store.last_of_hosts(store), _busy(run_store.under_way(store)))
    logged = [
        {
            "at": each.at,
            "hook": each.hook,
            "playbook": each.playbook,
            "severity": each.severity,
            "entry": each.entry,
            "detail": each.detail,
        }
        for each in hook_log.events(store, limit=EVENTS, about=name)
    ]
    recent = [_ended(each) for each in run_store.recent(store, NAMED, host=name)]
    return JSONResponse({**known, "facts": record.facts, "runs": recent, "events": logged})


def _busy(under_way: Iterable[Going]) -> dict[str, str]:
    """Return host → the run that is at work on it now."""
    now = time.time()
    return {
        name: each.id
        for each in under_way
        if not each.cut_off(now)
        for name, said in each.hosts.items()
        if not said["status"]
    }


def _host(record: HostRecord, last: Mapping[str, Json], busy: Mapping[str, str]) -> Json:
    facts = record.facts
    system = facts.get("os")
    return {
        "name": record.name,
        "system": system.get("pretty_name") or system.get("id") if isinstance(system, dict) else None,
        "kernel": facts.get("kernel"),
        "tags": record.tags,
        "metadata": record.metadata,
        "playbooks": record.playbooks,
        "registered": record.registered,
        "last_checkin": record.last_checkin,
        "installed": record.installed,
        "installed_at": record.installed_at,
        "last_run": last.get(record.name),
        "under_way": busy.get(record.name),
    }


# Runs


@routes("GET", f"{_OWN}/runs", ADMINISTRATOR, "List runs, the newest first.", {200: "Runs"}, query=_RUNS)
def runs(request: Request) -> Response:
    """Answer with the runs that are under way or were cut off, and the newest of those that have ended."""
    store, query = request.store, request.query
    of_host, of_playbook = query.get("host"), query.get("playbook")
    going = [
        _going(each)
        for each in run_store.under_way(store)
        if of_host in (None, *each.hosts) and of_playbook in (None, each.playbook)
    ]
    ended = [_ended(each) for each in run_store.recent(store, query["limit"], of_host, of_playbook)]
    together = sorted([*going, *ended], key=lambda each: -each["started"])
    return JSONResponse({"runs": together[: query["limit"]]})


@routes("GET", f"{_OWN}/runs/{{run}}", ADMINISTRATOR, "Show a run with its problems.", {200: "Run"})
def run(request: Request) -> Response:
    """Answer with a run: what became of each host, and what to look at there. Raises ApiError 404."""
    store, id = request.store, request.path_params["run"]
    record = run_store.head(store, id)
    if record is not None:
        report = run_store.report(store, id)
        told = report["hosts"] if report is not None else {}
        return JSONResponse({**_ended(record), "hosts": {name: _told(said) for name, said in told.items()}})
    for each in run_store.under_way(store):
        if each.id == id:
            return JSONResponse({**_going(each), "hosts": {name: _at_work(said) for name, said in each.hosts.items()}})
    raise _missing(f"The store knows no run {id}, or no longer: it keeps the newest {run_store.KEPT:,}.")


@routes(
    "GET",
    f"{_OWN}/runs/{{run}}/hosts/{{host}}",
    ADMINISTRATOR,
    "Show a host's part of the report of a run.",
    {200: "Report"},
)
def run_host(request: Request) -> Response:
    """Answer with what a run reported of a host. Raises ApiError 404."""
    report = run_store.host_report(request.store, request.path_params["run"], request.path_params["host"])
    if report is None:
        raise _missing("The store has no report of that host in that run.")
    return JSONResponse(report)


def _ended(record: RunRecord) -> Json:
    return {**_head(record), "state": "ended", "ended": record.ended}


def _going(record: Going) -> Json:
    state = "cut off" if record.cut_off(time.time()) else "running"
    return {**_head(record), "state": state, "ended": None, "beat": record.beat or None}


def _head(record: RunRecord | Going) -> Json:
    summary: Counter[str] = Counter()
    for said in record.hosts.values():
        summary.update(said["summary"])
    trouble = [name for name, said in record.hosts.items() if said["status"] not in ("", "ok")]
    return {
        "id": record.id,
        "mode": record.mode,
        "who": record.who,
        "playbook": record.playbook,
        "started": record.started,
        "count": len(record.hosts),
        "names": list(record.hosts)[:NAMED],
        "statuses": Counter(said["status"] for said in record.hosts.values()),
        "summary": summary,
        "trouble": trouble[:NAMED],
    }


def _told(said: Mapping[str, Any]) -> Json:
    """Return what of a host's report shows where to look first."""
    bad = [
        {key: node.get(key) for key in ("name", "outcome", "reason", "position")}
        for part in ("removals", "layers")
        for layer in said.get(part) or ()
        for node in layer
        if node.get("outcome") in ("failed", "unknown")
    ]
    error = said.get("error") or {}
    failed_hooks = [each for each in said.get("fired") or () if each.get("status") != "ok"]
    return {
        "status": said["status"],
        "summary": said.get("summary") or {},
        "error": error.get("summary") or said.get("refusal") or ("" if bad else said.get("halted")) or "",
        "bad": bad[:NAMED],
        "more": max(0, len(bad) - NAMED),
        "hooks": [
            {key: each.get(key) for key in ("hook", "event", "status", "error")} for each in failed_hooks[:NAMED]
        ],
    }


def _at_work(said: Mapping[str, Any]) -> Json:
    return {"status": said["status"], "summary": said["summary"], "error": "", "bad": [], "more": 0, "hooks": []}


# Services


@routes("GET", f"{_OWN}/services", ADMINISTRATOR, "List services, units and relations.", {200: "Services"})
def services(request: Request) -> Response:
    """Answer with the services of all projects, their units and relations; without any setting."""
    store = request.store
    found: list[Json] = []
    relations: list[Json] = []
    for project in service_store.projects(store):
        shown = service_store.show(store, project)
        found += [_service(project, each, shown.units.values()) for each in shown.services.values()]
        relations += [{"project": project, "ends": each.ends, "dying": each.dying} for each in shown.relations]
    return JSONResponse({"services": found, "relations": relations})


def _service(project: str, record: ServiceRow, units: Iterable[UnitRow]) -> Json:
    keys = ("name", "host", "state", "dying", "why", "relation_errors", "leader", "ports", "status", "message", "since")
    mine = [{key: getattr(each, key) for key in keys} for each in units if each.service == record.name]
    about = {"project": project, "name": record.name, "playbook": record.playbook, "alive": record.alive}
    return {**about, "units": mine}
