"""The store as an SQLite file: creation, damage, wrong locations, killed processes and copies."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from statecfg.store import Busy, StoreError, hosts, locks, opened, sqlite
from tests.host.command import statecfg
from tests.host.store import workers

ROOT = os.geteuid() == 0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def filled(path: Path) -> Path:
    """Give the file of a store with many pages."""
    with opened(url=str(path)) as store:
        for number in range(200):
            hosts.set_metadata(store, f"host{number}", {"text": "x" * 200})
    return path


def test_store_is_created_on_first_use_and_private_to_its_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "a/b"))
    monkeypatch.delenv("STATECFG_STORE", raising=False)
    old = os.umask(0)
    try:
        opened().close()
    finally:
        os.umask(old)
    folder = tmp_path / "a/b/statecfg"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [(item.name, item.stat().st_mode & 0o777) for item in folder.iterdir()] == [("store.db", 0o600)]


def test_connections_use_durable_sqlite_settings(path: Path) -> None:
    with opened(url=str(path)) as store, store.reading() as connection:
        found = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert found == {"journal_mode": "delete", "synchronous": 3, "foreign_keys": 1, "busy_timeout": 10_000}


def test_store_path_may_contain_special_characters(tmp_path: Path) -> None:
    path = tmp_path / "a #%41 é\n.db"
    with opened(url=str(path)) as store, locks.taken(store, "x", 0):
        hosts.tag(store, "web1", ["a"])
        assert sorted(item.name for item in tmp_path.iterdir()) == [path.name, f"{path.name}-turn-x"]
    assert [item.name for item in tmp_path.iterdir()] == [path.name]


# Damaged files are kept as they are

DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty file": lambda data: b"",
    "truncated header": lambda data: data[:50],
    "truncated file": lambda data: data[: len(data) // 8192 * 4096],
    "wrong header": lambda data: b"X" * 16 + data[16:],
    "only zeros": lambda data: bytes(len(data)),
    "damaged first page": lambda data: data[:100] + b"\xff" * 3996 + data[4096:],
    "text file": lambda data: b"hosts:\n  web1:\n" * 100,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_refused_and_kept(filled: Path, damage: str) -> None:
    broken = DAMAGE[damage](filled.read_bytes())
    filled.write_bytes(broken)
    ran = statecfg("hosts", "--store", filled, cwd=filled.parent, code=8)
    assert ran.out == ""
    assert str(filled) in ran.err
    assert "statecfg store backup" in ran.err and "move the file away" in " ".join(ran.err.split())
    assert filled.read_bytes() == broken
    assert list(filled.parent.iterdir()) == [filled]


@pytest.mark.parametrize("page", [3, 5, 20])
def test_store_check_finds_damaged_pages(filled: Path, page: int) -> None:
    data = bytearray(filled.read_bytes())
    data[page * 4096 : page * 4096 + 2048] = os.urandom(2048)
    filled.write_bytes(data)
    ran = statecfg("store", "--store", filled, "check", cwd=filled.parent, code=8)
    assert "damaged" in ran.err
    assert filled.read_bytes() == data


def test_randomly_changed_bytes_cause_only_store_errors(filled: Path) -> None:
    """A store with bytes changed at random either works or is refused."""
    data, seed = filled.read_bytes(), random.randrange(1 << 32)
    chance = random.Random(seed)
    refused = 0
    for attempt in range(200):
        broken = bytearray(data)
        for _ in range(chance.choice((1, 20, 2000))):
            # Half of the changes are in the first page, which contains the schema.
            broken[chance.randrange(chance.choice((4096, len(data))))] = chance.randrange(256)
        filled.write_bytes(broken)
        try:
            with opened(url=str(filled)) as store:
                hosts.every(store)
                hosts.tag(store, "host7", ["a"])
        except StoreError:
            refused += 1
        except Exception as problem:
            raise AssertionError(f"seed {seed}, attempt {attempt}") from problem
    assert refused > 50


def test_store_check_finds_rows_with_missing_references(path: Path) -> None:
    opened(url=str(path)).close()
    with contextlib.closing(sqlite3.connect(path)) as plain:
        plain.execute("INSERT INTO binding VALUES (7, 'web.yml', 0, '')")
        plain.commit()
    assert "of binding refers to a row that does not exist" in statecfg("store", "--store", path, "check", code=8).err


def test_invalid_json_in_a_row_counts_as_damage(path: Path) -> None:
    with opened(url=str(path)) as store:
        hosts.tag(store, "web1", [])
        with store.transaction() as connection:
            connection.exec_driver_sql("UPDATE host SET facts = '{' || name")
        with pytest.raises(StoreError, match="damaged"):
            hosts.every(store)


@pytest.mark.parametrize("statement", ["DELETE FROM schema_version", "DROP TABLE schema_version"])
def test_a_store_without_a_schema_version_is_refused(path: Path, statement: str) -> None:
    opened(url=str(path)).close()
    with contextlib.closing(sqlite3.connect(path)) as plain:
        plain.execute(statement)
        plain.commit()
    with pytest.raises(StoreError):
        opened(url=str(path))


def test_the_database_of_another_program_is_left_alone(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as plain:
        plain.execute("CREATE TABLE host (a)")
        plain.commit()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="not a store of statecfg"):
        opened(url=str(path))
    assert path.read_bytes() == before


# Wrong locations


def test_a_directory_is_refused_as_a_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="not a file"):
        opened(url=str(tmp_path))


def test_a_store_in_a_missing_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"directory .* does not exist"):
        opened(url=str(tmp_path / "none/store.db"))
    assert list(tmp_path.iterdir()) == []


def test_a_world_writable_store_is_refused(filled: Path) -> None:
    filled.chmod(0o666)
    with pytest.raises(StoreError, match="every user can change it"):
        opened(url=str(filled))


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """Give a directory that can't be written, not even by root."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    if not ROOT:
        folder.chmod(0o500)
        yield folder
        folder.chmod(0o700)
        return
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", str(folder)], check=True)
    try:
        opened(url=str(folder / "store.db")).close()
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_read_only_directory_gives_a_permissions_error(read_only: Path) -> None:
    for name in ("store.db", "new.db"):
        ran = statecfg("hosts", "--store", read_only / name, cwd=read_only.parent, code=8)
        assert "permissions" in ran.err


