"""The history of runs: who ran what, when, and with which result on each host. Also the unfinished runs."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from statecfg.problems.frozen import dataclass
from statecfg.store.connection import Connection, Row, among, from_json, row_of, to_json
from statecfg.store.database import Store

KEPT = 1000  # maximum number of runs in the store
LARGEST = 4 << 20  # maximum bytes of JSON of one host's report
BEAT = 10.0  # seconds between two heartbeats of a run
CUT_OFF = 45.0  # seconds without a heartbeat after which a run counts as interrupted
HostData = Mapping[str, Any]  # a host's part of a report in format 1


@dataclass(frozen=True, slots=True)
class HostResult:
    """How a run ended on a host.

    :param status: "" until the run ends on the host
    :param summary: outcome → number of resources
    """

    status: str
    summary: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run that has ended.

    :param id: the run's id in its report
    :param started: seconds since 1970
    :param ended: seconds since 1970
    :param mode: "plan", "apply", …
    :param who: `user@machine`
    :param playbook: relative to its project; "" for a run without a playbook
    :param hosts: name → result, sorted by name
    """

    id: str
    started: float
    ended: float
    mode: str
    who: str
    playbook: str
    hosts: Mapping[str, HostResult]

    @classmethod
    def from_row(cls, row: Row, hosts: Mapping[str, HostResult]) -> Self:
        """Return the run of a row of the table `run`."""
        return cls(hosts=hosts, **{name: row[name] for name in ("id", "started", "ended", "mode", "who", "playbook")})


@dataclass(frozen=True, slots=True)
class RunInProgress:
    """A run that has not ended.

    :param id: the run's id in its report
    :param started: seconds since 1970
    :param beat: time of its last heartbeat; 0 if it has ended and could not be recorded
    :param mode: "apply", …
    :param who: `user@machine`
    :param playbook: relative to its project; "" for a run without a playbook
    :param hosts: name → result, sorted by name
    """

    id: str
    started: float
    beat: float
    mode: str
    who: str
    playbook: str
    hosts: Mapping[str, HostResult]

    @classmethod
    def from_row(cls, row: Row, hosts: Mapping[str, HostResult]) -> Self:
        """Return the run of a row of the table `going`."""
        return cls(hosts=hosts, **{name: row[name] for name in ("id", "started", "beat", "mode", "who", "playbook")})

    def cut_off(self, now: float) -> bool:
        """Return whether the run sent no heartbeat for `CUT_OFF` seconds: its process was probably killed."""
        return now - self.beat > CUT_OFF


def begin(store: Store, id: str, started: float, mode: str, who: str, playbook: str, hosts: Sequence[str]) -> None:
    """Store that a run has begun. It counts as running until `record` is called, or until it stops calling `beat`.

    :param started: seconds since 1970
    :param who: `user@machine`
    :param hosts: names of the run's hosts
    """
    store.attempt(lambda connection: begin_in(connection, store.project, id, started, mode, who, playbook, hosts))


def begin_in(
    connection: Connection,
    project: str,
    id: str,
    started: float,
    mode: str,
    who: str,
    playbook: str,
    hosts: Sequence[str],
) -> None:
    """Do the same as `begin`, inside a transaction. If the run is stored already, change nothing."""
    head = {"id": id, "started": started, "beat": time.time(), "mode": mode, "who": who, "playbook": playbook}
    connection.change(
        "INSERT INTO going (id, started, beat, mode, who, playbook, project)"
        " VALUES (:id, :started, :beat, :mode, :who, :playbook, :project) ON CONFLICT DO NOTHING",
        {**head, "project": project},
    )
    if hosts:
        connection.change(
            "INSERT INTO going_host (run, host, status, summary) VALUES (:run, :host, '', '{}') ON CONFLICT DO NOTHING",
            *({"run": id, "host": name} for name in hosts),
        )
    _forget_old(connection, "going")


def _forget_old(connection: Connection, table: str) -> None:
    """Delete all runs of a table except the newest."""
    query = f"SELECT id FROM {table} ORDER BY started DESC, id LIMIT :many OFFSET :kept"
    old = connection.rows(query, many=1_000_000, kept=KEPT)
    if old:
        connection.change(f"DELETE FROM {table} WHERE id = :id", *old)


