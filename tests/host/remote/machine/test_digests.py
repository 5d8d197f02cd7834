"""Recorded digests of files: when they count, and what makes statecfg read a file again."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from statecfg.remote.machine import digests
from statecfg.remote.machine.digests import Digests
from statecfg.remote.machine.real import Facets, RealMachine

LATER = 1000.0  # seconds after which the new files of a test count as old


def opened(place: Path, playbook: str = "site", **more: Any) -> Digests:
    """Return the records. The file system of the test counts as one that sets the ctime with each change."""
    found = Digests(str(place / "state" / "digests"), playbook, **more)
    found._devices = {os.stat(place).st_dev}
    return found


def learn(found: Digests, path: Path, began: float = 0.0) -> None:
    info = os.stat(path)
    began = began or time.time() + LATER
    found.learn(str(path), began, info, info, hashlib.sha256(path.read_bytes()).hexdigest())


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Give a directory with a file whose digest is recorded."""
    (tmp_path / "f").write_text("one\n")
    found = opened(tmp_path)
    learn(found, tmp_path / "f")
    found.save()
    return tmp_path


def known(place: Path, name: str = "f") -> str:
    return opened(place).known(str(place / name))


def record(place: Path) -> Path:
    (path,) = (place / "state" / "digests").iterdir()
    return path


def test_an_unchanged_file_has_its_recorded_digest(place: Path) -> None:
    assert known(place) == hashlib.sha256(b"one\n").hexdigest()
    assert record(place).stat().st_mode & 0o777 == 0o600
    assert known(place, "other") == "" and opened(place, "another").known(str(place / "f")) == ""


def rewritten(path: Path) -> None:
    info = path.stat()
    path.write_text("two\n")
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def replaced(path: Path) -> None:
    other = path.with_name("new")
    other.write_text("two\n")
    shutil.copystat(path, other)
    os.replace(other, path)


def through_a_hard_link(path: Path) -> None:
    os.link(path, path.with_name("link"))
    rewritten(path.with_name("link"))


def restored(path: Path) -> None:
    backup = path.with_name("backup")
    shutil.copy2(path, backup)
    path.unlink()
    shutil.copy2(backup, path)


def removed(path: Path) -> None:
    path.unlink()


def linked(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")


@pytest.mark.parametrize("change", [rewritten, replaced, through_a_hard_link, restored, removed, linked])
def test_a_changed_file_is_read_again(place: Path, change: Callable[[Path], None]) -> None:
    time.sleep(0.02)  # longer than the kernel's clock tick
    change(place / "f")
    assert known(place) == ""


def test_a_file_that_changed_shortly_before_is_not_recorded(tmp_path: Path) -> None:
    """Otherwise a later change could have the same time."""
    (tmp_path / "f").write_text("one\n")
    found = opened(tmp_path)
    changed = os.stat(tmp_path / "f").st_ctime
    for seconds, counts in ((0.0, False), (digests.SETTLED, False), (LATER, True)):
        learn(found, tmp_path / "f", changed + seconds)
        assert (str(tmp_path / "f") in found.current) == counts
    learn(found, tmp_path / "f", changed)
    assert found.current == {}


def test_a_file_with_an_odd_time_is_not_recorded(tmp_path: Path) -> None:
    for when in (time.time_ns() + 10**13 + 1, 10**18):  # in the future, and whole seconds
        (tmp_path / "f").write_text("one\n")
        os.utime(tmp_path / "f", ns=(when, when))
        found = opened(tmp_path)
        learn(found, tmp_path / "f")
        assert found.current == {}


def test_a_file_that_changes_while_it_is_read_is_not_recorded(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("one\n")
    before = os.stat(path)
    path.write_text("longer\n")
    found = opened(tmp_path)
    found.learn(str(path), time.time() + LATER, before, os.stat(path), "digest")
    assert found.current == {}


def test_files_of_other_file_systems_are_neither_recorded_nor_trusted(place: Path) -> None:
    found = Digests(str(place / "state" / "digests"), "site")
    found._devices = set()
    assert found.known(str(place / "f")) == ""
    learn(found, place / "f")
    assert found.current == {}


def test_only_local_file_systems_count() -> None:
    kinds = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        first, second = line.split(" - ")
        major, minor = first.split()[2].split(":")
        kinds[os.makedev(int(major), int(minor))] = second.split()[0]
    found = Digests("/nonexistent", "site").devices
    assert found == {device for device, kind in kinds.items() if kind in digests.LOCAL}
    assert os.stat("/proc").st_dev not in found


@pytest.mark.parametrize("change", [{"time": time.time() + 3600}, {"boot": "another"}], ids=["future", "former boot"])
def test_records_of_the_future_and_of_former_boots_do_not_count(place: Path, change: dict[str, Any]) -> None:
    """The clock was set back, or the power failed."""
    text = record(place).read_bytes()[8:]
    changed = json.dumps({**json.loads(text), **change}).encode()
    record(place).write_bytes(b"%08x%s" % (zlib.crc32(changed), changed))
    assert known(place) == ""


def test_a_damaged_record_is_ignored(place: Path) -> None:
    good = record(place).read_bytes()
    for at in range(len(good)):
        for bad in (good[:at], good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :]):
            record(place).write_bytes(bad)
            assert known(place) == ""
    record(place).write_bytes(good)
    assert known(place)


def test_a_record_that_others_can_write_or_own_is_ignored(place: Path) -> None:
    record(place).chmod(0o660)
    assert known(place) == ""
    record(place).chmod(0o600)
    assert known(place)
    if os.geteuid() == 0:
        os.chown(record(place), 1, 1)
        assert known(place) == ""


def test_a_run_that_reads_everything_makes_new_records(place: Path) -> None:
    found = opened(place, trusting=False)
    assert found.known(str(place / "f")) == ""
    learn(found, place / "f")
    found.save()
    assert known(place)


def test_records_of_files_that_a_run_did_not_see_are_deleted_unless_it_was_partial(place: Path) -> None:
    opened(place, partial=True).save()
    assert known(place)
    opened(place).save()
    assert known(place) == ""


def test_the_machine_reads_a_file_only_if_its_digest_is_unknown(place: Path) -> None:
    """A record with another digest shows which of the two happened."""
    found = opened(place)
    found.recorded[str(place / "f")][-1] = "recorded"
    machine = RealMachine(Facets(found))
    assert machine.digest(str(place / "f")) == "recorded"
    time.sleep(0.02)
    (place / "f").write_text("two\n")
    assert machine.digest(str(place / "f")) == hashlib.sha256(b"two\n").hexdigest()
    assert RealMachine().digest(str(place / "f")) == hashlib.sha256(b"two\n").hexdigest()
