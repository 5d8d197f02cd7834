"""Real file changes are atomic, never give wider permissions than requested, and leave no temporary files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from statecfg.remote.graph.model import Blob
from statecfg.remote.machine import files
from statecfg.remote.machine.real import Facets, RealMachine
from tests import ROOT

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="not run on this machine: only root gives files to others")
REPOSITORY = str(ROOT)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path.resolve()
    assert [name for _, _, names in os.walk(tmp_path) for name in names if name.startswith(".statecfg-")] == []


def test_write_replaces_the_inode_only_when_content_changes(place: Path) -> None:
    """A reader with the old file open keeps reading the whole old content."""
    machine = RealMachine()
    machine.write(f"{place}/f", "old" * 1000)
    with open(place / "f") as held:
        machine.write(f"{place}/f", "new")
        assert held.read() == "old" * 1000
    inode = os.stat(place / "f").st_ino
    machine.write(f"{place}/f", "new", 0o600)
    assert os.stat(place / "f").st_ino == inode, "the same content is not written again"


def test_readers_see_either_the_old_or_the_new_content(place: Path) -> None:
    contents = [b"a" * 100_000, b"b" * 50_000]
    machine, seen, stop = RealMachine(), set(), threading.Event()
    machine.write(f"{place}/f", contents[0])

    def read() -> None:
        while not stop.is_set():
            seen.add((place / "f").read_bytes())

    thread = threading.Thread(target=read)
    thread.start()
    turn = 0
    while turn < 100 or (len(seen) < 2 and turn < 100_000):
        machine.write(f"{place}/f", contents[turn % 2])
        turn += 1
    stop.set()
    thread.join()
    assert seen <= set(contents) and len(seen) == 2


def test_new_files_never_have_wider_permissions_than_requested(place: Path) -> None:
    """A thread watches the directory under umask 0: no name there is ever accessible to others."""
    machine, modes, stop = RealMachine(), set(), threading.Event()

    def watch() -> None:
        while not stop.is_set():
            for entry in os.scandir(place):
                try:
                    modes.add(entry.stat(follow_symlinks=False).st_mode & 0o777)
                except FileNotFoundError:
                    continue

    old = os.umask(0)
    thread = threading.Thread(target=watch)
    thread.start()
    try:
        for turn in range(60):
            machine.write(f"{place}/f", f"secret {turn}", 0o600)
            machine.mkdir(f"{place}/d", 0o700)
            machine.remove(f"{place}/d")
    finally:
        os.umask(old)
        stop.set()
        thread.join()
    assert modes and modes <= {0o600, 0o700}


@needs_root
def test_write_keeps_owner_mode_and_extended_attributes(place: Path) -> None:
    machine = RealMachine()
    (place / "f").write_text("old")
    os.chown(place / "f", 1, 2)
    os.chmod(place / "f", 0o4751)
    os.setxattr(place / "f", "user.note", b"kept")
    if shutil.which("setfacl"):
        subprocess.run(["setfacl", "-m", "u:daemon:rw", place / "f"], check=True)
    before = {name: os.getxattr(place / "f", name) for name in os.listxattr(place / "f")}
    assert machine.write(f"{place}/f", "new") == {"status": "ok"}
    info = os.stat(place / "f")
    assert (info.st_uid, info.st_gid) == (1, 2)
    assert info.st_mode & 0o7707 == 0o4701
    assert {name: os.getxattr(place / "f", name) for name in os.listxattr(place / "f")} == before


def test_write_leaves_other_hard_links_unchanged(place: Path) -> None:
    (place / "f").write_text("old")
    os.link(place / "f", place / "other")
    assert RealMachine().write(f"{place}/f", "new")["status"] == "ok"
    assert (place / "other").read_text() == "old"


@needs_root
def test_chown_and_chmod_refuse_a_hard_link_planted_by_another_user(place: Path) -> None:
    (place / "secret").write_text("root's")
    os.chmod(place / "secret", 0o600)
    (place / "home").mkdir()
    os.chown(place / "home", 1, 1)
    os.link(place / "secret", place / "home/f")
    for result in (
        RealMachine().chown(f"{place}/home/f", "daemon"),
        RealMachine().chmod(f"{place}/home/f", 0o644),
    ):
        assert "hard links" in result["reason"]
    # A write with new content or a new owner makes a new inode, so the other hard link stays as it is.
    assert RealMachine().write(f"{place}/home/f", "root's", 0o644, "daemon") == {"status": "ok"}
    info, given = os.stat(place / "secret"), os.stat(place / "home/f")
    assert (info.st_mode & 0o777, info.st_uid) == (0o600, 0) and (given.st_mode & 0o777, given.st_uid) == (0o644, 1)
    assert info.st_ino != given.st_ino


@pytest.mark.parametrize("kind", ["fifo", "socket"])
def test_write_refuses_to_replace_a_fifo_or_socket(place: Path, kind: str) -> None:
    """No operation hangs."""
    path = f"{place}/f"
    if kind == "fifo":
        os.mkfifo(path)
    else:
        os.mknod(path, 0o140644)
    machine = RealMachine()
    assert machine.write(path, "x")["reason"] == f"cannot write {path}: a device, pipe or socket is in the way"
    with pytest.raises(OSError, match="not a regular file"):
        machine.read(path)
    assert machine.stat(path).file_type == "other"
    assert machine.chmod(path, 0o600) == {"status": "ok"}
    assert machine.stat(path).mode == 0o600
    assert machine.remove(path) == {"status": "ok"}


def test_recursive_remove_does_not_follow_links_out_of_the_tree(place: Path) -> None:
    (place / "outside").mkdir()
    (place / "outside/f").write_text("kept")
    (place / "tree/d").mkdir(parents=True)
    (place / "tree/d/out").symlink_to(place / "outside")
    (place / "tree/d/file").symlink_to(place / "outside/f")
    assert RealMachine().remove(f"{place}/tree", recursive=True) == {"status": "ok"}
    assert (place / "outside/f").read_text() == "kept"


def test_removing_a_link_keeps_its_target(place: Path) -> None:
    (place / "d").mkdir()
    (place / "link").symlink_to("d")
    assert RealMachine().remove(f"{place}/link", recursive=True) == {"status": "ok"}
    assert (place / "d").is_dir()


def test_write_keeps_the_old_file_when_a_validator_fails(place: Path) -> None:
    (place / "f").write_text("old")
    result = RealMachine().write(f"{place}/f", "bad", validate=["/bin/sh", "-c", "echo {} is bad; exit 1"])
    assert result["reason"] == f"/bin/sh rejects the new content: {place}/f is bad"
    assert (place / "f").read_text() == "old"
    assert RealMachine().write(f"{place}/f", "good", validate=["grep", "-q", "good", "{}"]) == {"status": "ok"}


def test_write_keeps_a_change_made_during_validation(place: Path) -> None:
    """The write does not overwrite what an editor saved while the new content was being validated."""
    (place / "f").write_text("old")
    result = RealMachine().write(f"{place}/f", "new", validate=["/bin/sh", "-c", f"echo theirs > {place}/f; : {{}}"])
    assert "another program is changing it; apply again" in result["reason"]
    assert (place / "f").read_text() == "theirs\n"


def test_write_fails_when_its_content_never_arrived(place: Path) -> None:
    (place / "f").write_text("old")
    result = RealMachine().write(f"{place}/f", Blob("0" * 64, 9999))
    assert "has not arrived" in result["reason"]
    assert (place / "f").read_text() == "old"


def test_write_removes_temporary_files_of_an_interrupted_run(place: Path) -> None:
    half, link, made, young = (".statecfg-" + digit * 18 for digit in "0ab7")
    (place / half).write_text("half")
    (place / link).symlink_to("x")
    (place / made).mkdir()
    # Files with similar names do not belong to statecfg.
    others = [".statecfg-notes", ".statecfg-" + "0" * 17, ".statecfg-" + "0" * 19, ".statecfg-" + "A" * 18]
    for name in others:
        (place / name).write_text("somebody's own")
    time.sleep(0.02)
    facets = Facets()
    assert RealMachine(facets).listdir(str(place)) == sorted(others)
    RealMachine(facets).write(f"{place}/f", "x")
    assert sorted(os.listdir(place)) == sorted([made, "f", *others])
    (place / young).write_text("of a run under way")
    earlier = Facets()
    earlier.began -= 60
    RealMachine(earlier).write(f"{place}/f", "y")
    assert (place / young).exists()
    for name in (*others, young):
        (place / name).unlink()


def test_read_and_stat_never_open_a_device() -> None:
    """Opening a device can trigger an action."""
    opened: list[Any] = []
    sys.addaudithook(lambda event, arguments: opened.append(arguments[0]) if event == "open" else None)
    machine = RealMachine()
    with pytest.raises(OSError):
        machine.read("/dev/null")
    assert machine.stat("/dev/null").file_type == "other"
    assert "null" not in opened and "/dev/null" not in opened


# As an ordinary user

AS_USER = """
import os, sys
os.setgroups([]); os.setgid(1); os.setuid(1)
sys.path.insert(0, sys.argv[1])
from statecfg.remote.machine.planned import Planned
from statecfg.remote.machine.real import RealMachine
place = sys.argv[2]
for machine in (Planned(RealMachine()), RealMachine()):
    print([result.get("reason", "ok").split(";")[0] for result in (
        machine.write(place + "/closed/f", "x"),
        machine.mkdir(place + "/closed/d"),
        machine.symlink(place + "/closed/l", "x"),
        machine.remove(place + "/closed/there"),
        machine.remove(place + "/closed/gone"),
        machine.chmod(place + "/closed/there", 0o600),
        machine.chown(place + "/mine/f", "root"),
        machine.chown(place + "/mine/f", None, "root"),
        machine.chmod(place + "/mine/unreadable", 0o200),
        machine.write(place + "/mine/unreadable", "new"),
        machine.write(place + "/mine/f", "x", owner="root"),
    )])
