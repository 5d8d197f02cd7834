"""Turns a playbook into jobs: selects the hosts and compiles the graph of each, without contacting any host."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statecfg import dialects
from statecfg.playbook.inventory import LOCAL
from statecfg.problems import InvalidInput, Problem, collecting, problem, report, reporting, suggest
from statecfg.problems.frozen import dataclass
from statecfg.run import evaluation, needs
from statecfg.run.choice import Choice
from statecfg.run.reshaping import HookedHost, call_hooks

if TYPE_CHECKING:
    from statecfg.facts.own import OwnFact
    from statecfg.facts.reading import Reading
    from statecfg.playbook.inventory import Host, Inventory
    from statecfg.playbook.plays import Play
    from statecfg.playbook.project import Project
    from statecfg.playbook.services import Relation
    from statecfg.run.awaited import Awaited, Reshaping
    from statecfg.run.declared import ServiceWork
    from statecfg.run.hook_failure import HookFailure
    from statecfg.run.host_jobs import HostJobs
    from statecfg.run.job import Job
    from statecfg.run.reshaping import Reshape


__all__ = ["Choice", "FactsOfWork", "Work", "hosts", "offline", "owner", "playbook"]


@dataclass(frozen=True)
class FactsOfWork:
    """What the definitions of a playbook have to do with facts.

    :param awaited: completes the jobs of hosts that wait for facts; None if there are none
    :param readings: host → what the last evaluation of its definition has read
    """

    awaited: Awaited | None = None
    readings: Mapping[str, Reading] = field(default_factory=dict)

    def used(self, host: str) -> Mapping[str, Any]:
        """Return path → value of the facts that the complete definition of a host used."""
        reading = self.readings.get(host)
        return {} if reading is None or reading.missing else reading.used


@dataclass(frozen=True)
class Work:
    """A prepared playbook.

    :param project: the project with its settings
    :param jobs: one job for each host
    :param playbook: the playbook's file, None without a playbook
    :param secrets: name → value of every secret in the jobs
    :param missing: names of secrets that were not found and have placeholders
    :param failed: failures of hooks; their hosts have no job
    :param services: all services of the playbook, regardless of the limit
    :param relations: all relations of the playbook, regardless of the limit
    :param warnings: warnings for the user
    :param everywhere: names of all hosts of the playbook, regardless of the limit
    :param inventory: the inventory with these hosts
    :param facts: what its definitions have to do with facts
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
    facts: FactsOfWork = field(default_factory=FactsOfWork)

    @property
    def awaited(self) -> Awaited | None:
        """Completes the jobs of hosts that wait for facts; None if there are none."""
        return self.facts.awaited

    @property
    def completed(self) -> Work:
        """The same work with the jobs that were completed when the facts were known."""
        if self.awaited is None:
            return self
        jobs = [self.awaited.complete.get(job.host.name, job) for job in self.jobs]
        return replace(self, jobs=jobs, secrets={**self.secrets, **self.awaited.secrets})


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
    from statecfg.facts import own as own_facts
    from statecfg.graph import opaque
    from statecfg.playbook import secret_keys
    from statecfg.run import bundle, project_inputs, unguarded

    failed: list[HookFailure] = []
    services: Sequence[ServiceWork] = ()
    relations: Sequence[Relation] = ()
    awaited: Awaited | None = None
    with opaque.recording() as used, secret_keys.opening(choice.keys or secret_keys.Keys()):
        with collecting() as problems, reporting():
            chosen = chosen_by(path, choice)
            project = chosen.project
            jobs, evaluated = _jobs(path, choice, chosen, own_facts.find(project.root))
            services, relations = chosen.services(choice)

            def reshaped(some: list[Job]) -> tuple[list[Job], list[HookFailure]]:
                if reshape is None:
                    return some, []
                return _reshaped(choice, chosen, some, reshape, evaluated.readings)

            if not problems:
                jobs = needs.with_hooked(jobs, reshape)
                waiting = [job for job in jobs if job.needs]
                known, failed = reshaped([job for job in jobs if not job.needs])
                order = {job.host.name: index for index, job in enumerate(jobs)}
                jobs = sorted([*known, *waiting], key=lambda job: order[job.host.name])
                awaited = _awaited(evaluated, chosen, waiting, reshaped)
            # Check the code for hosts, too. The run reuses the bundles that are built here.
            bundle.check()
            for job in jobs:
                bundle.build(job.definition.types)
            project_inputs.note(project, services)
        if problems:
            raise InvalidInput(sorted(problems, key=_order))
    jobs = [_hiding(job, services, chosen.added) for job in jobs]
    if awaited is not None:
        awaited.then.append(lambda some: {name: _hiding(job, services, chosen.added) for name, job in some.items()})
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
        facts=FactsOfWork(awaited, evaluated.readings),
    )