def test_network_file_systems_are_recognized() -> None:
    mounts = [
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw",
        "70 22 0:45 / /home rw,relatime shared:30 master:2 - nfs4 nas:/home rw,vers=4.2",
        "71 22 0:46 / /mnt/with\\040blank rw - fuse.sshfs ann@desk:/ rw",
        "72 22 0:47 / /mnt/host rw - 9p host rw",
    ]
    found = {number: sqlite.file_system(os.makedev(*number), mounts) for number in ((8, 1), (0, 45), (0, 46), (9, 9))}
    assert found == {(8, 1): "ext4", (0, 45): "nfs4", (0, 46): "fuse.sshfs", (9, 9): ""}
    kinds = ("ext4", "nfs", "nfs4", "9p", "fuse.sshfs", "overlay", "btrfs", "nfsd", "tmpfs")
    assert [kind for kind in kinds if sqlite.NETWORK.fullmatch(kind)] == ["nfs", "nfs4", "9p", "fuse.sshfs"]


def test_file_system_of_proc_is_found_in_mountinfo() -> None:
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        assert sqlite.file_system(os.stat("/proc").st_dev, mounts) == "proc"


# Other programs at the same time


def test_waiting_for_another_program_times_out(filled: Path) -> None:
    """The command waits for the limit, names the file, and changes nothing."""
    other = sqlite3.connect(filled, isolation_level=None)
    with contextlib.closing(other):
        other.execute("BEGIN EXCLUSIVE")
        before = time.monotonic()
        ran = statecfg("hosts", "--store", filled, "tag", "host1", "late", cwd=filled.parent, code=8)
        assert sqlite.BUSY <= time.monotonic() - before < sqlite.BUSY + 40
    assert f"{filled}: another program has locked it for 10 s" in " ".join(ran.err.split())
    with opened(url=str(filled)) as store:
        record = hosts.get(store, "host1")
        assert record is not None and record.tags == []


