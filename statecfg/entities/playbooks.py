"""Playbooks as behaviors: apply them with an entity as variables, or destroy what the ledgers of hosts record for it.

In the ledgers, each entity has its own owning playbook, `PROJECT/PATH#UUID`. So entities with the same playbook don't
touch each other's resources. An entity's resources stay known even if its playbook or its hosts have changed.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from statecfg import dialects
from statecfg.entities import disclosure
from statecfg.problems import InvalidInput, Problem, SourceLocation, problem
from statecfg.problems.frozen import dataclass
from statecfg.remote.graph.events import RunEvent
from statecfg.remote.graph.names import HookStatus, HostStatus, Mode, Outcome
from statecfg.store import StoreError

if TYPE_CHECKING:
    from statecfg.entities.invocation import Update
    from statecfg.hooks.bus import Bus
    from statecfg.playbook.inventory import Host
    from statecfg.playbook.project import Project
    from statecfg.run.job import Job
    from statecfg.run.prepare import Choice, Work
    from statecfg.run.report_model import HostData, Report

_VARIABLES = ("entity", "entity_id", "entity_name", "arguments")  # of the playbook, from the request
REASONS = 5  # maximum number of failed nodes per host in an error


class PlaybookRequest(TypedDict):
    """A request to run a playbook for an entity.

    `root`: a directory of the project. `id`: the path of the playbook in it. `rejected`: whether the type's schema
    rejects the entity's content. `properties`: `inventory`, `hosts` and `limit` of the behavior. `store`: a URL, "" for
    the project's store. `seconds`: the time limit.
    """

    do: Literal["playbook"]
    root: str
    id: str
    destroy: bool
    rejected: bool
    entity: Mapping[str, Any]
    entity_id: str
    entity_name: str
    arguments: Mapping[str, Any]
    properties: Mapping[str, Any]
    user: str
    store: str
    seconds: float


class PlaybookResult(TypedDict):
    """The result of the runs. `error` and `log` are for administrators, `public` and `details` for users."""

    ok: bool
    result: disclosure.TaskResult
    error: str
    public: str | None
    details: str
    log: str


@dataclass(frozen=True)
class _Order:
    """A request with its project and the options of its run."""

    request: PlaybookRequest
    project: Project
    choice: Choice
    owner: str
    deadline: float
    update: Callable[[Update], None]
    cancel: threading.Event

    @property
    def path(self) -> Path:
        """The path of the playbook."""
        return Path(self.request["root"]) / self.request["id"]

    @property
    def store(self) -> str | None:
        """The URL of the store; None for the project's."""
        return self.request["store"] or None


def run(request: PlaybookRequest, update: Callable[[Update], None], cancel: threading.Event) -> PlaybookResult:
    """Execute a request; return the answer.

    :param update: receives progress of the task
    :param cancel: set to stop: the current run ends, and no other starts
    """
    reports: list[Report] = []
    try:
        order = _order(request, update, cancel)
        for report in _destroyed(order) if request["destroy"] else _applied(order):
            reports.append(report)
            update({"details": disclosure.details(reports), "log": "\n".join(map(_as_text, reports))})
            if _failures(report):
                break
    except InvalidInput as error:
        return _result(reports, [_problem(item) for item in error.problems], disclosure.rejected(error.problems))
    except StoreError as error:
        return _result(reports, [str(error)], f"The store failed. {disclosure.ASK}")
    failed = {report["run"]: _failures(report) for report in reports}
    public = disclosure.failed_runs(reports, [run for run, texts in failed.items() if texts])
    return _result(reports, [text for texts in failed.values() for text in texts], public)


def _order(request: PlaybookRequest, update: Callable[[Update], None], cancel: threading.Event) -> _Order:
    """Find the project of a request and build the options of its run.

    :raises InvalidInput: the project or a property is invalid
    """
    from statecfg.playbook import project as projects
    from statecfg.run import prepare

    root = Path(request["root"])
    project = projects.find(root)
    properties = request["properties"]
    file = properties.get("inventory")
    variables = {key: value for key, value in request.items() if key in _VARIABLES}
    instance = request["entity_id"].rpartition(":")[2]
    choice = prepare.Choice(root / file if file else None, None, (), variables, True, instance)
    if not request["destroy"]:
        choice = replace(choice, limit=_limit(properties.get("limit"), variables, request["id"]))
    owner = prepare.owner(project, root / request["id"], instance)
    return _Order(request, project, choice, owner, time.monotonic() + request["seconds"], update, cancel)


def _limit(text: Any, variables: Mapping[str, Any], playbook: str) -> str | None:
    """Return the pattern that limits the hosts. The behavior may declare it as a template of the entity."""
    if text is None:
        return None
    from statecfg import templates

    pattern = templates.evaluate(text, variables, SourceLocation(f"limit for {playbook}", 1))
    if not isinstance(pattern, str) or not pattern.strip():
        detail = f"the behavior's limit `{text}` gives {pattern!r} for this entity"
        raise InvalidInput([problem("SC0406", detail, "it must give a pattern of hosts")])
    return pattern


