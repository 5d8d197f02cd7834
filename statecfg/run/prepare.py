"""Turns a playbook into jobs: selects the hosts and compiles the graph of each, without contacting any host."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statecfg import dialects
from statecfg.playbook.inventory import LOCAL
from statecfg.problems import InvalidInput, Problem, collecting, problem, report, reporting, suggest
from statecfg.run import evaluation
from statecfg.run.reshaping import HookedHost, call_hooks

if TYPE_CHECKING:
    from statecfg.playbook.inventory import Host, Inventory
    from statecfg.playbook.plays import Play
    from statecfg.playbook.project import Project
    from statecfg.playbook.services import Relation
    from statecfg.run.declared import ServiceWork
    from statecfg.run.hook_failure import HookFailure
    from statecfg.run.job import Job
    from statecfg.run.reshaping import Reshape

SLOW = ("SC0323", "SC0507")  # error codes of time limits


@dataclass(frozen=True)
class Work:
    """A prepared playbook.

    :param project: the project with its settings
    :param jobs: one job for each host
    :param playbook: the playbook's file, None without a playbook
    :param secrets: name → value of every secret in the jobs
    :param missing: names of secrets that were not found and have placeholders
    :param failed: failures of hooks; their hosts have no job
    :param services: all services of the playbook, whatever the limit
    :param relations: all relations of the playbook, whatever the limit
    :param warnings: warnings for the user
    :param everywhere: names of all hosts of the playbook, whatever the limit
    :param inventory: the inventory with these hosts
    """

    project: Project
    jobs: Sequence[Job]
    playbook: Path | None = None
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    missing: Sequence[str] = ()
    failed: Sequence[HookFailure] = ()
    services: Sequence[ServiceWork] = ()
    relations: Sequence[Relation] = ()
    warnings: Sequence[str] = ()
    everywhere: frozenset[str] = frozenset()
    inventory: Inventory | None = None


@dataclass(frozen=True)
class Choice:
    """The user's options that limit or change what a playbook does.

    :param inventory: the inventory file, None for the project's
    :param limit: a host pattern, None for all hosts
    :param tags: tags of resources, none for all resources
    :param extra: variables that override all others
    :param prune: whether to remove orphans
    :param instance: distinguishes several uses of a playbook on the same hosts; "" if there is only one
    :param given: names in `extra` that the user wrote; statecfg reports those that nothing reads
    :param added: returns service → hosts with units that were added by hand; these hosts get the service's resources
    :param sources: whether the jobs shall contain what their definitions were made from
    """

    inventory: Path | None = None
    limit: str | None = None
    tags: Sequence[str] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    prune: bool = False
    instance: str = ""
    given: frozenset[str] = frozenset()
    added: Callable[[], Mapping[str, Sequence[str]]] | None = None
    sources: bool = False


def offline(path: Path, choice: Choice) -> Work:
    """Return the jobs of a playbook for display only. Secrets that are not available get placeholders."""
    from statecfg.playbook import secrets

    with secrets.placeholders() as missing:
        work = playbook(path, choice)
    return replace(work, missing=tuple(sorted(missing)))


def playbook(path: Path, choice: Choice, reshape: Reshape | None = None) -> Work:
    """Return the jobs of a playbook, one for each of its hosts within the limit.

    :param path: the playbook's file
    :param choice: the user's options
    :param reshape: may change the graph of each host after all graphs were found valid
    :raises InvalidInput: with all problems of all stages and hosts
    """
    from statecfg.playbook.output import to_stderr

    with to_stderr():
        return _playbook(path, choice, reshape)


def _playbook(path: Path, choice: Choice, reshape: Reshape | None) -> Work:
    from statecfg.graph import opaque
    from statecfg.run import bundle, project_inputs, unguarded

    failed: list[HookFailure] = []
    services: Sequence[ServiceWork] = ()
    relations: Sequence[Relation] = ()
    with opaque.recording() as used:
        with collecting() as problems, reporting():
            chosen = _chosen(path, choice)
            project, jobs = chosen.project, _jobs(path, choice, chosen)
            services, relations = chosen.services(choice)
            if reshape is not None and not problems:
                jobs, failed = _reshaped(path, choice, chosen, jobs, reshape)
            # Check the code for hosts, too. The run reuses the bundles that are built here.
            bundle.check()
            for job in jobs:
                bundle.build(job.definition.types)
            project_inputs.note(project, services)
        if problems:
            raise InvalidInput(sorted(problems, key=_order))
    jobs = [_hiding(job, services, chosen.added) for job in jobs]
    revealed = [(name, value.reveal()) for name, value in used.items()]
    secrets = opaque.by_name([*revealed, *(secret for job in jobs for secret in job.definition.secrets.items())])
    return Work(
        project,
        jobs,
        path,
        secrets,
        failed=failed,
        services=services,
        relations=relations,
        warnings=(*chosen.warnings, *unguarded.warnings(jobs)),
        everywhere=chosen.everywhere,
        inventory=chosen.inventory,
    )


def _hiding(job: Job, services: Sequence[ServiceWork], added: Mapping[str, Sequence[str]]) -> Job:
    """Return a job with the secrets of the host's units, so that the host masks them."""
    on_host = [work for work in services if job.host.name in (*work.hosts, *added.get(work.service.name, ()))]
    hidden = {name: text for work in on_host for name, text in work.hidden.items()}
    definition = replace(job.definition, secrets={**job.definition.secrets, **hidden})
    return replace(job, definition=definition) if hidden else job


