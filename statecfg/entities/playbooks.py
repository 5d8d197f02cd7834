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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statecfg import dialects
from statecfg.entities import disclosure
from statecfg.problems import InvalidInput, Problem, SourceLocation, problem
from statecfg.remote.graph.events import HostEvent
from statecfg.remote.graph.names import HookStatus, HostStatus, Outcome
from statecfg.store import StoreError

if TYPE_CHECKING:
    from statecfg.hooks.bus import Bus
    from statecfg.playbook.inventory import Host
    from statecfg.playbook.project import Project
    from statecfg.run.fleet import Job
    from statecfg.run.prepare import Choice, Work

REASONS = 5  # maximum number of failed nodes per host in an error
Json = dict[str, Any]


@dataclass(frozen=True)
class _Asked:
    """A request with its project and the options of its run.

    :param allowed: pattern of the hosts that the behavior may reach; None for those that the playbook names
    :param rejected: whether the type's schema rejects the entity's content
    """

    project: Project
    path: Path
    choice: Choice
    owner: str
    who: str
    store: str | None
    deadline: float
    allowed: str | None
    rejected: bool
    update: Callable[[Json], None]
    cancel: threading.Event


def run(request: Json, update: Callable[[Json], None], cancel: threading.Event) -> Json:
    """Execute a request; return {"ok", "result", "error", "public", "details", "log"}.

    :param request: `root`, `id` (the playbook), `destroy`, `entity`, `entity_id`, `entity_name`, `arguments`,
        `properties` (`inventory`, `hosts`, `limit`), `rejected` (whether the type's schema rejects the content),
        `user`, `store` (a URL, "" for the project's) and `seconds`
    :param update: receives progress of the task
    :param cancel: set to stop: the current run ends, and no other starts
    """
    reports: list[Json] = []
    try:
        asked = _asked(request, update, cancel)
        for report in _destroyed(asked) if request["destroy"] else _applied(asked):
            reports.append(report)
            update({"details": disclosure.details(reports), "log": "\n".join(map(_told, reports))})
            if _failures(report):
                break
    except InvalidInput as wrong:
        return _answer(reports, [_problem(each) for each in wrong.problems], disclosure.rejected(wrong.problems))
    except StoreError as wrong:
        return _answer(reports, [str(wrong)], f"The store failed. {disclosure.ASK}")
    failed = {report["run"]: _failures(report) for report in reports}
    public = disclosure.failed_runs(reports, [run for run, texts in failed.items() if texts])
    return _answer(reports, [text for texts in failed.values() for text in texts], public)


def _asked(request: Json, update: Callable[[Json], None], cancel: threading.Event) -> _Asked:
    """Find the project of a request and build the options of its run.

    :raises InvalidInput: the project or a property is invalid
    """
    from statecfg.playbook import project as projects
    from statecfg.run import prepare

    root = Path(request["root"])
    project, path = projects.find(root), root / request["id"]
    properties = request["properties"]
    file = properties.get("inventory")
    variables = {key: request[key] for key in ("entity", "entity_id", "entity_name", "arguments")}
    instance = request["entity_id"].rpartition(":")[2]
    choice = prepare.Choice(root / file if file else None, None, (), variables, True, instance)
    if not request["destroy"]:
        choice = replace(choice, limit=_limit(properties.get("limit"), variables, request["id"]))
    who = f"{request['user']}@{socket.gethostname()}"
    deadline = time.monotonic() + request["seconds"]
    owner = prepare.owner(project, path, instance)
    return _Asked(
        project=project,
        path=path,
        choice=choice,
        owner=owner,
        who=who,
        store=request["store"] or None,
        deadline=deadline,
        allowed=properties.get("hosts"),
        rejected=bool(request.get("rejected")),
        update=update,
        cancel=cancel,
    )


def _limit(text: Any, variables: Mapping[str, Any], playbook: str) -> str | None:
    """Return the pattern that limits the hosts. The behavior may declare it as a template of the entity."""
    if text is None:
        return None
    from statecfg import templates

    found = templates.evaluate(text, variables, SourceLocation(f"limit for {playbook}", 1))
    if not isinstance(found, str) or not found.strip():
        detail = f"the behavior's limit `{text}` gives {found!r} for this entity"
        raise InvalidInput([problem("SC0406", detail, "it must give a pattern of hosts")])
    return found


