"""The queue of hook calls. Calls run one at a time, in the order in which they were queued."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from statecfg.remote.hooks.result import Judged
from statecfg.store.connection import Connection, from_json, row_of, to_json
from statecfg.store.database import Store
from statecfg.store.hooks import log
from statecfg.store.hooks.records import Configuration, HookObject, Queued

Metadata = Mapping[str, Any]  # of a host: key → JSON value
Judge = Callable[[Configuration, Metadata | None], Judged]


def enqueue(connection: Connection, items: Iterable[Queued]) -> list[int]:
    """Append calls to the queue; return their positions."""
    return [
        connection.add(
            "INSERT INTO invocation (hook, event, host, given, playbook, queued, started)"
            " VALUES (:hook, :event, :host, :given, :playbook, :queued, 0)",
            hook=item.hook.id,
            event=item.event,
            host=item.host,
            given=to_json(item.hook_input),
            playbook=item.playbook,
            queued=time.time(),
        )
        for item in items
    ]


def last(store: Store) -> int:
    """Return the last position in the queue, 0 if the queue is empty."""
    with store.reading() as connection:
        return int(connection.rows("SELECT coalesce(max(id), 0) AS last FROM invocation")[0]["last"])


def waiting(store: Store) -> int:
    """Return the number of queued calls."""
    with store.reading() as connection:
        return int(connection.rows("SELECT count(*) AS number FROM invocation")[0]["number"])


def pending(store: Store) -> list[Queued]:
    """Return the queued calls in the order in which they will run."""
    with store.reading() as connection:
        rows = connection.rows("SELECT * FROM invocation ORDER BY id")
        owners = {row["id"]: HookObject.from_row(row) for row in connection.rows("SELECT * FROM hook")}
    return [Queued.from_row(row, owners[row["hook"]]) for row in rows]


def begin(connection: Connection, upto: int) -> Queued | None:
    """Return the first queued call, and count that it was started.

    :param upto: the last position to consider
    :returns: None if no call is queued up to that position
    """
    row = row_of(connection, "SELECT * FROM invocation WHERE id <= :upto ORDER BY id LIMIT 1", upto=upto)
    if row is None:
        return None
    connection.change("UPDATE invocation SET started = started + 1 WHERE id = :id", id=row["id"])
    [owner] = connection.rows("SELECT * FROM hook WHERE id = :id", id=row["hook"])
    return Queued.from_row(row, HookObject.from_row(owner))


def finish(connection: Connection, item: Queued, judge: Judge) -> Judged:
    """Store the result of a call and remove the call from the queue; return the result.

    :param judge: gets the hook's configuration and the host's metadata, as they are now, and returns the result
    """
    hook = row_of(connection, "SELECT configuration FROM hook WHERE id = :id", id=item.hook.id)
    host = row_of(connection, "SELECT metadata FROM host WHERE id = :id", id=item.host)
    metadata = _metadata(item) if host is None else from_json(host["metadata"])
    judged = judge(item.hook.configuration if hook is None else from_json(hook["configuration"]), metadata)
    configure = "UPDATE hook SET configuration = :configuration WHERE id = :id"
    connection.change(configure, configuration=to_json(judged.configuration), id=item.hook.id)
    if host is not None:
        change = "UPDATE host SET metadata = :metadata WHERE id = :id"
        connection.change(change, metadata=to_json(judged.metadata), id=item.host)
    connection.change("DELETE FROM invocation WHERE id = :id", id=item.id)
    log.write(connection, item, judged)
    return judged


def _metadata(item: Queued) -> Metadata | None:
    """Return a host's metadata when a call was queued, for a host that was forgotten since; None without a host."""
    node = item.hook_input.get("node")
    return None if node is None else dict(node.get("metadata", {}))
