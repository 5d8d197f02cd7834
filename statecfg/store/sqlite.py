"""The store as a SQLite file: check it before opening, create it atomically, and copy it while it is in use."""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from statecfg.store.errors import StoreError

if TYPE_CHECKING:
    import sqlalchemy

    from statecfg.store.address import StoreAddress

BUSY = 10.0  # seconds to wait for another writer.
_HEADER = b"SQLite format 3\0"
_PRAGMAS = ("journal_mode=DELETE", "synchronous=EXTRA", "foreign_keys=ON", "trusted_schema=OFF")
# File systems with locks or caches on another machine. Source: https://www.sqlite.org/faq.html, question 5.
NETWORK = re.compile(
    r"nfs4?|cifs|smb3|smbfs|9p|virtiofs|ceph|afs|lustre|gfs2|ocfs2|glusterfs|beegfs|gpfs|orangefs|coda|ncpfs|"
    r"fuse\.(sshfs|glusterfs|s3fs|rclone|ceph|davfs)"
)
RESTORE = (
    "restore a backup (see `statecfg store backup`), or move the file away. Then the next command creates a new store: "
    "it gets each host at its next contact, but no tags, bindings, hook objects or history"
)
_RIGHTS = "check the permissions of the file and its directory"
_MEANING = {
    "SQLITE_BUSY": ("another program has locked it for {wait:.0f} s", "wait until that program is done, or end it"),
    "SQLITE_LOCKED": ("another program has locked it for {wait:.0f} s", "wait until that program is done, or end it"),
    "SQLITE_CORRUPT": ("it is damaged", RESTORE),
    "SQLITE_NOTADB": ("it is damaged, or not a SQLite database", RESTORE),
    "SQLITE_FULL": ("the disk is full", "free some space; the last change was not stored"),
    "SQLITE_READONLY": ("it can't be written", _RIGHTS),
    "SQLITE_CANTOPEN": ("it can't be opened", _RIGHTS),
    "SQLITE_IOERR": ("reading or writing failed", "check the disk; the last change was not stored"),
}


class HeldConnection(sqlite3.Connection):
    """A connection that stays open when SQLAlchemy, which borrows it, closes it.

    :ivar full: SQLAlchemy's connection, which has borrowed this one; None if no statement needed it so far
    """

    full: sqlalchemy.Connection | None = None

    def close(self) -> None:
        """Do nothing; see `end`."""

    def end(self) -> None:
        """Close the connection."""
        try:
            if self.full is not None:
                self.full.close()
        finally:
            super().close()


def connect(path: Path) -> HeldConnection:
    """Open an existing file with statecfg's settings.

    :raises sqlite3.Error: the file can't be opened
    """
    quoted = str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    connection = sqlite3.connect(
        *(f"file:{quoted}?mode=rw", BUSY),
        isolation_level=None,
        check_same_thread=False,
        uri=True,
        factory=HeldConnection,
    )
    try:
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}").close()
    except BaseException:
        connection.end()
        raise
    return connection


def explain(problem: sqlite3.Error, label: str) -> StoreError:
    """Return the StoreError that explains a failure of the file."""
    name = getattr(problem, "sqlite_errorname", "")
    for start, (words, help) in _MEANING.items():
        if name.startswith(start):
            return StoreError(f"{label}: {words.format(wait=BUSY)} ({problem})", help)
    if "no such table" in str(problem):
        return StoreError(f"{label}: it is a SQLite database, but not a store of statecfg ({problem})", RESTORE)
    return StoreError(f"{label}: {problem}")


def prepare(address: StoreAddress, fill: Callable[[Path], None]) -> None:
    """Check the file before it is opened. Create it if it does not exist.

    :param address: address of the file
    :param fill: writes a new store into an empty file
    :raises StoreError: the file is damaged, can't be written, or is on a network file system; it remains unchanged
    """
    path = address.path
    assert path is not None
    if address.private:
        try:
            os.makedirs(path.parent, 0o700, exist_ok=True)
        except OSError as problem:
            detail = f"{path.parent}: it can't be created: {problem.strerror}"
            raise StoreError(detail, "choose another --store") from None
    if not path.parent.is_dir():
        raise StoreError(f"{path}: directory {path.parent} does not exist", "create it, or correct the store's address")
    _refuse_network(path)
    try:
        info = os.stat(path)
    except FileNotFoundError:
        _make(path, fill)
        return
    except OSError as problem:
        raise StoreError(f"{path}: {problem.strerror}", "check the permissions of the directories above it") from None
    if info.st_nlink > 1:  # the process that created it may have been killed before the last step
        _sweep(path)
    _look(path, info)


