"""Cuts the power of a host during applies, and checks what the disk then contains; `script/soak power` does it often.

The managed files of the host and its state directory are on a file system in an image, mounted as a loop device. The
image is a file on another file system, which can copy a file in one step (a reflink). A copy that is taken during a run
contains what the kernel had written to the device by then, so it is what a power cut would leave.
"""

from __future__ import annotations

import collections
import fcntl
import os
import random
import shutil
import stat
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from statecfg.remote.graph.names import ActionStatus, Outcome
from statecfg.remote.ledger import journal, snapshot
from statecfg.remote.ledger.ledger import Ledger
from statecfg.resources import directory, file, line_in_file, symlink
from statecfg.run import fleet
from tests.host.run import points, rig
from tests.lab import Host, Unavailable, processes

FICLONE = 0x40049409  # the ioctl that copies a file in one step
STATE, PLACE = "/var/lib/statecfg", "/srv/power"
DISKS, LIVE = "/mnt/disks", "/mnt/live"  # the file system with the images, and that in the image
# Without the kernel's own repair of files that were renamed without fsync, and with the latest possible writes.
MOUNT = {"ext4": "loop,noauto_da_alloc,commit=300", "xfs": "loop,nouuid"}
MAKE = {"ext4": ["mkfs.ext4", "-q", "-F", "-E", "nodiscard"], "xfs": ["mkfs.xfs", "-q", "-f", "-K"]}
SIZE = {"ext4": 64 << 20, "xfs": 320 << 20}  # bytes of the sparse image; mkfs.xfs refuses less than 300 MB
PROGRAMS = {"mkfs.ext4": "e2fsprogs", "mkfs.xfs": "xfsprogs", "strace": "strace"}
SMALL, ODD = 24, 4  # number of files written in batches, and of files that only odd versions have
VERSIONS = (
    0,
    1,
    1,
    2,
    3,
    3,
    4,
    5,
    5,
)  # run → version of the definition; a run with the version of the one before is idle
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
# The executor waits a moment after each of these calls, so that copies are taken there.
CALLS = "fsync,fdatasync,rename,renameat,unlink,unlinkat"
SLOW = f"-o /dev/null --seccomp-bpf -e trace={CALLS} -e inject={CALLS}:delay_exit=2000"
UNSYNCED = SLOW.replace("fsync,f", "f") + " -e trace=fsync -e inject=fsync:retval=0"  # fsync does nothing

Entry = tuple[Any, ...] | None  # type, mode, and content of a path; None if nothing is there
Tree = dict[str, Entry]


def text(version: int, number: int) -> bytes:
    """Return the content of a small file."""
    return f"version {version} of file {number}\n".encode() * (1 + 37 * number)


def tree(version: int) -> Tree:
    """Return what a version of the definition makes of the managed directory."""
    if version == 0:
        odd: Tree = dict.fromkeys([f"odd{n}" for n in range(ODD)])
        return {**dict.fromkeys(["", "big", "kept", "kept~", "link", "line", *(f"f{n}" for n in range(SMALL))]), **odd}
    mode = 0o640 if version % 2 else 0o604
    return {
        "": ("directory", 0o755),
        **{f"f{n}": ("file", mode, text(version, n)) for n in range(SMALL)},
        **{f"odd{n}": ("file", mode, text(version, n)) if version % 2 else None for n in range(ODD)},
        "big": ("file", mode, text(version, 300)),
        "kept": ("file", mode, text(version, 1)),
        "kept~": ("file", 0o604 if version % 2 else 0o640, text(version - 1, 1)) if version > 1 else None,
        "link": ("link", f"version{version}"),
        "line": ("file", 0o644, b"version=%d\n" % version),
    }


def definition(version: int) -> rig.Definition:
    """Define a version: small files, a large one, one with a backup, a link, and a line in a file."""
    wanted = tree(version)
    folder = directory(PLACE + "/d", mode="0755")
    nodes = [folder]
    for name, entry in wanted.items():
        path = f"{PLACE}/d/{name}"
        if name == "link":
            nodes.append(symlink(path, target=f"version{version}", requires=[folder]))
        elif name == "line":
            line, match = f"version={version}", "^version="
            nodes.append(line_in_file(path, line=line, match=match, create=True, mode="0644", requires=[folder]))
        elif name.startswith("odd") and entry is None:
            nodes.append(file(path, absent=True, requires=[folder]))
        elif name not in ("", "kept~"):
            assert entry
            backup = "~" if name == "kept" else None
            content = entry[2].decode()
            nodes.append(file(path, content=content, mode=f"{entry[1]:04o}", backup=backup, requires=[folder]))
    return rig.define(*nodes)


