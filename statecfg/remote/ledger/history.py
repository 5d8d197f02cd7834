"""The history of runs that a host's ledger contains."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List

    from statecfg.remote.ledger.ledger import Ledger


def history(ledger: Ledger, playbook: str, run: str, limit: int) -> List[Dict[str, Any]]:
    """Return runs, newest first, with the number of nodes per outcome.

    :param playbook: only this playbook's runs; "" for all
    :param run: only runs whose id begins with this, with their outcomes and actions; "" for all
    :param limit: the maximum number of runs
    """
    query = (
        "SELECT id, started, ended, mode, who, playbook, status FROM run WHERE (? = '' OR playbook = ?)"
        " AND substr(id, 1, ?) = ? ORDER BY started DESC, rowid DESC LIMIT ?"
    )
    names = ("run", "started", "ended", "mode", "who", "playbook", "status")
    found = []
    for row in ledger.database.execute(query, (playbook, playbook, len(run), run, limit)).fetchall():
        entry: Dict[str, Any] = dict(zip(names, row))
        counts = ledger.database.execute(
            "SELECT outcome, count(*) FROM outcome WHERE run = ? GROUP BY outcome", (row[0],)
        )
        entry["summary"] = dict(counts.fetchall())
        if run:
            outcomes = "SELECT node, outcome FROM outcome WHERE run = ? ORDER BY node"
            entry["outcomes"] = dict(ledger.database.execute(outcomes, (row[0],)).fetchall())
            actions = "SELECT node, op, status, reason FROM action WHERE run = ? ORDER BY number"
            parts = ("node", "op", "status", "reason")
            entry["actions"] = [dict(zip(parts, each)) for each in ledger.database.execute(actions, (row[0],))]
        found.append(entry)
    return found