def test_a_change_waits_until_another_writer_ends(filled: Path) -> None:
    program = (
        "import sqlite3,sys,time; c=sqlite3.connect(sys.argv[1],isolation_level=None); c.execute('BEGIN EXCLUSIVE')"
    )
    program += "; print('held',flush=True); time.sleep(2)"
    with subprocess.Popen([sys.executable, "-c", program, filled], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        with opened(url=str(filled)) as store:
            assert hosts.tag(store, "host1", ["late"]).tags == ["late"]


def test_a_full_disk_gives_an_error_and_keeps_the_store_sound(tmp_path: Path) -> None:
    if not ROOT:
        pytest.skip("not run on this machine: mounting a small disk needs root")
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k,mode=0700", "tmpfs", str(folder)], check=True)
    try:
        with opened(url=str(folder / "store.db")) as store:
            written = 0
            with pytest.raises(StoreError, match=r"disk is full|reading or writing failed"):
                for written in range(1000):
                    hosts.set_metadata(store, f"host{written}", {"text": "x" * 2000})
            assert len(hosts.every(store)) == written
            assert store.check() == []
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


# Killed at any moment


def test_killing_store_creation_leaves_no_partial_store(tmp_path: Path) -> None:
    """There is no store or a complete one. The next process removes what the killed one left."""
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    longest = 0.0
    for attempt in range(16):
        path = tmp_path / f"{attempt}/store.db"
        path.parent.mkdir()
        with workers.started((workers.make, (str(path),))) as ((process, pipe),):
            assert workers.heard(pipe) == "begun"
            before = time.monotonic()
            if attempt:
                time.sleep(chance.random() * longest * 1.1)
                process.kill()
            else:
                assert workers.heard(pipe) == "done"
                longest = time.monotonic() - before
            process.join(20)
        if path.exists():
            with contextlib.closing(sqlite3.connect(path)) as plain:
                assert plain.execute("SELECT count(*) FROM schema_version").fetchone() == (1,), (
                    f"seed {seed}: {attempt}"
                )
        with opened(url=str(path)) as store:
            assert store.check() == []
        left = [item.name for item in path.parent.iterdir()]
        assert left == ["store.db"], f"seed {seed}: {left}"


def test_killing_a_writer_loses_no_confirmed_change(path: Path) -> None:
    """Confirmed changes are there, no change is partial, and the file is sound."""
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    opened(url=str(path)).close()
    for attempt in range(20):
        with workers.started((workers.write_much, (str(path), "web1"))) as ((process, pipe),):
            assert workers.heard(pipe) == 1
            time.sleep(chance.random() * 0.1)
            process.kill()
            process.join(20)
            said = max([1, *workers.everything(pipe)])
        with opened(url=str(path)) as store:
            assert store.check() == []
            record = hosts.get(store, "web1")
        assert record is not None
        number = record.metadata["number"]
        assert number in (said, said + 1), f"seed {seed}: attempt {attempt}"
        assert record.metadata["k39"] == f"{number} " * 200


# Copies


def test_a_backup_during_writes_is_complete(path: Path, tmp_path: Path) -> None:
    with (
        opened(url=str(path)) as store,
        workers.started(*[(workers.count, (str(path), "web1", 10_000))] * 4) as running,
    ):
        for _, pipe in running:
            workers.heard(pipe)
        last = 0
        for number in range(6):
            copy = tmp_path / f"copy{number}.db"
            store.backup(copy)
            assert copy.stat().st_mode & 0o777 == 0o600
            with opened(url=str(copy)) as restored:
                assert restored.check() == []
                (record,) = hosts.every(restored)
            assert record.metadata["count"] > last
            last = record.metadata["count"]
            while workers.heard(running[0][1]) <= last:
                continue


def test_backup_command_copies_the_store_and_refuses_bad_targets(filled: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    assert statecfg("store", "--store", filled, "backup", copy).out == f"{filled} → {copy}\n"
    assert "already exists" in statecfg("store", "--store", filled, "backup", copy, code=5).err
    statecfg("store", "--store", filled, "backup", copy, "--yes")
    assert "the store itself" in statecfg("store", "--store", filled, "backup", filled, "--yes", code=5).err
    ran = statecfg("store", "--store", filled, "backup", tmp_path / "none/copy.db", code=8)
    assert "No such file or directory" in ran.err
    filled.unlink()
    shutil.copy(copy, filled)
    assert len(statecfg("hosts", "--store", filled, "--json").json()["hosts"]) == 200


def test_backup_of_a_locked_store_times_out(filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "BUSY", 0.3)
    with opened(url=str(filled)) as store, contextlib.closing(sqlite3.connect(filled, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError, match="has locked it"):
            store.backup(tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == [filled]


def test_waiting_for_another_thread_times_out(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("statecfg.store.database.BUSY", 0.05)
    with opened(url=str(path)) as store, store.transaction(), pytest.raises(Busy, match="another thread"):
        hosts.tag(store, "web1", ["a"])


def test_opening_a_store_takes_little_time(filled: Path) -> None:
    """The time to import the library doesn't count."""
    opened(url=str(filled)).close()
    spent = []
    for _ in range(5):
        before = time.process_time()
        opened(url=str(filled)).close()
        spent.append(time.process_time() - before)
    assert min(spent) < 0.05
