"""POSIX access lists: who may do more with a file or directory than its mode allows."""

from __future__ import annotations

import errno
import os
import stat as st
from typing import List, Optional, Sequence, Tuple

from statecfg.remote.machine import accounts
from statecfg.remote.machine.world import AclEntry, Stat

ACCESS = "system.posix_acl_access"
CAPABILITIES = "security.capability"
DEFAULT = "system.posix_acl_default"
# Kernel constants for entries that a mode does not have, and for the owning group's (linux/posix_acl.h).
_USER, _OWNING_GROUP, _GROUP = 0x02, 0x04, 0x08


def read(info: os.stat_result, path: str, follow: bool = False) -> Tuple[AclEntry, ...]:
    """Return the access list of a file or directory; empty if it has only the entries of the mode.

    :param info: its `lstat`
    :param path: a path that leads to it
    :param follow: whether to follow the last part of the path if it is a link, such as an entry of `/proc/self/fd`
    """
    entries: List[AclEntry] = []
    attributes = (ACCESS, DEFAULT) if st.S_ISDIR(info.st_mode) else (ACCESS,) if st.S_ISREG(info.st_mode) else ()
    for attribute in attributes:
        try:
            packed = os.getxattr(path, attribute, follow_symlinks=follow)
        except OSError:  # no list, or a file system without lists
            continue
        entries += _entries(packed, "default " if attribute == DEFAULT else "")
    return tuple(entries)


def _entries(packed: bytes, prefix: str) -> List[AclEntry]:
    """Return the entries of a list in the kernel's format: 4 bytes of version, then tag, permissions and number."""
    entries: List[AclEntry] = []
    for at in range(4, len(packed) - 7, 8):
        tag, allowed, number = (int.from_bytes(packed[at + a : at + b], "little") for a, b in ((0, 2), (2, 4), (4, 8)))
        if tag == _OWNING_GROUP and not prefix:
            entries.append(("owning group", "", allowed))
        elif tag == _USER:
            entries.append((prefix + "user", accounts.user_name(number), allowed))
        elif tag == _GROUP:
            entries.append((prefix + "group", accounts.group_name(number), allowed))
    return entries


def excess(entries: Sequence[AclEntry], mode: int) -> List[str]:
    """Return the entries that grant more than a mode does, such as ``user:eve:rw-``.

    A listed user or group counts as one of the others. The group's bits of the mode are the mask of the list: they
    limit what it grants.
    """
    return [
        _text(entry)
        for entry in entries
        if entry[0] != "owning group" and entry[2] & (mode >> 3 if " " not in entry[0] else 7) & ~mode & 7
    ]


def as_text(entries: Sequence[AclEntry]) -> Optional[str]:
    """Return the list as a report shows it: names and what they may do; None for an empty list."""
    return ", ".join(sorted(_text(entry) for entry in entries if entry[0] != "owning group")) or None


def _text(entry: AclEntry) -> str:
    permissions = "".join(letter if entry[2] & bit else "-" for letter, bit in (("r", 4), ("w", 2), ("x", 1)))
    return f"{entry[0].replace(' ', ':')}:{entry[1]}:{permissions}"


def outcome(
    entries: Tuple[AclEntry, ...], now: int, wanted: Optional[int], trusted: bool
) -> Tuple[Tuple[AclEntry, ...], int]:
    """Return the access list and mode of a file after it gets a mode, an owner or new content.

    The list is removed if it grants more than the wanted mode, or if an untrusted owner may have made it.

    :param now: the present mode
    :param wanted: the requested mode; None: keep the present one
    :param trusted: whether the former owner is root, the running user or the new owner
    """
    mode = now if wanted is None else wanted
    if not entries or (trusted and (wanted is None or not excess(entries, wanted))):
        return entries, mode
    # With a list, the group's bits of the mode are its mask. Without one, they are the owning group's permissions.
    owning = [allowed for entry_type, _, allowed in entries if entry_type == "owning group"]
    if wanted is None and owning:
        mode = mode & ~0o070 | mode & 0o070 & owning[0] << 3
    return (), mode


def kept_ids(mode: int, trusted: bool, owner_stays: bool) -> int:
    """Return the mode that a file keeps when its owner or group changes and no mode is given.

    The set-user-id and set-group-id bits of an untrusted owner go: they would give the new owner's rights to a program
    that the former owner wrote.

    :param trusted: whether the former owner is root or the running user
    :param owner_stays: whether only the group changes
    """
    return mode if trusted else mode & (0o5777 if owner_stays else 0o1777)


def after_chown(before: Stat, after: Stat, trusted: bool) -> int:
    """Return the mode of a path after a change of owner or group; `after` has the new ones already.

    :param trusted: see `kept_ids`
    """
    if before.file_type != "file" or (before.owner, before.group) == (after.owner, after.group):
        return after.mode
    return kept_ids(after.mode, trusted, before.owner == after.owner)


def chown(path: str, uid: int, gid: int, capable: bool) -> None:
    """Change owner and group of an open file, which is given as a path in `/proc`.

    :param capable: whether it keeps its capabilities, which the kernel removes
    :raises OSError: if that fails
    """
    capabilities = None
    if capable:
        try:
            capabilities = os.getxattr(path, CAPABILITIES)
        except OSError as problem:
            if problem.errno not in (errno.ENODATA, errno.ENOTSUP):
                raise
    os.chown(path, uid, gid)
    if capabilities is not None:
        os.setxattr(path, CAPABILITIES, capabilities)


def drop(path: str) -> None:
    """Remove the access lists of an open file or directory, which is given as a path in `/proc`.

    :raises OSError: if that fails
    """
    for attribute in (ACCESS, DEFAULT):
        try:
            os.removexattr(path, attribute)
        except OSError as problem:
            if problem.errno not in (errno.ENODATA, errno.ENOTSUP):
                raise
