"""The history of runs that a host's ledger contains."""

from __future__ import annotations

from statecfg.remote.ledger.journal import interrupted_runs
from statecfg.remote.ledger.state import StateError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional

    from typing_extensions import TypedDict

    from statecfg.remote.graph.model import JsonMap
    from statecfg.remote.ledger.ledger import Ledger
    from statecfg.remote.ledger.lock import Lock

    class PastAction(TypedDict):
        """An action of a run in the history."""

        node: str
        op: str
        status: str
        reason: str

    class PastRun(TypedDict, total=False):
        """A run in the history; `outcomes` and `actions` only if it was asked for by its id."""

        run: str
        started: float
        ended: Optional[float]
        mode: str
        who: str
        playbook: str
        status: str
        summary: Dict[str, int]
        outcomes: Dict[str, str]
        actions: List[PastAction]


def known(ledger: Ledger, query: Mapping[str, Any]) -> JsonMap:
    """Return what the ledger knows.

    :param query: `playbook`, `run`, `limit` and `node` as in `history`; `owners`: also count the managed resources;
        `settled`: seconds to wait for the end of another run
    """
    node = query.get("node", "")
    runs = history(ledger, query.get("playbook", ""), query.get("run", ""), int(query.get("limit", 20)), node)
    found: Dict[str, Any] = {"history": runs, "managed": managed(ledger, node) if node else []}
    if query.get("owners"):
        counts = ledger.database.execute("SELECT playbook, count(*) FROM resource GROUP BY playbook ORDER BY playbook")
        found["owners"] = dict(counts.fetchall())
    return found


def managed(ledger: Ledger, node: str) -> List[JsonMap]:
    """Return what the ledger knows about the managed resources of a name, which may belong to several playbooks."""
    rows = ledger.database.execute(
        "SELECT playbook, type, state, since, first_run, last_run, position, protect FROM resource WHERE name = ?",
        (node,),
    )
    return [dict(zip([column[0] for column in rows.description], row)) for row in rows]


def history(ledger: Ledger, playbook: str, run: str, limit: int, node: str = "") -> List[PastRun]:
    """Return runs, newest first, with the number of nodes per outcome.

    :param playbook: only this playbook's runs; "" for all
    :param run: only runs whose id begins with this, with their outcomes and actions; "" for all
    :param limit: the maximum number of runs
    :param node: only runs with an outcome of this node, and only this outcome; "" for all
    """
    query = (
        "SELECT id, started, ended, mode, who, playbook, status FROM run WHERE (? = '' OR playbook = ?)"
        " AND substr(id, 1, ?) = ? AND (? = '' OR id IN (SELECT run FROM outcome WHERE node = ?))"
        " ORDER BY started DESC, rowid DESC LIMIT ?"
    )
    runs: List[PastRun] = []
    for row in ledger.database.execute(query, (playbook, playbook, len(run), run, node, node, limit)).fetchall():
        run_id, started, ended, mode, who, owner, status = row
        entry: PastRun = {"run": run_id, "started": started, "ended": ended, "mode": mode, "who": who}
        entry["playbook"], entry["status"] = owner, status
        counts = ledger.database.execute(
            "SELECT outcome, count(*) FROM outcome WHERE run = ? AND ? IN ('', node) GROUP BY outcome", (row[0], node)
        )
        entry["summary"] = dict(counts.fetchall())
        if run:
            outcomes = "SELECT node, outcome FROM outcome WHERE run = ? ORDER BY node"
            entry["outcomes"] = dict(ledger.database.execute(outcomes, (row[0],)).fetchall())
            actions = "SELECT node, op, status, reason FROM action WHERE run = ? ORDER BY number"
            entry["actions"] = [
                {"node": node, "op": op, "status": ended_as, "reason": reason}
                for node, op, ended_as, reason in ledger.database.execute(actions, (row[0],))
            ]
        runs.append(entry)
    return runs


def of_host(state_dir: str, lock: Lock, query: Mapping[str, Any]) -> JsonMap:
    """Return the runs in this host's ledger, and its lineage.

    :param lock: the host's lock
    :param query: see `known`
    :raises StateError: another run did not end in time
    """
    from statecfg.remote.ledger.ledger import Ledger

    if "settled" in query and lock.current_holder(query["settled"]) is not None:
        raise StateError("another run still holds the lock")
    ledger = Ledger(state_dir, reading=True)
    # Ignore the journal of the current run. The holder may change meanwhile, so ask before and after.
    running = [(lock.current_holder(0) or {}).get("run")]
    interrupted = interrupted_runs(state_dir)
    running.append((lock.current_holder(0) or {}).get("run"))
    cut_off = [(run, account) for run, account in interrupted if run not in running]
    try:
        if cut_off:
            ledger.recall(cut_off)
        return dict(known(ledger, query), ledger=ledger.meta("lineage"))
    finally:
        ledger.close()
