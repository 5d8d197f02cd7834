"""Move records from one playbook to another: what nodes with `take_over` took from it."""

from __future__ import annotations

import json
from typing import List, Sequence, Tuple

from statecfg.remote.ledger.ledger import Ledger
from statecfg.remote.ledger.records import StateChange
from statecfg.remote.ledger.state import CLAIMS

Move = Tuple[str, str, str, List[str]]  # node, playbook and name of the former owner, the claims that it loses


def move(ledger: Ledger, playbook: str, moves: Sequence[Move], complete: bool) -> None:
    """Record in one transaction what nodes took over from other playbooks.

    :param playbook: the playbook of these nodes
    :param moves: an owner that loses no claims loses its record
    :param complete: the records of the playbook now contain all that its nodes own
    :raises StateError: if the ledger can't be written
    """
    with ledger, ledger.database as database:
        for node, owner, name, lost in moves:
            if not lost:
                ledger.change_state(owner, "", StateChange(name, "", (), (playbook, node)))
                continue
            for resource in ledger.resources(owner, name).values():
                kept = [claim for claim in resource.definition.claims if claim[1:] not in lost]
                query = "UPDATE resource SET claims = ? WHERE playbook = ? AND name = ?"
                database.execute(query, (json.dumps(kept), owner, name))
        if complete:
            database.execute("INSERT OR REPLACE INTO meta VALUES (?, '1')", (CLAIMS + playbook,))