def _applied(order: _Order) -> Iterator[Report]:
    """Apply the playbook. Then remove the entity's resources from hosts that the playbook no longer selects."""
    from statecfg.run import prepare
    from statecfg.store import facts

    with _bus(order, Mode.APPLY) as bus:
        known = replace(order.choice.known, stored=lambda: facts.known(bus.store))
        choice = replace(order.choice, known=known)
        work = prepare.playbook(order.path, choice, bus.reconciler)
        if work.services or work.relations:
            detail = (
                f"{order.project.relative(order.path)} declares services, which belong to the project, not to an entity"
            )
            raise InvalidInput([problem("SC0805", detail, "declare only resources in the playbook of an entity")])
        _refuse_other_hosts(order, work)
        report = _done(order, work, Mode.APPLY, bus)
    yield report
    yield from _removed(order, set(report["hosts"]), work.secrets)


def _destroyed(order: _Order) -> Iterator[Report]:
    """Remove the entity's resources from all hosts."""
    from statecfg.run import prepare

    secrets: Mapping[str, str] | None = None
    # Read the playbook only for its secrets, to mask them. The resources are removed in any case: they are in the
    # ledgers of the hosts. Content that the schema rejects must never reach the playbook.
    if not order.request["rejected"]:
        with contextlib.suppress(InvalidInput):
            secrets = prepare.playbook(order.path, order.choice).secrets
    yield from _removed(order, set(), secrets)


def _removed(order: _Order, kept: set[str], secrets: Mapping[str, str] | None) -> Iterator[Report]:
    """Remove the entity's resources from the hosts on which the store knows them.

    :param kept: names of hosts to skip
    """
    from statecfg.playbook.compile import Definition
    from statecfg.run.job import Job
    from statecfg.run.prepare import Work
    from statecfg.store import hosts, opened

    with opened(order.project, order.store) as store:
        names = [host.name for host in hosts.every(store) if order.owner in host.playbooks and host.name not in kept]
    if not names:
        return
    inventory = dialects.inventory(order.project, order.choice.inventory)
    nothing = Definition([], secrets=dict(secrets or {}))
    title = order.owner.partition("/")[2]
    jobs = [Job(inventory.host(name), nothing, title, owner=order.owner) for name in names]
    with _bus(order, Mode.DESTROY) as bus:
        report = _done(order, Work(order.project, jobs, order.path, dict(secrets or {})), Mode.DESTROY, bus)
    yield report if secrets is not None else _without_contents(report)


def wrong_hosts(pattern: str) -> Iterator[str]:
    """Yield the problems of the pattern of hosts that a behavior may reach."""
    if not pattern.strip():
        yield "hosts is empty: it must be a pattern of hosts"
    elif "{{" in pattern or "{%" in pattern:
        yield "hosts must not be a template: it bounds what an entity may choose"


def _refuse_other_hosts(order: _Order, work: Work) -> None:
    """Check that the playbook selects only hosts that its behavior declares.

    :raises InvalidInput: it selects another host
    """
    pattern = order.request["properties"].get("hosts")
    if pattern is None:
        return
    inventory = dialects.inventory(order.project, order.choice.inventory)
    allowed = {host.name for host in inventory.select(pattern)}
    others = sorted({job.host.name for job in work.jobs} - allowed)
    if others:
        detail = f"the behavior may reach `{pattern}`, and the playbook selects {', '.join(others)}"
        raise InvalidInput([problem("SC0806", detail, "change `hosts` of the behavior, or the entity")])


@contextlib.contextmanager
def _bus(order: _Order, mode: str) -> Iterator[Bus]:
    """Yield the event bus for a run of the entity's playbook.

    :raises StoreError: the bus could not record everything
    """
    from statecfg.hooks.bus import Bus

    inventory = dialects.inventory(order.project, order.choice.inventory)
    who = f"{order.request['user']}@{socket.gethostname()}"
    bus = Bus(order.project, inventory, uuid.uuid4().hex[:12], who, url=order.store, cancel=order.cancel)
    with contextlib.closing(bus):
        bus.begin(mode, order.owner)
        yield bus
    if bus.problems:
        raise StoreError("; ".join(bus.problems))


