"""Files that are written together: all of them durable before they have their names, and each with its own result."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from statecfg.remote.machine.batch import Batch
from statecfg.remote.machine.real import RealMachine


@pytest.fixture
def batch() -> Iterator[Batch]:
    before = set(os.listdir("/proc/self/fd"))
    yield Batch()
    assert set(os.listdir("/proc/self/fd")) == before  # nothing stays open


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def fail_for(monkeypatch: pytest.MonkeyPatch, is_bad: Callable[[int], bool]) -> None:
    """Let the system's fsync fail once for each matching file; a later call would succeed."""
    real, failed = os.fsync, set[int]()

    def fsync(descriptor: int) -> None:
        inode = os.fstat(descriptor).st_ino
        if is_bad(descriptor) and inode not in failed:
            failed.add(inode)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)


def test_files_get_their_names_together(batch: Batch, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "old").write_text("old")
    machine = RealMachine(batch=batch)
    paths = [tmp_path / "old", tmp_path / "new", tmp_path / "sub/new"]
    results = [machine.write(str(path), f"content of {path.name}", 0o640) for path in paths]
    assert (tmp_path / "old").read_text() == "old"
    assert not paths[1].exists()
    assert all(path.stat().st_mode & 0o077 in (0, 0o040) for path in tmp_path.glob(".statecfg-*"))
    batch.finish()
    assert results == [{"status": "ok"}] * 3
    assert [path.read_text() for path in paths] == [f"content of {path.name}" for path in paths]
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o640}
    assert (names(tmp_path), names(tmp_path / "sub")) == (["new", "old", "sub"], ["new"])


def test_every_file_is_synced_before_the_first_has_its_name(
    batch: Batch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, str]] = []
    fsync, rename = os.fsync, os.rename

    def synced(descriptor: int) -> None:
        calls.append(("fsync", "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"))
        fsync(descriptor)

    def renamed(source: str, target: str, src_dir_fd: int, dst_dir_fd: int) -> None:
        calls.append(("rename", target))
        rename(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    machine = RealMachine(batch=batch)
    for name in "abc":
        machine.write(str(tmp_path / name), name)
    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed)
    batch.finish()
    assert calls == [("fsync", "file")] * 3 + [("rename", name) for name in "abc"] + [("fsync", "folder")]


def test_a_file_that_cant_be_synced_fails_alone(batch: Batch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "b").write_text("old")
    machine = RealMachine(batch=batch)
    results = {name: machine.write(str(tmp_path / name), name * 3) for name in "abc"}
    # The new files have the order of the calls.
    bad = batch.trials[1].opened
    fail_for(monkeypatch, lambda descriptor: descriptor == bad)
    batch.finish()
    assert results["b"] == {"status": "error", "reason": f"cannot write {tmp_path}/b: Input/output error"}
    assert (results["a"], results["c"]) == ({"status": "ok"}, {"status": "ok"})
    assert [(tmp_path / name).read_text() for name in "abc"] == ["aaa", "old", "ccc"]
    assert names(tmp_path) == ["a", "b", "c"]


def test_files_fail_if_their_directory_cant_be_synced(
    batch: Batch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "good").mkdir()
    machine = RealMachine(batch=batch)
    results = {name: machine.write(str(tmp_path / name), "x") for name in ("bad/1", "good/1", "bad/2")}
    bad = (tmp_path / "bad").stat().st_ino
    fail_for(monkeypatch, lambda descriptor: os.fstat(descriptor).st_ino == bad)
    batch.finish()
    assert [result["status"] for result in results.values()] == ["error", "ok", "error"]
    assert results["bad/2"]["reason"] == f"cannot write {tmp_path}/bad/2: Input/output error"


def test_a_file_that_another_program_changes_meanwhile_stays(batch: Batch, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    machine = RealMachine(batch=batch)
    result = machine.write(str(tmp_path / "a"), "new")
    (tmp_path / "a").write_text("by hand")
    batch.finish()
    assert result["reason"] == f"cannot write {tmp_path}/a: another program is changing it; apply again"
    assert (tmp_path / "a").read_text() == "by hand"
    assert names(tmp_path) == ["a"]


def test_a_directory_that_moves_meanwhile_keeps_its_files(batch: Batch, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "elsewhere").mkdir()
    machine = RealMachine(batch=batch)
    machine.write(str(tmp_path / "here/a"), "new")
    (tmp_path / "here").rename(tmp_path / "moved")
    (tmp_path / "here").symlink_to("elsewhere")
    machine.write(str(tmp_path / "here/b"), "new")
    batch.finish()
    assert (names(tmp_path / "moved"), names(tmp_path / "elsewhere")) == (["a", "b"], [])


def test_a_missing_directory_fails_one_file(batch: Batch, tmp_path: Path) -> None:
    machine = RealMachine(batch=batch)
    results = [machine.write(str(tmp_path / name), "x") for name in ("missing/a", "b")]
    batch.finish()
    assert [result["status"] for result in results] == ["error", "ok"]
