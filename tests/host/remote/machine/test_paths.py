"""Path lookup never follows a link that another user controls, however fast that user swaps it."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from statecfg.remote.machine.paths import UnsafePath, normal, open_parent
from statecfg.remote.machine.planned import Planned
from statecfg.remote.machine.real import RealMachine

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may plant files of other users")
STRANGER = 1


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path.resolve()


def walked(path: str, follow: bool = False) -> tuple[str, str]:
    """Return the directory and the name at which the lookup of a path ends."""
    descriptor, name, directory = open_parent(path, follow)
    try:
        assert os.readlink(f"/proc/self/fd/{descriptor}") == directory
        return directory, name
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(
    ("path", "expected"),
    [("/", "/"), ("//a///b/", "/a/b"), ("/a/./b", "/a/b"), ("/a/../b", "/b"), ("/../..", "/"), ("a", "/a")],
)
def test_normal_simplifies_a_path(path: str, expected: str) -> None:
    assert normal(path) == expected


def test_open_parent_follows_links_of_the_same_user(place: Path) -> None:
    (place / "d/e").mkdir(parents=True)
    (place / "one").symlink_to("d")
    (place / "two").symlink_to(place / "one/e")
    (place / "d/e/file").symlink_to("../../elsewhere")
    assert walked(f"{place}/two/x") == (f"{place}/d/e", "x")
    assert walked(f"{place}/one/e") == (f"{place}/d", "e")
    assert walked(f"{place}/two/file") == (f"{place}/d/e", "file")
    assert walked(f"{place}/two/file", follow=True) == (str(place), "elsewhere")
    assert walked("/") == ("/", ".")


def test_open_parent_names_the_missing_path_component(place: Path) -> None:
    (place / "file").write_text("x")
    for path, error, named in (
        ("no/such/f", FileNotFoundError, "no"),
        ("file/f", NotADirectoryError, "file"),
    ):
        with pytest.raises(error) as caught:
            walked(f"{place}/{path}")
        assert caught.value.filename == f"{place}/{named}"


def test_open_parent_rejects_a_link_loop(place: Path) -> None:
    (place / "a").symlink_to("b")
    (place / "b").symlink_to("a")
    with pytest.raises(OSError, match="Too many levels"):
        walked(f"{place}/a/x")


def test_open_parent_leaves_no_descriptors_open(place: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for path in (f"{place}/x", f"{place}/no/x", "/", f"{place}/../{place.name}/x"):
        try:
            walked(path)
        except OSError:
            continue
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.fixture
def foreign(place: Path) -> Path:
    """Give a directory of another user that contains a link to a directory of root."""
    (place / "outside").mkdir()
    home = place / "home"
    home.mkdir()
    (home / "link").symlink_to(place / "outside")
    os.chown(home, STRANGER, STRANGER)
    return home


@needs_root
@pytest.mark.parametrize("owner", [0, STRANGER])
def test_a_link_in_another_users_directory_is_refused(foreign: Path, owner: int) -> None:
    """The real machine and the planning machine give the same reason, and nothing is written outside."""
    os.chown(foreign / "link", owner, owner, follow_symlinks=False)
    with pytest.raises(UnsafePath):
        walked(f"{foreign}/link/f")
    for machine in (Planned(RealMachine()), RealMachine()):
        result = machine.write(f"{foreign}/link/f", "x")
        assert "a link that another user controls is not followed" in result["reason"]
        with pytest.raises(OSError):
            machine.stat(f"{foreign}/link/f")
    assert list((foreign.parent / "outside").iterdir()) == []


@needs_root
@pytest.mark.parametrize(("mode", "safe"), [(0o755, True), (0o775, False), (0o777, False), (0o1777, True)])
def test_links_in_shared_directories_are_followed_only_when_safe(place: Path, mode: int, safe: bool) -> None:
    (place / "d").mkdir()
    (place / "d/link").symlink_to("..")
    os.chmod(place / "d", mode)
    if safe:
        assert walked(f"{place}/d/link/f") == (str(place), "f")
    else:
        with pytest.raises(UnsafePath):
            walked(f"{place}/d/link/f")
    os.chown(place / "d/link", STRANGER, STRANGER, follow_symlinks=False)
    with pytest.raises(UnsafePath):
        walked(f"{place}/d/link/f")


@pytest.fixture
def racer(foreign: Path) -> Iterator[list[int]]:
    """Let another user swap a directory with a link to root's directory as fast as possible, and count the swaps."""
    (foreign / "d").mkdir()
    (foreign / "link").unlink()
    (foreign / "evil").symlink_to(foreign.parent / "outside")
    swaps, stop = [0], threading.Event()

    def swap() -> None:
        while not stop.is_set():
            os.rename(foreign / "d", foreign / "aside")
            os.rename(foreign / "evil", foreign / "d")
            os.rename(foreign / "d", foreign / "evil")
            os.rename(foreign / "aside", foreign / "d")
            swaps[0] += 2

    thread = threading.Thread(target=swap)
    thread.start()
    yield swaps
    stop.set()
    thread.join()


@needs_root
def test_a_link_swapped_during_a_write_never_redirects_it(foreign: Path, racer: list[int]) -> None:
    outside = foreign.parent / "outside"
    (outside / "f").write_text("root's")
    (outside / "d").mkdir()
    before = {path: os.lstat(path) for path in (outside, outside / "f", outside / "d")}
    machine, place = RealMachine(), f"{foreign}/d"
    results: list[str] = []
    while racer[0] < 5000 or len(results) < 200:
        for result in (
            machine.write(f"{place}/f", "ours", 0o666, "daemon"),
            machine.mkdir(f"{place}/d", 0o777, "daemon"),
            machine.chmod(f"{place}/f", 0o777),
            machine.chown(f"{place}/f", "daemon"),
            machine.symlink(f"{place}/s", "x"),
            machine.remove(f"{place}/d", recursive=True),
        ):
            results.append(result["status"])
    assert "ok" in results
    for path, old in before.items():
        now = os.lstat(path)
        assert (now.st_mode, now.st_uid, now.st_ino, now.st_ctime_ns) == (
            old.st_mode,
            old.st_uid,
            old.st_ino,
            old.st_ctime_ns,
        )
    assert sorted(os.listdir(outside)) == ["d", "f"]
    assert (outside / "f").read_text() == "root's"
    assert stat.S_IMODE(os.lstat(outside).st_mode) == stat.S_IMODE(before[outside].st_mode)
