"""What the verbs that change hosts, and those that show what would change, have to do with hooks and the store."""

from __future__ import annotations

import contextlib
import getpass
import os
import socket
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from statecfg.cli.options import Selection
from statecfg.problems import InvalidInput

if TYPE_CHECKING:
    from statecfg.hooks.bus import Bus
    from statecfg.hooks.preview import Preview
    from statecfg.prepare import Work

    Opened = AbstractContextManager[Bus]


@contextlib.contextmanager
def bus(start: Path, chosen: Selection, mode: str, no_hooks: bool, store: str | None = None) -> Iterator[Bus]:
    """Yield the event bus of a run that changes hosts; at the end, it waits for the hooks that are still queued.

    Parameters: `start` the playbook; `no_hooks` whether no hook is to be called; `store` where the store is.
    Raises InvalidInput, and StoreError where the store can't be used before the run.
    """
    from statecfg import prepare
    from statecfg import project as projects
    from statecfg.hooks.bus import Bus
    from statecfg.remote import hook_run

    project = projects.find(start)
    inventory = project.inventory(Path(chosen.inventory) if chosen.inventory else None)
    who = f"{getpass.getuser()}@{socket.gethostname()}"
    found = Bus(project, inventory, uuid.uuid4().hex[:12], who, no_hooks, store)
    found.begin(mode, prepare.owner(project, start))
    _warn(found)
    with contextlib.closing(found):
        yield found
    if found.left and hook_run.RUNNING not in os.environ:  # whoever runs that hook goes on with the queue
        queued = "1 invocation of a hook is" if found.left == 1 else f"{found.left} invocations of hooks are"
        click.echo(f"{queued} still queued: `statecfg hook retry` runs what is.", err=True)


def preview(start: Path, chosen: Selection, store: str | None = None) -> Preview | None:
    """Return the hooks that would be called, None where there can be none."""
    from statecfg import prepare
    from statecfg import project as projects
    from statecfg.store import address

    project = projects.find(start)
    if not (project.root / "hooks").is_dir() and not address.chosen(project, store).there():
        return None
    from statecfg.hooks.preview import Preview

    try:
        inventory = project.inventory(Path(chosen.inventory) if chosen.inventory else None)
    except InvalidInput:  # the playbook's own mistakes are reported with it
        return None
    found = Preview(project, inventory, prepare.owner(project, start), store)
    _warn(found)
    return found


def _warn(found: Bus | Preview) -> None:
    """Show what in the registrations of hooks is probably not meant."""
    for warning in found.warnings:
        place = f"{warning.places[0]}: " if warning.places else ""
        click.echo(f"warning: {place}{warning.detail}", err=True)


def complete(report: Mapping[str, Any], work: Work, events: Bus | Preview | None) -> dict[str, Any]:
    """Return a report with what hooks did before the hosts were talked to, or would do."""
    hosts = {name: dict(host) for name, host in report["hosts"].items()}
    for failure in work.failed:
        again = "" if failure.again is None else "The next apply asks it again."
        error = {"summary": str(failure), "detail": "Nothing was changed.", "hint": again}
        hosts[failure.host] = {"status": "failed", "layers": [], "summary": {}, "error": error}
    if events is not None:
        for name, host in hosts.items():
            key, called = events.at_once(name)
            if called:
                host[key] = [*called, *host.get(key, ())]
    return {**report, "hosts": hosts}
