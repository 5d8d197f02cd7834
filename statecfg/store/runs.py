"""The history of runs: who ran what, when, and what became of each host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from statecfg.store.database import Store
from statecfg.store.tables import run, run_host

KEPT = 1000


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run in the store.

    :param id: as its report calls it
    :param started: when (seconds since 1970)
    :param ended: when
    :param mode: "plan", "apply", …
    :param who: `user@machine`
    :param playbook: relative to its project, "" for none
    :param hosts: name → `status` and `summary` (outcome → count)
    """

    id: str
    started: float
    ended: float
    mode: str
    who: str
    playbook: str
    hosts: Mapping[str, Mapping[str, Any]]


def record(store: Store, report: Mapping[str, Any], started: float, ended: float, who: str) -> None:
    """Enter a run. Of all runs the newest 1,000 are kept.

    :param report: of format 1, redacted
    :param started: seconds since 1970
    :param ended: the same
    :param who: `user@machine`
    """
    head = {
        "id": report["run"],
        "started": started,
        "ended": ended,
        "mode": report["mode"],
        "who": who,
        "playbook": report.get("playbook") or "",
    }
    hosts = [
        {
            "run": report["run"],
            "host": name,
            "status": said["status"],
            "summary": said.get("summary") or {},
            "report": dict(said),
        }
        for name, said in report["hosts"].items()
    ]

    def enter(connection: Connection) -> None:
        connection.execute(insert(run).values(head))
        if hosts:
            connection.execute(insert(run_host), hosts)
        old = select(run.c.id).order_by(run.c.started.desc(), run.c.id).offset(KEPT)
        gone = list(connection.execute(old).scalars())
        if gone:
            connection.execute(delete(run).where(run.c.id.in_(gone)))

    store.attempt(enter)


def recent(store: Store, limit: int = 50, host: str | None = None, playbook: str | None = None) -> list[RunRecord]:
    """Return the newest runs, newest first.

    :param limit: at most so many
    :param host: only those that this host was part of
    :param playbook: only those of this playbook
    """
    query = select(run).order_by(run.c.started.desc(), run.c.id).limit(limit)
    if playbook is not None:
        query = query.where(run.c.playbook == playbook)
    if host is not None:
        query = query.where(run.c.id.in_(select(run_host.c.run).where(run_host.c.host == host)))
    with store.reading() as connection:
        found = connection.execute(query).all()
        hosts: dict[str, dict[str, dict[str, Any]]] = {row.id: {} for row in found}
        parts = select(run_host.c.run, run_host.c.host, run_host.c.status, run_host.c.summary)
        for name, of, status, summary in connection.execute(parts.where(run_host.c.run.in_(list(hosts)))):
            hosts[name][of] = {"status": status, "summary": summary}
    return [RunRecord(**row._mapping, hosts=dict(sorted(hosts[row.id].items()))) for row in found]


def report(store: Store, id: str) -> dict[str, Any] | None:
    """Return the report of a run, as it was recorded; None where it is not known (any more)."""
    with store.reading() as connection:
        head = connection.execute(select(run).where(run.c.id == id)).one_or_none()
        if head is None:
            return None
        parts = connection.execute(select(run_host.c.host, run_host.c.report).where(run_host.c.run == id))
        hosts = dict(sorted((row.host, row.report) for row in parts))
    return {"format": 1, "run": id, "mode": head.mode, "playbook": head.playbook, "hosts": hosts}
