"""The store on a PostgreSQL server: connections that detect a dead peer, one writer at a time, marks of commits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, create_engine, delete, exc, func
from sqlalchemy.engine import make_url

from statecfg.store import sqlite
from statecfg.store.errors import Busy, StoreError
from statecfg.store.tables import commit_mark

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from statecfg.store.address import Address

BUSY = sqlite.BUSY
IDLE = 30  # seconds after which the server ends a transaction whose client is silent
MARKS = 86400.0  # seconds for which the marks of commits are stored
_WRITERS = 0x73746174656366  # the advisory lock of writers: "statecf"
# Writers queue up. The server ends a writer that waits too long or blocks the others too long.
BEGIN = (
    f"SELECT set_config('lock_timeout', '{BUSY:.0f}s', true), "
    f"set_config('idle_in_transaction_session_timeout', '{IDLE}s', true), pg_advisory_xact_lock({_WRITERS})"
)
# Parameters of libpq: https://www.postgresql.org/docs/current/libpq-connect.html
_LIBPQ = {
    "connect_timeout": 10,
    "keepalives_idle": 5,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15000,
    "application_name": "statecfg",
}


class Lost(StoreError):
    """The connection was lost. Whether the last change was stored is unknown."""


class Again(StoreError):
    """The transaction conflicted with another one. A retry may succeed."""


class Unmade(StoreError):
    """The database does not contain statecfg's schema."""


def engine(address: Address, **pool: Any) -> Engine:
    """Return the engine, which makes connections.

    :param pool: the settings of its pool
    :raises StoreError: the driver psycopg is missing
    """
    try:
        url = make_url(address.url)
        connect_args: dict[str, Any] = {name: value for name, value in _LIBPQ.items() if name not in url.query}
        # Prepared statements belong to a session, and a pooler between statecfg and the server shares sessions.
        connect_args["prepare_threshold"] = None
        return create_engine(
            url, connect_args=connect_args, pool_pre_ping=True, isolation_level="READ COMMITTED", **pool
        )
    except ModuleNotFoundError:
        raise StoreError(
            f"{address.label}: PostgreSQL needs psycopg, which is not installed",
            "pip install 'statecfg[postgresql]'",
        ) from None


def explain(problem: exc.DBAPIError, address: Address, connected: bool) -> StoreError:
    """Return the StoreError that explains a failure of the database.

    :param connected: whether an earlier connection succeeded. Then address and password are right, and the network or
        the server failed
    """
    state = getattr(problem.orig, "sqlstate", None) or ""
    text = _without_password(" ".join(str(problem.orig).split()), address)
    if state == "42P01" and "schema_version" in text:  # undefined table
        return Unmade(f"{address.label}: it does not contain a store of statecfg")
    if state in ("40001", "40P01"):  # serialization failure, deadlock
        return Again(f"{address.label}: it conflicted with another writer: {text}")
    if state == "55P03":  # lock not available
        return Busy(f"{address.label}: another process has written for {BUSY:.0f} s", "wait until it is done")
    if problem.connection_invalidated or (connected and not state and isinstance(problem, exc.OperationalError)):
        detail = f"{address.label}: the connection was lost; it is unknown whether the last change was stored: {text}"
        return Lost(detail, "check the server, then run the command again")
    return StoreError(f"{address.label}: {text}", "check the server, the address, and the password in ~/.pgpass")


def _without_password(text: str, address: Address) -> str:
    url = make_url(address.url)
    for secret in (url.password, url.query.get("password")):
        text = text.replace(str(secret), "********") if secret else text
    return text


def empty(connection: Connection) -> bool:
    """Return whether a database does not contain statecfg's schema."""
    return connection.exec_driver_sql("SELECT to_regclass('schema_version')").scalar() is None


def server_time() -> Any:
    """Return the server's time, in seconds since 1970. The clocks of its clients differ."""
    return func.extract("epoch", func.clock_timestamp())


def marked(connection: Connection, mark: str) -> bool:
    """Store the mark of a transaction. Wait for an unfinished transaction with the same mark.

    :returns: False if the mark already exists: the commit whose response was lost has succeeded
    """
    from sqlalchemy.dialects.postgresql import insert

    statement = insert(commit_mark).values(id=mark, at=server_time()).on_conflict_do_nothing()
    return connection.execute(statement.returning(commit_mark.c.id)).scalar() is not None


def forget_marks(connection: Connection) -> None:
    """Delete the marks of commits that are older than `MARKS`."""
    connection.execute(delete(commit_mark).where(commit_mark.c.at < server_time() - MARKS))