def _applied(asked: _Asked) -> Iterator[Json]:
    """Apply the playbook. Then remove the entity's resources from hosts that the playbook no longer selects."""
    from statecfg.run import prepare

    with _bus(asked, "apply") as bus:
        work = prepare.playbook(asked.path, asked.choice, bus.reconciler)
        if work.services or work.relations:
            detail = f"{asked.project.relative(asked.path)} declares services, which a project has only once"
            raise InvalidInput([problem("SC0805", detail, "an entity can only have resources of its own")])
        _refuse_other_hosts(asked, work)
        report = _done(asked, work, "apply", bus)
    yield report
    yield from _removed(asked, set(report["hosts"]), work.secrets)


def _destroyed(asked: _Asked) -> Iterator[Json]:
    """Remove the entity's resources from all hosts."""
    from statecfg.run import prepare

    secrets: Mapping[str, str] | None = None
    # Read the playbook only for its secrets, to mask them. The resources are removed in any case: they are in the
    # ledgers of the hosts. Content that the schema rejects must never reach the playbook.
    if not asked.rejected:
        with contextlib.suppress(InvalidInput):
            secrets = prepare.playbook(asked.path, asked.choice).secrets
    yield from _removed(asked, set(), secrets)


def _removed(asked: _Asked, kept: set[str], secrets: Mapping[str, str] | None) -> Iterator[Json]:
    """Remove the entity's resources from the hosts on which the store knows them.

    :param kept: names of hosts to skip
    """
    from statecfg.playbook.compile import Definition
    from statecfg.run.fleet import Job
    from statecfg.run.prepare import Work
    from statecfg.store import hosts, opened

    with opened(asked.project, asked.store) as store:
        names = [each.name for each in hosts.every(store) if asked.owner in each.playbooks and each.name not in kept]
    if not names:
        return
    inventory = dialects.inventory(asked.project, asked.choice.inventory)
    nothing = Definition([], secrets=dict(secrets or {}))
    title = asked.owner.partition("/")[2]
    jobs = [Job(inventory.host(name), nothing, title, owner=asked.owner) for name in names]
    with _bus(asked, "destroy") as bus:
        report = _done(asked, Work(asked.project, jobs, asked.path, dict(secrets or {})), "destroy", bus)
    yield report if secrets is not None else _without_contents(report)


def wrong_hosts(pattern: str) -> Iterator[str]:
    """Yield the problems of the pattern of hosts that a behavior may reach."""
    if not pattern.strip():
        yield "hosts is empty: it must be a pattern of hosts"
    elif "{{" in pattern or "{%" in pattern:
        yield "hosts must not be a template: it bounds what an entity may choose"


def _refuse_other_hosts(asked: _Asked, work: Work) -> None:
    """Check that the playbook selects only hosts that its behavior declares.

    :raises InvalidInput: it selects another host
    """
    if asked.allowed is None:
        return
    inventory = dialects.inventory(asked.project, asked.choice.inventory)
    allowed = {host.name for host in inventory.select(asked.allowed)}
    others = sorted({job.host.name for job in work.jobs} - allowed)
    if others:
        detail = f"the behavior may reach `{asked.allowed}`, and the playbook selects {', '.join(others)}"
        raise InvalidInput([problem("SC0806", detail, "change `hosts` of the behavior, or the entity")])


@contextlib.contextmanager
def _bus(asked: _Asked, mode: str) -> Iterator[Bus]:
    """Yield the event bus for a run of the entity's playbook.

    :raises StoreError: the bus could not record everything
    """
    from statecfg.hooks.bus import Bus

    inventory = dialects.inventory(asked.project, asked.choice.inventory)
    bus = Bus(asked.project, inventory, uuid.uuid4().hex[:12], asked.who, url=asked.store, cancel=asked.cancel)
    with contextlib.closing(bus):
        bus.begin(mode, asked.owner)
        yield bus
    if bus.problems:
        raise StoreError("; ".join(bus.problems))


