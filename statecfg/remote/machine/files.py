"""Change files safely: every step is relative to an open directory, follows no link and leaves nothing half done."""

from __future__ import annotations

import errno
import os
import stat as st
from typing import Callable, List, Optional, Tuple

from statecfg.remote.graph.model import Blob
from statecfg.remote.graph.results import Result, error
from statecfg.remote.graph.sha256 import sha256
from statecfg.remote.machine import access, accounts
from statecfg.remote.machine.world import Stat

TEMPORARY = ".statecfg-"
_FILE_TYPES = {st.S_IFREG: "file", st.S_IFDIR: "directory", st.S_IFLNK: "symlink"}
_CURES = {
    errno.EPERM: "is the file immutable (lsattr), or is root needed (-b)?",
    errno.EACCES: "is root needed (-b)?",
    errno.EROFS: "the file system is mounted read-only",
    errno.EBUSY: "something is mounted there",
}
OVERTAKEN = "cannot write %s: another program is changing it; apply again"
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def stat_of(info: os.stat_result, parent: int, name: str) -> Stat:
    """Return the `lstat` of `name` in the open directory `parent` as a Stat, with names instead of numbers."""
    file_type = file_type_of(info)
    return Stat(
        file_type,
        st.S_IMODE(info.st_mode),
        accounts.user_name(info.st_uid),
        accounts.group_name(info.st_gid),
        info.st_size,
        os.readlink(name, dir_fd=parent) if file_type == "symlink" else "",
        (info.st_dev, info.st_ino, info.st_mtime_ns),
        access.read(info, f"{_through(parent)}/{name}"),
    )


def file_type_of(info: os.stat_result) -> str:
    """Return "file", "directory", "symlink" or "other"."""
    return _FILE_TYPES.get(st.S_IFMT(info.st_mode), "other")


def lstat(name: str, parent: int) -> Optional[os.stat_result]:
    """Return `lstat` of a name in an open directory, or None if there is nothing."""
    try:
        return os.lstat(name, dir_fd=parent)
    except FileNotFoundError:
        return None


def same(earlier: Optional[os.stat_result], later: Optional[os.stat_result]) -> bool:
    """Tell whether a file is unchanged between two calls of `lstat`."""
    if earlier is None or later is None:
        return earlier is later
    fields = ("st_dev", "st_ino", "st_size", "st_mtime_ns", "st_mode")
    return all(getattr(earlier, field) == getattr(later, field) for field in fields)


def temporary_name() -> str:
    """Return a new random name. Listings leave such names out, and the next run removes leftovers."""
    return TEMPORARY + os.urandom(9).hex()


def temporary(name: str) -> bool:
    """Tell whether a name has the form of `temporary_name`: the prefix and 18 hex digits."""
    digits = name[len(TEMPORARY) :]
    return name.startswith(TEMPORARY) and len(digits) == 18 and not digits.strip("0123456789abcdef")


def ids(owner: Optional[str], group: Optional[str]) -> Tuple[int, int]:
    """Return UID and GID of owner and group, -1 for None.

    :raises LookupError: if the host does not know one of them
    """
    return (
        accounts.user_id(owner) if owner is not None else -1,
        accounts.group_id(group) if group is not None else -1,
    )


def changes_hands(info: os.stat_result, owner: Optional[str]) -> bool:
    """Tell whether to write a file anew because its owner changes or is not root: others may have it open or linked.

    Without root's rights, the answer is False, because the owner cannot change then.

    :raises LookupError: if the host does not know the new owner
    """
    uid = ids(owner, None)[0]
    return os.geteuid() == 0 and (info.st_uid != 0 or uid not in (-1, info.st_uid))


def fill(name: str, parent: int, blob: Blob, finish: Callable[[int], None], proven: bool = True) -> None:
    """Create a file with this content and make it durable. No other user can read it before `finish` is called.

    See `begin` for the parameters.
    """
    opened = begin(name, parent, blob, finish, proven)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def begin(name: str, parent: int, blob: Blob, finish: Callable[[int], None], proven: bool = True) -> int:
    """Create a file with this content. It is not durable before the caller syncs it.

    :param finish: sets owner and mode of the open file
    :param proven: False if the content comes from a file that others may be writing; then it is verified
    :returns: the open file; the caller closes it
    :raises OSError: if the file cannot be written or its content differs
    """
    from statecfg.remote.machine import durable

    digest = sha256(size=blob.size)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    opened = os.open(name, flags, 0o600, dir_fd=parent)
    try:
        if proven and blob.data is None and blob.path is not None:
            durable.copy(blob.path, opened)
        else:
            for piece in blob.chunks():
                if not proven:
                    digest.update(piece)
                durable.write(opened, piece)
        if not proven and digest.hexdigest() != blob.sha256:
            raise OSError(errno.EBUSY, "another program is changing it")
        finish(opened)
    except BaseException:
        os.close(opened)
        raise
    return opened