def _awaited(evaluated: HostJobs, chosen: _Chosen, waiting: Sequence[Job], reshaped: Reshaping) -> Awaited | None:
    """Return what completes the waiting jobs; None if there are none."""
    from statecfg.run.awaited import Awaited

    names = {job.host.name for job in waiting}
    hosts = [(host, plays) for host, plays in chosen.hosts if host.name in names]
    return Awaited(evaluated, hosts, waiting, reshaped) if waiting else None


def _hiding(job: Job, services: Sequence[ServiceWork], added: Mapping[str, Sequence[str]]) -> Job:
    """Return a job with the secrets of the host's units, so that the host masks them."""
    on_host = [work for work in services if job.host.name in (*work.hosts, *added.get(work.service.name, ()))]
    hidden = {name: text for work in on_host for name, text in work.hidden.items()}
    definition = replace(job.definition, secrets={**job.definition.secrets, **hidden})
    return replace(job, definition=definition) if hidden else job


def _order(item: Problem) -> tuple[str, int, int]:
    file, line, column = item.locations[0] if item.locations else ("", 0, 0)
    return file, line, column or 0


def _jobs(path: Path, choice: Choice, chosen: _Chosen, own: Mapping[str, OwnFact]) -> tuple[list[Job], HostJobs]:
    """Return the jobs, and what evaluated them. Jobs of hosts that wait for facts have `needs`."""
    from statecfg.run.fact_source import FactSource
    from statecfg.run.host_jobs import HostJobs

    project = chosen.project
    source = FactSource(choice, own, [host.name for host, _ in chosen.hosts])
    name = owner(project, path, choice.instance)
    evaluated = HostJobs(project.relative(path), name, choice, project, chosen.inventory, source)
    made: dict[str, Job | None] = {}
    for host, plays in chosen.hosts:
        made[host.name] = evaluated.job(host, plays)
        if evaluated.slow:
            break
    _without(evaluated, chosen, made)
    found = evaluated.problems.problems()
    report(*found)
    jobs = [job for job in made.values() if job is not None]
    if chosen.hosts and not jobs and not found:
        help_text = suggest(choice.tags[0], sorted(evaluated.tags), "tags in the playbook")
        report(problem("SC0431", f"tags: {', '.join(choice.tags)}", help_text or "add `tags: [NAME]` to resources"))
    return needs.of_jobs(jobs, evaluated, path), evaluated


def _without(evaluated: HostJobs, chosen: _Chosen, made: dict[str, Job | None]) -> None:
    """Evaluate again what reads facts of hosts that this run does not visit, because nothing on them has the tags."""
    absent = {name for name, job in made.items() if job is None}
    if not absent or evaluated.problems.hosts_of:
        return
    for name in absent:
        del evaluated.source.collected[name]
    for host, plays in chosen.hosts:
        if host.name in made and not absent.isdisjoint(evaluated.readings[host.name].missing):
            made[host.name] = evaluated.job(host, plays)


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
    :param everywhere: names of all hosts of the plays, regardless of the limit
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


def chosen_by(path: Path, choice: Choice) -> _Chosen:
    """Return a playbook and its hosts; report what is wrong."""
    from statecfg.playbook import project as projects, secret_keys  # isort: skip

    project = projects.find(path)
    keys = project.settings.keys
    secret_keys.current().keys += secret_keys.Keys.of(keys.vault_ids, keys.age_identities, project.root)
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
    from statecfg.dialects.variable_names import VariableNames  # it loads Jinja2

    names = VariableNames(str(project.root))
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
    choice: Choice, chosen: _Chosen, jobs: Sequence[Job], reshape: Reshape, readings: Mapping[str, Reading]
) -> tuple[list[Job], list[HookFailure]]:
    """Return the jobs with the graphs that hooks changed, and the failures of hooks.

    The hooks of several hosts are called concurrently, so that a service that does not answer delays them only once.
    """
    kept = {job.host.name: job for job in jobs}
    failed: list[HookFailure] = []
    if not any(reshape.concerns(name) for name in kept):
        return list(kept.values()), failed
    project = chosen.project
    called = []
    for host, plays in chosen.hosts:
        if host.name in kept and reshape.concerns(host.name):
            reading = readings[host.name]
            evaluated = evaluation.evaluate(host, plays, choice.extra, choice.tags, reading)
            called.append(HookedHost(host, evaluated, kept[host.name].owner, reading))
    call_hooks(called, reshape)
    for one in called:
        name = one.host.name
        if one.failure is not None:
            del kept[name]
            failed.append(one.failure)
            continue
        with collecting() as problems, reporting():
            report(*one.problems)
            if one.graph is not None and one.graph is not one.evaluated.graph:
                definition = evaluation.definition(one.host, one.graph, one.evaluated, project, one.reading)
                kept[name] = replace(kept[name], definition=definition)
        if name in reshape.unsure:
            kept[name] = replace(kept[name], prune=False)
        # The graph was valid before the hooks changed it.
        context = f" (on {name}, after these hooks changed it: {', '.join(reshape.concerns(name))})"
        report(*(replace(item, detail=item.detail + context) for item in problems))
    return list(kept.values()), failed


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
