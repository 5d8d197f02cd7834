"""A SQLite file as the database of the store: its connections and transactions, without SQLAlchemy where possible."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statecfg.store import migrations, sqlite
from statecfg.store.connection import Connection, Row
from statecfg.store.errors import Busy, StoreError

if TYPE_CHECKING:
    import sqlalchemy

    from statecfg.store.address import StoreAddress

MOST = 25  # connections at a time
IDLE = 5  # unused connections that stay open
WAIT = 60.0  # seconds to wait for a free connection


class SqliteConnection(Connection):
    """A connection to the file.

    :param borrow: returns SQLAlchemy's connection for an open connection
    """

    shared = False

    def __init__(
        self, raw: sqlite.HeldConnection, borrow: Callable[[sqlite.HeldConnection], sqlalchemy.Connection]
    ) -> None:
        self._raw, self._borrow = raw, borrow

    @property
    def full(self) -> sqlalchemy.Connection:
        """SQLAlchemy's connection, in the same transaction."""
        if self._raw.full is None:
            self._raw.full = self._borrow(self._raw)
        return self._raw.full

    def rows(self, query: str, /, **values: Any) -> list[Row]:
        """Return the rows that a query finds."""
        cursor = self._raw.execute(query, values)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]

    def change(self, statement: str, /, *rows: Row, **values: Any) -> int:
        """Execute a statement once, or once for each row of values; return the number of changed rows."""
        return (self._raw.executemany(statement, rows) if rows else self._raw.execute(statement, values)).rowcount

    def add(self, statement: str, /, **values: Any) -> int:
        """Execute an INSERT of one row; return the `id` that the database gave it."""
        number = self._raw.execute(statement, values).lastrowid
        assert number is not None
        return number

    def end(self) -> None:
        """Undo what was not committed, also for SQLAlchemy."""
        try:
            if self._raw.in_transaction:
                self._raw.rollback()
        finally:
            if self._raw.full is not None:
                self._raw.full.rollback()


class SqliteDatabase:
    """The file, its open connections, and SQLAlchemy's engine if a statement needs it. Threads may share it."""

    shared = False

    def __init__(self, address: StoreAddress) -> None:
        assert address.path is not None
        self._path, self._label = address.path, address.label
        self._slots = threading.BoundedSemaphore(MOST)
        self._idle: list[sqlite.HeldConnection] = []
        self._closed = False
        self._borrowing = threading.Lock()
        self._engine: sqlalchemy.Engine | None = None
        self._lent: sqlite.HeldConnection | None = None  # the connection that SQLAlchemy borrows next
        sqlite.prepare(address, self._fill)

    @contextmanager
    def reading(self) -> Iterator[SqliteConnection]:
        """Provide a connection that sees one state of the file."""
        with self.failing(), self._raw() as raw, self._transaction(raw, "BEGIN") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[SqliteConnection]:
        """Provide a connection that writes, and commit at the end."""
        with self.failing(), self._raw() as raw, self._transaction(raw, "BEGIN IMMEDIATE") as connection:
            yield connection
            raw.commit()

    @contextmanager
    def _transaction(self, raw: sqlite.HeldConnection, begin: str) -> Iterator[SqliteConnection]:
        connection = SqliteConnection(raw, self._borrow)
        try:
            raw.execute(begin).close()
            yield connection
        finally:
            connection.end()

    @contextmanager
    def _raw(self) -> Iterator[sqlite.HeldConnection]:
        """Provide an open connection. After an error, close it instead of using it again."""
        if not self._slots.acquire(timeout=WAIT):
            raise Busy(f"{self._label}: no connection became free within {WAIT:.0f} s")
        try:
            raw = self._take() or sqlite.connect(self._path)
            try:
                yield raw
            except BaseException:
                raw.end()
                raise
            self._idle.append(raw)
            if self._closed or len(self._idle) > IDLE:
                self._drop()
        finally:
            self._slots.release()

    def _take(self) -> sqlite.HeldConnection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _drop(self) -> None:
        raw = self._take()
        if raw is not None:
            raw.end()

    def _borrow(self, raw: sqlite.HeldConnection) -> sqlalchemy.Connection:
        """Return SQLAlchemy's connection for an open connection, which stays open when SQLAlchemy returns it."""
        with self._borrowing:
            if self._engine is None:
                self._engine = self._create_engine()
            self._lent = raw
            return self._engine.connect()

    def _create_engine(self) -> sqlalchemy.Engine:
        from sqlalchemy import create_engine, pool

        engine = create_engine(
            "sqlite://",
            creator=lambda: self._lent,
            poolclass=pool.NullPool,
            pool_reset_on_return=None,
            hide_parameters=True,
        )
        # SQLAlchemy ends its first connection's transaction after it has asked for SQLite's version.
        self._lent = sqlite3.connect(":memory:", factory=sqlite.HeldConnection, check_same_thread=False)
        try:
            engine.connect().close()
        finally:
            self._lent.end()
        return engine

    def _fill(self, path: Path) -> None:
        """Write an empty store into a new file."""
        with self.failing():
            raw = sqlite.connect(path)
            try:
                with self._transaction(raw, "BEGIN IMMEDIATE") as connection:
                    migrations.forward(connection, 0)
                    raw.commit()
            finally:
                raw.end()

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Raise a StoreError instead of an exception of SQLite. SQLAlchemy may have wrapped that exception."""
        try:
            yield
        except sqlite3.IntegrityError:
            raise  # a bug in statecfg
        except sqlite3.Error as problem:
            raise sqlite.explain(problem, self._label) from None
        except UnicodeDecodeError:  # Python can't decode SQLite's error message
            raise StoreError(f"{self._label}: it is damaged", sqlite.RESTORE) from None
        except Exception as problem:
            wrapped = getattr(problem, "orig", None)
            if not isinstance(wrapped, sqlite3.Error) or isinstance(wrapped, sqlite3.IntegrityError):
                raise
            raise sqlite.explain(wrapped, self._label) from None

    def marked(self, connection: Connection, mark: str) -> bool:
        """Return True: in SQLite, the response to a commit can't be lost."""
        return True

    def forget_marks(self, connection: Connection) -> None:
        """Do nothing, because `marked` stores no mark in a file."""

    def empty(self, connection: Connection) -> bool:
        """Return False: a file without the schema is refused."""
        return False

    def close(self) -> None:
        """Close the unused connections now, and each other one when its transaction ends."""
        self._closed = True
        while self._idle:
            self._drop()