def _done(asked: _Asked, work: Work, mode: str, bus: Bus) -> Json:
    """Run on all hosts, store the report, and return it."""
    from statecfg.remote.machine.redact import Redactor
    from statecfg.run import fleet
    from statecfg.run import hook_failure as failure
    from statecfg.transport import Settings

    settings = asked.project.settings
    jobs = [replace(job, host=_become(job.host, asked.project)) for job in work.jobs]
    options = fleet.Options(
        mode=mode,
        forks=settings.forks or 16,
        keep_going=bool(settings.keep_going),
        # Another entity's run may hold the lock of the host. Wait for it until the deadline.
        lock_timeout=max(0.0, asked.deadline - time.monotonic()),
        settings=Settings(ssh_config=settings.ssh_config, accept_new=bool(settings.accept_new_host_keys)),
        cancel=asked.cancel,
        agreed=True,  # the request itself confirms that the entity's resources may be removed
        run=bus.run,
        join=bus.join,
    )
    names = ", ".join(job.host.name for job in jobs)
    asked.update({"details": f"run {bus.run}: {mode}", "log": f"run {bus.run}: {mode} on {names}"})
    report = fleet.run(jobs, options, _Progress(jobs, asked.update))
    clean: Json = Redactor(work.secrets).report(failure.complete(report, work.failed, bus))
    clean["playbook"] = asked.owner.partition("/")[2]
    bus.enter(clean)
    return clean


def _become(host: Host, project: Project) -> Host:
    """Return a host with the project's `become` settings as defaults."""
    settings = project.settings
    return replace(host, login=host.login.with_settings(settings.become, settings.become_user))


class _Progress:
    """Reports the share of finished nodes, in percent."""

    def __init__(self, jobs: Sequence[Job], update: Callable[[Json], None]) -> None:
        self.all = sum(len(layer) for job in jobs for layer in job.definition.layers)
        self.done, self.told, self.update = 0, 0, update

    def __call__(self, event: Any) -> None:
        if event.kind == HostEvent.NODE_FINISHED and self.all:
            self.done = min(self.done + 1, self.all)
            percent = 99 * self.done // self.all
            if percent > self.told:
                self.told = percent
                self.update({"progress": percent})


def _without_contents(report: Json) -> Json:
    """Return a report without the content of removed resources: it may contain unknown secrets."""

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: clean(item) for key, item in value.items() if key not in ("before", "after", "diff", "log")}
        return [clean(item) for item in value] if isinstance(value, list) else value

    found: Json = clean(report)
    return found


# Answers and their texts


def _answer(reports: Sequence[Json], failures: Sequence[str], public: str) -> Json:
    """Return the answer to a request.

    :param failures: the errors, for administrators; [] if the request succeeded
    :param public: the message for users
    """
    nothing = "" if failures else "nothing to do: no host has anything of this entity"
    return {
        "ok": not failures,
        "result": disclosure.result(reports),
        "error": "\n".join(failures),
        "public": public if failures else None,
        "details": disclosure.details(reports) or nothing,
        "log": "\n".join(map(_told, reports)) or nothing,
    }


def _told(report: Json) -> str:
    """Return a run as text: one line for the run, and one for each host."""
    lines = [f"run {report['run']}: {report['mode']}"]
    for name, host in report["hosts"].items():
        counts = ", ".join(f"{count} {outcome}" for outcome, count in (host.get("summary") or {}).items() if count)
        lines.append(f"  {name}: {host['status']}{f' ({counts})' if counts else ''}")
    return "\n".join(lines)


def _failures(report: Json) -> list[str]:
    """Return why a run failed: one text for each failed host."""
    found = []
    for name, host in report["hosts"].items():
        reasons = list(_reasons(host))
        if host["status"] != HostStatus.OK or reasons:
            more = [f"and {len(reasons) - REASONS} more"] if len(reasons) > REASONS else []
            said = "; ".join([*reasons[:REASONS], *more]) or "it did not come to its end"
            found.append(f"{name}: {host['status']}: {said} (run {report['run']})")
    return found


def _reasons(host: Json) -> Iterator[str]:
    error = host.get("error") or {}
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


def _why(node: Json) -> str:
    causes = [str(action["reason"]) for action in node.get("actions") or () if action.get("reason")]
    return "; ".join(causes) or str(node.get("reason") or node["outcome"])


def _problem(found: Problem) -> str:
    place = f"{found.places[0]}: " if found.places else ""
    return f"{place}{found.summary}: {found.detail}{f' ({found.help})' if found.help else ''} [{found.code}]"