def dress(
    opened: int,
    old_info: Optional[os.stat_result],
    mode: Optional[int],
    owner: Optional[str],
    group: Optional[str],
    parent: int,
    name: str,
) -> None:
    """Set owner, attributes and mode of a new file: the given values, or else those of the old file.

    :param opened: the new file
    :param old_info: `lstat` of the old file, None if there is none
    :param parent: the open directory with the old file `name`
    :raises OSError: if that fails, or another program has replaced the old file
    """
    info = os.fstat(opened)
    uid, gid = ids(owner, group)
    if old_info is not None:
        uid, gid = old_info.st_uid if uid < 0 else uid, old_info.st_gid if gid < 0 else gid
    if (uid, gid) not in ((-1, -1), (info.st_uid, info.st_gid)):
        os.fchown(opened, uid, gid)
    if old_info is None:
        # The directory's default access list may grant more than the given mode.
        if mode is not None and access.excess(access.read(info, _through(opened), True), mode):
            access.drop(_through(opened))
        os.fchmod(opened, 0o644 if mode is None else mode)
        return
    trusted = old_info.st_uid in (0, os.geteuid(), uid)
    was = st.S_IMODE(old_info.st_mode)
    source = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        if os.fstat(source).st_ino != old_info.st_ino:
            raise OSError(errno.EBUSY, "another program is changing it")
        entries, new_mode = access.outcome(access.read(old_info, _through(source), True), was, mode, trusted)
        access.drop(_through(opened))
        _copy_attributes(_through(source), opened, trusted, bool(entries))
    finally:
        os.close(source)
    if mode is None and (uid, gid) != (old_info.st_uid, old_info.st_gid):
        new_mode = access.kept_ids(new_mode, old_info.st_uid in (0, os.geteuid()), uid == old_info.st_uid)
    os.fchmod(opened, new_mode)


def _copy_attributes(source: str, opened: int, trusted: bool, acl: bool) -> None:
    """Copy extended attributes from the old file, if the file system has any.

    :param trusted: whether to copy also what the old file's owner may have set
    :param acl: whether to copy the access list
    """
    try:
        for attribute in os.listxattr(source):
            if attribute == access.ACCESS and not acl:
                continue
            if trusted or attribute == "security.selinux":
                os.setxattr(opened, attribute, os.getxattr(source, attribute))
    except OSError as problem:
        if problem.errno not in (errno.ENOTSUP, errno.ENODATA):
            raise


def _through(descriptor: int) -> str:
    """Return a path of an open descriptor. It always means this very file, even if it cannot be read."""
    return f"/proc/self/fd/{descriptor}"


def permit(
    parent: int,
    name: str,
    path: str,
    mode: Optional[int],
    owner: Optional[str],
    group: Optional[str],
    is_new: bool = False,
) -> Optional[Result]:
    """Set the given mode, owner and group of a path.

    :param is_new: whether the path is new; then it keeps the access list that its directory gave it
    :returns: an error if the change would not be safe, otherwise None
    :raises OSError: if the change fails
    :raises LookupError: if the host does not know the owner or group
    """
    uid, gid = ids(owner, group)
    if mode is None and (uid, gid) == (-1, -1):
        return None
    # O_PATH works for a file of ours that we cannot read, and does not open a device or pipe, which could have effects.
    opened = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        info = os.fstat(opened)
        if st.S_ISLNK(info.st_mode):
            if mode is not None:
                return error(f"cannot set the mode of {path}: it is a link")
            os.chown(name, uid, gid, dir_fd=parent, follow_symlinks=False)
            return None
        if planted(os.fstat(parent), info):
            return error(f"cannot change {path}: it has other names (hard links) that another user may have made")
        entries = () if is_new else access.read(info, _through(opened), True)
        kept, new_mode = access.outcome(
            entries, st.S_IMODE(info.st_mode), mode, info.st_uid in (0, os.geteuid(), info.st_uid if uid < 0 else uid)
        )
        ids_lost = False
        if uid not in (-1, info.st_uid) or gid not in (-1, info.st_gid):
            own = info.st_uid in (0, os.geteuid())
            access.chown(_through(opened), uid, gid, own and st.S_ISREG(info.st_mode))
            if mode is None and st.S_ISREG(info.st_mode):
                new_mode = access.kept_ids(new_mode, own, uid in (-1, info.st_uid))
                ids_lost = bool(info.st_mode & 0o6000)
        if entries and not kept:  # not earlier: a former owner could restore the list
            access.drop(_through(opened))
        if mode is not None or (entries and not kept) or ids_lost:
            os.chmod(_through(opened), new_mode)
    finally:
        os.close(opened)
    sync(parent, name, info)
    return None


