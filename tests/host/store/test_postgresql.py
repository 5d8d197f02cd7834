"""The store on a PostgreSQL server: passwords, lost connections, and commits whose answer is lost."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from statecfg.store import Busy, StoreError, hosts, migrations, opened
from statecfg.store import postgresql as backend
from statecfg.store.connection import Connection
from statecfg.store.database import Store
from tests.host.command import statecfg
from tests.host.store import workers
from tests.host.store.postgresql import PASSWORD, Server, start
from tests.host.store.relay import relay


def counted(store: Store) -> int:
    record = hosts.get(store, "web1")
    return 0 if record is None else int(record.metadata["count"])


def add(store: Store) -> int:
    return store.attempt(lambda connection: workers.add_one(connection, "web1"))


# Connecting


def test_passwords_from_url_and_pgpass_work(postgresql: Server, database: str, tmp_path: Path) -> None:
    right = postgresql.by_password(database, quote(PASSWORD))
    assert statecfg("hosts", "--store", right, cwd=tmp_path).out.endswith("0 hosts\n")
    (tmp_path / "pgpass").write_text(f"127.0.0.1:{postgresql.port}:*:ann:{PASSWORD}\n")
    (tmp_path / "pgpass").chmod(0o600)
    bare = f"postgresql://ann@127.0.0.1:{postgresql.port}/{database}"
    statecfg("hosts", cwd=tmp_path, STATECFG_STORE=bare, PGPASSFILE=str(tmp_path / "pgpass"))
    assert statecfg("store", "--store", right, "url").out == bare + "\n"


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_a_wrong_password_is_not_shown(postgresql: Server, database: str, flags: list[str], tmp_path: Path) -> None:
    for password in ("s3cr3t", "s3cr3t%40%3A%2Fx", "100%25s3cr3t"):
        wrong = postgresql.by_password(database, password)
        ran = statecfg("hosts", "--store", wrong, *flags, cwd=tmp_path, code=8)
        assert "password authentication failed" in " ".join(ran.err.split())
        assert f"ann@127.0.0.1:{postgresql.port}/{database}" in ran.err
        assert "s3cr3t" not in ran.err + ran.out
    ran = statecfg("hosts", *flags, cwd=tmp_path, code=8, STATECFG_STORE=f"{bare(postgresql)}?password=s3cr3t")
    assert "s3cr3t" not in ran.err + ran.out


def bare(server: Server) -> str:
    return f"postgresql://ann@127.0.0.1:{server.port}/postgres"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("/postgres", "/nothing"), "does not exist"),
        ((":", ":"), "no password supplied"),
        (("ann@", f"ann:{quote(PASSWORD)}@"), ""),
        (("/postgres", "/postgres?sslmode=require"), "SSL"),
        (("/postgres", "/postgres?no_such_option=1"), "invalid"),
    ],
)
def test_connection_errors_show_the_servers_message(
    postgresql: Server, change: tuple[str, str], said: str, tmp_path: Path
) -> None:
    with_password = "nothing" in change[1]
    url = bare(postgresql).replace("ann@", f"ann:{quote(PASSWORD)}@") if with_password else bare(postgresql)
    ran = statecfg("store", "--store", url.replace(*change), "check", cwd=tmp_path, code=8 if said else 0)
    assert said in ran.err and PASSWORD not in ran.err


def test_an_unresponsive_server_fails_in_bounded_time(silent: int, tmp_path: Path) -> None:
    """A silent port fails after the timeout. A port that refuses fails at once."""
    before = time.monotonic()
    url = f"postgresql://ann@127.0.0.1:{silent}/x?connect_timeout=2"
    assert "127.0.0.1" in statecfg("hosts", "--store", url, cwd=tmp_path, code=8).err
    assert time.monotonic() - before < 12
    statecfg("hosts", "--store", "postgresql://ann@127.0.0.1:1/x", cwd=tmp_path, code=8)


def test_missing_driver_error_names_the_extra_to_install(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from statecfg.cli.main import run\n"
        "run(['hosts', '--store', 'postgresql://ann:s3cr3t@db/x'])"
    )
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 8
    assert "pip install 'statecfg[postgresql]'" in ran.stderr
    assert "s3cr3t" not in ran.stderr and "Traceback" not in ran.stderr


# The schema


def test_an_older_schema_is_refused_until_migrated(url_of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other programs use the database too, so opening it doesn't migrate it."""
    opened(url=url_of).close()
    monkeypatch.setattr(migrations, "SCHEMA", workers.NEXT)
    said = f"has schema {workers.NEXT - 1}; this statecfg needs {workers.NEXT}"
    with pytest.raises(StoreError, match=said) as refused:
        opened(url=url_of)
    assert "statecfg store migrate" in refused.value.help


@pytest.fixture
def url_of(postgresql: Server, database: str) -> str:
    return postgresql.url(database)


def test_migrate_and_check_work_but_backup_refers_to_pg_dump(url_of: str, tmp_path: Path) -> None:
    assert statecfg("store", "--store", url_of, "migrate", cwd=tmp_path).out.endswith(f": schema {migrations.SCHEMA}\n")
    assert "sound" in statecfg("store", "--store", url_of, "check", cwd=tmp_path).out
    assert "pg_dump" in statecfg("store", "--store", url_of, "backup", tmp_path / "x", cwd=tmp_path, code=8).err


