"""Files that are written in one step."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from statecfg.remote.graph.model import Blob
from statecfg.remote.machine import durable


def test_a_file_is_replaced_with_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("old")
    durable.replace(str(path), [b"ne", b"w"], 0o640)
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["f"]


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("x")
    (tmp_path / "f").symlink_to("target")
    durable.replace(str(tmp_path / "f"), [b"new"])
    assert not (tmp_path / "f").is_symlink()
    assert (tmp_path / "target").read_text() == "x"


def test_a_failure_leaves_the_former_content(tmp_path: Path) -> None:
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


def test_the_rest_of_a_killed_process_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / f"f.{os.getpid()}").write_text("half")
    durable.replace(str(tmp_path / "f"), [b"new"])
    assert os.listdir(tmp_path) == ["f"]


def test_content_is_kept_once_by_its_digest(tmp_path: Path) -> None:
    blob, folder = Blob.of(b"content"), tmp_path / "before"
    for _ in range(2):
        durable.keep(str(folder), blob)
    assert (folder / blob.sha256).read_bytes() == b"content"
    assert folder.stat().st_mode & 0o777 == 0o700
    with pytest.raises(FileExistsError):
        durable.create(str(folder / blob.sha256), [b"x"], 0o600)