def beat(store: Store, id: str, over: bool = False) -> None:
    """Store a heartbeat of a run.

    :param over: the run has ended and could not be recorded
    """
    now = 0.0 if over else time.time()
    store.attempt(lambda connection: connection.change("UPDATE going SET beat = :now WHERE id = :id", now=now, id=id))


def host_finished(
    connection: Connection,
    id: str,
    host: str,
    status: str,
    summary: Mapping[str, int],
    report: HostData | None = None,
) -> bool:
    """Store how a running run ended on a host, inside a transaction. `record` replaces this at the end of the run.

    :param summary: outcome → count
    :param report: the host's report, with masked secrets; None to store none
    :returns: whether the store knows the run and the host; otherwise call `begin_in` first
    """
    kept = None if report is None else bounded(report)
    changed = connection.change(
        "UPDATE going_host SET status = :status, summary = :summary, report = :report"
        " WHERE run = :run AND host = :host",
        status=status,
        summary=to_json(dict(summary)),
        report=to_json(kept),
        run=id,
        host=host,
    )
    return changed > 0


def under_way(store: Store) -> list[RunInProgress]:
    """Return the runs that have begun and are not recorded, newest first, including interrupted runs."""
    with store.reading() as connection:
        mine = f"SELECT * FROM going WHERE {_OF_PROJECT} ORDER BY started DESC, id"
        rows = connection.rows(mine, project=store.project)
        hosts = _host_results(connection, "going_host", [row["id"] for row in rows])
    return [RunInProgress.from_row(row, hosts[row["id"]]) for row in rows]


_OF_PROJECT = "project IN ('', :project)"  # runs of 0.3.0 have no project


def _host_results(connection: Connection, table: str, runs: Iterable[str]) -> dict[str, dict[str, HostResult]]:
    """Return run → host → result. The hosts are sorted by name.

    :param table: `run_host` or `going_host`
    :param runs: ids
    """
    results: dict[str, dict[str, HostResult]] = {id: {} for id in runs}
    ids, named = among("run", results)
    query = f"SELECT run, host, status, summary FROM {table} WHERE run IN {ids}"
    for row in sorted(connection.rows(query, **named), key=lambda row: str(row["host"])):
        results[row["run"]][row["host"]] = HostResult(row["status"], from_json(row["summary"]))
    return results


def bounded(report: HostData) -> HostData:
    """Return a host's report as the store keeps it. If it is too large, omit differences and logs, or all resources.

    A warning in the report says what was omitted.
    """
    parts = {key: report[key] or () for key in _NODES if key in report}
    rest = len(json.dumps({key: value for key, value in report.items() if key not in parts}))
    size = rest + sum(len(json.dumps(node)) for node in _nodes(parts))
    if size <= LARGEST:
        return report
    note = f"This report takes {size / 2**20:.1f} MiB. The store keeps it without %s."
    if rest + sum(len(json.dumps(_brief(node))) for node in _nodes(parts)) <= LARGEST:
        small = {key: [[_brief(node) for node in layer] for layer in layers] for key, layers in parts.items()}
        return {**report, **small, "warnings": [note % "differences and logs", *(report.get("warnings") or ())]}
    error = {key: str(text)[:_TEXT] for key, text in (report.get("error") or {}).items()}
    kept = {"status": report["status"], "summary": report.get("summary") or {}, "layers": []}
    return {**kept, "warnings": [note % "resources"], **({"error": error} if error else {})}


_NODES = ("removals", "layers", "left")
_AT_ONCE = 50  # reports that are inserted with one statement
_TEXT = 10_000  # maximum characters of an error in a shortened report


