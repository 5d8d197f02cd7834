"""Changes of many threads are committed together, and none of them is lost or made twice."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from statecfg.store import StoreError, hosts, opened
from statecfg.store.connection import Connection
from statecfg.store.database import Store
from tests.host.store import workers


def _while_writing(store: Store, changes: list[Callable[[Connection], Any]]) -> list[Future[Any]]:
    """Make changes from one thread each; all of them wait for the same transaction. Return their results."""
    with ThreadPoolExecutor(len(changes)) as threads, store.transaction() as connection:
        hosts.ensure(connection, store.project, "busy")
        futures = [threads.submit(store.attempt, change) for change in changes]
        # The first thread waits for this transaction with its own change; the others queue up behind it.
        while len(store._changes._waiting) < len(changes) - 1:
            threading.Event().wait(0.001)
    return futures


def _add_one(connection: Connection) -> int:
    return workers.add_one(connection, "web1")


def _commits(store: Store) -> list[int]:
    """Return a list that grows with each transaction that commits waiting changes."""
    counted: list[int] = []
    commit = store._changes._commit

    def count(function: Callable[[Connection], Any]) -> Any:
        result = commit(function)
        counted.append(1)
        return result

    store._changes._commit = count
    return counted


def test_waiting_changes_share_a_transaction(store: Store) -> None:
    counted = _commits(store)
    results = sorted(future.result() for future in _while_writing(store, [_add_one] * 20))
    assert results == list(range(1, 21))
    record = hosts.get(store, "web1")
    assert record is not None and record.metadata == {"count": 20}
    assert sum(counted) == 2, "one transaction for the first change, and one for all others"


def test_a_change_that_fails_leaves_the_others(store: Store) -> None:
    def fail(connection: Connection) -> None:
        _add_one(connection)
        raise StoreError("no")

    results = _while_writing(store, [_add_one, _add_one, fail, _add_one, _add_one, _add_one])
    assert sorted(future.result() for future in results if future.exception() is None) == [1, 2, 3, 4, 5]
    assert [str(future.exception()) for future in results if future.exception() is not None] == ["no"]
    record = hosts.get(store, "web1")
    assert record is not None and record.metadata == {"count": 5}


def test_no_change_succeeds_if_the_commit_fails(tmp_path: Path) -> None:
    with opened(url=str(tmp_path / "store.db")) as store:
        hosts.tag(store, "web1", ["before"])

        def refuse(connection: Connection) -> None:
            # A deferred foreign key that nothing satisfies: the commit fails, not a statement.
            connection.exec_driver_sql("CREATE TABLE a (id INTEGER PRIMARY KEY)")
            connection.exec_driver_sql("CREATE TABLE b (a INTEGER REFERENCES a DEFERRABLE INITIALLY DEFERRED)")
            connection.exec_driver_sql("INSERT INTO b VALUES (1)")

        results = _while_writing(store, [_add_one, _add_one, refuse, _add_one])
        failed = [future for future in results if future.exception() is not None]
        record = hosts.get(store, "web1")
        assert record is not None
        assert record.metadata.get("count", 0) == len(results) - len(failed)
        assert len(failed) >= 1
        assert hosts.tag(store, "web1", ["after"]).tags == ["after", "before"], "the store is usable"
