"""Find and open files safely: statecfg never follows a link that another user controls."""

from __future__ import annotations

import errno
import os
import stat as st
from functools import lru_cache
from typing import List, Tuple

from statecfg.remote.graph.errors import StatecfgError
from statecfg.remote.graph.sha256 import sha256

LINKS = 40  # the kernel's limit


class UnsafePath(StatecfgError, OSError):
    """A link on the way to a file belongs to a user other than root or the running user."""


def within(path: str, directory: str) -> bool:
    """Tell whether a path is a directory or something in it, by its text alone."""
    return path == directory or path.startswith(directory + "/")


def child(directory: str, name: str) -> str:
    """Return the path of a name in a directory."""
    return directory.rstrip("/") + "/" + name


@lru_cache(maxsize=1024)
def normal(path: str) -> str:
    """Return an absolute path without `//`, `.` and `..`. A `..` removes the name before it, even if that is a link."""
    return "/" + os.path.normpath(path).lstrip("/")


def trusted(directory: os.stat_result, link: os.stat_result) -> bool:
    """Tell whether a link may be followed: it belongs to root or to us, and no other user can replace it.

    Source of the rule: systemd's CHASE_SAFE, which never follows a link from an unprivileged owner to a privileged one.
    """
    ours = (0, os.geteuid())
    if link.st_uid not in ours or directory.st_uid not in ours:
        return False
    shared = directory.st_mode & (st.S_IWGRP | st.S_IWOTH)
    return not shared or bool(directory.st_mode & st.S_ISVTX)


def open_parent(path: str, follow: bool = False) -> Tuple[int, str, str]:
    """Open the directory that holds `path`.

    :param follow: also follow `path` itself if it is a link
    :returns: a descriptor (O_PATH; the caller closes it), the last name, and the directory's path without links
    :raises UnsafePath: if another user controls a link on the way
    :raises OSError: if a directory on the way is missing or is not a directory
    """
    todo = _parts(normal(path))
    seen: List[str] = []
    links = 0
    here = _root()
    try:
        while todo:
            name = todo.pop(0)
            last = not todo
            if name == "..":
                seen = seen[:-1]
                here = _swap(here, os.open("..", _DIRECTORY, dir_fd=here))
                continue
            if last and not follow:
                return here, name, "/" + "/".join(seen)
            try:
                info = os.lstat(name, dir_fd=here)
            except FileNotFoundError:
                if last:
                    return here, name, "/" + "/".join(seen)
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), _joined(seen, name)) from None
            if st.S_ISLNK(info.st_mode):
                links += 1
                if links > LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                if not trusted(os.fstat(here), info):
                    why = "a link that another user controls is not followed"
                    raise UnsafePath(errno.ELOOP, why, _joined(seen, name))
                target = os.readlink(name, dir_fd=here)
                todo = _parts(target) + todo
                if target.startswith("/"):
                    seen = []
                    here = _swap(here, _root())
                continue
            if last:
                return here, name, "/" + "/".join(seen)
            if not st.S_ISDIR(info.st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), _joined(seen, name))
            here = _swap(here, os.open(name, _DIRECTORY, dir_fd=here))
            seen.append(name)
        return here, ".", "/" + "/".join(seen)
    except BaseException:
        os.close(here)
        raise


def open_file(path: str) -> int:
    """Open a file for reading. A pipe or device is refused, so that opening never blocks.

    :raises OSError: if it cannot be opened or is not a regular file
    """
    parent, name, _ = open_parent(path, follow=True)
    try:
        # Check the file type before opening it, because opening a device can have effects.
        if not st.S_ISREG(os.lstat(name, dir_fd=parent).st_mode):
            raise OSError(errno.EINVAL, "is not a regular file", path)
        opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    except OSError as problem:
        problem.filename = path
        raise
    finally:
        os.close(parent)
    if not st.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise OSError(errno.EINVAL, "is not a regular file", path)
    return opened


def digest_of(path: str) -> str:
    """Return the SHA-256 of a file.

    :raises OSError: if it cannot be read or is not a regular file
    """
    opened = open_file(path)
    try:
        return content_digest(opened)
    finally:
        os.close(opened)


def content_digest(opened: int) -> str:
    """Return the SHA-256 of an open file."""
    digest = sha256(size=os.fstat(opened).st_size)
    piece = os.read(opened, 1 << 18)
    while piece:
        digest.update(piece)
        piece = os.read(opened, 1 << 18)
    return digest.hexdigest()


def open_directory(path: str) -> int:
    """Open a directory to list it.

    :raises OSError: if it cannot be opened or is not a directory
    """
    parent, name, _ = open_parent(path, follow=True)
    try:
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except OSError as problem:
        problem.filename = path
        raise
    finally:
        os.close(parent)


def read_link(path: str) -> str:
    """Return the target of the link at `path`, as written.

    :raises UnsafePath: if another user controls the link
    :raises OSError: if it cannot be read
    """
    parent, name, _ = open_parent(path)
    try:
        if not trusted(os.fstat(parent), os.lstat(name, dir_fd=parent)):
            raise UnsafePath(errno.ELOOP, "a link that another user controls is not followed", path)
        return os.readlink(name, dir_fd=parent)
    finally:
        os.close(parent)


_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def _root() -> int:
    return os.open("/", _DIRECTORY)


def _swap(replaced: int, opened: int) -> int:
    os.close(replaced)
    return opened


def _parts(path: str) -> List[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _joined(seen: List[str], name: str) -> str:
    return "/" + "/".join([*seen, name])


def sync_directory(descriptor: int) -> None:
    """Make the entries of an open directory durable."""
    opened = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=descriptor)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