def _done(order: _Order, work: Work, mode: str, bus: Bus) -> Report:
    """Run on all hosts, store the report, and return it."""
    from statecfg.engines import engine as engines
    from statecfg.remote.machine.redact import Redactor
    from statecfg.run import fleet
    from statecfg.run import hook_failure as failure
    from statecfg.transport import SshSettings

    settings = order.project.settings
    reach = settings.connections
    connections = SshSettings(reach.ssh_config, accept_new=bool(reach.accept_new_host_keys))
    engine = engines.opened(reach.engine or "threads")
    jobs = [replace(job, host=_become(job.host, order.project)) for job in work.jobs]
    options = fleet.Options(
        mode=mode,
        access=fleet.Access(connections, connect=engine.connect, load=engine.load),
        limits=fleet.Limits(
            settings.forks or 16,
            bool(settings.keep_going),
            # Another entity's run may hold the lock of the host. Wait for it until the deadline.
            lock_timeout=max(0.0, order.deadline - time.monotonic()),
        ),
        cancel=order.cancel,
        agreed=True,  # the request itself confirms that the entity's resources may be removed
        run=bus.run,
        join=bus.join,
    )
    names = ", ".join(job.host.name for job in jobs)
    order.update({"details": f"run {bus.run}: {mode}", "log": f"run {bus.run}: {mode} on {names}"})
    with contextlib.closing(engine):
        report = fleet.run(jobs, options, _Progress(jobs, order.update), work.awaited)
    clean: Report = Redactor(work.completed.secrets).report(failure.complete(report, work.failed, bus))
    clean["playbook"] = order.owner.partition("/")[2]
    bus.enter(clean)
    return clean


def _become(host: Host, project: Project) -> Host:
    """Return a host with the project's `become` settings as defaults."""
    settings = project.settings
    return replace(host, login=host.login.with_settings(settings.become, settings.become_user))


class _Progress:
    """Reports the share of finished nodes, in percent."""

    def __init__(self, jobs: Sequence[Job], update: Callable[[Update], None]) -> None:
        self.all = sum(len(layer) for job in jobs for layer in job.definition.layers)
        self.done, self.percent, self.update = 0, 0, update

    def __call__(self, event: Any) -> None:
        if event.name == RunEvent.NODE_FINISHED and self.all:
            self.done = min(self.done + 1, self.all)
            percent = 99 * self.done // self.all
            if percent > self.percent:
                self.percent = percent
                self.update({"progress": percent})


def _without_contents(report: Report) -> Report:
    """Return a report without the content of removed resources: it may contain unknown secrets."""

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: clean(item) for key, item in value.items() if key not in ("before", "after", "diff", "log")}
        return [clean(item) for item in value] if isinstance(value, list) else value

    cleaned: Report = clean(report)
    return cleaned


# Results and their texts


def _result(reports: Sequence[Report], failures: Sequence[str], public: str) -> PlaybookResult:
    """Return the answer to a request.

    :param failures: the errors, for administrators; [] if the request succeeded
    :param public: the message for users
    """
    nothing = "" if failures else "nothing to do: no host has resources of this entity"
    return {
        "ok": not failures,
        "result": disclosure.result(reports),
        "error": "\n".join(failures),
        "public": public if failures else None,
        "details": disclosure.details(reports) or nothing,
        "log": "\n".join(map(_as_text, reports)) or nothing,
    }


def _as_text(report: Report) -> str:
    """Return a run as text: one line for the run, and one for each host."""
    lines = [f"run {report['run']}: {report['mode']}"]
    for name, host in report["hosts"].items():
        counts = ", ".join(f"{count} {outcome}" for outcome, count in (host.get("summary") or {}).items() if count)
        lines.append(f"  {name}: {host['status']}{f' ({counts})' if counts else ''}")
    return "\n".join(lines)


def _failures(report: Report) -> list[str]:
    """Return why a run failed: one text for each failed host."""
    failures = []
    for name, host in report["hosts"].items():
        reasons = list(_reasons(host))
        if host["status"] != HostStatus.OK or reasons:
            more = [f"and {len(reasons) - REASONS} more"] if len(reasons) > REASONS else []
            why = "; ".join([*reasons[:REASONS], *more]) or "the run did not finish"
            failures.append(f"{name}: {host['status']}: {why} (run {report['run']})")
    return failures


def _reasons(host: HostData) -> Iterator[str]:
    error = host.get("error")
    if error:
        yield ": ".join(filter(None, (str(error.get("summary", "")), str(error.get("detail") or ""))))
    if host.get("refusal"):
        yield str(host["refusal"])
    for layer in (*(host.get("removals") or ()), *(host.get("layers") or ())):
        for node in layer:
            if node["outcome"] in (Outcome.FAILED, Outcome.UNKNOWN):
                yield f"{node['name']}: {_why(node)}"
    for fired in host.get("fired") or ():
        if fired["status"] in (HookStatus.FAILED, HookStatus.OWED):
            yield f"hook {fired['hook']}: {fired.get('error') or fired['status']}"


def _why(node: Mapping[str, Any]) -> str:
    causes = [str(action["reason"]) for action in node.get("actions") or () if action.get("reason")]
    return "; ".join(causes) or str(node.get("reason") or node["outcome"])


def _problem(item: Problem) -> str:
    location = f"{item.locations[0]}: " if item.locations else ""
    return f"{location}{item.summary}: {item.detail}{f' ({item.help})' if item.help else ''} [{item.code}]"
