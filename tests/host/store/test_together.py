"""Concurrent processes and threads write, take locks and are killed, on SQLite and on PostgreSQL."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

from statecfg.store import Busy, StoreError, hosts, leases, locks, migrations, opened
from statecfg.store.database import Store
from tests.host.store import workers


def test_eight_concurrent_processes_lose_no_write(url: str) -> None:
    """They also create the store, all at the same moment."""
    with workers.started(*[(workers.count, (url, "web1", 25))] * 8) as running:
        assert workers.finish(running) == [0] * 8
        results = [number for _, pipe in running for number in workers.everything(pipe)]
    assert sorted(results) == list(range(1, 201))
    with opened(url=url) as store:
        record = hosts.get(store, "web1")
        assert record is not None and record.metadata == {"count": 200}


def test_threads_sharing_a_store_lose_no_write(store: Store) -> None:
    def work() -> None:
        for _ in range(10):
            store.attempt(lambda connection: workers.add_one(connection, "web1"))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    record = hosts.get(store, "web1")
    assert record is not None and record.metadata == {"count": 80}


def test_readers_see_only_committed_changes(store: Store) -> None:
    """A reader doesn't see a change before it is committed."""
    hosts.tag(store, "web1", ["before"])
    with store.transaction() as writing:
        hosts.change_metadata(writing, "", "web1", {"a": 1})
        record = hosts.get(store, "web1")
        assert record is not None and record.metadata == {}
    record = hosts.get(store, "web1")
    assert record is not None and record.metadata == {"a": 1}


def test_a_forked_child_cannot_use_the_store(store: Store) -> None:
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            hosts.every(store)
        except StoreError as problem:
            os.write(theirs, problem.detail.encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(theirs)
    with open(ours, encoding="utf-8") as said:
        assert f"opened by process {os.getpid()}" in said.read()
    assert hosts.every(store) == []


def test_only_one_process_holds_a_lock_at_a_time(url: str, tmp_path: Path) -> None:
    opened(url=url).close()
    marker = str(tmp_path / "marker")
    with workers.started(*[(workers.take_turns, (url, marker, 10))] * 8) as running:
        assert workers.finish(running) == [0] * 8


def test_a_lock_also_excludes_other_threads(store: Store) -> None:
    with locks.taken(store, "a", 1) as lock:
        with pytest.raises(Busy, match=r"@.* holds the lock a"), locks.taken(store, "a", 0.2):
            raise AssertionError
        with locks.taken(store, "b/../c", 0):
            store.attempt(lock.hold)
    with locks.taken(store, "a", 0):
        assert hosts.every(store) == []


def test_waiting_for_a_lock_times_out(store: Store) -> None:
    with locks.taken(store, "a", 0):
        before = time.monotonic()
        with pytest.raises(Busy), locks.taken(store, "a", 0.5):
            raise AssertionError
        assert 0.5 <= time.monotonic() - before < 20


def test_a_newer_schema_is_refused(url: str) -> None:
    with opened(url=url) as store, store.transaction() as connection:
        connection.exec_driver_sql(f"UPDATE schema_version SET version = {workers.NEXT}")
    with pytest.raises(StoreError, match=f"has schema {workers.NEXT}; this statecfg supports {migrations.SCHEMA}"):
        opened(url=url)


def test_migration_steps_keep_existing_data(url: str) -> None:
    """Steps change existing tables, keep their rows, and set the new version."""
    with opened(url=url) as store:
        hosts.tag(store, "web1", ["kept"])
        with store.transaction() as connection:
            migrations.forward(connection, migrations.SCHEMA, workers.NEXT, workers.CHANGES)
        assert store.schema() == workers.NEXT
        with store.reading() as connection:
            row = connection.exec_driver_sql("SELECT name, more0, more39 FROM host").one()
    assert tuple(row) == ("web1", "x", None)


def plain(url: str) -> Any:
    """Connect to the database without statecfg."""
    return psycopg.connect(url) if url.startswith("postgresql:") else sqlite3.connect(url)


def schema(url: str) -> tuple[int, int, int]:
    """Return the schema version, and the numbers of columns and values of the future version."""
    with contextlib.closing(plain(url)) as connection:
        (version,) = connection.execute("SELECT version FROM schema_version").fetchone()
        cursor = connection.execute("SELECT * FROM host")
        more = [place for place, column in enumerate(cursor.description) if column[0].startswith("more")]
        (row,) = cursor.fetchall()
        return version, len(more), sum(row[place] is not None for place in more)


def back(url: str) -> None:
    """Undo the migration to the future version."""
    with contextlib.closing(plain(url)) as connection:
        for number in range(40):
            connection.execute(f"ALTER TABLE host DROP COLUMN more{number}")
        connection.execute(f"UPDATE schema_version SET version = {migrations.SCHEMA}")
        connection.commit()


def test_a_killed_migration_applies_completely_or_not_at_all(url: str) -> None:
    """A process killed at any moment leaves the old schema or the new one, never a mix."""
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    with opened(url=url) as store:
        hosts.tag(store, "web1", ["kept"])
    old, new = (migrations.SCHEMA, 0, 0), (workers.NEXT, 40, 1)
    longest = 0.0
    for attempt in range(16):
        with workers.started((workers.bring_forward, (url,))) as ((process, pipe),):
            assert workers.heard(pipe) == "begun"
            before = time.monotonic()
            if attempt:
                time.sleep(chance.random() * longest * 1.1)
                process.kill()
            else:
                assert workers.heard(pipe) == "done"
                longest = time.monotonic() - before
            process.join(20)
            said = workers.everything(pipe)
        found = schema(url)
        assert found == new if "done" in said or not attempt else found in (old, new), (
            f"seed {seed}: {attempt}: {found}"
        )
        if found == new:
            back(url)


def test_a_lock_ends_soon_after_the_clock_of_the_database_was_set_back(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its holder died, and its lease would end in an hour."""
    if not store.shared:
        pytest.skip("SQLite has locks of the kernel instead of leases")
    monkeypatch.setattr(leases, "LEASE", 1.0)
    row = {"name": "hook", "token": 1, "holder": "dead", "who": "another process"}
    far = {**row, "expires": leases.server_time() + 3600}
    store.attempt(lambda connection: connection.execute(leases.insert(leases.tables.lease).values(**far)))
    with locks.taken(store, "hook", 60):
        pass


def test_locks_of_killed_or_stopped_holders_are_released(url: str) -> None:
    """SQLite releases the lock at once. PostgreSQL releases it after its lease."""
    opened(url=url).close()
    works = [(workers.hold_turn, (url, name)) for name in ("killed", "stopped")]
    with workers.started(*works) as ((killed, ear), (stopped, pipe)):
        assert workers.heard(ear) == workers.heard(pipe) == "held"
        pipe.send("still?")
        assert workers.heard(pipe) == "ours"
        assert killed.pid is not None and stopped.pid is not None
        killed.kill()
        killed.join()
        with opened(url=url) as store:
            before = time.monotonic()
            if not store.shared:
                with locks.taken(store, "killed", 20):
                    assert time.monotonic() - before < 15
                return
            os.kill(stopped.pid, signal.SIGSTOP)
            with locks.taken(store, "killed", leases.LEASE + 30), locks.taken(store, "stopped", 30) as lock:
                assert time.monotonic() - before < leases.LEASE + 30
                os.kill(stopped.pid, signal.SIGCONT)
                pipe.send("still?")
                assert "the lock stopped was lost" in workers.heard(pipe)
                store.attempt(lock.hold)
