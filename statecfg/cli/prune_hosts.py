"""`--prune-hosts`: remove a playbook from the hosts that it was applied to and no longer names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from statecfg.cli import lifecycle, session
from statecfg.cli.options import ConnectionOptions, Selection
from statecfg.cli.output_options import OutputOptions
from statecfg.remote.graph.names import HostStatus, Mode

if TYPE_CHECKING:
    from statecfg.cli.session import Finished
    from statecfg.run.prepare import Work
    from statecfg.run.report_model import Report
    from statecfg.store.left_hosts import LeftHost


def check(chosen: Selection) -> None:
    """Refuse --prune-hosts without --yes on the command line.

    :raises click.UsageError: --prune-hosts was given without it
    """
    if chosen.prune_hosts and not session.agreed():
        raise click.UsageError("--prune-hosts removes a playbook from whole hosts: also pass --yes.")


def planned(work: Work, playbook: Path, store: str | None) -> Work:
    """Return the work with added jobs that remove the playbook from hosts that it no longer names.

    :raises StoreError: the store can't be used
    """
    from statecfg.run import prepare
    from statecfg.store import left_hosts

    with lifecycle.read(playbook, store) as opened:
        if opened is None:
            return work
        file, owner = work.project.relative(playbook), prepare.owner(work.project, playbook)
        left = left_hosts.find(opened, owner, file, work.everywhere, work.inventory, str(playbook))
    return replace(work, jobs=[*work.jobs, *_jobs(work, playbook, left)])


def _jobs(work: Work, playbook: Path, left: Sequence[LeftHost]) -> list[Any]:
    """Return jobs with an empty definition for those hosts in `left` that have an address."""
    from statecfg.playbook.compile import Definition
    from statecfg.run import prepare
    from statecfg.run.job import Job

    inventory = work.inventory
    if inventory is None:
        return []
    file, owner = work.project.relative(playbook), prepare.owner(work.project, playbook)
    nothing = Definition([], secrets=dict(work.completed.secrets))
    hosts = [inventory.host(host["host"]) for host in left if host["address"]]
    return [Job(host, nothing, file, prune=True, owner=owner) for host in hosts]


def apply(
    finished: Finished,
    work: Work,
    chosen: Selection,
    how: ConnectionOptions,
    output: OutputOptions,
    no_hooks: bool,
    store: str | None,
) -> tuple[Finished, Sequence[str]]:
    """Remove the playbook from hosts that it no longer names, after an apply.

    If the apply did not succeed on every host, nothing is removed, because the replacement may be missing.

    :param finished: the apply
    :returns: the apply and the removal as one result, and the problems with the store
    """
    report = finished.report
    playbook = work.playbook
    sound = all(host["status"] == HostStatus.OK for host in report["hosts"].values())
    jobs = _jobs(work, playbook, report.get("left_hosts", ())) if playbook is not None else []
    if playbook is None or not jobs or not sound or finished.cancelled or finished.declined:
        return finished, ()
    with lifecycle.bus(playbook, chosen, Mode.DESTROY, no_hooks, store) as events:
        events.keep(work.everywhere, work.project.relative(playbook), report["hosts"])
        removed = session.run(
            replace(work, jobs=jobs, services=(), relations=()), Mode.DESTROY, how, output, agreed=True, events=events
        )
    hosts = {**report["hosts"], **removed.report["hosts"]}
    left = [host for host in report["left_hosts"] if host["host"] not in removed.report["hosts"]]
    whole: Report = {**report, "hosts": hosts, "left_hosts": left}
    if not left:
        del whole["left_hosts"]
    seconds = finished.seconds + removed.seconds
    return replace(finished, report=whole, seconds=seconds, cancelled=removed.cancelled), events.problems
