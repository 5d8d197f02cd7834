"""The store on a PostgreSQL server: connections that detect a dead peer, one writer at a time, marks of commits."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine, create_engine, delete, exc, func, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import make_url

from statecfg.store import sqlite
from statecfg.store.connection import Connection
from statecfg.store.errors import Again, Busy, Lost, StoreError, Unmade
from statecfg.store.tables import commit_mark

if TYPE_CHECKING:
    import sqlalchemy

    from statecfg.store.address import StoreAddress
    from statecfg.store.connection import Row

BUSY = sqlite.BUSY
IDLE = 30  # seconds after which the server ends a transaction whose client is silent
MARKS = 86400.0  # seconds for which the marks of commits are stored
WAIT = 60  # seconds to wait for a free connection
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


_text = functools.lru_cache(maxsize=500)(text)


class PostgresqlConnection(Connection):
    """A connection to the server.

    :param full: SQLAlchemy's connection
    """

    shared = True

    def __init__(self, full: sqlalchemy.Connection) -> None:
        self._full = full

    @property
    def full(self) -> sqlalchemy.Connection:
        """SQLAlchemy's connection."""
        return self._full

    def rows(self, query: str, /, **values: Any) -> list[Row]:
        """Return the rows that a query finds."""
        return [dict(row) for row in self._full.execute(_text(query), values).mappings()]

    def change(self, statement: str, /, *rows: Row, **values: Any) -> int:
        """Execute a statement once, or once for each row of values; return the number of changed rows."""
        return self._full.execute(_text(statement), [dict(row) for row in rows] if rows else values).rowcount

    def add(self, statement: str, /, **values: Any) -> int:
        """Execute an INSERT of one row; return the `id` that the database gave it."""
        return int(self._full.execute(_text(f"{statement} RETURNING id"), values).scalar_one())


class PostgresqlDatabase:
    """The server, and its open connections. Threads may share it.

    :ivar opened: whether an earlier connection succeeded. Then address and password are right
    :raises StoreError: the driver psycopg is missing
    """

    shared = True

    def __init__(self, address: StoreAddress) -> None:
        self._address, self.opened = address, False
        self._engine = _engine(address, pool_size=5, max_overflow=20, pool_timeout=WAIT, hide_parameters=True)

    @contextmanager
    def reading(self) -> Iterator[PostgresqlConnection]:
        """Provide a connection that sees one state of the database."""
        with self.failing(), self._engine.connect() as full:
            self.opened = True
            options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
            yield PostgresqlConnection(full.execution_options(**options))

    @contextmanager
    def writing(self) -> Iterator[PostgresqlConnection]:
        """Provide a connection that writes, and commit at the end."""
        with self.failing(), self._engine.connect() as full:
            self.opened = True
            full.exec_driver_sql(BEGIN)
            yield PostgresqlConnection(full)
            try:
                full.commit()
            except exc.DBAPIError:
                full.invalidate()
                raise

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Convert the database's exceptions into StoreError."""
        try:
            yield
        except exc.TimeoutError:
            raise Busy(f"{self._address.label}: no connection became free within {WAIT} s") from None
        except exc.IntegrityError:
            raise  # a bug in statecfg
        except exc.DBAPIError as problem:
            raise explain(problem, self._address, self.opened) from None

    def marked(self, connection: Connection, mark: str) -> bool:
        """Store the mark of a transaction. Wait for an unfinished transaction with the same mark.

        :returns: False if the mark already exists: the commit whose response was lost has succeeded
        """
        statement = insert(commit_mark).values(id=mark, at=server_time()).on_conflict_do_nothing()
        return connection.execute(statement.returning(commit_mark.c.id)).scalar() is not None

    def forget_marks(self, connection: Connection) -> None:
        """Delete the marks of commits that are older than `MARKS`."""
        connection.execute(delete(commit_mark).where(commit_mark.c.at < server_time() - MARKS))

    def empty(self, connection: Connection) -> bool:
        """Return whether the database does not contain statecfg's schema."""
        return connection.rows("SELECT to_regclass('schema_version') AS found")[0]["found"] is None

    def close(self) -> None:
        """Close every connection that is not in use."""
        self._engine.dispose()


def _engine(address: StoreAddress, **options: Any) -> Engine:
    """Return SQLAlchemy's engine.

    :raises StoreError: the driver psycopg is missing
    """
    try:
        url = make_url(address.url)
        connect_args: dict[str, Any] = {name: value for name, value in _LIBPQ.items() if name not in url.query}
        # Prepared statements belong to a session, and a pooler between statecfg and the server shares sessions.
        connect_args["prepare_threshold"] = None
        return create_engine(
            url, connect_args=connect_args, pool_pre_ping=True, isolation_level="READ COMMITTED", **options
        )
    except ModuleNotFoundError:
        raise StoreError(
            f"{address.label}: PostgreSQL needs psycopg, which is not installed",
            "pip install 'statecfg[postgresql]'",
        ) from None


def explain(problem: exc.DBAPIError, address: StoreAddress, connected: bool) -> StoreError:
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


def _without_password(text: str, address: StoreAddress) -> str:
    url = make_url(address.url)
    for secret in (url.password, url.query.get("password")):
        text = text.replace(str(secret), "********") if secret else text
    return text


def server_time() -> Any:
    """Return the server's time, in seconds since 1970. The clocks of its clients differ."""
    return func.extract("epoch", func.clock_timestamp())
