"""Atomic replacement of files: a file has either the old or the new content, never a part of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from statecfg.remote.graph.model import Blob
from statecfg.remote.machine import durable


def test_replace_writes_content_and_mode(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("old")
    durable.replace(str(path), [b"ne", b"w"], 0o640)
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["f"]


def test_replace_replaces_a_link_without_following_it(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("x")
    (tmp_path / "f").symlink_to("target")
    durable.replace(str(tmp_path / "f"), [b"new"])
    assert not (tmp_path / "f").is_symlink()
    assert (tmp_path / "target").read_text() == "x"


def test_failed_replace_keeps_the_old_content(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"ne"
        raise OSError("the source is gone")

    path = tmp_path / "f"
    path.write_text("old")
    with pytest.raises(OSError, match="the source is gone"):
        durable.replace(str(path), pieces())
    with pytest.raises(OSError, match="changed while"):
        durable.replace(str(path), [b"new"], sha256=sha256(b"other").hexdigest())
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["f"]


def test_replace_overwrites_the_temporary_file_of_a_killed_process(tmp_path: Path) -> None:
    (tmp_path / f"f.{os.getpid()}").write_text("half")
    durable.replace(str(tmp_path / "f"), [b"new"])
    assert os.listdir(tmp_path) == ["f"]


def test_only_a_cache_is_replaced_without_a_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.readlink(f"/proc/self/fd/{descriptor}")))
    durable.replace(str(tmp_path / "cache"), [b"new"], synced=False)
    assert synced == [] and (tmp_path / "cache").read_bytes() == b"new"
    durable.replace(str(tmp_path / "f"), [b"new"])
    assert synced == [str(tmp_path / f"f.{os.getpid()}"), str(tmp_path)]


def test_a_fixed_temporary_name_overwrites_what_any_killed_process_left(tmp_path: Path) -> None:
    (tmp_path / "f.new").symlink_to("elsewhere")
    durable.replace(str(tmp_path / "f"), [b"new"], trial=str(tmp_path / "f.new"))
    assert os.listdir(tmp_path) == ["f"] and not (tmp_path / "f").is_symlink()


def test_put_replaces_a_link_in_one_step(tmp_path: Path) -> None:
    link = tmp_path / "current"
    for target in ("old", "new"):
        durable.put(str(link), lambda trial, target=target: os.symlink(target, trial))
    assert os.readlink(link) == "new"
    with pytest.raises(FileNotFoundError):
        durable.put(str(link), lambda trial: os.symlink("newest", f"{trial}/missing"))
    assert os.listdir(tmp_path) == ["current"] and os.readlink(link) == "new"


def test_keep_stores_content_once_under_its_digest(tmp_path: Path) -> None:
    blob, folder = Blob.of(b"content"), tmp_path / "before"
    for _ in range(2):
        durable.keep(str(folder), blob)
    assert (folder / blob.sha256).read_bytes() == b"content"
    assert folder.stat().st_mode & 0o777 == 0o700
    with pytest.raises(FileExistsError):
        durable.create(str(folder / blob.sha256), [b"x"], 0o600)


def test_a_file_is_copied_whole(tmp_path: Path) -> None:
    content = bytes(range(256)) * (2 * durable.COPIED // 256) + b"end"
    (tmp_path / "source").write_bytes(content)
    for flags in (os.O_WRONLY, os.O_WRONLY | os.O_APPEND):  # the kernel refuses to copy to the end of a file itself
        opened = os.open(tmp_path / "copy", flags | os.O_CREAT | os.O_TRUNC)
        try:
            durable.copy(str(tmp_path / "source"), opened)
        finally:
            os.close(opened)
        assert (tmp_path / "copy").read_bytes() == content
