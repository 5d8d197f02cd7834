"""SQLite's writing system calls fail or are killed: confirmed changes are kept, and no change is partial.

The calls alternate: one is killed, and the next one fails.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from statecfg.store import hosts, opened
from tests.lab.fixtures import NOT_RUN

CALLS = "pwrite64,fdatasync,fsync,ftruncate,unlink"
PROGRAM = """
import sys
from statecfg.store import StoreError, hosts, opened
with opened(url=sys.argv[1]) as store:
    for tag in ("one", "two"):
        try:
            hosts.tag(store, "web1", [tag])
        except StoreError as problem:
            print(problem.detail, file=sys.stderr)
            sys.exit(8)
        print(tag, flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    if shutil.which("strace") is None:
        pytest.skip(f"{NOT_RUN}there is no strace (Debian: strace)")
    with opened(url=str(tmp_path / "store.db")) as store:
        hosts.tag(store, "web1", ["zero"])
    return tmp_path / "store.db"


def traced(path: Path, *expressions: str) -> subprocess.CompletedProcess[str]:
    """Run the program under strace. The log of strace is the file `trace` next to the store."""
    words = [word for expression in expressions for word in ("-e", expression)]
    log = path.parent / "trace"
    argv = ["strace", "-f", "-qq", "-o", str(log), *words, sys.executable, "-c", PROGRAM, str(path)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120)


def points(path: Path) -> list[tuple[str, int]]:
    """Return all system calls of an undisturbed run, each as its name and its number among calls of this name."""
    copy = path.parent / "copy.db"
    shutil.copy(path, copy)
    assert traced(copy, f"trace={CALLS}").stdout == "one\ntwo\n"
    counts = Counter(re.findall(rf"\b({CALLS.replace(',', '|')})\(", (path.parent / "trace").read_text()))
    assert counts["pwrite64"] > 5 and counts["fdatasync"] + counts["fsync"] > 5
    return [(call, number) for call, count in sorted(counts.items()) for number in range(1, count + 1)]


def test_killing_a_system_call_loses_no_confirmed_change(path: Path) -> None:
    for call, number in points(path)[::2]:
        shutil.copy(path, path.parent / "try.db")
        _holds(path.parent / "try.db", call, number, "signal=KILL")


def test_a_failing_system_call_is_reported_and_loses_no_confirmed_change(path: Path) -> None:
    """A failed change is reported, even if a later system call succeeds."""
    for call, number in points(path)[1::2]:
        shutil.copy(path, path.parent / "try.db")
        _holds(path.parent / "try.db", call, number, "error=EIO")


def _holds(path: Path, call: str, number: int, what: str) -> None:
    for left in path.parent.glob("try.db-*"):
        left.unlink()
    ran = traced(path, f"trace={CALLS}", f"inject={call}:{what}:when={number}")
    where = f"{call} {number} {what}: {ran.stdout!r} {ran.stderr!r}"
    if "error=" in what:
        assert ran.returncode in (0, 8) and "Traceback" not in ran.stderr, where
        assert (ran.returncode == 8) == ("two" not in ran.stdout), where
        assert ran.returncode == 0 or str(path) in ran.stderr, where
    with opened(url=str(path)) as store:
        assert store.check() == [], where
        (record,) = hosts.every(store)
    said = ["zero", *ran.stdout.split()]
    # The change in progress may have been stored without a confirmation.
    more = ["zero", "one", "two"][: len(said) + 1]
    assert record.tags in (sorted(said), sorted(more)), where
