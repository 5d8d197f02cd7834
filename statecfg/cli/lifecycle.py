"""What the verbs that change hosts, and those that show what would change, have to do with hooks and the store."""

from __future__ import annotations

import contextlib
import getpass
import os
import socket
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    from statecfg.run.fleet import Job, Options
    from statecfg.run.prepare import Work
    from statecfg.store.database import Store


class Later:
    """An event bus, or a preview of one, that is opened while the hosts are being connected to.

    For a project without hooks of its own nothing needs it earlier, and the store takes its time to open.

    :param run: the run's id, "" for a plan
    """

    reconciler = None
    _found: Any = None

    def __init__(self, make: Callable[[], Bus | Preview], run: str = "") -> None:
        self.run, self._make = run, make

    def join(self, options: Options, jobs: Sequence[Job]) -> tuple[Options, Sequence[Job]]:
        """Open it, and return as it does. Raises StoreError, InvalidInput."""
        self._found = self._make()
        joined: tuple[Options, Sequence[Job]] = self._found.join(options, jobs)
        return joined

    def at_once(self, host: str) -> tuple[str, list[dict[str, Any]]]:
        """Return as it does."""
        called: tuple[str, list[dict[str, Any]]] = self._found.at_once(host)
        return called

    def enter(self, report: Mapping[str, Any]) -> None:
        """Do as it does."""
        self._found.enter(report)

    def due(self, host: str) -> list[dict[str, Any]]:
        """Return as it does."""
        found: list[dict[str, Any]] = self._found.due(host)
        return found

    def failed_events(self) -> dict[str, list[dict[str, str]]]:
        """Return as it does."""
        found: dict[str, list[dict[str, str]]] = self._found.failed_events()
        return found

    def left_hosts(self, work: Work) -> list[dict[str, Any]]:
        """Return as it does."""
        found: list[dict[str, Any]] = self._found.left_hosts(work)
        return found

    @property
    def problems(self) -> list[str]:
        """What went wrong with the store while hosts were being changed."""
        return self._found.problems if self._found is not None else []

    @property
    def left(self) -> int:
        """How many invocations of hooks are still queued at the end."""
        return self._found.left if self._found is not None else 0

    def close(self) -> None:
        """Close it, where it was opened."""
        if self._found is not None:
            self._found.close()


if TYPE_CHECKING:
    Opened = AbstractContextManager[Bus | Later]


@contextlib.contextmanager
def bus(
    start: Path, chosen: Selection, mode: str, no_hooks: bool, store: str | None = None, name: str = ""
) -> Iterator[Bus | Later]:
    """Yield the event bus of a run that changes hosts; at the end, it waits for the hooks that are still queued.

    Parameters: `start` the playbook; `no_hooks` whether no hook is to be called; `store` where the store is; `name`
    what hosts know the playbook by, where that is not to be had from the file.
    Raises InvalidInput, and StoreError where the store can't be used before the run.
    """
    from statecfg.playbook import project as projects
    from statecfg.remote.hooks import run as hook_run
    from statecfg.run import prepare

    project, run = projects.find(start), uuid.uuid4().hex[:12]
    playbook, file = name or prepare.owner(project, start), _absolute(chosen.inventory)

    def make() -> Bus:
        from statecfg.hooks.bus import Bus

        who = f"{getpass.getuser()}@{socket.gethostname()}"
        made = Bus(project, dialects.inventory(project, file), run, who, no_hooks, store)
        made.reconciler.asking.tell = lambda text: click.echo(text, err=True)
        made.begin(mode, playbook)
        _warn(made)
        return made

    early = no_hooks or (project.root / "hooks").is_dir()
    found: Bus | Later = make() if early else Later(make, run)
    with contextlib.closing(found):
        yield found
    if found.left and hook_run.RUNNING not in os.environ:  # whoever runs that hook goes on with the queue
        queued = "1 invocation of a hook is" if found.left == 1 else f"{found.left} invocations of hooks are"
        click.echo(f"{queued} still queued: `statecfg hook retry` runs what is.", err=True)


def preview(start: Path, chosen: Selection, store: str | None = None, services: bool = False) -> Preview | Later | None:
    """Return the hooks that would be called, None where there can be none; `services` tells whether any is declared."""
    from statecfg.playbook import project as projects
    from statecfg.run import prepare
    from statecfg.store import address

    project = projects.find(start)
    early = (project.root / "hooks").is_dir()
    if not early and not services and not address.chosen(project, store).there():
        return None

    playbook, file = prepare.owner(project, start), _absolute(chosen.inventory)

    def make() -> Preview:
        from statecfg.hooks.preview import Preview

        made = Preview(project, dialects.inventory(project, file), playbook, store)
        _warn(made)
        return made

    return make() if early else Later(make)


def _absolute(path: str | None) -> Path | None:
    """Return where a file is, also for whoever looks from another directory."""
    return Path(path).absolute() if path else None


def _warn(found: Bus | Preview) -> None:
    """Show what in the registrations of hooks is probably not meant."""
    for warning in found.warnings:
        place = f"{warning.places[0]}: " if warning.places else ""
        click.echo(f"warning: {place}{warning.detail}", err=True)


def complete(report: Mapping[str, Any], work: Work, events: Bus | Preview | Later | None) -> dict[str, Any]:
    """Return a report with what hooks did before the hosts were talked to, or would do."""
    from statecfg.run import hook_failure as failure

    whole = failure.complete(report, work.failed, events)
    if events is not None and report["mode"] in (Mode.PLAN, Mode.APPLY) and work.playbook is not None:
        left = [each for each in events.left_hosts(work) if each["host"] not in whole["hosts"]]
        whole.update({"left_hosts": left} if left else {})
    return whole


def owner(playbook: Path) -> str:
    """Return the name by which hosts know a playbook."""
    from statecfg.playbook import project as projects
    from statecfg.run import prepare

    return prepare.owner(projects.find(playbook), playbook)


@contextlib.contextmanager
def read(playbook: Path, store: str | None) -> Iterator[Store | None]:
    """Yield the store of a playbook's project, None if there is none yet. Raises StoreError."""
    from statecfg.playbook import project as projects
    from statecfg.store import address, opened

    project = projects.find(playbook)
    if not address.chosen(project, store).there():
        yield None
        return
    with opened(project, store) as found:
        yield found
