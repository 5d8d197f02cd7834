"""The log of hook calls: one entry for each call, with its result."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, CursorResult, Text, and_, delete, insert, or_, select, type_coerce

from statecfg.remote.hooks.result import Judged
from statecfg.store.database import Store
from statecfg.store.hooks.records import LoggedEvent, Queued
from statecfg.store.tables import event, hook, host

KEPT = 100_000  # maximum number of entries in the log


def write(connection: Connection, item: Queued, judged: Judged) -> None:
    """Add the result of a call to the log."""
    values = {
        "at": time.time(),
        # A hook or host that was deleted meanwhile is not named.
        "hook": select(hook.c.id).where(hook.c.id == item.hook.id).scalar_subquery(),
        "host": select(host.c.id).where(host.c.id == item.host).scalar_subquery(),
        "playbook": item.playbook,
        "invocation": item.id or None,
        "severity": judged.severity,
        "entry": judged.entry,
        "detail": judged.detail,
    }
    newest = number(connection.execute(insert(event).values(values)))
    connection.execute(delete(event).where(event.c.id <= newest - KEPT))


def number(inserted: CursorResult[Any]) -> int:
    """Return the number that the database gave an inserted row."""
    key = inserted.inserted_primary_key
    assert key is not None
    return int(key[0])


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
    query = (
        select(event, hook.c.name.label("hook_name"), host.c.name.label("host_name"))
        .outerjoin(hook, event.c.hook == hook.c.id)
        .outerjoin(host, event.c.host == host.c.id)
        .order_by(event.c.id.desc())
        .offset(start)
    )
    if name is not None:
        # HTTP hooks are not in the table `hook`: the entry contains the name.
        text = type_coerce(event.c.entry, Text).contains(f'"hook":{json.dumps(name)}', autoescape=True)
        query = query.where(or_(hook.c.folded == name.casefold(), and_(event.c.hook.is_(None), text)))
    if invocations:
        query = query.where(event.c.invocation.in_(invocations))
    if about is not None:
        query = query.where(host.c.name == about)
    # Hosts of other projects can have the same names.
    if not invocations:
        query = query.where(or_(host.c.id.is_(None), host.c.project.in_(("", store.project))))
    if limit is not None:
        query = query.limit(limit)
    with store.reading() as connection:
        return [LoggedEvent.from_row(row) for row in connection.execute(query)]
