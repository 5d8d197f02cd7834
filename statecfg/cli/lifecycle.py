"""What the verbs that change hosts, and those that show what would change, have to do with hooks and the store."""

from __future__ import annotations

import contextlib
import getpass
import socket
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from statecfg.cli.options import Selection
from statecfg.problems import InvalidInput

if TYPE_CHECKING:
    from statecfg.fleet import Options
    from statecfg.hooks.bus import Bus, Preview
    from statecfg.prepare import Work


@contextlib.contextmanager
def bus(start: Path, chosen: Selection, mode: str, no_hooks: bool, store: str | None = None) -> Iterator[Bus]:
    """Yield the event bus of a run that changes hosts; at the end, it waits for the hooks that are still queued.

    Parameters: `start` the playbook; `no_hooks` whether no hook is to be called; `store` where the store is.
    Raises InvalidInput, and StoreError where the store can't be used before the run.
    """
    from statecfg import project as projects
    from statecfg.hooks.bus import Bus

    project = projects.find(start)
    inventory = project.inventory(Path(chosen.inventory) if chosen.inventory else None)
    who = f"{getpass.getuser()}@{socket.gethostname()}"
    found = Bus(project, inventory, uuid.uuid4().hex[:12], who, no_hooks, store)
    found.mode = mode
    try:
        yield found
    finally:
        found.close()
        for text in found.problems:
            click.echo(f"error: {text}", err=True)


def preview(start: Path, chosen: Selection, store: str | None = None) -> Preview | None:
    """Return the hooks that would be called, None where there can be none."""
    from statecfg import project as projects
    from statecfg.store import address

    project = projects.find(start)
    if not (project.root / "hooks").is_dir() and not address.chosen(project, store).there():
        return None
    from statecfg.hooks.bus import Preview

    try:
        inventory = project.inventory(Path(chosen.inventory) if chosen.inventory else None)
    except InvalidInput:  # the playbook's own mistakes are reported with it
        return None
    return Preview(project, inventory, store)


def entered(work: Work, found: Bus) -> Work:
    """Return what is to be done with what the store knows of the hosts."""
    playbook = work.jobs[0].owner if work.jobs else ""
    found.begin(found.mode, playbook)
    policy = found.policy(playbook) if playbook else {}
    jobs = []
    for job in work.jobs:
        ledger, node = found.known(job.host.name)
        jobs.append(replace(job, ledger=ledger, node=node, policy=policy))
    return replace(work, jobs=jobs)


def listening(options: Options, work: Work, found: Bus | Preview) -> tuple[Options, Work]:
    """Return how to run, and on what, with the hooks that may fire on each host."""
    hooks = {job.host.name: found.of_host(job.host.name) for job in work.jobs}
    more: dict[str, Any] = {"hooks": hooks}
    contents = getattr(found, "contents", {})
    if contents:
        jobs = [replace(job, definition=_with(job.definition, contents)) for job in work.jobs]
        work = replace(work, jobs=jobs)
    run = getattr(found, "run", "")
    if run:
        more.update(run=run, events=found)
    return replace(options, **more), work


def _with(definition: Any, contents: Any) -> Any:
    return replace(definition, blobs={**definition.blobs, **contents})
