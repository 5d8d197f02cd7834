"""Complete orphans with what the ledger does not store as it is: content of snapshots, and secrets."""

from __future__ import annotations

import os
from typing import Iterable, List, Mapping

from statecfg.remote.graph.model import HostNode
from statecfg.remote.ledger import state
from statecfg.remote.ledger.records import Orphan, with_content
from statecfg.remote.machine.changes import secretive
from statecfg.remote.machine.hidden import restored, unknown
from statecfg.remote.run.definitions import StoredDefinitions
from statecfg.remote.run.recording import present


def complete(
    orphans: Iterable[Orphan], defined: Mapping[str, HostNode], definitions: StoredDefinitions, state_dir: str
) -> List[Orphan]:
    """Add the content of snapshots, the secrets of the playbook, and stand-ins for the secrets of earlier runs.

    :param defined: the playbook's nodes by name
    :returns: the orphans with a secret that an earlier version recorded without a digest
    """
    found = []
    folder = os.path.join(state_dir, state.BEFORE)
    for orphan in orphans:
        orphan.snapshot = with_content(orphan.resource.memory, folder)
        node = defined.get(orphan.resource.name)
        if node is not None and secretive(orphan.attrs):
            orphan.supply(node.attrs, definitions.attrs(node))
        if unknown(orphan.attrs):
            found.append(orphan)
        orphan.attrs = restored(orphan.attrs, definitions.secret_digests)
    return found


def mark_untouched(orphans: Iterable[Orphan], lineage: str) -> None:
    """Tell the undo of orphans whether they are as after the last apply: the digest of their state shows it."""
    for orphan in orphans:
        if orphan.resource.after and present(orphan, lineage) == orphan.resource.after:
            orphan.snapshot["untouched"] = True
