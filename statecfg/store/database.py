"""The store: its connections, its transactions, and how it handles failures of the database."""

from __future__ import annotations

import contextlib
import getpass
import os
import secrets
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from statecfg.store import migrations, sqlite
from statecfg.store.connection import Connection, row_of
from statecfg.store.errors import Again, Busy, Lost, StoreError, Unmade
from statecfg.store.group_commit import GroupCommit

if TYPE_CHECKING:
    from statecfg.store.address import StoreAddress

T = TypeVar("T")
BUSY = sqlite.BUSY


class Database(Protocol):
    """A SQLite file or a PostgreSQL server: its connections and transactions."""

    shared: bool

    def reading(self) -> AbstractContextManager[Connection]:
        """Provide a connection that sees one state of the database."""

    def writing(self) -> AbstractContextManager[Connection]:
        """Provide a connection that writes, and commit at the end."""

    def failing(self) -> AbstractContextManager[None]:
        """Convert the database's exceptions into StoreError."""

    def marked(self, connection: Connection, mark: str) -> bool:
        """Store the mark of a transaction; return False if an earlier attempt of it has already succeeded."""

    def forget_marks(self, connection: Connection) -> None:
        """Delete old marks."""

    def empty(self, connection: Connection) -> bool:
        """Return whether the database does not contain statecfg's schema."""

    def close(self) -> None:
        """Close every connection."""


class Store:
    """An open store. Threads may share it; a forked process must open its own.

    :param address: where the store is; it is created or migrated if needed
    :param migrate: whether to migrate an older PostgreSQL schema; a SQLite file is always migrated
    :param project: the project whose hosts and runs are visible
    :raises StoreError: the store can't be used
    """

    def __init__(self, address: StoreAddress, migrate: bool = False, project: str = "") -> None:
        self.address, self.project = address, project
        self._pid = os.getpid()
        self._writer = threading.Lock()
        self._wrote = False
        self._changes = GroupCommit(self._attempt, self.label, 6 * BUSY)
        self._database = _database(address)
        try:
            self._upgrade(migrate or address.path is not None)
        except BaseException:
            self.close()
            raise

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
        self.check_process()
        with self._database.reading() as connection:
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
        self.check_process()
        if not self._writer.acquire(timeout=6 * BUSY):
            raise Busy(f"{self.label}: another thread has written for {6 * BUSY:.0f} s")
        try:
            with self._database.writing() as connection:
                self._wrote = True
                yield connection
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
        lost: Lost | None = None
        for pause in (0.1, 0.2, 0.4, 0.8, None):
            try:
                with self.transaction() as connection:
                    if not self._database.marked(connection, mark):
                        return results[-1]
                    results.append(function(connection))
                break
            except StoreError as problem:
                lost = problem if isinstance(problem, Lost) else lost
                if pause is None or not (lost or isinstance(problem, Again)):
                    raise lost or problem from None
                time.sleep(pause * secrets.randbelow(1000) / 1000)
        return results[-1]

    def schema(self) -> int:
        """Return the version of the store's schema."""
        with self.reading() as connection:
            return self._version(connection)

    def _version(self, connection: Connection) -> int:
        row = row_of(connection, "SELECT version FROM schema_version")
        if row is None:
            raise StoreError(f"{self.label}: it is damaged: the version of its schema is missing", sqlite.RESTORE)
        return int(row["version"])

    def check(self) -> list[str]:
        """Check the store for damage.

        In SQLite, check pages, indexes and references. In PostgreSQL, which checks its own pages, read every row.

        :returns: the database's messages; [] if it found no damage
        :raises StoreError: the store can't be read
        """
        path = self.address.path
        if path is not None:
            with self._database.failing():
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
            with self._database.failing():
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
                self._database.forget_marks(connection)
        self._database.close()

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
            version = self._version(connection) if version or not self._database.empty(connection) else 0
            if version < migrations.SCHEMA:
                migrations.forward(connection, version)

    def _current_version(self) -> int:
        """Return the version of the schema; 0 if there is no schema."""
        try:
            return self.schema()
        except Unmade:
            return 0

    def check_process(self) -> None:
        """Check that this process opened the store.

        :raises StoreError: the process was forked since then
        """
        if self._pid != os.getpid():
            raise StoreError(
                f"{self.label}: it was opened by process {self._pid}, and this is {os.getpid()}",
                "open the store again after a fork",
            )


def _database(address: StoreAddress) -> Database:
    """Return the database at an address. Only PostgreSQL always needs SQLAlchemy."""
    if address.path is None:
        from statecfg.store.postgresql import PostgresqlDatabase

        return PostgresqlDatabase(address)
    from statecfg.store.sqlite_database import SqliteDatabase

    return SqliteDatabase(address)
