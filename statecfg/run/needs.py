"""Which facts to ask each host for before its definition is complete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from statecfg.run.host_jobs import HostJobs
    from statecfg.run.job import Job
    from statecfg.run.reshaping import Reshape

ANY = ("hostname",)  # costs nothing; asked of a host that only waits for others


def of_jobs(jobs: Sequence[Job], evaluated: HostJobs, path: Path) -> list[Job]:
    """Return the jobs with `needs`: the facts to ask their hosts for. Without missing facts, no job needs any.

    A host waits if its own definition lacks facts, or if another definition lacks facts of this host. Evaluation stops
    at the first condition that needs facts, so the files are searched for the facts that may be needed after it.

    :param path: the playbook
    """
    missing = {job.host.name: evaluated.readings[job.host.name].missing for job in jobs}
    wanted: dict[str, set[str]] = {name: set() for name, lacking in missing.items() if lacking}
    if not wanted:
        return list(jobs)
    for lacking in missing.values():
        for host, names in lacking.items():
            wanted.setdefault(host, set()).update(names)
    from statecfg.dialects import fact_names  # it loads Jinja2, which takes longer than most playbooks

    own = evaluated.source.own
    mentioned, others = fact_names.mentioned(str(path), str(evaluated.project.root), own)
    if others:
        wanted |= {name: wanted.get(name, set()) for name in missing}
    needs = {name: tuple(sorted(names | mentioned)) or ANY for name, names in wanted.items()}
    return [replace(job, needs=needs.get(job.host.name, ())) for job in jobs]


def with_hooked(jobs: Sequence[Job], reshape: Reshape | None) -> list[Job]:
    """Return the jobs. If any waits for facts, those with hooks wait, too: hooks are called when all graphs are valid.

    :param reshape: calls the hooks; None if none are called
    """
    if reshape is None or not any(job.needs for job in jobs):
        return list(jobs)
    return [replace(job, needs=job.needs or ANY) if reshape.concerns(job.host.name) else job for job in jobs]
