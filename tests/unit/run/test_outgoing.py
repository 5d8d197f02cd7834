"""Frames with content: complete, in order, and compressed only if that pays."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from statecfg.playbook.file_blobs import FileBlob
from statecfg.remote.graph.model import Blob
from statecfg.remote.wire import frames as wire
from statecfg.run.host.outgoing import AS_IS, KEPT, PIECE, ROUND, Packing, content_frames
from tests.each import each


def packed(blob: Blob) -> list[bool]:
    """Check that the frames carry a blob; return which of them are compressed."""
    sent = list(content_frames(blob))
    received = wire.Decoder().feed(b"".join(sent))
    assert b"".join(body for _, body in received) == blob.read()
    assert [header["last"] for header, _ in received] == [False] * (len(received) - 1) + [True]
    assert {header["sha256"] for header, _ in received} == {blob.sha256}
    return [wire.HEAD.unpack_from(frame)[2] == wire.PACKED for frame in sent]


@each("size", [0, 1, 255, PIECE - 1, PIECE, PIECE + 1, 6 * PIECE])
def test_content_is_split_into_frames(size: int) -> None:
    kinds = packed(Blob.of((bytes(range(256)) * (size // 256 + 1))[:size]))
    assert len(kinds) == max(1, -(-size // PIECE))


def test_content_that_shrinks_is_compressed() -> None:
    assert all(packed(Blob.of(b"a line of text\n" * (3 * PIECE // 15))))


def test_content_that_does_not_shrink_is_sent_as_it_is() -> None:
    noise = random.Random(1).randbytes(PIECE)
    text = b"x" * PIECE
    # The frames after one that did not shrink are not compressed, even if they would shrink. Then statecfg tries again.
    kinds = packed(Blob.of(noise + text * (AS_IS + 3)))
    assert kinds == [False] * (1 + AS_IS) + [True] * 3


def test_a_changed_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "content"
    path.write_bytes(b"before")
    blob = Blob(Blob.of(b"before").sha256, 6, None, str(path))
    path.write_bytes(b"behind")
    with pytest.raises(wire.ProtocolError, match="changed after statecfg read it"):
        list(content_frames(blob))


def test_a_file_that_changed_after_it_was_hashed_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "content"
    path.write_bytes(b"x" * 3 * PIECE)
    blob = FileBlob(path)
    assert (blob.sha256, blob.size) == (Blob.of(path.read_bytes()).sha256, 3 * PIECE)
    assert all(packed(blob))
    frames = content_frames(blob)
    next(frames)
    with path.open("r+b") as stream:
        stream.seek(2 * PIECE)
        stream.write(b"y")
    with pytest.raises(wire.ProtocolError, match="changed after statecfg read it"):
        list(frames)
    with pytest.raises(wire.ProtocolError, match="changed after statecfg read it"):
        list(content_frames(blob))


def test_a_file_that_was_only_touched_is_hashed_again(tmp_path: Path) -> None:
    path = tmp_path / "content"
    path.write_bytes(b"x" * PIECE)
    blob = FileBlob(path)
    os.utime(path, (1, 1))
    assert not blob.untouched()
    packed(blob)
    path.unlink()
    assert not blob.untouched()


@each(("compressing", "plain"), [(1.0, 2.0), (2.0, 1.0)])
def test_frames_are_sent_in_the_faster_way(compressing: float, plain: float) -> None:
    now = 0.0
    packing = Packing(lambda: now)
    text = b"x" * PIECE
    rounds = []
    for _ in range(KEPT + 3):
        ways = set()
        for _ in range(ROUND):
            way = packing.packs(text)
            now += compressing if way else plain
            ways.add(way)
        rounds.append(ways)
    faster = {compressing < plain}
    # Both ways are measured, then the faster one is used until the other one is tried again.
    assert rounds[:2] == [{True}, {False}]
    assert rounds[2 : KEPT + 1] == [faster] * (KEPT - 1)
    assert rounds[KEPT + 1] == {not compressing < plain}
    assert rounds[KEPT + 2] == faster
