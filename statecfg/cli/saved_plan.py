"""Read saved plans, and apply them in a copy of their project, in any directory and on any machine."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from statecfg import dialects
from statecfg.cli import saved_selection, session
from statecfg.cli.main import VERSION
from statecfg.cli.options import ConnectionOptions, Selection
from statecfg.cli.output_options import OutputOptions
from statecfg.cli.session import Finished
from statecfg.playbook.project import Project
from statecfg.problems import inputs
from statecfg.problems.frozen import dataclass
from statecfg.problems.inputs import Inputs
from statecfg.remote.graph.names import HookStatus, HostStatus, Mode
from statecfg.run.job import Job
from statecfg.run.prepare import Work
from statecfg.run.report_model import HostData
from statecfg.run.saved.model import SavedPlan

STDIN = "-"

# Reading


def content(source: str) -> bytes:
    """Return the content of a plan. Read at most one byte more than a plan may have.

    :param source: a file, or "-" for standard input
    :raises InvalidInput: the file can't be read
    """
    from statecfg.problems import InvalidInput, problem
    from statecfg.problems.positions import SourceLocation
    from statecfg.run.saved.plan_file import LARGEST

    try:
        if source == STDIN:
            return sys.stdin.buffer.read(LARGEST + 1)
        with open(source, "rb") as stream:
            return stream.read(LARGEST + 1)
    except OSError as error:
        detail = f"{source} can't be read: {error.strerror}"
        raise InvalidInput([problem("SC0430", detail, "check the file", SourceLocation(source, 0))]) from None


def plan_in(source: str) -> bytes | None:
    """Return the content of a plan, or None for a playbook. Standard input and pipes always contain plans.

    :param source: a file, or "-" for standard input
    :raises InvalidInput: the plan can't be read
    """
    from statecfg.run.saved import plan_file

    if source == STDIN or not os.path.isfile(source):
        return content(source)
    if Path(source).suffix in (".yml", ".yaml", ".py", ".hy"):
        with contextlib.suppress(OSError), open(source, "rb") as stream:
            return content(source) if plan_file.is_plan(stream.read(200)) else None
        return None
    return content(source)


def label(source: str) -> str:
    """Return the name of a plan in messages."""
    return "standard input" if source == STDIN else source


# Applying


@dataclass(frozen=True)
class _Here:
    """A plan and the project in which it is applied.

    :param name: the plan's name in messages
    :param playbook: the file in this project
    :param selection: the plan's selection, with paths in this project
    :param how: the plan's connection options
    :param moved: path in the plan → the file that the command line names instead
    """

    name: str
    plan: SavedPlan
    project: Project
    playbook: Path
    selection: Selection
    how: ConnectionOptions
    moved: Mapping[str, Path]


def apply(
    source: str,
    data: bytes,
    requested: Selection,
    how: ConnectionOptions,
    output: OutputOptions,
    *,
    directory: str | None,
    agreed: bool,
    store: str | None,
    hooks: Callable[[Path, Selection], Any],
) -> tuple[Finished, Sequence[str]]:
    """Apply a plan. If the playbook now compiles to another definition for a host, refuse this host without contacting
    it.

    :param source: the file of the plan, or "-"
    :param data: its content
    :param requested: the selection on the command line, which must not contradict the plan
    :param directory: a directory in the project; None for the working directory
    :param agreed: allow the removal of more than half of a host's resources
    :param store: the address of the store; None for the default
    :param hooks: opens the event bus for a playbook
    :returns: the result, and the problems with the store
    :raises StalePlan: the inputs changed since the plan was made; nothing was changed on any host
    :raises click.UsageError: an option contradicts the plan
    """
    from statecfg.run.saved import differences, digests
    from statecfg.run.saved import hosts as planned

    here = _opened(source, data, requested, how, directory)
    plan, project, name = here.plan, here.project, here.name
    _same_store(here, store)
    with contextlib.ExitStack() as stack:
        events = stack.enter_context(hooks(here.playbook, here.selection))
        with inputs.recording() as read, _directory(project, plan):
            work = session.prepare(here.playbook, here.selection, events, store)
        facts = _changed_facts(here, work)
        # What depends on facts is compared as soon as they are known, before any host changes.
        changed = [] if work.awaited or facts else _changed(here, read, work)
        if not changed and {job.host.name for job in work.jobs} == set(plan["hosts"]):
            changed = differences.of_executor(plan, digests.executor(work.jobs), VERSION)
        if changed:
            raise differences.stale(name, changed)
        refused = {**_refused(here, work), **facts}
        if work.awaited is not None:
            work.awaited.then.append(partial(_compared, here, work, read))
        kept = [job for job in work.jobs if job.host.name in plan["hosts"] and job.host.name not in refused]
        finished = session.run(
            replace(work, jobs=kept),
            Mode.APPLY,
            here.how,
            output,
            expected=planned.expected(plan),
            agreed=agreed,
            events=events,
        )
    visited = {host: _stale(report, plan["hosts"][host]["report"]) for host, report in finished.report["hosts"].items()}
    unvisited = {
        host: _refusal(differs, plan["hosts"][host]["report"], events.at_once(host)[1])
        for host, differs in refused.items()
    }
    return replace(finished, report={**finished.report, "hosts": {**visited, **unvisited}}), events.problems


def _changed(here: _Here, read: Inputs, work: Work) -> list[str]:
    """Return how the inputs and secrets differ from those of the plan."""
    from statecfg.run.saved import differences

    changed = differences.of_inputs(here.plan, here.project, read, here.moved)
    return changed or differences.of_secrets(here.plan, work.secrets)


def _changed_facts(here: _Here, work: Work) -> dict[str, list[str]]:
    """Return host → changed facts, for complete definitions: those that use at most facts in the store."""
    from statecfg.run.saved import differences

    waiting = work.awaited.names if work.awaited is not None else ()
    hosts = {name: host for name, host in here.plan["hosts"].items() if name not in waiting}
    changed = {
        name: differences.of_facts(host.get("facts") or {}, work.facts.used(name)) for name, host in hosts.items()
    }
    return {
        name: texts for name, texts in changed.items() if texts and not differences.without_plan(hosts[name]["report"])
    }


def _refused(here: _Here, work: Work) -> dict[str, list[str]]:
    """Return host → differences for the hosts to refuse without contacting them. Definitions that wait for facts don't
    count yet."""
    from statecfg.run.saved import differences, digests

    waiting = work.awaited.names if work.awaited is not None else ()
    refused = differences.of_definitions(here.plan, digests.definitions(work.jobs, work.secrets))
    hosts = here.plan["hosts"]
    return {
        name: differs
        for name, differs in refused.items()
        if name not in waiting or differences.without_plan(hosts[name]["report"])
    }


def _compared(here: _Here, work: Work, read: Inputs, jobs: dict[str, Job]) -> dict[str, Job]:
    """Return jobs that waited for facts, with their differences from the plan. Their hosts refuse the plan.

    :raises StalePlan: the inputs differ, and no fact explains that
    """
    from statecfg.run.saved import differences, digests

    assert work.awaited is not None
    hosts, complete = here.plan["hosts"], work.completed
    planned = {name: hosts[name].get("facts") or {} for name in jobs if name in hosts}
    changed = {name: differences.of_facts(facts, work.facts.used(name)) for name, facts in planned.items()}
    if not any(changed.values()):
        others_changed = _changed(here, read, complete)
        if set(jobs) != set(work.awaited.names):  # a host that did not answer may be the only one that uses an input
            others_changed = [text for text in others_changed if not text.endswith("is no longer used")]
        if others_changed:
            raise differences.stale(here.name, others_changed)
    others = differences.of_definitions(here.plan, digests.definitions(complete.jobs, complete.secrets))
    differs = {name: changed.get(name) or others.get(name) or () for name in jobs}
    return {name: replace(job, differs=(*job.differs, *differs[name])) for name, job in jobs.items()}


def _opened(source: str, data: bytes, requested: Selection, how: ConnectionOptions, directory: str | None) -> _Here:
    """Read a plan and find its project. Compare the inputs without running any code of the project.

    :raises StalePlan: these inputs differ
    """
    from statecfg.playbook import project as projects
    from statecfg.run.saved import differences, plan_file

    name = label(source)
    plan = plan_file.parse(data, name, VERSION)
    project = projects.find(Path(directory or "."))
    if changed := differences.of_project(plan, project):
        help = f"run this in a checkout of `{plan['project']}`, or name it: --project DIRECTORY"
        if changed[0].startswith("project"):
            help += "; or, if this is the same project, write its name into statecfg.toml, and plan again"
        raise differences.stale(name, changed, help)
    moved: dict[str, Path] = {}
    selection = saved_selection.selection(plan, project, requested, moved)
    changed = differences.of_files(plan, project, moved)
    if any(text.startswith("inventory ") for text in changed):
        changed += _in_inventory(plan, project, selection)
    if changed:
        raise differences.stale(name, changed)
    return _Here(
        name,
        plan,
        project,
        project.root / plan["playbook"],
        selection,
        saved_selection.connection(plan, project, how),
        moved,
    )


def _in_inventory(plan: SavedPlan, project: Project, selection: Selection) -> list[str]:
    """Return the differences in a changed inventory; an empty list if the inventory is invalid."""
    from statecfg.playbook import secrets
    from statecfg.problems import InvalidInput
    from statecfg.run.saved import differences

    try:
        with secrets.placeholders():
            inventory = dialects.inventory(project, Path(selection.inventory) if selection.inventory else None)
            return [f"  {text}" for text in differences.of_inventory(plan, inventory)]
    except InvalidInput:
        return []


@contextlib.contextmanager
def _directory(project: Project, plan: SavedPlan) -> Iterator[None]:
    """Change to the directory of the project where the plan was made: a playbook may open files by relative paths."""
    path = project.root / plan["directory"]
    with contextlib.chdir(path if path.is_dir() else project.root):
        yield


def _same_store(here: _Here, store: str | None) -> None:
    """Check that a playbook with services was planned with the same store.

    :raises StalePlan: it was planned with another store
    """
    from statecfg.run.saved import differences
    from statecfg.store import address, identity

    wanted = here.plan["store"]
    if not wanted:
        return
    location = address.chosen(here.project, store)
    present = identity.of(here.project, store) if location.there() else ""
    if present != wanted:
        what = (
            f"{location.label} is a different store ({present[:8]})"
            if present
            else f"the store {location.label} does not exist"
        )
        difference = f"store: the plan was made with the store {wanted[:8]}, and {what}"
        help = (
            "plan and apply a playbook with services with the same store, because the store has its units: let both "
            "machines use one PostgreSQL database (`store` in statecfg.toml, STATECFG_STORE or --store)"
        )
        raise differences.stale(here.name, [difference], help)


def _refusal(differs: Sequence[str], report: HostData, called: Sequence[Mapping[str, Any]]) -> HostData:
    """Return the report of a host that was refused without contacting it.

    :param differs: the differences from the plan
    :param report: the host's report in the plan
    :param called: the hooks that were called for the host's graph
    """
    from statecfg.run.saved import differences, hosts

    why = differences.without_plan(report)
    if [why] == list(differs):
        return hosts.without_plan(why)
    host = hosts.refusal(differs)
    hooks = sorted({call["hook"] for call in called if call["status"] == HookStatus.OK})
    if hooks:
        names = ", ".join(hooks)
        host["error"]["detail"] = (
            f"The plan uses earlier answers of HTTP hooks. These hooks may answer differently now: {names}."
        )
    elif report["status"] == HostStatus.OK:
        host["error"]["detail"] = differences.BY_ITSELF
    return host


def _stale(host: HostData, report: HostData) -> HostData:
    """Return a host's report. If the host refused the plan, add the differences from its `report` in the plan."""
    from statecfg.run.saved import hosts

    if host["status"] != HostStatus.REFUSED or host.get("refusal"):
        return host
    return {**host, "error": host.get("error") or hosts.STALE.copy(), "differs": hosts.compared(report, host)}
