"""The executor's cached copy on the host: it is used again, and a damaged copy is never run."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from statecfg.playbook.compile import Definition
from statecfg.resources import file
from statecfg.run import bundle
from tests.host import sent
from tests.host.run.rig import Done, define, run
from tests.lab import Host

CACHE = "/var/lib/statecfg/cache"
# A module that leaves a file on the host if it is run.
EVIL = "import os; os.close(os.open('/srv/evil-ran', os.O_CREAT))"


@pytest.fixture
def definition() -> Definition:
    return define(file("/srv/bundle-cache", content="here\n"))


@pytest.fixture
def kept(target: Host, definition: Definition) -> Path:
    """Give the path of the cached executor on the host."""
    assert run(target, definition).host()["status"] == "ok"
    path = target.path(CACHE) / bundle.build(definition.types).sha256
    assert path.is_file()
    return path


def compiled(kept: Path) -> list[Path]:
    """Return the compiled forms of the executor: each Python that has run it has its own."""
    return [path for path in kept.parent.iterdir() if path.name.startswith(kept.name + ".cpython")]


def went_well(done: Done) -> None:
    assert done.host()["status"] == "ok", done.host()
    assert done.outcomes() == {"file:/srv/bundle-cache": "unchanged"}


def uploads(done: Done) -> int:
    return done.event_names().count("uploading")


def test_a_cached_executor_is_used_again(target: Host, definition: Definition, kept: Path) -> None:
    done = run(target, definition)
    went_well(done)
    assert uploads(done) == 0
    assert "warnings" not in done.host()


def flip(data: bytes) -> bytes:
    return data[:1000] + bytes([data[1000] ^ 1]) + data[1001:]


def older(data: bytes) -> bytes:
    modules = sent.unpacked(data)
    package, file, _ = modules["statecfg.remote.session"]
    text, _ = bundle._joined({**modules, "statecfg.remote.session": (package, file, EVIL)})
    return zlib.compress(text)


@pytest.mark.parametrize(
    "damage", [flip, lambda data: data[:-1], lambda data: data[: len(data) // 2], lambda data: data + b"x", older],
    ids=["one bit flipped", "last byte missing", "second half missing", "one byte added", "other valid executor"],
)  # fmt: skip
def test_a_damaged_executor_is_replaced_and_never_run(
    target: Host, definition: Definition, kept: Path, damage: Callable[[bytes], bytes]
) -> None:
    good = kept.read_bytes()
    kept.write_bytes(damage(good))
    assert uploads(run(target, definition)) == 0  # a start needs only the compiled executor
    for path in compiled(kept):
        path.unlink()
    done = run(target, definition)
    went_well(done)
    assert uploads(done) == 1
    assert any("was damaged; statecfg sent it again" in text for text in done.host()["warnings"])
    assert kept.read_bytes() == good
    assert not target.path("/srv/evil-ran").exists()
    assert uploads(run(target, definition)) == 0


@pytest.mark.parametrize("what", ["empty", "link", "directory", "fifo"])
def test_a_cached_executor_must_be_a_regular_file(target: Host, definition: Definition, kept: Path, what: str) -> None:
    good = kept.read_bytes()
    for path in (kept, *compiled(kept)):
        path.unlink()
    if what == "empty":
        kept.write_bytes(b"")
    elif what == "link":
        (kept.parent / "elsewhere").write_bytes(good)
        kept.symlink_to("elsewhere")
    elif what == "directory":
        kept.mkdir()
    else:
        os.mkfifo(kept)
    done = run(target, definition)
    went_well(done)
    assert uploads(done) == 1
    if what == "directory":
        kept.rmdir()
        for path in compiled(kept):
            path.unlink()
    elif not kept.is_symlink():
        assert kept.read_bytes() == good


@pytest.mark.parametrize(
    "damage", [flip, lambda data: data[:40], lambda data: b""], ids=["one bit flipped", "truncated", "empty"]
)
def test_a_damaged_compiled_executor_is_compiled_again(
    target: Host, definition: Definition, kept: Path, damage: Callable[[bytes], bytes]
) -> None:
    damaged = {path: damage(path.read_bytes()) for path in compiled(kept)}
    for path, data in damaged.items():
        path.write_bytes(data)
    done = run(target, definition)
    went_well(done)
    assert uploads(done) == 0
    again = [path for path in damaged if path.read_bytes() != damaged[path]]
    assert len(again) == 1
    for path in set(damaged) - set(again):
        path.unlink()


@pytest.mark.parametrize("what", ["another owner", "writable by all", "a link"])
def test_a_cache_directory_that_others_can_write_is_not_used(
    target: Host, definition: Definition, kept: Path, what: str
) -> None:
    folder = kept.parent
    if what == "another owner":
        os.chown(folder, 1000, 1000)
    elif what == "writable by all":
        folder.chmod(0o777)
    else:
        folder.rename(folder.with_name("elsewhere"))
        folder.symlink_to("elsewhere")
    try:
        done = run(target, definition)
        went_well(done)
        assert uploads(done) == 1
        (warning,) = done.host()["warnings"]
        assert f"statecfg does not cache the executor in {CACHE}" in warning
        assert "remove it, or make it a directory that only this login can write to" in warning
    finally:
        if what == "a link":
            folder.unlink()
            folder.with_name("elsewhere").rename(folder)
        os.chown(folder, 0, 0)
        folder.chmod(0o700)


def test_a_full_state_directory_allows_plan_but_not_apply(make_light_hosts: Callable[[int], list[Host]]) -> None:
    (host,) = make_light_hosts(1)
    host.run(["mkdir", "-p", "/var/lib/statecfg"])
    host.run(["mount", "-t", "tmpfs", "-o", "size=4k,mode=0700", "none", "/var/lib/statecfg"])
    definition = define(file("/srv/full", content="here\n"))
    plan = run(host, definition, "plan").host()
    assert (plan["status"], plan["summary"]) == ("ok", {"changed": 1})
    assert any("can't cache the executor on this host: [Errno 28] No space left" in text for text in plan["warnings"])
    host.run(["sh", "-c", "cat /dev/zero > /var/lib/statecfg/fill || true"])
    report = run(host, definition).host()
    assert report["status"] == "failed", report
    assert "/var/lib/statecfg" in report["error"]["summary"]
    assert "executor failed" not in report["error"]["summary"], report["error"]
    assert not host.path("/srv/full").exists()


def test_a_read_only_state_directory_allows_plan_but_not_apply(make_light_hosts: Callable[[int], list[Host]]) -> None:
    (host,) = make_light_hosts(1)
    host.run(["mkdir", "-p", "/var/lib/statecfg"])
    host.run(["mount", "-t", "tmpfs", "-o", "ro,mode=0700", "none", "/var/lib/statecfg"])
    definition = define(file("/srv/read-only", content="here\n"))
    plan = run(host, definition, "plan").host()
    assert (plan["status"], plan["summary"]) == ("ok", {"changed": 1})
    report = run(host, definition).host()
    assert report["status"] == "failed"
    assert "Read-only file system" in report["error"]["summary"]
    assert "executor failed" not in report["error"]["summary"], report["error"]
    assert not host.path("/srv/read-only").exists()


def test_executors_of_other_versions_are_deleted_after_a_month(
    target: Host, definition: Definition, kept: Path
) -> None:
    stale, recent = kept.with_name("0" * 64), kept.with_name("1" * 64)
    for path in (stale, recent):
        path.write_bytes(b"other")
    long_ago = stale.stat().st_mtime - 40 * 86400
    os.utime(stale, (long_ago, long_ago))
    for path in (kept, *compiled(kept)):
        path.unlink()
    went_well(run(target, definition))
    assert (stale.exists(), recent.exists()) == (False, True)
    recent.unlink()