def _order(item: Problem) -> tuple[str, int, int]:
    file, line, column = item.places[0] if item.places else ("", 0, 0)
    return file, line, column or 0


def _jobs(path: Path, choice: Choice, chosen: _Chosen) -> list[Job]:
    from statecfg.graph.recording import scopes
    from statecfg.run.job import Job, Sources

    project = chosen.project
    name, whose = project.relative(path), owner(project, path, choice.instance)
    jobs: list[Job] = []
    shared = _SharedProblems()
    tags: set[str] = set()
    for host, plays in chosen.hosts:
        definition = None
        with collecting() as problems, reporting():
            with scopes(choice.sources) as found:
                evaluated = evaluation.evaluate(host, plays, choice.extra, choice.tags)
            tags |= evaluated.tags
            definition = evaluation.definition(host, evaluated.graph, evaluated, project)
        shared.add(host.name, problems)
        if any(item.code in SLOW for item in problems):
            break  # every other host would take as long
        # With tags, skip hosts without tagged resources.
        if definition is not None and (definition.layers or not choice.tags):
            prune = choice.prune or any(one.prune for play in plays for one in (play, *play.others))
            sources = Sources(evaluated.graph, plays, found) if choice.sources else None
            pruning = prune and not choice.tags
            jobs.append(Job(host, definition, name, pruning, bool(choice.tags), owner=whose, sources=sources))
    report(*shared.problems())
    if chosen.hosts and not jobs and not shared.problems():
        help_text = suggest(choice.tags[0], sorted(tags), "tags in the playbook")
        report(problem("SC0431", f"tags: {', '.join(choice.tags)}", help_text or "add `tags: [NAME]` to resources"))
    return jobs


def owner(project: Project, path: Path, instance: str = "") -> str:
    """Return the name of an owning playbook in the ledgers of hosts: PROJECT/PATH, the same in every checkout.

    PROJECT is the name in the project's settings, otherwise the name of its directory. `#INSTANCE` follows PATH.

    :param path: the playbook's file
    :param instance: see `Choice`
    """
    relative = project.relative(path) + (f"#{instance}" if instance else "")
    return relative if relative.startswith("/") else f"{project.name}/{relative}"


@dataclass(frozen=True)
class _Chosen:
    """A playbook, and each of its hosts with its plays. If it is empty, a problem was reported.

    :param added: service → hosts with units that were added by hand
    :param everywhere: names of all hosts of the plays, whatever the limit
    """

    project: Project
    inventory: Inventory | None = None
    plays: Sequence[Play] = ()
    relations: Sequence[Relation] = ()
    hosts: Sequence[tuple[Host, list[Play]]] = ()
    warnings: tuple[str, ...] = ()
    added: Mapping[str, Sequence[str]] = field(default_factory=dict)
    everywhere: frozenset[str] = frozenset()

    def services(self, choice: Choice) -> tuple[Sequence[ServiceWork], Sequence[Relation]]:
        """Return the services to deploy, and their relations; report problems with them."""
        if self.inventory is None or not (self.relations or any(play.service for play in self.plays)):
            return (), ()
        from statecfg.run import declared

        services = declared.services(self.plays, self.inventory, choice.extra)
        return services, declared.relations(services, self.relations)


def _chosen(path: Path, choice: Choice) -> _Chosen:
    from statecfg.playbook import project as projects

    project = projects.find(path)
    inventory, definitions = None, None
    with reporting():
        inventory = dialects.inventory(project, choice.inventory, secrets=True)
    with reporting():
        definitions = dialects.read(path, project)
    if definitions is None or inventory is None:
        return _Chosen(project)
    services = choice.added is not None and any(play.service is not None for play in definitions.plays)
    added = choice.added() if services and choice.added is not None else {}
    hosts = _hosts(definitions.plays, inventory, choice.limit, added)
    everywhere = frozenset(host.name for host, _ in hosts)
    if choice.limit is not None:
        with collecting(), reporting():  # the call above reported all problems
            everywhere = frozenset(host.name for host, _ in _hosts(definitions.plays, inventory, None, added))
    warnings = _unread(path, choice, project, inventory)
    return _Chosen(project, inventory, definitions.plays, definitions.relations, hosts, warnings, added, everywhere)


def _unread(path: Path, choice: Choice, project: Project, inventory: Inventory) -> tuple[str, ...]:
    """Report command-line variables that nothing declares or reads; if this is uncertain, return warnings instead."""
    if not choice.given:
        return ()
    from statecfg.dialects.variable_names import Names  # it loads Jinja2

    names = Names(str(project.root))
    names.add(os.path.abspath(path))
    declared = {name for host in inventory.hosts.values() for name in host.vars} | names.names
    unread = sorted(choice.given - declared - names.maybe)
    if not names.complete:
        return tuple(f"the playbook does not seem to read `{name}`, which -e sets" for name in unread)
    for name in unread:
        detail = f"-e sets `{name}`, and neither the playbook nor the inventory declares or reads it"
        report(problem("SC0424", detail, suggest(name, sorted(declared), "they have")))
    return ()


