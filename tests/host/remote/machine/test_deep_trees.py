"""Removal of trees that are too deep for recursion and for path names, safely and with few open files."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from statecfg.remote.machine.real import RealMachine
from statecfg.resources import directory
from tests.host.remote import managed
from tests.host.remote.managed import Machine

DEPTH = 3000  # three times Python's recursion limit


def chain(place: Path, depth: int) -> None:
    """Make a directory with `depth` nested directories, and a file in each directory."""
    place.mkdir()
    here = os.open(place, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=here))
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


@pytest.fixture
def few_files() -> Iterator[None]:
    """Limit this process to a few more open files than it already has."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 12, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("few_files")
def test_remove_deletes_a_very_deep_tree_with_few_open_files(tmp_path: Path) -> None:
    chain(tmp_path / "deep", DEPTH)
    assert RealMachine().remove(str(tmp_path / "deep"), recursive=True) == {"status": "ok"}
    assert os.listdir(tmp_path) == []


def test_remove_needs_calls_in_proportion_to_the_depth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    original = os.open

    def counted(*given: Any, **more: Any) -> int:
        calls[-1] += 1
        return original(*given, **more)

    for depth in (500, 1000):
        chain(tmp_path / "deep", depth)
        calls.append(0)
        monkeypatch.setattr(os, "open", counted)
        assert RealMachine().remove(str(tmp_path / "deep"), recursive=True)["status"] == "ok"
        monkeypatch.setattr(os, "open", original)
    assert calls[1] < 2.1 * calls[0]


def swapping(monkeypatch: pytest.MonkeyPatch, name: str, when: Callable[[], None]) -> None:
    """Call a function just before `name` is opened for the first time."""
    original, done = os.open, []

    def opened(path: Any, *given: Any, **more: Any) -> int:
        if path == name and not done:
            done.append(True)
            when()
        return original(path, *given, **more)

    monkeypatch.setattr(os, "open", opened)


def test_remove_stops_when_a_directory_is_moved_out_of_the_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`..` would then lead out of the tree. The directory outside stays as it is."""
    (tmp_path / "tree/a/b").mkdir(parents=True)
    (tmp_path / "outside/b").mkdir(parents=True)
    (tmp_path / "outside/kept").write_text("kept")
    swapping(monkeypatch, "..", lambda: (tmp_path / "tree/a/b").rename(tmp_path / "outside/b"))
    result = RealMachine().remove(str(tmp_path / "tree"), recursive=True)
    assert "another program is moving its content" in result["reason"]
    assert (tmp_path / "outside/kept").read_text() == "kept" and (tmp_path / "outside/b").is_dir()


def test_remove_does_not_follow_a_directory_that_became_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tree/a").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/kept").write_text("kept")

    def swap() -> None:
        (tmp_path / "tree/a").rmdir()
        (tmp_path / "tree/a").symlink_to(tmp_path / "outside")

    swapping(monkeypatch, "a", swap)
    assert RealMachine().remove(str(tmp_path / "tree"), recursive=True)["status"] == "error"
    assert (tmp_path / "outside/kept").read_text() == "kept"


def test_a_run_reports_that_a_removed_deep_tree_cannot_be_restored(tmp_path: Path) -> None:
    machine = managed.started(tmp_path)
    try:
        _removed_by_a_run(machine, tmp_path / "host/deep")
    finally:
        managed.stop(machine)


def _removed_by_a_run(machine: Machine, place: Path) -> None:
    place.parent.mkdir()
    chain(place, DEPTH)
    node = directory(str(place), absent=True, recursive=True)
    planned = machine.run(node, mode="plan").part("layers")[0]
    fields = {(each["object"], each["field"]): each["before"] for each in planned["changes"]}
    assert planned["outcome"] == "changed" and fields[str(place), "inside"] == "more than the plan shows"
    assert fields[f"{place}/d/f", "kind"] == "file"
    assert machine.run(node).end["status"] == "ok" and not place.exists()
    assert machine.run(node, mode="plan").part("layers")[0]["outcome"] == "unchanged"
    said = machine.run(mode="destroy", yes=True)
    assert "levels deep" in str(said.part("removals")[0]["leaves"])
