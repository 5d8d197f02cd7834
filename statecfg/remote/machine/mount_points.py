"""Mount points: the kernel gives them no other name and removes none, so a plan must know them."""

from __future__ import annotations

import errno
import os
import re
import stat as st
from typing import Any, Dict, Mapping

from statecfg.remote.machine import files

LARGEST = 1 << 20  # bytes of a former content that a failed write restores


def points() -> Dict[str, bool]:
    """Return mount point → whether it is mounted read-only. Source: proc_pid_mountinfo(5)."""
    found: Dict[str, bool] = {}
    try:
        # The kernel escapes line feeds in paths, but no other end of a line.
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape", newline="\n") as stream:
            for line in stream:
                first, _, second = line.partition(" - ")
                fields, last = first.split(" "), second.split()
                options = fields[5].split(",") + (last[2].split(",") if len(last) > 2 else [])
                found[plain(fields[4])] = "ro" in options
    except OSError:
        return {}
    return found


def plain(text: str) -> str:
    """Return a field with its octal escapes replaced, such as ``\\040`` for a blank."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text) if "\\" in text else text


def of(machine: Any) -> Mapping[str, bool]:
    """Return the mount points of a planned machine, with those of planned mounts."""
    if machine.mounts is None:
        machine.mounts = machine.base.mount_points()
    known: Mapping[str, bool] = machine.mounts
    planned = machine.facets.get("mount")
    if not planned:
        return known
    merged = dict(known)
    for path, (fields, _) in planned.items():
        merged.pop(path, None)
        if fields is not None:
            merged[path] = False
    return merged


def refusal(machine: Any, path: str, write: bool = False, recursive: bool = False) -> str:
    """Return the error of the kernel if a planned machine could not create, replace or remove a path, otherwise "".

    :param write: new content is written, which a mounted file takes
    :param recursive: everything in a directory is removed
    """
    mounts: Mapping[str, bool] = machine.mount_points()
    if path in mounts and not write:
        return f"Device or resource busy: {path} is a mount point; unmount it first"
    inside = below(mounts, path) if recursive else ""
    if inside:
        return busy(inside)
    holder = path if write else os.path.dirname(path)
    while holder not in mounts and holder != "/":
        holder = os.path.dirname(holder)
    if mounts.get(holder) and not machine.causes:
        return f"Read-only file system: {holder} is mounted read-only"
    return ""


def below(mounts: Mapping[str, bool], path: str) -> str:
    """Return a mount point inside a directory, "" if there is none."""
    start = path.rstrip("/") + "/"
    return min((point for point in mounts if point.startswith(start)), default="")


def busy(point: str) -> str:
    """Return the reason why a directory above a mount point can't be removed."""
    return f"Device or resource busy: a file system is mounted on {point}; unmount it first"


def remove(name: str, parent: int, recursive: bool) -> None:
    """Remove a name in an open directory, unless something is mounted in it: then the removal would end halfway.

    :raises OSError: if that fails
    """
    if recursive:
        path = os.readlink(f"/proc/self/fd/{parent}").rstrip("/") + "/" + name
        inside = below(points(), path)
        if inside:
            raise OSError(errno.EBUSY, busy(inside))
    files.remove(name, parent, recursive)


def keep(parent: int, name: str, kept: str) -> None:
    """Keep the old file under another name; copy a mounted file, because it can't have a second name.

    :raises OSError: if that fails
    """
    try:
        files.keep(parent, name, kept)
        return
    except OSError as problem:
        if problem.errno != errno.EXDEV:
            raise
    temporary = files.temporary_name()
    source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=parent)
    try:
        target = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=parent)
        try:
            _overwrite(source, target)
        finally:
            os.close(target)
        os.rename(temporary, kept, src_dir_fd=parent, dst_dir_fd=parent)
    except OSError:
        files.unlink(temporary, parent)
        raise
    finally:
        os.close(source)


def install(temporary: str, name: str, parent: int) -> None:
    """Give a complete file its name in a directory. If a file is mounted there, write into that file.

    :raises OSError: if that fails
    """
    try:
        os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        return
    except OSError as problem:
        if problem.errno != errno.EBUSY:
            raise
    source = os.open(temporary, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=parent)
    try:
        target = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=parent)
        try:
            _overwrite(source, target)
        finally:
            os.close(target)
    finally:
        os.close(source)
    os.unlink(temporary, dir_fd=parent)


def _overwrite(source: int, target: int) -> None:
    """Copy content, owner and mode of a file into another one; restore a small former content if that fails."""
    info, wanted = os.fstat(target), os.fstat(source)
    if not st.S_ISREG(info.st_mode):
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
    former = os.pread(target, LARGEST, 0) if info.st_size <= LARGEST else None
    try:
        _fill(target, source)
    except OSError:
        if former is not None:
            os.ftruncate(target, 0)
            os.pwrite(target, former, 0)
        raise
    if (info.st_uid, info.st_gid) != (wanted.st_uid, wanted.st_gid):
        os.fchown(target, wanted.st_uid, wanted.st_gid)
    os.fchmod(target, st.S_IMODE(wanted.st_mode))
    os.fsync(target)


def _fill(target: int, source: int) -> None:
    """Write the content of a file into another one."""
    at = 0
    while True:
        piece = os.pread(source, 1 << 18, at)
        if not piece:
            break
        while piece:
            written = os.pwrite(target, piece, at)
            at, piece = at + written, piece[written:]
    os.ftruncate(target, at)
