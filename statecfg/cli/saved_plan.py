"""Read saved plans, and apply them in a copy of their project, in any directory and on any machine."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from statecfg import dialects
from statecfg.cli import save_plan, session
from statecfg.cli.main import VERSION
from statecfg.cli.options import ConnectionOptions, Output, Selection
from statecfg.cli.session import Finished
from statecfg.playbook.project import Project
from statecfg.problems import inputs
from statecfg.remote.graph.names import HookStatus, HostStatus
from statecfg.run.report_model import Host
from statecfg.run.saved.model import SavedPlan

STDIN = "-"
# Field of a selection → its option on the command line.
_FLAGS = {"limit": "--limit", "tags": "--tags", "extra_vars": "--extra-vars", "prune": "--prune"}

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
    output: Output,
    *,
    directory: str | None,
    agreed: bool,
    store: str | None,
    hooks: Callable[[Path, Selection], Any],
) -> tuple[Finished, Sequence[str]]:
    """Apply a plan. If the playbook now compiles to another definition for a host, refuse this host unvisited.

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
        changed = differences.of_inputs(plan, project, read, here.moved)
        changed = changed or differences.of_secrets(plan, work.secrets)
        if not changed and {job.host.name for job in work.jobs} == set(plan["hosts"]):
            changed = differences.of_executor(plan, digests.executor(work.jobs), VERSION)
        if changed:
            raise differences.stale(name, changed)
        refused = differences.of_definitions(plan, digests.definitions(work.jobs, work.secrets))
        kept = [job for job in work.jobs if job.host.name in plan["hosts"] and job.host.name not in refused]
        finished = session.run(
            replace(work, jobs=kept),
            "apply",
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
    selection = _selection(plan, project, requested, moved)
    changed = differences.of_files(plan, project, moved)
    if any(text.startswith("inventory ") for text in changed):
        changed += _in_inventory(plan, project, selection)
    if changed:
        raise differences.stale(name, changed)
    return _Here(
        name, plan, project, project.root / plan["playbook"], selection, _way(plan, project, requested=how), moved
    )


def _selection(plan: SavedPlan, project: Project, requested: Selection, moved: dict[str, Path]) -> Selection:
    """Return the plan's selection, with paths in this project.

    The command line may name an inventory or a file of variables again. Its content must be the same.

    :param moved: is filled with these files: path in the plan → file
    :raises click.UsageError: an option contradicts the plan
    """
    choices = plan["choices"]
    inventory = choices.get("inventory")
    if requested.inventory:
        was = [entry["path"] for entry in plan["inputs"] if entry["kind"] == "inventory"]
        moved.update((path, Path(os.path.abspath(requested.inventory))) for path in was)
        inventory = os.path.abspath(requested.inventory)
    elif inventory:
        inventory = str(project.root / inventory)
    variables = [f"@{project.root / text[1:]}" if text.startswith("@") else text for text in choices["extra_vars"]]
    if requested.extra_vars:
        files = [text for text in choices["extra_vars"] if text.startswith("@")]
        again = [os.path.abspath(text[1:]) for text in requested.extra_vars if text.startswith("@")]
        in_words = [text for text in requested.extra_vars if not text.startswith("@")]
        if len(again) != len(files) or in_words != [text for text in choices["extra_vars"] if text[:1] != "@"]:
            raise _contradiction("--extra-vars", choices["extra_vars"])
        paths = dict(zip(files, again, strict=True))
        moved.update((text[1:], Path(path)) for text, path in paths.items())
        variables = [f"@{paths[text]}" if text in paths else text for text in choices["extra_vars"]]
    for field in ("limit", "tags", "prune"):
        value, planned = getattr(requested, field), choices.get(field)
        if value and value != (tuple(planned) if isinstance(planned, list) else planned):
            raise _contradiction(_FLAGS[field], planned)
    return Selection(inventory, choices.get("limit"), tuple(choices["tags"]), tuple(variables), choices["prune"])


def _contradiction(flag: str, planned: Any) -> click.UsageError:
    if isinstance(planned, list | tuple):
        planned = ",".join(map(str, planned))
    choice = f"with {flag}" + ("" if planned is True else f" {planned}") if planned else f"without {flag}"
    return click.UsageError(
        f"{flag} contradicts the plan, which was made {choice}. A plan is applied unchanged: omit {flag} here "
        "(on the command line and in the environment), or plan again with it."
    )


def _way(plan: SavedPlan, project: Project, requested: ConnectionOptions) -> ConnectionOptions:
    """Return the connection options with those that the plan contains.

    :raises click.UsageError: an option contradicts the plan
    """
    choices = plan["choices"]
    for key in save_plan.REMEMBERED:
        value = getattr(requested, key)
        if value is not None and value != choices.get(key):
            raise _contradiction("--" + key.replace("_", "-"), choices.get(key))
    config = choices.get("ssh_config")
    if requested.ssh_config is not None or not config:
        config = requested.ssh_config
    elif config != "none":
        config = str(project.root / config)
    become, become_user = choices.get("become"), choices.get("become_user")
    return replace(requested, become=become, become_user=become_user, user=choices.get("user"), ssh_config=config)


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
            else f"there is no store at {location.label}"
        )
        difference = f"store: the plan was made with the store {wanted[:8]}, and {what}"
        help = (
            "plan and apply a playbook with services with the same store, because the store has its units: let both "
            "machines use one PostgreSQL database (`store` in statecfg.toml, STATECFG_STORE or --store)"
        )
        raise differences.stale(here.name, [difference], help)


def _refusal(differs: Sequence[str], report: Host, called: Sequence[Mapping[str, Any]]) -> Host:
    """Return the report of a host that was refused unvisited.

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
            f"A plan does not call HTTP hooks. The answers of these hooks may differ from the plan: {names}."
        )
    elif report["status"] == HostStatus.OK:
        host["error"]["detail"] = differences.BY_ITSELF
    return host


def _stale(host: Host, report: Host) -> Host:
    """Return a host's report. If the host refused the plan, add the differences from its `report` in the plan."""
    from statecfg.run.saved import hosts

    if host["status"] != HostStatus.REFUSED or host.get("refusal"):
        return host
    return {**host, "error": host.get("error") or hosts.STALE.copy(), "differs": hosts.compared(report, host)}