def found(path: Path) -> Entry:
    """Return what is at a path."""
    try:
        info = path.lstat()
    except FileNotFoundError:
        return None
    mode = stat.S_IMODE(info.st_mode)
    if stat.S_ISLNK(info.st_mode):
        return "link", os.readlink(path)
    return ("directory", mode) if stat.S_ISDIR(info.st_mode) else ("file", mode, path.read_bytes())


@dataclass
class Copy:
    """A copy of the image.

    :ivar low: the last run that had been reported as successful when the copy began
    :ivar high: the last run that had begun when the copy was complete
    """

    name: str
    low: int
    high: int


@dataclass
class Disk:
    """The disk of a host. Its runs are numbered from 1."""

    host: Host
    kind: str
    copies: list[Copy] = field(default_factory=list)
    begun: int = 0
    reported: int = 0

    def nsenter(self, *argv: str) -> None:
        """Run a program of this machine with the mounts of the host. In paths, `{}` is the root of the host."""
        root = str(self.host.home / "root")
        command = ["nsenter", "--target", str(self.host.pid), "-m", "--", *(word.replace("{}", root) for word in argv)]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PATH": PATH})
        if done.returncode:
            raise RuntimeError(f"{argv}: {done.stderr}")

    def prepare(self) -> None:
        """Make the file systems and mount them."""
        missing = sorted({package for program, package in PROGRAMS.items() if not shutil.which(program, path=PATH)})
        if missing:
            raise Unavailable(f"Debian packages are missing: {' '.join(missing)}")
        for folder in (DISKS, LIVE, STATE, PLACE):
            self.host.path(folder).mkdir(parents=True, mode=0o700, exist_ok=True)
        _sparse(self.host.path("/mnt/carrier"), 4 << 30)
        self.nsenter("mkfs.xfs", "-q", "-f", "-K", "-m", "reflink=1", "{}/mnt/carrier")
        try:
            self.nsenter("mount", "-o", "loop", "{}/mnt/carrier", "{}" + DISKS)
        except RuntimeError as problem:
            raise Unavailable(f"this machine can't mount XFS in an image: {problem}") from None
        _sparse(self.host.path(f"{DISKS}/live"), SIZE[self.kind])
        self.nsenter(*MAKE[self.kind], f"{{}}{DISKS}/live")
        self.mount("live")
        # A ledger belongs to a machine, and the checks read it on this one.
        if os.path.exists("/etc/machine-id"):
            self.host.write("/etc/machine-id", Path("/etc/machine-id").read_text())

    def mount(self, image: str) -> None:
        """Mount an image as the state directory and the directory of the managed files."""
        self.nsenter("mount", "-o", MOUNT[self.kind], f"{{}}{DISKS}/{image}", "{}" + LIVE)
        for path in (STATE, PLACE):
            part = self.host.path(LIVE) / Path(path).name
            part.mkdir(exist_ok=True, mode=0o700)
            self.nsenter("mount", "--bind", f"{{}}{LIVE}/{part.name}", "{}" + path)

    def unmount(self) -> None:
        """Undo `mount`, when the executor has ended."""
        processes.wait_until(lambda: not rig.everything_ours(self.host), 30, "the executor to end")
        for path in (STATE, PLACE, LIVE):
            processes.wait_until(partial(self._unmounted, path), 30, f"the end of all use of {path}")

    def _unmounted(self, path: str) -> bool:
        """Unmount a path; return False if the kernel has not closed the files of an ended process yet."""
        try:
            self.nsenter("umount", "{}" + path)
        except RuntimeError as problem:
            if "target is busy" not in str(problem):
                raise
            return False
        return True

    def discard(self) -> None:
        """Delete the file systems. The disk must not be mounted."""
        self.nsenter("umount", "{}" + DISKS)
        self.host.path("/mnt/carrier").unlink()

    @contextmanager
    def after_the_cut(self, copy: Copy) -> Iterator[None]:
        """Mount a copy in the place of the disk, which must not be mounted. Delete the copy afterwards."""
        self.mount(copy.name)
        try:
            yield
        finally:
            self.unmount()
            self.host.path(f"{DISKS}/{copy.name}").unlink()

    def copy(self) -> Copy:
        """Copy the image now."""
        low, name = self.reported, f"copy{len(self.copies)}"
        disks = self.host.path(DISKS)
        with open(disks / "live", "rb") as source, open(disks / name, "wb") as target:
            fcntl.ioctl(target, FICLONE, source.fileno())
        self.copies.append(Copy(name, low, self.begun))
        return self.copies[-1]

    @contextmanager
    def copying(self) -> Iterator[threading.Event]:
        """Copy the image all the time, as soon as the yielded event is set."""
        begin, ended, failures = threading.Event(), threading.Event(), list[BaseException]()
        choose = random.Random(self.begun)

        def take() -> None:
            begin.wait()
            try:
                while not ended.wait(choose.uniform(0, 0.01)):
                    self.copy()
            except BaseException as problem:
                failures.append(problem)

        thread = threading.Thread(target=take)
        thread.start()
        try:
            yield begin
        finally:
            ended.set()
            begin.set()
            thread.join()
        if failures:
            raise failures[0]

    def run(self, options: str = SLOW) -> None:
        """Do the next run, copy the image from the plan on, and at the end.

        :param options: for strace, which runs the executor
        """
        self.begun += 1
        wanted, inventory = definition(VERSIONS[self.begun]), points.python(self.host, options)
        with self.copying() as begin:

            def listen(event: fleet.Event) -> None:
                if event.name == "planned":
                    begin.set()

            done = rig.run(self.host, wanted, inventory=inventory, run=run_id(self.begun), listen=listen)
        assert done.host()["status"] == "ok", done.host()
        assert ("changed" in done.outcomes().values()) == (VERSIONS[self.begun] != VERSIONS[self.begun - 1])
        self.reported = self.begun
        self.copy()


