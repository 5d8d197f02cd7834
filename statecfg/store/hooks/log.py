"""The log of hook calls: one entry for each call, with its result."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from typing import Any

from statecfg.remote.hooks.result import Judged
from statecfg.store.connection import Connection, among, to_json
from statecfg.store.database import Store
from statecfg.store.hooks.records import LoggedEvent, Queued

KEPT = 100_000  # maximum number of entries in the log
_ALL = 1 << 62


def write(connection: Connection, item: Queued, judged: Judged) -> None:
    """Add the result of a call to the log."""
    newest = connection.add(
        "INSERT INTO event (at, hook, host, playbook, invocation, severity, entry, detail)"
        # A hook or host that was deleted meanwhile is not named.
        " VALUES (:at, (SELECT id FROM hook WHERE id = :hook), (SELECT id FROM host WHERE id = :host),"
        " :playbook, :invocation, :severity, :entry, :detail)",
        at=time.time(),
        hook=item.hook.id,
        host=item.host,
        playbook=item.playbook,
        invocation=item.id or None,
        severity=judged.severity,
        entry=to_json(judged.entry),
        detail=judged.detail,
    )
    connection.change("DELETE FROM event WHERE id <= :last", last=newest - KEPT)


def events(
    store: Store,
    name: str | None = None,
    limit: int | None = None,
    start: int = 0,
    invocations: Sequence[int] = (),
    about: str | None = None,
) -> list[LoggedEvent]:
    """Return entries of the log, newest first. Entries about hosts of other projects are left out.

    :param name: only entries of this hook
    :param limit: maximum number of entries
    :param start: number of newest entries to skip
    :param invocations: only calls with these positions in the queue, of any project
    :param about: only entries about this host
    """
    conditions = []
    values: dict[str, Any] = {"start": start, "limit": _ALL if limit is None else limit}
    if name is not None:
        # HTTP hooks are not in the table `hook`: the entry contains the name.
        conditions.append("(hook.folded = :folded OR (event.hook IS NULL AND event.entry LIKE :text ESCAPE '!'))")
        text = _escaped(f'"hook":{json.dumps(name)}')
        values.update(folded=name.casefold(), text=f"%{text}%")
    if invocations:
        listed, named = among("invocation", invocations)
        conditions.append(f"event.invocation IN {listed}")
        values.update(named)
    else:  # hosts of other projects can have the same names
        conditions.append("(host.id IS NULL OR host.project IN ('', :project))")
        values.update(project=store.project)
    if about is not None:
        conditions.append("host.name = :about")
        values.update(about=about)
    query = (
        "SELECT event.*, hook.name AS hook_name, host.name AS host_name FROM event"
        " LEFT JOIN hook ON event.hook = hook.id LEFT JOIN host ON event.host = host.id"
        f" WHERE {' AND '.join(conditions) or '1 = 1'} ORDER BY event.id DESC LIMIT :limit OFFSET :start"
    )
    with store.reading() as connection:
        return [LoggedEvent.from_row(row) for row in connection.rows(query, **values)]


def _escaped(text: str) -> str:
    """Return a string for LIKE in which `!` escapes the wildcards."""
    return re.sub(r"[!%_]", r"!\g<0>", text)
