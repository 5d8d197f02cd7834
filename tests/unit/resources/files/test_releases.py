"""Programs in archives that the controller has in its cache already."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from statecfg.resources.files.downloads import fetched
from statecfg.resources.files.downloads.release_rules import FetchedMember

PROGRAM = b"#!/bin/sh\necho 1.0\n"
URL = "https://example.org/tool.tar.gz"


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Put an archive into the cache, and return its digest."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as packed:
        member = tarfile.TarInfo("./tool-1.0/tool")
        member.size = len(PROGRAM)
        packed.addfile(member, io.BytesIO(PROGRAM))
        link = tarfile.TarInfo("tool-1.0/link")
        link.type, link.linkname = tarfile.SYMTYPE, "tool"
        packed.addfile(link)
    digest = hashlib.sha256(stream.getvalue()).hexdigest()
    fetched.directory().mkdir(parents=True)
    (fetched.directory() / digest).write_bytes(stream.getvalue())
    return digest


def member(archive: str, name: str, sha256: str = hashlib.sha256(PROGRAM).hexdigest()) -> FetchedMember:
    return FetchedMember(URL, archive, {}, name, sha256)


def test_the_program_is_taken_out_of_the_archive(archive: str) -> None:
    program = member(archive, "tool-1.0/tool")
    assert b"".join(program.chunks()) == PROGRAM
    assert program.size == len(PROGRAM)


@pytest.mark.parametrize(
    ("name", "sha256", "reason"),
    [
        ("tool-1.0/tol", "0" * 64, "contains no file tool-1.0/tol; did you mean `tool-1.0/tool`?"),
        ("tool-1.0/link", "0" * 64, "tool-1.0/link in https://example.org/tool.tar.gz is not a file"),
        ("tool-1.0/tool", "0" * 64, "member_checksum is sha256:0000"),
    ],
)
def test_nothing_else_is_taken_or_kept(archive: str, name: str, sha256: str, reason: str) -> None:
    with pytest.raises(OSError) as caught:
        list(member(archive, name, sha256).chunks())
    assert reason in str(caught.value)
    assert [path.name for path in fetched.directory().iterdir()] == [archive]