def test_a_database_with_tables_of_the_same_name_is_left_alone(postgresql: Server, database: str) -> None:
    with postgresql.connect(database) as connection:
        connection.execute("CREATE TABLE host (a integer)")
        with pytest.raises(StoreError, match="already exists"):
            opened(url=postgresql.url(database))
        assert connection.execute("SELECT to_regclass('schema_version')").fetchone() == (None,)


# Writers


def test_waiting_for_a_silent_writer_times_out(
    postgresql: Server, url_of: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "BEGIN", backend.BEGIN.replace("'10s'", "'300ms'"))
    with opened(url=url_of) as one, opened(url=url_of) as other, one.transaction(), pytest.raises(Busy):
        add(other)


def test_deadlocks_and_serialization_failures_are_retried(url_of: str) -> None:
    with opened(url=url_of) as store:
        for state in ("40001", "40P01"):
            calls: list[int] = []

            def fail(connection: Connection, state: str = state, calls: list[int] = calls) -> int:
                calls.append(workers.add_one(connection, state))
                if len(calls) < 4:
                    connection.exec_driver_sql(f"DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '{state}'; END $$")
                return calls[-1]

            assert store.attempt(fail) == 1
            assert calls == [1, 1, 1, 1]
        never: list[int] = []

        def always(connection: Connection) -> None:
            never.append(1)
            connection.exec_driver_sql("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40001'; END $$")

        with pytest.raises(StoreError, match="conflicted with another writer"):
            store.attempt(always)
        assert len(never) == 5


# Commits


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_commit_with_a_lost_answer_happens_exactly_once(postgresql: Server, database: str, when: str) -> None:
    """The connection is cut around COMMIT. A kept change isn't repeated, and a lost one is."""
    with relay(postgresql.port) as line:
        url = f"postgresql://ann:{quote(PASSWORD)}@127.0.0.1:{line.port}/{database}"
        with opened(url=url) as store:
            for number in range(1, 21):
                line.cut_at_commit(when)
                assert add(store) == number
                assert counted(store) == number
                hosts.bind(store, "web1", f"{number}.yml")
            record = hosts.get(store, "web1")
        assert line.cuts == 20
    assert record is not None and len(record.playbooks) == 20


def test_a_plain_transaction_reports_an_unknown_commit(postgresql: Server, database: str) -> None:
    with relay(postgresql.port) as line:
        url = f"postgresql://ann:{quote(PASSWORD)}@127.0.0.1:{line.port}/{database}"
        with opened(url=url) as store:
            line.cut_at_commit("after")
            unknown = pytest.raises(StoreError, match="it is unknown whether the last change was stored")
            with unknown, store.transaction() as connection:
                workers.add_one(connection, "web1")
            # The next writer runs after the unknown commit, whether that succeeded or not.
            assert add(store) == 2


def test_terminated_connections_lose_and_repeat_no_write(postgresql: Server, database: str) -> None:
    """Three processes write while their connections are ended again and again, at random moments."""
    url = postgresql.url(database)
    opened(url=url).close()
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    ended = 0
    with workers.started(*[(workers.count, (url, "web1", 200))] * 3) as running, postgresql.connect() as admin:
        results = [workers.heard(pipe) for _, pipe in running]
        while busy := [pipe for process, pipe in running if process.is_alive()]:
            rows = admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = %s AND application_name = 'statecfg' ORDER BY random() LIMIT 1",
                [database],
            ).fetchall()
            ended += len(rows)
            time.sleep(chance.random() * 0.15)
            for pipe in busy:  # wait until each process has written, even on a busy machine
                pipe.poll(30)
                results += workers.everything(pipe)
        assert workers.finish(running) == [0, 0, 0], f"seed {seed}"
        results += [number for _, pipe in running for number in workers.everything(pipe)]
    assert sorted(results) == list(range(1, 601)), f"seed {seed}"
    with opened(url=url) as store:
        assert counted(store) == 600
    assert ended > 10


def test_store_recovers_after_a_server_crash() -> None:
    """Confirmed changes are kept. While the server is down, opening the store fails with an error."""
    server = start()
    try:
        url = server.url(server.fresh())
        with opened(url=url) as store:
            assert add(store) == 1
            server.restart(kill=True)
            assert add(store) == 2
        server.end(signal.SIGKILL)
        with pytest.raises(StoreError, match="connection"):
            opened(url=url)
        server.restart()
        with opened(url=url) as store:
            assert counted(store) == 2
    finally:
        server.stop()


@pytest.fixture
def aged(postgresql: Server, url_of: str, database: str) -> Iterator[psycopg.Connection[tuple[int]]]:
    with opened(url=url_of) as store:
        add(store)
    with postgresql.connect(database) as connection:
        connection.execute("UPDATE commit_mark SET at = at - 90000")
        yield connection


def test_marks_of_old_commits_are_removed(aged: psycopg.Connection[tuple[int]], url_of: str) -> None:
    with opened(url=url_of) as store:
        add(store)
    assert aged.execute("SELECT count(*) FROM commit_mark").fetchone() == (1,)
