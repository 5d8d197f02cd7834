"""Hooks and the store during commands that change hosts or show what would change."""

from __future__ import annotations

import contextlib
import getpass
import os
import socket
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from statecfg import dialects
from statecfg.cli.options import Selection
from statecfg.remote.graph.names import Mode

if TYPE_CHECKING:
    from statecfg.hooks.bus import Bus
    from statecfg.hooks.preview import Preview
    from statecfg.playbook.project import Project
    from statecfg.run.fleet import Options
    from statecfg.run.job import Job
    from statecfg.run.prepare import Work
    from statecfg.run.report_model import HostData, Report, Unit
    from statecfg.store.database import Store
    from statecfg.store.left_hosts import LeftHost


class Later:
    """An event bus, or a preview of one, that opens while statecfg connects to the hosts.

    Opening the store takes time. Only a project with HTTP hooks needs it earlier.

    :param make: opens the event bus or preview
    :param run: the id of the run; "" for a plan
    """

    reconciler = None
    _target: Any = None
    _kept: Any = None

    def __init__(self, make: Callable[[], Bus | Preview], run: str = "") -> None:
        self.run, self._make = run, make

    def join(self, options: Options, jobs: Sequence[Job]) -> tuple[Options, Sequence[Job]]:
        """Open the bus or preview and call its `join`.

        :raises StoreError: the store can't be used
        :raises InvalidInput: a hook is wrong
        """
        self._target = self._make()
        if self._kept is not None:
            self._target.keep(*self._kept)
        joined: tuple[Options, Sequence[Job]] = self._target.join(options, jobs)
        return joined

    def at_once(self, host: str) -> tuple[str, list[dict[str, Any]]]:
        """Call `at_once` of the bus or preview."""
        if self._target is None:  # the host's session failed before
            return "fired", []
        called: tuple[str, list[dict[str, Any]]] = self._target.at_once(host)
        return called

    def enter(self, report: Mapping[str, Any]) -> None:
        """Call `enter` of the bus or preview."""
        self._target.enter(report)

    def due(self, host: str) -> list[Unit]:
        """Call `due` of the bus or preview."""
        units: list[Unit] = self._target.due(host) if self._target is not None else []
        return units

    def waits_for_hooks(self, host: str) -> bool:
        """Call `waits_for_hooks` of the bus or preview."""
        return self._target is not None and bool(self._target.waits_for_hooks(host))

    def failed_events(self) -> dict[str, list[dict[str, str]]]:
        """Call `failed_events` of the bus or preview."""
        events: dict[str, list[dict[str, str]]] = self._target.failed_events()
        return events

    def left_hosts(self, work: Work, reports: Mapping[str, HostData]) -> list[LeftHost]:
        """Call `left_hosts` of the bus or preview."""
        left: list[LeftHost] = self._target.left_hosts(work, reports)
        return left

    def keep(self, names: Collection[str], file: str, reports: Mapping[str, HostData]) -> None:
        """Call `keep` of the bus as soon as it is open."""
        self._kept = names, file, reports

    @property
    def problems(self) -> list[str]:
        """The problems with the store during the run."""
        return self._target.problems if self._target is not None else []

    @property
    def left(self) -> int:
        """The number of hook invocations that are still queued at the end."""
        return self._target.left if self._target is not None else 0

    def close(self) -> None:
        """Close the bus or preview if it was opened."""
        if self._target is not None:
            self._target.close()


if TYPE_CHECKING:
    Opened = AbstractContextManager[Bus | Later]


@contextlib.contextmanager
def bus(
    start: Path, chosen: Selection, mode: str, no_hooks: bool, store: str | None = None, name: str = ""
) -> Iterator[Bus | Later]:
    """Yield the event bus of a run that changes hosts. On exit, wait for queued hooks, at most two minutes.

    :param start: the playbook
    :param no_hooks: call no hooks
    :param store: the address of the store; None for the default
    :param name: the name under which hosts record the playbook; "" derives it from the file
    :raises InvalidInput: a hook or the inventory is wrong
    :raises StoreError: the store can't be used before the run
    """
    from statecfg.playbook import project as projects
    from statecfg.remote.hooks import run as hook_run
    from statecfg.run import prepare

    project, run = projects.find(start), uuid.uuid4().hex[:12]
    playbook, file = name or prepare.owner(project, start), _absolute(chosen.inventory)

    def make() -> Bus:
        from statecfg.hooks.bus import Bus

        who = f"{getpass.getuser()}@{socket.gethostname()}"
        events = Bus(project, dialects.inventory(project, file), run, who, no_hooks, store)
        events.begin(mode, playbook, lambda text: click.echo(text, err=True))
        _warn(events)
        return events

    events: Bus | Later = make() if not no_hooks and _has_http_hooks(project) else Later(make, run)
    with contextlib.closing(events):
        yield events
    if events.left and hook_run.RUNNING not in os.environ:  # inside a hook, the outer run processes the queue
        queued = "1 invocation of a hook is" if events.left == 1 else f"{events.left} invocations of hooks are"
        click.echo(f"{queued} still queued. `statecfg hook retry` runs the queue.", err=True)


