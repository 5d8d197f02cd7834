"""The guard refuses everything by which a check would change the host, even if the check swallows the error."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from statecfg.remote.machine.guard import WriteAttempt, allowed, reading_only

ATTEMPTS: dict[str, Callable[[Path], Any]] = {
    "open": lambda p: open(p / "f", "a"),
    "os.open": lambda p: os.open(p / "f", os.O_WRONLY),
    "open for reading and writing": lambda p: open(p / "f", "r+"),
    "bytecode": lambda p: open(p / "f.pyc", "wb"),
    "write_text": lambda p: (p / "new").write_text("x"),
    "remove": lambda p: os.remove(p / "f"),
    "rename": lambda p: os.rename(p / "f", p / "g"),
    "mkdir": lambda p: os.mkdir(p / "d"),
    "rmdir": lambda p: os.rmdir(p / "empty"),
    "chmod": lambda p: os.chmod(p / "f", 0),
    "chown": lambda p: os.chown(p / "f", 0, 0),
    "link": lambda p: os.link(p / "f", p / "g"),
    "symlink": lambda p: os.symlink("f", p / "g"),
    "truncate": lambda p: os.truncate(p / "f", 0),
    "utime": lambda p: os.utime(p / "f"),
    "setxattr": lambda p: os.setxattr(p / "f", "user.x", b"y"),
    "rmtree": lambda p: shutil.rmtree(p / "empty"),
    "copy": lambda p: shutil.copyfile(p / "f", p / "g"),
    "subprocess": lambda p: subprocess.run(["touch", p / "g"], check=True),
    "system": lambda p: os.system("touch g"),
    "fork": lambda p: os.fork() or os._exit(0),
    "spawn": lambda p: os.spawnv(os.P_WAIT, "/bin/true", ["true"]),
    "kill": lambda p: os.kill(os.getpid(), 15),
    "environment": lambda p: os.putenv("X", "y"),
    "database": lambda p: sqlite3.connect(p / "db"),
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "f").write_text("kept")
    (tmp_path / "empty").mkdir()
    return tmp_path


def untouched(place: Path) -> bool:
    return sorted(os.listdir(place)) == ["empty", "f"] and (place / "f").read_text() == "kept"


@pytest.mark.parametrize("name", ATTEMPTS)
def test_the_guard_refuses_every_kind_of_write(place: Path, name: str) -> None:
    with pytest.raises(WriteAttempt), reading_only():
        ATTEMPTS[name](place)
    assert untouched(place)


@pytest.mark.parametrize("name", ATTEMPTS)
def test_the_guard_reports_a_write_attempt_that_the_check_swallowed(place: Path, name: str) -> None:
    with pytest.raises(WriteAttempt), reading_only():
        try:
            ATTEMPTS[name](place)
        except Exception:
            pass
    assert untouched(place)


def test_the_guard_allows_read_operations(place: Path) -> None:
    with reading_only():
        assert (place / "f").read_text() == "kept"
        os.listdir(place)
        os.stat(place / "f")
        os.kill(os.getpid(), 0)
        with pytest.raises(sqlite3.OperationalError):
            sqlite3.connect(f"file:{place}/none?mode=ro", uri=True)


def test_the_guard_allows_writes_only_inside_allowed(place: Path) -> None:
    """After `allowed` ends, the guard refuses writes again."""
    with reading_only(), allowed():
        assert subprocess.run(["true"], check=False).returncode == 0
    with pytest.raises(WriteAttempt), reading_only():
        with allowed():
            assert subprocess.run(["true"], check=False).returncode == 0
        os.remove(place / "f")
    assert untouched(place)


def test_the_guard_does_not_affect_other_threads(place: Path) -> None:
    inside, done = threading.Event(), threading.Event()

    def other() -> None:
        inside.wait(20)
        (place / "made").write_text("x")
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    with reading_only():
        inside.set()
        assert done.wait(20)
    thread.join()
    assert (place / "made").exists()


def test_the_guard_can_be_nested_and_ends_with_its_block(place: Path) -> None:
    with reading_only():
        with reading_only():
            pass
        with pytest.raises(WriteAttempt), reading_only():
            os.remove(place / "f")
    os.remove(place / "f")
    assert not (place / "f").exists()
