"""Browser sessions. The store contains them, so that they survive a restart of the server."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from typing import Any

from statecfg.entities.access_calls import digest, owner
from statecfg.entities.model import Principal
from statecfg.store import records
from statecfg.store.database import Store
from statecfg.store.entities import tables

LIFE = 12 * 3600.0  # lifetime of a session in seconds
MOST = 20  # maximum number of sessions of one user; a new one then ends the user's oldest


class LoginSessions:
    """The open sessions. A session ends on logout, after 12 hours, or when its token becomes invalid.

    The store contains only digests. Neither the cookie nor the token can be computed from them.

    :param clock: returns seconds since 1970
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store, self._clock = store, clock

    def open(self, token: str) -> str:
        """Open a session for the owner of an existing token, and return the value for its cookie."""
        value, now = secrets.token_urlsafe(32), self._clock()

        def enter(connection: Any) -> None:
            token_row = records.find(connection, tables.token, digest=digest(token))
            for row in records.every(connection, tables.browser_session):
                if row.ends <= now:
                    records.drop(connection, tables.browser_session, number=row.number)
            if token_row is not None:
                own = {
                    row.id for row in records.every(connection, tables.token, name=token_row.name, org=token_row.org)
                }
                rows = [row for row in records.every(connection, tables.browser_session) if row.token in own]
                for row in rows[: max(0, len(rows) - MOST + 1)]:
                    records.drop(connection, tables.browser_session, number=row.number)
                values = {"digest": digest(value), "token": token_row.id, "ends": now + LIFE}
                records.add(connection, tables.browser_session, values)

        self._store.attempt(enter)
        return value

    def principal(self, value: str) -> Principal | None:
        """Return the user of a session, or None if it has ended or never existed.

        :param value: the value of its cookie
        """
        now = self._clock()
        with self._store.reading() as connection:
            session = records.find(connection, tables.browser_session, digest=digest(value))
            if session is None or session.ends <= now:
                return None
            return owner(records.find(connection, tables.token, id=session.token), now)

    def close(self, value: str) -> None:
        """End a session."""
        key = digest(value)
        self._store.attempt(lambda connection: records.drop(connection, tables.browser_session, digest=key))


def csrf(value: str) -> str:
    """Return the value that the page of a session must send in the header X-Statecfg-Csrf with each change.

    It is derived from the cookie, which other sites can't read. So it stays valid when the server restarts.

    :param value: the value of the session's cookie
    """
    return hmac.new(value.encode("utf-8", "surrogatepass"), b"statecfg csrf", hashlib.sha256).hexdigest()


def matches(value: str, header: str) -> bool:
    """Return whether the header X-Statecfg-Csrf matches the cookie.

    :param value: the value of the session's cookie
    :param header: the value of the header
    """
    return hmac.compare_digest(csrf(value).encode(), header.encode("utf-8", "surrogatepass"))
