"""The state of hosts: how the last run of each playbook ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import select

from statecfg.problems.frozen import dataclass
from statecfg.remote.graph.names import HostStatus
from statecfg.store.database import Store
from statecfg.store.hosts import HostRecord
from statecfg.store.tables import of_project, run, run_host

# Statuses of a host in a run, worst first.
WORST_FIRST = (
    HostStatus.FAILED, HostStatus.UNKNOWN, HostStatus.UNREACHABLE, HostStatus.REFUSED, HostStatus.LOCKED,
    HostStatus.CANCELLED, HostStatus.OK,
)  # fmt: skip
_AT_ONCE = 1000  # rows per read


@dataclass(frozen=True, slots=True)
class LastRun:
    """The newest run of a playbook on a host.

    :param playbook: relative to its project; "" for a run without a playbook
    :param started: seconds since 1970
    """

    run: str
    playbook: str
    started: float
    status: str


def worst(statuses: Iterable[str]) -> str | None:
    """Return the worst of some statuses; None if there are none."""
    return min(statuses, key=_rank, default=None)


def _rank(status: str) -> int:
    return WORST_FIRST.index(status) if status in WORST_FIRST else -1


def last_runs(store: Store, hosts: Sequence[HostRecord]) -> Mapping[str, list[LastRun]]:
    """Return for each host its newest run and the newest run of each other playbook bound to it, newest first.

    Read runs from the newest on. Stop when all runs of the hosts that were ever contacted are found.
    """
    last: dict[str, list[LastRun]] = {host.name: [] for host in hosts}
    wanted = {host.name: {_in_project(playbook) for playbook in host.playbooks} for host in hosts}
    unfinished = {host.name for host in hosts if host.last_checkin is not None}
    columns = (run_host.c.host, run_host.c.status, run.c.id, run.c.playbook, run.c.started)
    query = select(*columns).join(run, run.c.id == run_host.c.run).where(of_project(store.project, run.c.project))
    if len(hosts) == 1:
        query = query.where(run_host.c.host == hosts[0].name)
    query = query.order_by(run.c.started.desc(), run.c.id)
    with store.reading() as connection, connection.execute(query, execution_options={"yield_per": _AT_ONCE}) as rows:
        for row in rows:
            if row.host not in last or (last[row.host] and row.playbook not in wanted[row.host]):
                continue
            last[row.host].append(LastRun(row.id, row.playbook, row.started, row.status))
            wanted[row.host].discard(row.playbook)
            if not wanted[row.host]:
                unfinished.discard(row.host)
                if not unfinished:
                    break
    return last


def with_cut_off(host: HostRecord, last: Sequence[LastRun], cut_off: Iterable[LastRun]) -> list[LastRun]:
    """Return the newest run of each playbook on a host, newest first. Runs that were cut off count, too.

    :param last: the runs that ended, from `last_runs`
    :param cut_off: the runs whose controller was killed, or could not store how they ended
    """
    bound = {_in_project(playbook) for playbook in host.playbooks}
    newest = {found.playbook: found for found in last}
    latest = max((found.started for found in last), default=0.0)
    for found in cut_off:
        known = newest.get(found.playbook)
        unbound = 0.0 if found.playbook in bound else latest
        if found.started > (unbound if known is None else known.started):
            newest[found.playbook] = found
    return sorted(newest.values(), key=lambda found: (-found.started, found.run))


def _in_project(owner: str) -> str:
    """Return a bound playbook (PROJECT/PATH) in the form in which runs record it."""
    return owner if owner.startswith("/") else owner.partition("/")[2] or owner
