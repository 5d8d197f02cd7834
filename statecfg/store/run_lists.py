"""Lists of runs and of the hosts of a run, filtered by the database and read in pages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from sqlalchemy import ColumnElement, Text, and_, func, or_, select, true, type_coerce

from statecfg.problems.frozen import dataclass
from statecfg.remote.graph.names import HostStatus
from statecfg.store.database import Store
from statecfg.store.runs import HostData, HostResult, RunInProgress, RunRecord, ended, under_way
from statecfg.store.tables import going_host, of_project, run, run_host

OK = HostStatus.OK
TROUBLE = "trouble"  # in a filter: any status but ok


@dataclass(frozen=True, slots=True)
class RunFilter:
    """A filter for runs. In a name, `*` matches any text; case is ignored.

    :param host: name of one of its hosts; "" for any
    :param playbook: the run's playbook; "" for any
    :param outcome: status of one of its hosts; "trouble" for any status but ok; "ok" if all are ok; "" for any
    :param since: started at this time or later (seconds since 1970); None for any time
    :param until: started before this time; None for any time
    """

    host: str = ""
    playbook: str = ""
    outcome: str = ""
    since: float | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last run of a page: the next page starts after it."""

    started: float
    id: str


def page(store: Store, wanted: RunFilter, limit: int, after: Cursor | None = None) -> list[RunRecord | RunInProgress]:
    """Return the newest runs, newest first, including those that are in progress or were interrupted.

    :param limit: maximum number of runs
    :param after: the end of the previous page; None for the first page
    """
    running = [run for run in under_way(store) if _matches(run, wanted) and (after is None or _is_after(run, after))]
    both: list[RunRecord | RunInProgress] = [*running, *_ended(store, wanted, limit, after)]
    return sorted(both, key=lambda run: (-run.started, run.id))[:limit]


def _ended(store: Store, wanted: RunFilter, limit: int, after: Cursor | None) -> list[RunRecord]:
    query = select(run).where(of_project(store.project, run.c.project), *_conditions(wanted))
    if after is not None:
        later = and_(run.c.started == after.started, run.c.id > after.id)
        query = query.where(or_(run.c.started < after.started, later))
    with store.reading() as connection:
        found = connection.execute(query.order_by(run.c.started.desc(), run.c.id).limit(limit))
        return ended(connection, [dict(row) for row in found.mappings()])


def _conditions(wanted: RunFilter) -> Iterable[ColumnElement[bool]]:
    if wanted.playbook:
        yield like(run.c.playbook, wanted.playbook)
    if wanted.since is not None:
        yield run.c.started >= wanted.since
    if wanted.until is not None:
        yield run.c.started < wanted.until
    of_host = like(run_host.c.host, wanted.host) if wanted.host else true()
    mine = select(run_host.c.run).where(run_host.c.run == run.c.id, of_host).correlate(run)
    if wanted.host or wanted.outcome:
        outcome = run_host.c.status == wanted.outcome
        if wanted.outcome in (OK, TROUBLE):
            bad = mine.where(run_host.c.status != OK).exists()
            yield bad if wanted.outcome == TROUBLE else and_(mine.exists(), ~bad)
        else:
            yield mine.where(outcome if wanted.outcome else true()).exists()


def like(column: ColumnElement[str], pattern: str) -> ColumnElement[bool]:
    """Return the condition that a column matches a pattern with `*`. Case is ignored."""
    escaped = re.sub(r"([%_\\])", r"\\\1", pattern.lower()).replace("*", "%")
    return func.lower(column).like(escaped, escape="\\")


def matches(text: str, pattern: str) -> bool:
    """Return whether a string matches a pattern with `*`. Case is ignored; "" matches any text."""
    return not pattern or re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), text, re.I | re.S) is not None


def _matches(running: RunInProgress, wanted: RunFilter) -> bool:
    """Return whether an unfinished run matches. Only hosts that have finished have an outcome."""
    statuses = {result.status for name, result in running.hosts.items() if matches(name, wanted.host)}
    finished = statuses - {""}
    outcome = {"": True, OK: False, TROUBLE: bool(finished - {OK})}.get(wanted.outcome, wanted.outcome in finished)
    in_time = (wanted.since is None or running.started >= wanted.since) and (
        wanted.until is None or running.started < wanted.until
    )
    return bool(statuses or not wanted.host) and outcome and in_time and matches(running.playbook, wanted.playbook)


def _is_after(running: RunInProgress, cursor: Cursor) -> bool:
    return (-running.started, running.id) > (-cursor.started, cursor.id)


def hosts_of_run(store: Store, id: str, words: Iterable[str] = ()) -> dict[str, HostResult]:
    """Return host → result of a run that has ended.

    :param words: only the hosts whose name or report contains all of these strings
    """
    query = select(run_host.c.host, run_host.c.status, run_host.c.summary).where(run_host.c.run == id)
    report = type_coerce(run_host.c.report, Text)
    for word in words:
        stored = json.dumps(word)[1:-1]  # reports are stored as ASCII
        name = run_host.c.host.icontains(word, autoescape=True)
        query = query.where(or_(name, report.icontains(stored, autoescape=True)))
    with store.reading() as connection:
        return {row.host: HostResult(row.status, row.summary) for row in connection.execute(query)}


def reports(store: Store, id: str, hosts: Iterable[str]) -> dict[str, HostData]:
    """Return host → its report in a run. A run that has not ended has those of the hosts on which it has ended."""
    names = list(hosts)
    with store.reading() as connection:
        return {
            row.host: row.report
            for table in (going_host, run_host)
            for row in connection.execute(
                select(table.c.host, table.c.report).where(table.c.run == id, table.c.host.in_(names))
            )
            if row.report is not None
        }