def _reshaped(
    path: Path, choice: Choice, chosen: _Chosen, jobs: Sequence[Job], reshape: Reshape
) -> tuple[list[Job], list[HookFailure]]:
    """Return the jobs with the graphs that hooks changed, and the failures of hooks.

    The hooks of several hosts are called concurrently, so that a service that does not answer delays them only once.
    """
    kept = {job.host.name: job for job in jobs}
    failed: list[HookFailure] = []
    if not any(reshape.concerns(name) for name in kept):
        return list(kept.values()), failed
    project = chosen.project
    hooked = [(host, plays) for host, plays in chosen.hosts if host.name in kept and reshape.concerns(host.name)]
    called = [
        HookedHost(
            host, evaluation.evaluate(host, plays, choice.extra, choice.tags), owner(project, path, choice.instance)
        )
        for host, plays in hooked
    ]
    call_hooks(called, reshape)
    for host in called:
        name = host.host.name
        if host.failure is not None:
            del kept[name]
            failed.append(host.failure)
            continue
        with collecting() as problems, reporting():
            report(*host.problems)
            if host.graph is not None:
                definition = evaluation.definition(host.host, host.graph, host.evaluated, project)
                kept[name] = replace(kept[name], definition=definition)
        # The graph was valid before the hooks changed it.
        context = f" (on {name}, after these hooks changed it: {', '.join(reshape.concerns(name))})"
        report(*(replace(item, detail=item.detail + context) for item in problems))
    return list(kept.values()), failed


class _SharedProblems:
    """The problems of many hosts, each only once. A problem that not all hosts share names its hosts."""

    def __init__(self) -> None:
        self.hosts = 0
        self.hosts_of: dict[tuple[Any, ...], tuple[Problem, list[str]]] = {}

    def add(self, host: str, problems: Iterable[Problem]) -> None:
        """Add the problems of one host."""
        self.hosts += 1
        for item in problems:
            key = (item.code, item.places, item.detail.replace(host, "\0"))
            self.hosts_of.setdefault(key, (item, []))[1].append(host)

    def problems(self) -> list[Problem]:
        """Return the problems in the order in which they were found."""
        return [self._with_hosts(item, names) for item, names in self.hosts_of.values()]

    def _with_hosts(self, item: Problem, names: list[str]) -> Problem:
        # Problems with secrets never belong to a host: the controller looks each secret up once.
        shared = len(names) == self.hosts or item.code.startswith("SC042")
        if shared or (len(names) == 1 and names[0] in item.detail):
            return item
        listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        first, line, rest = item.detail.partition("\n")
        return replace(item, detail=f"{first} (on {listed}){line}{rest}")


def hosts(pattern: str, choice: Choice) -> Work:
    """Return the hosts of a pattern as jobs with empty definitions.

    :param pattern: a host pattern
    :param choice: the inventory and the limit
    :raises InvalidInput: if the inventory or the pattern is invalid
    """
    from statecfg.playbook import project as projects
    from statecfg.playbook.compile import Definition
    from statecfg.run.job import Job

    project = projects.find(Path.cwd())
    chosen = dialects.inventory(project, choice.inventory).select(pattern, choice.limit)
    return Work(project, [Job(host, Definition([]), "") for host in chosen])


def _hosts(
    plays: Iterable[Play], inventory: Inventory, limit: str | None, added: Mapping[str, Sequence[str]]
) -> list[tuple[Host, list[Play]]]:
    """Return each host with its plays, in the order in which the plays name the hosts.

    :param added: service → hosts in addition to its pattern; hosts that are not in the inventory are ignored
    """
    chosen: dict[str, tuple[Host, list[Play]]] = {}
    all_plays = list(plays)
    several = len(all_plays) > 1
    left = not all_plays
    for play in all_plays:
        hosts: Sequence[Host] | None = None
        with reporting():
            more = _more(added.get(play.service.name, ()), inventory, limit) if play.service is not None else []
            hosts = inventory.select(play.hosts, limit, play.position, empty_ok=several or bool(more))
            hosts = [*hosts, *(host for host in more if host not in hosts)]
        left = left or hosts is None
        for host in hosts or ():
            chosen.setdefault(host.name, (host, []))[1].append(play)
    if not chosen and not left:
        report(problem("SC0406", f"--limit `{limit}` leaves no host of any play", "", all_plays[0].position))
    return list(chosen.values())


def _more(names: Sequence[str], inventory: Inventory, limit: str | None) -> list[Host]:
    """Return the hosts with these names that are in the inventory and within the limit."""
    present = [name for name in sorted({*names}) if name == LOCAL or name in inventory.hosts]
    return [host for name in present for host in inventory.select(name, limit, empty_ok=True)]