def run_id(number: int) -> str:
    """Return the id of a run."""
    return f"power{number}"


def _sparse(path: Path, size: int) -> None:
    with open(path, "wb") as image:
        image.truncate(size)


def unlike(host: Host, low: int, high: int) -> dict[str, str]:
    """Return the paths that are as in none of the versions from `low` to `high`, and what is wrong with each."""
    wrong = {}
    allowed = [tree(version) for version in range(low, high + 1)]
    for name in tree(0):
        now = found(host.path(f"{PLACE}/d/{name}"))
        if all(now != one[name] for one in allowed):
            empty = now is not None and now[0] == "file" and not now[2]
            wrong[name] = "empty" if empty else f"neither old nor new: {now!r:.120}"
    return wrong


def check(disk: Disk, copy: Copy) -> None:
    """Check what is on a mounted copy: the files, the ledger, and that both match."""
    host, state = disk.host, str(disk.host.path(STATE))
    low, high = VERSIONS[copy.low], VERSIONS[copy.high]
    wrong = unlike(host, low, high)
    assert not wrong, wrong
    front = snapshot.read(state, rig.PLAYBOOK, True)
    if not os.path.exists(f"{state}/ledger.db"):
        assert copy.low == 0, "the ledger is lost"
        return
    # SQLite follows the link in this path to the files of this machine.
    copied = disk.host.home / "state"
    shutil.copytree(state, copied)
    ledger = Ledger(str(copied), reading=True)
    try:
        query = ledger.database.execute
        assert query("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert not query("PRAGMA foreign_key_check").fetchall()
        statuses = dict(query("SELECT id, status FROM run").fetchall())
        lost = [number for number in range(1, copy.low + 1) if statuses.get(run_id(number)) != "ok"]
        assert not lost, f"the ledger lacks runs that were reported: {lost} not in {statuses}"
        if front is not None:
            both = front.resources(), ledger.resources(rig.PLAYBOOK)
            assert both[0].keys() == both[1].keys()
            assert all(both[0][name].to_json() == both[1][name].to_json() for name in both[0])
        done = query("SELECT run, node FROM outcome WHERE outcome = ?", (Outcome.CHANGED,)).fetchall()
    finally:
        ledger.close()
        shutil.rmtree(copied)
    known = "".join(node for run, node in done if run == run_id(copy.high))
    for run, account in journal.interrupted_runs(state):
        done += [(run, node) for node, _, status, _ in account.actions if status == ActionStatus.OK]
        known += Path(state, "runs", f"{run}.jsonl").read_text()
    for run, node in done:
        name = node.rpartition("/d")[2].strip("/").partition(":")[0]
        now = found(host.path(f"{PLACE}/d/{name}"))
        later = [tree(number)[name] for number in range(VERSIONS[int(run.removeprefix("power"))], high + 1)]
        assert now in later, f"{run} has recorded {node} as done, but the disk has {now!r:.120}"
    for name, before in tree(low).items():
        if found(host.path(f"{PLACE}/d/{name}")) != before:
            assert f"/d/{name}".rstrip("/~") in known, f"{name} has changed, but neither ledger nor journal knows why"


def recover(disk: Disk, copy: Copy) -> None:
    """Apply the definition on a mounted copy, twice."""
    version = VERSIONS[copy.high]
    first, second = (rig.run(disk.host, definition(version)) for _ in range(2))
    assert first.host()["status"] == "ok", first.host()
    wrong = unlike(disk.host, version, version)
    assert not wrong, wrong
    assert set(second.outcomes().values()) == {"unchanged"}
    assert not rig.litter(disk.host, PLACE)


def cut(disk: Disk, runs: int, count: int, recovered: int, seed: int) -> collections.Counter[str]:
    """Do runs on a new disk. Check `count` copies of it, as many of each run, and recover some of them.

    The disk is not mounted afterwards.
    """
    disk.prepare()
    for _ in range(runs):
        disk.run()
    disk.unmount()
    choose, seen = random.Random(seed), collections.Counter[str]()
    chosen: list[Copy] = []
    for number in range(1, runs + 1):
        those = [copy for copy in disk.copies if copy.high == number]
        wanted = (count * number) // runs - (count * (number - 1)) // runs
        chosen += choose.sample(those, min(wanted, len(those)))
    to_recover = {copy.name for copy in choose.sample(chosen, min(recovered, len(chosen)))}
    for copy in chosen:
        try:
            with disk.after_the_cut(copy):
                check(disk, copy)
                old, new = (bool(unlike(disk.host, VERSIONS[run], VERSIONS[run])) for run in (copy.low, copy.high))
                when = "during changes" if old and new else "after changes" if old else "without changes"
                seen[f"{disk.kind}: power cuts {when}"] += 1
                if copy.name in to_recover:
                    recover(disk, copy)
                    seen[f"{disk.kind}: recovered"] += 1
        except BaseException as problem:
            problem.add_note(f"{disk.kind}, seed {seed}, {copy}")
            raise
    return seen


def without_fsync(disk: Disk) -> dict[str, str]:
    """Do the next run with an executor whose fsync does nothing; return what is wrong after one of the power cuts.

    If nothing is wrong, do the following runs, too: another process of this machine may have called sync(2) meanwhile.
    """
    while disk.begun < len(VERSIONS) - 2:
        disk.mount("live")
        first = len(disk.copies)
        disk.run(UNSYNCED)
        disk.unmount()
        for copy in reversed(disk.copies[first:-1]):
            with disk.after_the_cut(copy):
                wrong = unlike(disk.host, VERSIONS[copy.low], VERSIONS[copy.high])
            if wrong:
                return wrong
    return {}


def renamed_without_fsync(disk: Disk) -> dict[str, str]:
    """Replace files without fsync, sync another file, and cut the power; return what is wrong with them then."""
    disk.mount("live")
    before, after = VERSIONS[disk.begun], VERSIONS[disk.begun] + 1
    folder = disk.host.path(f"{PLACE}/d")
    for name, entry in tree(after).items():
        if name.startswith("f") and entry:
            trial = folder / f".{name}"
            trial.write_bytes(entry[2])
            trial.chmod(entry[1])
            trial.rename(folder / name)
    with open(folder / "other", "wb") as stream:
        stream.write(b"x")
        os.fsync(stream.fileno())  # this makes the new names durable, too
    copy = disk.copy()
    disk.unmount()
    with disk.after_the_cut(copy):
        return unlike(disk.host, before, after)