def _nodes(parts: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the nodes of a report one by one, because the text of all of them may not fit into memory."""
    return (node for layers in parts.values() for layer in layers for node in layer)


def _brief(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a node's report without its differences and logs."""
    changes = [{key: value for key, value in change.items() if key != "diff"} for change in node.get("changes") or ()]
    actions = [{key: value for key, value in action.items() if key != "log"} for action in node.get("actions") or ()]
    return {**node, "changes": changes, "actions": actions}


def record(store: Store, report: Mapping[str, Any], started: float, ended: float, who: str) -> None:
    """Store a run that has ended. Keep only the newest 1,000 runs.

    :param report: in format 1, with masked secrets
    :param started: seconds since 1970
    :param ended: seconds since 1970
    :param who: `user@machine`
    """
    head = {
        "id": report["run"],
        "started": started,
        "ended": ended,
        "mode": report["mode"],
        "who": who,
        "playbook": report.get("playbook") or "",
        "project": store.project,
    }
    run_id = report["run"]

    def row(name: str, host: HostData) -> Mapping[str, Any]:
        status, summary = host["status"], host.get("summary") or {}
        texts = {"summary": to_json(dict(summary)), "report": to_json(bounded(host))}
        return {"run": run_id, "host": name, "status": status, **texts}

    def enter(connection: Connection) -> None:
        connection.change("DELETE FROM going WHERE id = :id", id=run_id)
        connection.change(
            "INSERT INTO run (id, started, ended, mode, who, playbook, project)"
            " VALUES (:id, :started, :ended, :mode, :who, :playbook, :project)",
            head,
        )
        hosts = iter(report["hosts"].items())
        while some := list(itertools.islice(hosts, _AT_ONCE)):
            connection.change(
                "INSERT INTO run_host (run, host, status, summary, report)"
                " VALUES (:run, :host, :status, :summary, :report)",
                *(row(name, host) for name, host in some),
            )
        _forget_old(connection, "run")

    store.attempt(enter)


def recent(
    store: Store,
    limit: int = 50,
    host: str | None = None,
    playbook: str | None = None,
    modes: Sequence[str] = (),
) -> list[RunRecord]:
    """Return the newest runs, newest first.

    :param limit: maximum number of runs
    :param host: only runs on this host
    :param playbook: only runs of this playbook
    :param modes: only runs in one of these modes; (): in any mode
    """
    conditions = [_OF_PROJECT]
    values: dict[str, str | int] = {"project": store.project, "limit": limit}
    if modes:
        listed, named = among("mode", modes)
        conditions.append(f"mode IN {listed}")
        values.update(named)
    if playbook is not None:
        conditions.append("playbook = :playbook")
        values["playbook"] = playbook
    if host is not None:
        conditions.append("id IN (SELECT run FROM run_host WHERE host = :host)")
        values["host"] = host
    query = f"SELECT * FROM run WHERE {' AND '.join(conditions)} ORDER BY started DESC, id LIMIT :limit"
    with store.reading() as connection:
        return ended(connection, connection.rows(query, **values))


def ended(connection: Connection, rows: Sequence[Row]) -> list[RunRecord]:
    """Return the runs of some rows of the table `run`, with their hosts."""
    hosts = _host_results(connection, "run_host", [row["id"] for row in rows])
    return [RunRecord.from_row(row, hosts[row["id"]]) for row in rows]


_HEAD = "SELECT * FROM run WHERE id = :id"


def head(store: Store, id: str) -> RunRecord | None:
    """Return a run that has ended; None if the store does not have it."""
    with store.reading() as connection:
        return next(iter(ended(connection, connection.rows(_HEAD, id=id))), None)


def host_report(store: Store, id: str, host: str) -> HostData | None:
    """Return a host's report in a run; None if the store does not have it.

    A run that has not ended, or was cut off, has the reports of the hosts on which it has ended.
    """
    with store.reading() as connection:
        for table in ("run_host", "going_host"):
            query = f"SELECT report FROM {table} WHERE run = :run AND host = :host"
            row = row_of(connection, query, run=id, host=host)
            found: HostData | None = None if row is None else from_json(row["report"])
            if found is not None:
                return found
    return None


def newest_reports(
    connection: Connection, project: str, host: str, playbook: str, modes: Iterable[str], limit: int
) -> Iterator[HostData]:
    """Yield a host's reports in the newest runs of a playbook, newest first.

    :param modes: only runs in one of these modes
    """
    listed, named = among("mode", modes)
    query = (
        "SELECT run_host.report FROM run_host JOIN run ON run_host.run = run.id"
        f" WHERE run_host.host = :host AND {_OF_PROJECT} AND run.playbook = :playbook AND run.mode IN {listed}"
        " ORDER BY run.started DESC, run.id LIMIT :limit"
    )
    for row in connection.rows(query, host=host, project=project, playbook=playbook, limit=limit, **named):
        yield from_json(row["report"]) or {}