def planted(directory: os.stat_result, info: os.stat_result) -> bool:
    """Tell whether a file may be a hard link to another file, created so that we change that file's owner or mode."""
    if not st.S_ISREG(info.st_mode) or info.st_nlink == 1:
        return False
    ours = (0, os.geteuid())
    shared = directory.st_mode & (st.S_IWGRP | st.S_IWOTH)
    return bool(shared) or info.st_uid not in ours or directory.st_uid not in ours


def sync(parent: int, name: str, info: os.stat_result) -> None:
    """Make mode and owner durable, if the file may be opened."""
    if file_type_of(info) not in ("file", "directory"):
        return
    try:
        opened = os.open(name, _READ, dir_fd=parent)
    except PermissionError:
        return
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def keep(parent: int, name: str, kept: str) -> None:
    """Keep the old file under another name. It is the same inode, so the copy is complete at every moment."""
    temporary = temporary_name()
    os.link(name, temporary, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
    try:
        os.rename(temporary, kept, src_dir_fd=parent, dst_dir_fd=parent)
    finally:
        # It still exists if the renaming failed, or if both names already were the same file.
        unlink(temporary, parent)


def unlink(name: str, parent: int) -> None:
    """Remove a temporary name. Ignore a failure, because an earlier failure is being reported."""
    try:
        os.unlink(name, dir_fd=parent)
    except OSError:
        return


def sweep(parent: int, before: float) -> None:
    """Remove temporary files that interrupted runs left in a directory.

    :param before: epoch seconds; younger files may belong to a current run
    """
    opened = os.open(".", _DIRECTORY, dir_fd=parent)
    try:
        names = [name for name in os.listdir(opened) if temporary(name)]
        for name in names:
            info = lstat(name, opened)
            if info is None or file_type_of(info) not in ("file", "symlink") or info.st_ctime >= before:
                continue
            if os.geteuid() in (0, info.st_uid):
                unlink(name, opened)
    finally:
        os.close(opened)


def remove(name: str, parent: int, recursive: bool) -> None:
    """Remove a name in an open directory, without following links or entering other mounts.

    :raises OSError: if that fails
    """
    info = os.lstat(name, dir_fd=parent)
    if not st.S_ISDIR(info.st_mode):
        os.unlink(name, dir_fd=parent)
        return
    if recursive:
        _empty(name, parent)
    os.rmdir(name, dir_fd=parent)


def _empty(name: str, parent: int) -> None:
    """Remove everything in a directory of any depth, with two open descriptors at a time and without recursion.

    The way back up is `..`. It must be the directory above, because others may be moving directories.

    :raises OSError: if that fails
    """
    mount = _mount(parent)
    here = _enter(name, parent, mount)
    levels: List[Tuple[str, Tuple[int, int], List[str]]] = []  # above: name below, identity, remaining names
    try:
        names = os.listdir(here)
        while names or levels:
            if not names:
                inside, identity, names = levels.pop()
                above = os.open("..", _DIRECTORY, dir_fd=here)
                os.close(here)
                here = above
                if _identity(here) != identity:
                    raise OSError(errno.EBUSY, "another program is moving its content", inside)
                os.rmdir(inside, dir_fd=here)
                continue
            inside = names.pop()
            info = lstat(inside, here)
            if info is not None and not st.S_ISDIR(info.st_mode):
                os.unlink(inside, dir_fd=here)
            elif info is not None:
                below = _enter(inside, here, mount)
                levels.append((inside, _identity(here), names))
                os.close(here)
                here = below
                names = os.listdir(here)
    finally:
        os.close(here)


def _enter(name: str, parent: int, mount: str) -> int:
    """Open a directory that will be emptied.

    :raises OSError: if it is a link, or another file system is mounted there
    """
    opened = os.open(name, _DIRECTORY, dir_fd=parent)
    if _mount(opened) != mount:
        os.close(opened)
        raise OSError(errno.EBUSY, "another file system is mounted there", name)
    return opened


def _identity(opened: int) -> Tuple[int, int]:
    info = os.fstat(opened)
    return info.st_dev, info.st_ino


def _mount(descriptor: int) -> str:
    """Return the mount of an open directory. The device alone would not reveal a bind mount."""
    with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as stream:
        for line in stream:
            if line.startswith("mnt_id:"):
                return line
    return str(os.fstat(descriptor).st_dev)


def failed(what: str, path: str, problem: Exception) -> Result:
    """Return the error result of a failed call, with the system's message and a remedy if it lacks one."""
    if not isinstance(problem, OSError):
        return error(f"cannot {what} {path}: {problem}")
    named = str(problem.filename or "")
    where = f" ({named})" if named.startswith("/") and named != path and not named.startswith("/proc/self/") else ""
    cure = _CURES.get(problem.errno or 0, "") if "; " not in str(problem.strerror) else ""
    return error(f"cannot {what} {path}: {problem.strerror}{where}{'; ' + cure if cure else ''}")