def _look(path: Path, info: os.stat_result) -> None:
    if not stat.S_ISREG(info.st_mode):
        raise StoreError(f"{path}: it is not a file", "give the path of a file, or of a new file")
    if info.st_mode & stat.S_IWOTH:
        mode = stat.S_IMODE(info.st_mode)
        raise StoreError(
            f"{path}: every user can change it (mode {mode:04o})", f"check its content, then: chmod o-w {path}"
        )
    if not os.access(path, os.R_OK | os.W_OK) or not os.access(path.parent, os.W_OK | os.X_OK):
        raise StoreError(f"{path}: you may not write to it, or not to its directory", _RIGHTS)
    try:
        with path.open("rb") as stream:
            header = stream.read(len(_HEADER))
    except OSError as problem:
        raise StoreError(f"{path}: it can't be read: {problem.strerror}", RESTORE) from None
    if header != _HEADER:
        what = "it is not a SQLite database" if header else "it is empty"
        raise StoreError(f"{path}: {what}", RESTORE)


def _refuse_network(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):  # this machine has no mountinfo
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace", newline="\n") as mounts:
            type = file_system(os.stat(path.parent).st_dev, mounts)
        if NETWORK.fullmatch(type):
            raise StoreError(
                f"{path}: it is on a network file system ({type}), where SQLite's locks are not reliable",
                "use a local disk; to share a store, use PostgreSQL",
            )


def file_system(device: int, mounts: Iterable[str]) -> str:
    """Return the type of the file system with a device number; "" if no mount has that number.

    :param device: `st_dev` of a directory in the file system
    :param mounts: the lines of /proc/self/mountinfo. Source: proc_pid_mountinfo(5)
    """
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in mounts:
        left, _, right = line.partition(" - ")
        if left.split()[2:3] == [number]:
            return right.split()[0]
    return ""


def _make(path: Path, fill: Callable[[Path], None]) -> None:
    """Create the store under a temporary name, then link it in one step. A crash leaves no store or a complete one."""
    try:
        _sweep(path)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f"{_temporary_prefix(path)}{os.getpid()}-")  # mode 0600
        os.close(handle)
        try:
            fill(Path(name))
            with contextlib.suppress(FileExistsError):  # another process was faster: use its store
                os.link(name, path)
        finally:
            os.unlink(name)
        _sync(path.parent)
    except OSError as problem:
        detail = f"{path}: it can't be created: {problem.strerror}"
        raise StoreError(detail, "check the permissions of the directory, and the free space on the disk") from None


def _temporary_prefix(path: Path) -> str:
    """Return the start of the temporary names of new stores; the process id follows."""
    return f".{path.name}-new-"


def _sweep(path: Path) -> None:
    """Delete the temporary files of processes that were killed while they created the store."""
    start = _temporary_prefix(path)
    for name in os.listdir(path.parent):
        pid = name.removeprefix(start).partition("-")[0] if name.startswith(start) else ""
        if pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
            with contextlib.suppress(FileNotFoundError):  # another process deleted it
                os.unlink(path.parent / name)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def check(path: Path) -> list[str]:
    """Return SQLite's messages about damage in the file; [] if there is none.

    :raises sqlite3.Error: the file can't be checked
    """
    connection = connect(path)
    try:
        messages = [str(row[0]) for row in connection.execute("PRAGMA integrity_check")]
        orphans = connection.execute("PRAGMA foreign_key_check").fetchall()
    finally:
        connection.end()
    messages = [message for message in messages if message != "ok"]
    return messages + [f"row {row[1]} of {row[0]} refers to a row that does not exist" for row in orphans]


def backup(path: Path, target: Path) -> None:
    """Copy the store into a file while other processes may write to it. The copy is complete or does not exist.

    :raises sqlite3.Error: the store can't be read, or the copy can't be written
    :raises OSError: the copy can't be written
    """
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
    os.close(handle)
    try:
        source = connect(path)
        try:
            with contextlib.closing(sqlite3.connect(name)) as copy:
                # Hold a read lock, so that no writer makes the copy restart. Writers wait until the copy is finished.
                source.execute("BEGIN")
                source.execute("SELECT count(*) FROM sqlite_schema").close()
                source.backup(copy)
        finally:
            source.end()
        handle = os.open(name, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
    _sync(target.parent)