print(open(place + "/mine/f").read(), oct(os.stat(place + "/mine/unreadable").st_mode & 0o777))
"""


@needs_root
def test_an_ordinary_user_gets_the_permission_errors_that_were_planned() -> None:
    """The plan predicts the permission errors. An owner can change a file even without read permission."""
    import tempfile

    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        os.chmod(place, 0o755)
        for name in ("closed", "mine"):
            (place / name).mkdir()
        (place / "closed/there").write_text("x")
        (place / "mine/f").write_text("old")
        (place / "mine/unreadable").write_text("old")
        os.chmod(place / "mine/unreadable", 0)
        for path in (place / "mine", place / "mine/f", place / "mine/unreadable"):
            os.chown(path, 1, 1)
        said = subprocess.run(
            ["/usr/bin/python3", "-c", AS_USER, REPOSITORY, made], capture_output=True, text=True, check=False
        )
        assert said.stderr == ""
        foreseen, done, left = said.stdout.splitlines()
        assert foreseen == done
        assert done.count("Permission denied") == 4 and done.count("Operation not permitted") == 4
        assert left == "old 0o200"
        assert (place / "mine/unreadable").read_text() == "new"


# On file systems that fail

ON_MOUNT = """
import sys
sys.path.insert(0, sys.argv[1])
from statecfg.remote.machine.real import RealMachine
machine, place = RealMachine(), sys.argv[2]
import os
def show(result): print(result.get("reason", "ok"))
"""
CASES = {
    "full file system": (
        "mount -t tmpfs -o size=64k tmpfs $P; echo -n old > $P/f",
        'show(machine.write(place + "/f", "x" * 100_000)); print(open(place + "/f").read(), sorted(os.listdir(place)))',
        ["cannot write {P}/f: No space left on device", "old ['f']"],
    ),
    "no free inodes": (
        "mount -t tmpfs -o nr_inodes=3 tmpfs $P; echo -n old > $P/f; : > $P/g",
        'show(machine.write(place + "/f", "new")); show(machine.mkdir(place + "/d")); print(open(place + "/f").read())',
        ["cannot write {P}/f: No space left on device", "cannot make directory {P}/d: No space left on device", "old"],
    ),
    "read-only file system": (
        "mount -t tmpfs tmpfs $P; echo -n old > $P/f; mount -o remount,ro $P",
        'show(machine.write(place + "/f", "new")); show(machine.chmod(place + "/f", 0o600)); '
        'show(machine.remove(place + "/f"))',
        [
            "cannot write {P}/f: Read-only file system; the file system is mounted read-only",
            "cannot set the mode of {P}/f: Read-only file system; the file system is mounted read-only",
            "cannot remove {P}/f: Read-only file system; the file system is mounted read-only",
        ],
    ),
    "another file system mounted in the tree": (
        "mkdir $P/d $P/from; echo kept > $P/from/f; mkdir $P/d/m; mount --bind $P/from $P/d/m",
        'show(machine.remove(place + "/d", True)); print(open(place + "/from/f").read().strip())',
        [
            "cannot remove {P}/d: Device or resource busy: a file system is mounted on {P}/d/m; unmount it first",
            "kept",
        ],
    ),
    "a file that is a mount point": (
        "echo -n old > $P/f; echo -n there > $P/g; mount --bind $P/g $P/f",
        'show(machine.write(place + "/f", "new")); print(open(place + "/f").read(), sorted(os.listdir(place)))',
        ["ok", "new ['f', 'g']"],  # it is written in place
    ),
}


@needs_root
@pytest.mark.parametrize("case", CASES)
def test_a_failing_file_system_gives_a_clear_reason(tmp_path: Path, case: str) -> None:
    """The operation fails and gives the reason, the old file stays, and no temporary file is left over."""
    prepare, body, expected = CASES[case]
    place = tmp_path.resolve()
    script = f'P={place}; {prepare.replace("$P", "$P")}; exec {sys.executable} -c "$0" {REPOSITORY} $P'
    said = subprocess.run(
        ["unshare", "-m", "--propagation", "private", "/bin/sh", "-e", "-c", script, ON_MOUNT + body],
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.stderr == ""
    assert said.stdout.splitlines() == [line.replace("{P}", str(place)) for line in expected]


@needs_root
def test_write_and_remove_report_an_immutable_file(place: Path) -> None:
    (place / "f").write_text("old")
    if subprocess.run(["chattr", "+i", place / "f"], check=False, capture_output=True).returncode:
        pytest.skip("not run on this machine: its file system has no attributes of files")
    try:
        for result in (RealMachine().write(f"{place}/f", "new"), RealMachine().remove(f"{place}/f")):
            assert "Operation not permitted; is the file immutable (lsattr)" in result["reason"]
        assert (place / "f").read_text() == "old"
    finally:
        subprocess.run(["chattr", "-i", place / "f"], check=True)


def test_file_operations_leave_no_descriptors_open(place: Path) -> None:
    machine, before = RealMachine(), len(os.listdir("/proc/self/fd"))
    machine.write(f"{place}/f", "x", backup=".b")
    machine.write(f"{place}/f", "y", 0o600, backup=".b")
    machine.write(f"{place}/f", "y", owner="nobody-we-know")
    machine.mkdir(f"{place}/a/b", parents=True)
    machine.symlink(f"{place}/l", "f")
    machine.chmod(f"{place}/l", 0o600)
    machine.remove(f"{place}/a", recursive=True)
    assert machine.read(f"{place}/l") == b"y"
    assert len(os.listdir("/proc/self/fd")) == before
    assert files.TEMPORARY not in "".join(os.listdir(place))
