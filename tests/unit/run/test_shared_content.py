"""Content for several hosts: read and compressed once, and never more in memory than the limit."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from statecfg.playbook.file_blobs import FileBlob
from statecfg.remote.graph.model import Blob
from statecfg.remote.wire import frames as wire
from statecfg.run.host import shared_content
from statecfg.run.host.outgoing import PIECE
from statecfg.run.host.shared_content import LARGEST, SharedContent
from tests.each import each


def blob(size: int, seed: int = 1) -> Blob:
    """Return content that can't be compressed."""
    return Blob.of(random.Random(seed).randbytes(size))


def content(frames: list[bytes]) -> bytes:
    return b"".join(body for _, body in wire.Decoder().feed(b"".join(frames)))


def same_frames(one: list[bytes], other: list[bytes]) -> bool:
    """Return whether two hosts got the same objects, so they were made once."""
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


@each("size", [5000, PIECE, 3 * PIECE + 1])
def test_content_for_several_hosts_is_compressed_once(size: int) -> None:
    shared, given = SharedContent(), Blob.of(b"a line of text\n" * (size // 15))
    one, other, third = shared.frames(given), shared.frames(given), shared.frames(Blob.of(given.read()))
    first = [next(one), next(other)]  # they get it at the same time
    all_of_one, all_of_other = [first[0], *one], [first[1], *other]
    assert same_frames(all_of_one, all_of_other)
    assert same_frames(all_of_one, list(third)), "the digest decides"
    assert content(all_of_one) == given.read()
    assert shared.size == sum(map(len, all_of_one)) < size, "compressed"


def test_many_threads_get_complete_content() -> None:
    shared, given = SharedContent(), blob(8 * PIECE)
    got: list[list[bytes]] = []
    threads = [threading.Thread(target=lambda: got.append(list(shared.frames(given)))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 8
    assert content(got[0]) == given.read()
    assert all(same_frames(got[0], each_one) for each_one in got)


def test_frames_never_take_more_than_the_limit() -> None:
    shared = SharedContent(5 * PIECE)
    for seed in range(6):
        assert content(list(shared.frames(blob(2 * PIECE, seed)))) == blob(2 * PIECE, seed).read()
        assert shared.size <= 5 * PIECE
    assert same_frames(list(shared.frames(blob(2 * PIECE, 5))), list(shared.frames(blob(2 * PIECE, 5))))
    # Frames that a host gets now stay. So content that does not fit beside them is not kept.
    busy: list[Iterator[bytes]] = [shared.frames(blob(2 * PIECE, seed)) for seed in (10, 11)]
    for frames in busy:
        next(frames)
    one, other = (list(shared.frames(blob(2 * PIECE, 12))) for _ in range(2))
    assert not same_frames(one, other)
    assert content(one) == content(other)
    assert shared.size <= 5 * PIECE


def test_large_content_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert LARGEST < shared_content.LIMIT
    monkeypatch.setattr(shared_content, "LARGEST", PIECE)
    shared = SharedContent()
    assert content(list(shared.frames(blob(PIECE + 1)))) == blob(PIECE + 1).read()
    assert shared.size == 0


def test_a_run_on_one_host_keeps_nothing() -> None:
    shared = SharedContent(0)
    assert content(list(shared.frames(blob(PIECE)))) == blob(PIECE).read()
    assert shared.size == 0


def test_content_that_no_host_got_completely_is_not_kept() -> None:
    shared = SharedContent()
    frames = shared.frames(blob(3 * PIECE))
    next(frames)
    frames.close()  # type: ignore[attr-defined]  # it is a generator
    assert shared.size == 0


def test_a_changed_file_is_an_error_for_each_host(tmp_path: Path) -> None:
    path = tmp_path / "content"
    path.write_bytes(b"x" * 3 * PIECE)
    shared, given = SharedContent(), FileBlob(path)
    hosts = [shared.frames(given), shared.frames(given)]
    for host in hosts:
        next(host)
    path.write_bytes(b"y" * 3 * PIECE)
    for host in hosts:
        with pytest.raises(wire.ProtocolError, match="changed after statecfg read it"):
            list(host)
    path.write_bytes(b"x" * 3 * PIECE)
    assert content(list(shared.frames(given))) == given.read(), "a later host tries again"
