"""The store: its connections, its transactions, and how it handles failures of the database."""

from __future__ import annotations

import contextlib
import getpass
import os
import secrets
import socket
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from sqlalchemy import Connection, create_engine, exc, pool

from statecfg.store import migrations, postgresql, sqlite
from statecfg.store.errors import Busy, StoreError
from statecfg.store.group_commit import GroupCommit

if TYPE_CHECKING:
    from statecfg.store.address import Address

T = TypeVar("T")
BUSY = sqlite.BUSY


class Store:
    """An open store. Threads may share it; a forked process must open its own.

    :param address: where the store is; it is created or migrated if needed
    :param migrate: whether to migrate an older PostgreSQL schema; a SQLite file is always migrated
    :param project: the project whose hosts and runs are visible
    :raises StoreError: the store can't be used
    """

    def __init__(self, address: Address, migrate: bool = False, project: str = "") -> None:
        self.address, self.project = address, project
        self._pid = os.getpid()
        self._writer = threading.Lock()
        self._opened = self._wrote = False
        self._changes = GroupCommit(self._attempt, self.label, 6 * BUSY)
        if address.path is not None:
            sqlite.prepare(address, lambda path: _fill(path, address.label))
        self._engine = self._create_engine()
        try:
            self._upgrade(migrate or address.path is not None)
        except BaseException:
            self.close()
            raise
        self._opened = True

    def _create_engine(self) -> Any:
        path = self.address.path
        size: dict[str, Any] = {"pool_size": 5, "max_overflow": 20, "pool_timeout": 60, "hide_parameters": True}
        if path is not None:
            return create_engine("sqlite://", creator=lambda: sqlite.connect(path), poolclass=pool.QueuePool, **size)
        return postgresql.engine(self.address, **size)

    @property
    def label(self) -> str:
        """The address of the store in messages, without a password."""
        return self.address.label

    @property
    def global_label(self) -> str:
        """The label for users on other machines: for a file, with the user and the name of this machine."""
        return self.label if self.shared else f"{self.label} of {getpass.getuser()}@{socket.gethostname()}"

    @property
    def shared(self) -> bool:
        """Whether the store is in PostgreSQL."""
        return self.address.path is None

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """Provide a connection that sees one consistent state of the store, regardless of what others write meanwhile.

        Keep the block short: in SQLite, no writer can commit while a reader reads.

        :raises StoreError: the store can't be read
        """
        with self._connected() as connection:
            if self.shared:
                connection = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            else:
                connection.exec_driver_sql("BEGIN")
            yield connection

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Provide a connection that writes. Commit at the end; after any error, roll back.

        Only one transaction writes at a time, across all processes, in both databases. So what it has read is still
        true when it writes. Don't wait for anything else inside the block. Prefer `attempt`: it also handles lost
        connections to a PostgreSQL server.

        :raises Busy: another process writes for longer than 10 s, or another thread for longer than 60 s
        :raises StoreError: the store can't be written
        """
        if not self._writer.acquire(timeout=6 * BUSY):
            raise Busy(f"{self.label}: another thread has written for {6 * BUSY:.0f} s")
        try:
            with self._connected() as connection:
                connection.exec_driver_sql(postgresql.BEGIN if self.shared else "BEGIN IMMEDIATE")
                self._wrote = True
                yield connection
                try:
                    connection.commit()
                except exc.DBAPIError:
                    connection.invalidate()  # after a failed commit, SQLite's transaction may still be open
                    raise
        finally:
            self._writer.release()

    def attempt(self, function: Callable[[Connection], T]) -> T:
        """Run `function` in a transaction whose changes are stored exactly once; return the function's result.

        While a thread commits, the changes of other threads wait. The next transaction contains all of them.

        :param function: works only through the connection it receives; it may be called more than once, and from
            another thread
        :raises StoreError: the transaction failed, or its outcome is unknown
        """
        self.check_process()
        return self._changes.attempt(function)

    def _attempt(self, function: Callable[[Connection], T]) -> T:
        """Run `function` in a separate transaction.

        PostgreSQL may roll a transaction back, or the response to a commit may be lost. Then retry, with at most 5
        attempts in total. A mark in the database tells whether a commit without a response succeeded.

        :param function: works only through the connection it receives; it may be called more than once
        :raises StoreError: the transaction failed, or its outcome is unknown
        """
        mark = uuid.uuid4().hex
        results: list[T] = []
        lost: postgresql.Lost | None = None
        for pause in (0.1, 0.2, 0.4, 0.8, None):
            try:
                with self.transaction() as connection:
                    if self.shared and not postgresql.marked(connection, mark):
                        return results[-1]
                    results.append(function(connection))
                break
            except StoreError as problem:
                lost = problem if isinstance(problem, postgresql.Lost) else lost
                if pause is None or not (lost or isinstance(problem, postgresql.Again)):
                    raise lost or problem from None
                time.sleep(pause * secrets.randbelow(1000) / 1000)
        return results[-1]

    def schema(self) -> int:
        """Return the version of the store's schema."""
        with self.reading() as connection:
            return self._version(connection)

    def _version(self, connection: Connection) -> int:
        version = connection.exec_driver_sql(migrations.FIND).scalar_one_or_none()
        if version is None:
            raise StoreError(f"{self.label}: it is damaged: the version of its schema is missing", sqlite.RESTORE)
        return int(version)

    def check(self) -> list[str]:
        """Check the store for damage.

        In SQLite, check pages, indexes and references. In PostgreSQL, which checks its own pages, read every row.

        :returns: the database's messages; [] if it found no damage
        :raises StoreError: the store can't be read
        """
        path = self.address.path
        if path is not None:
            with self._failing():
                return sqlite.check(path)
        with self.reading() as connection:
            for table in migrations.complete_metadata().sorted_tables:
                for _ in connection.execute(table.select()):
                    continue
        return []

    def backup(self, target: Path) -> None:
        """Copy a SQLite store into a file. Other processes may write to the store meanwhile.

        :raises StoreError: the store can't be read, the file can't be written, or the store is in PostgreSQL
        """
        path = self.address.path
        if path is None:
            raise StoreError(f"{self.label}: PostgreSQL makes its own backups", "use pg_dump")
        try:
            with self._failing():
                sqlite.backup(path, target)
        except OSError as problem:
            raise StoreError(f"{target}: it can't be written: {problem.strerror}", "choose another file") from None

    def close(self) -> None:
        """Close every connection."""
        if self._pid != os.getpid():
            return
        if self.shared and self._wrote:
            # If this fails, the next process that closes the store does it.
            with contextlib.suppress(StoreError), self.transaction() as connection:
                postgresql.forget_marks(connection)
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _upgrade(self, allowed: bool) -> None:
        version = self._current_version()
        if version == migrations.SCHEMA:
            return
        if version > migrations.SCHEMA:
            raise StoreError(
                f"{self.label}: the store has schema {version}; this statecfg supports {migrations.SCHEMA}",
                "use the version of statecfg that wrote it, or a newer one",
            )
        if version and not allowed:
            raise StoreError(
                f"{self.label}: the store has schema {version}; this statecfg needs {migrations.SCHEMA}",
                "`statecfg store migrate` upgrades it; older versions of statecfg can then no longer use it",
            )
        with self.transaction() as connection:
            version = self._version(connection) if version or not postgresql.empty(connection) else 0
            if version < migrations.SCHEMA:
                migrations.forward(connection, version)

    def _current_version(self) -> int:
        """Return the version of the schema; 0 if there is no schema."""
        try:
            return self.schema()
        except postgresql.Unmade:
            return 0

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Connection]:
        with self._failing(), self._engine.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        """Convert the database's exceptions into StoreError."""
        self.check_process()
        try:
            yield
        except exc.TimeoutError:
            raise Busy(f"{self.label}: no connection became free within 60 s") from None
        except exc.IntegrityError:
            raise  # a bug in statecfg
        except exc.DBAPIError as problem:
            if isinstance(problem.orig, sqlite3.Error):
                raise sqlite.explain(problem.orig, self.label) from None
            raise postgresql.explain(problem, self.address, self._opened) from None
        except sqlite3.Error as problem:
            raise sqlite.explain(problem, self.label) from None
        except UnicodeDecodeError:
            if self.shared:
                raise
            # Python can't decode SQLite's error message.
            raise StoreError(f"{self.label}: it is damaged", sqlite.RESTORE) from None

    def check_process(self) -> None:
        """Check that this process opened the store.

        :raises StoreError: the process was forked since then
        """
        if self._pid != os.getpid():
            raise StoreError(
                f"{self.label}: it was opened by process {self._pid}, and this is {os.getpid()}",
                "open the store again after a fork",
            )


def _fill(path: Path, label: str) -> None:
    """Write an empty store into a new file."""
    engine = create_engine("sqlite://", creator=lambda: sqlite.connect(path), poolclass=pool.NullPool)
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            migrations.forward(connection, 0)
            connection.commit()
    except exc.DBAPIError as problem:
        if not isinstance(problem.orig, sqlite3.Error):
            raise
        raise sqlite.explain(problem.orig, label) from None