def preview(start: Path, chosen: Selection, store: str | None = None, services: bool = False) -> Preview | Later | None:
    """Return a preview of the hooks that would be called, or None if there can't be any.

    :param services: the playbook declares services
    """
    from statecfg.playbook import project as projects
    from statecfg.run import prepare
    from statecfg.store import address

    project = projects.find(start)
    if not (project.root / "hooks").is_dir() and not services and not address.chosen(project, store).there():
        return None

    playbook, file = prepare.owner(project, start), _absolute(chosen.inventory)

    def make() -> Preview:
        from statecfg.hooks.preview import Preview

        events = Preview(project, dialects.inventory(project, file), playbook, store)
        _warn(events)
        return events

    return make() if _has_http_hooks(project) else Later(make)


def foreseen(start: Path, chosen: Selection, store: str | None) -> Preview | None:
    """Return a preview that changes graphs as HTTP hooks would; None if the project has no such hooks."""
    from statecfg.playbook import project as projects

    if not _has_http_hooks(projects.find(start)):
        return None
    opened = preview(start, chosen, store)
    assert not isinstance(opened, Later)
    return opened


def _has_http_hooks(project: Project) -> bool:
    """Return whether the project has HTTP hooks. They may change graphs, so the run needs them before it connects.

    :raises InvalidInput: a registration is wrong
    """
    if not (project.root / "hooks").is_dir():
        return False
    from statecfg.hooks.registration import files

    return any(registration.protocol == "http" for registration in files.load(project))


def _absolute(path: str | None) -> Path | None:
    """Return the absolute path, which stays valid after a change of the working directory."""
    return Path(path).absolute() if path else None


def _warn(events: Bus | Preview) -> None:
    """Print warnings about probable mistakes in the registrations of hooks."""
    for warning in events.warnings:
        position = f"{warning.locations[0]}: " if warning.locations else ""
        click.echo(f"warning: {position}{warning.detail}", err=True)


def file_of(work: Work) -> str:
    """Return the playbook's file, relative to the project; "" without a playbook."""
    if work.jobs:
        return work.jobs[0].playbook
    return work.project.relative(work.playbook) if work.playbook is not None else ""


def complete(report: Report, work: Work, events: Bus | Preview | Later | None) -> Report:
    """Add to a report the hooks that were or would be called, and the hosts that the playbook no longer names."""
    from statecfg.run import hook_failure as failure

    whole = failure.complete(report, work.failed, events)
    whole["playbook"] = whole["playbook"] or file_of(work)  # hooks may have failed for all hosts
    if events is not None and report["mode"] in (Mode.PLAN, Mode.APPLY) and work.playbook is not None:
        left: list[Any] = [
            host for host in events.left_hosts(work, whole["hosts"]) if host["host"] not in whole["hosts"]
        ]
        if left:
            whole["left_hosts"] = left
    return whole


def owner(playbook: Path) -> str:
    """Return the name under which hosts record a playbook."""
    from statecfg.playbook import project as projects
    from statecfg.run import prepare

    return prepare.owner(projects.find(playbook), playbook)


@contextlib.contextmanager
def read(playbook: Path, store: str | None) -> Iterator[Store | None]:
    """Yield the store of a playbook's project, or None if it does not exist yet.

    :raises StoreError: the store can't be used
    """
    from statecfg.playbook import project as projects
    from statecfg.store import address, opened

    project = projects.find(playbook)
    if not address.chosen(project, store).there():
        yield None
        return
    with opened(project, store) as project_store:
        yield project_store
