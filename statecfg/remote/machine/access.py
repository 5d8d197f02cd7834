"""POSIX access lists: who may do more with a file or directory than its mode says."""

from __future__ import annotations

import errno
import os
import stat as st

from statecfg.remote.machine import accounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional, Sequence, Tuple

    # Kind ("user", "group", "owning group", the first two with "default " before them), name, and permission bits.
    Entry = Tuple[str, str, int]

ACCESS = "system.posix_acl_access"
DEFAULT = "system.posix_acl_default"
# What the kernel calls the entries that a mode does not have (linux/posix_acl.h), and the owning group's.
_USER, _OWNING_GROUP, _GROUP = 0x02, 0x04, 0x08


def read(info: os.stat_result, place: str, follow: bool = False) -> Tuple[Entry, ...]:
    """Return the access list of what `lstat` described, empty where the mode says it all.

    :param place: a path that leads to it
    :param follow: whether its last part is a link to follow, as the names of open files in `/proc` are
    """
    found: List[Entry] = []
    kinds = (ACCESS, DEFAULT) if st.S_ISDIR(info.st_mode) else (ACCESS,) if st.S_ISREG(info.st_mode) else ()
    for attribute in kinds:
        try:
            packed = os.getxattr(place, attribute, follow_symlinks=follow)
        except OSError:  # there is none, or the file system has none at all
            continue
        found += _entries(packed, "default " if attribute == DEFAULT else "")
    return tuple(found)


def _entries(packed: bytes, prefix: str) -> List[Entry]:
    """Return the entries of a list as the kernel packs it: 4 bytes of version, then tag, permissions and number."""
    found: List[Entry] = []
    for at in range(4, len(packed) - 7, 8):
        tag, allowed, number = (int.from_bytes(packed[at + a : at + b], "little") for a, b in ((0, 2), (2, 4), (4, 8)))
        if tag == _OWNING_GROUP and not prefix:
            found.append(("owning group", "", allowed))
        elif tag == _USER:
            found.append((prefix + "user", accounts.user_name(number), allowed))
        elif tag == _GROUP:
            found.append((prefix + "group", accounts.group_name(number), allowed))
    return found


def excess(entries: Sequence[Entry], mode: int) -> List[str]:
    """Return the entries that grant more than a mode does, such as ``user:eve:rw-``.

    Whom a list names is taken for one of the others; what the list grants is bounded by the group's bits, its mask.
    """
    return [
        "%s:%s:%s" % (kind.replace(" ", ":"), name, _shown(allowed))
        for kind, name, allowed in entries
        if kind != "owning group" and allowed & (mode >> 3 if " " not in kind else 7) & ~mode & 7
    ]


def shown(entries: Sequence[Entry]) -> Optional[str]:
    """Return whom a list names and what it grants, for a report; None for none."""
    return ", ".join(excess([entry for entry in entries if entry[0] != "owning group"], 0o070)) or None


def _shown(allowed: int) -> str:
    return "".join(letter if allowed & bit else "-" for letter, bit in (("r", 4), ("w", 2), ("x", 1)))


def outcome(
    entries: Tuple[Entry, ...], now: int, wanted: Optional[int], trusted: bool
) -> Tuple[Tuple[Entry, ...], int]:
    """Return the access list and mode of what gets a mode, an owner or new content.

    The list goes where it grants more than the wanted mode, and where somebody whom we don't trust may have made it.

    :param now: the present mode
    :param wanted: the mode that is asked for; None: it stays
    :param trusted: whether the former owner is root, ourselves or the new owner
    """
    mode = now if wanted is None else wanted
    if not entries or (trusted and (wanted is None or not excess(entries, wanted))):
        return entries, mode
    # The group's bits of the mode are the mask of a list; without one they are what the owning group may.
    owning = [allowed for kind, _, allowed in entries if kind == "owning group"]
    if wanted is None and owning:
        mode = mode & ~0o070 | mode & 0o070 & owning[0] << 3
    return (), mode


def without_ids(mode: int) -> int:
    """Return a file's mode as the kernel leaves it when the owner changes: without set-user-id and set-group-id."""
    return mode & (0o1777 if mode & 0o010 else 0o3777)


def drop(place: str) -> None:
    """Remove the access lists of an open file or directory, given as a path in `/proc`. Raises OSError."""
    for attribute in (ACCESS, DEFAULT):
        try:
            os.removexattr(place, attribute)
        except OSError as problem:
            if problem.errno not in (errno.ENODATA, errno.ENOTSUP):
                raise
