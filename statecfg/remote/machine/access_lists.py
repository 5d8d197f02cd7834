"""Set access lists, on the real and on the simulated machine. Only hosts that need it get this module."""

from __future__ import annotations

import errno
import os
import stat as st
import struct
from typing import Dict, List, Sequence, Tuple

from statecfg.remote.graph.results import Result, error, ok
from statecfg.remote.machine import access, accounts, opened
from statecfg.remote.machine.overlay import Entry
from statecfg.remote.machine.planned import Planned
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.machine.world import AclEntry, Machine

_WHAT = "set the access list of"
# Kernel constants (linux/posix_acl.h and posix_acl_xattr.h).
_VERSION, _NO_ID = 2, 0xFFFFFFFF
_OWNER, _USER, _OWNING_GROUP, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20


def replace(machine: Machine, path: str, entries: Sequence[AclEntry]) -> Result:
    """Give a file or directory these entries for users and groups, and no others. Its mode stays.

    If the list becomes empty, the owning group keeps what it had with the list, so its bits of the mode may change.

    :param entries: entries as in `Stat.acl`, without that of the owning group
    :returns: the action's result
    """
    if isinstance(machine, Planned):
        return _planned(machine, path, entries)
    assert isinstance(machine, RealMachine)
    return opened.change(machine, _WHAT, path, lambda info, opened_path: _write(info, opened_path, entries))


def _write(info: os.stat_result, path: str, entries: Sequence[AclEntry]) -> None:
    """Write the lists of an open file or directory.

    :raises OSError: if the file system refuses them
    :raises LookupError: if the host does not know a user or group
    """
    mode, present = st.S_IMODE(info.st_mode), access.read(info, path, True)
    own = {_OWNER: mode >> 6 & 7, _OWNING_GROUP: mode >> 3 & 7, _MASK: mode >> 3 & 7, _OTHER: mode & 7}
    own.update((_OWNING_GROUP, allowed) for entry_type, _, allowed in present if entry_type == "owning group")
    without = access.outcome(present, mode, None, False)[1]
    named = [entry for entry in entries if " " not in entry[0]]
    _put(path, access.ACCESS, own, named)
    if not named and without != mode:
        os.chmod(path, without)
    if st.S_ISDIR(info.st_mode):
        defaults = [
            (entry_type.split()[1], name, allowed) for entry_type, name, allowed in entries if " " in entry_type
        ]
        own = {_OWNER: mode >> 6 & 7, _OWNING_GROUP: without >> 3 & 7, _OTHER: mode & 7, **_base(path)}
        own[_MASK] = own[_OWNING_GROUP]
        for _, _, allowed in defaults:
            own[_MASK] |= allowed
        _put(path, access.DEFAULT, own, defaults)


def _base(path: str) -> Dict[int, int]:
    """Return what the present default list grants to owner, owning group and others; empty without such a list."""
    try:
        packed = os.getxattr(path, access.DEFAULT)
    except OSError:
        return {}
    found = {tag: allowed for tag, allowed, _ in struct.iter_unpack("<HHI", packed[4:])}
    return {tag: found[tag] for tag in (_OWNER, _OWNING_GROUP, _OTHER) if tag in found}


def _put(path: str, attribute: str, own: Dict[int, int], named: Sequence[AclEntry]) -> None:
    """Write one list in the kernel's format, or remove it if it has no entries."""
    if not named:
        try:
            os.removexattr(path, attribute)
        except OSError as problem:
            if problem.errno not in (errno.ENODATA, errno.ENOTSUP):
                raise
        return
    packed: List[Tuple[int, int, int]] = [(tag, _NO_ID, allowed) for tag, allowed in own.items()]
    for entry_type, name, allowed in named:
        is_user = entry_type == "user"
        number = accounts.user_id(name) if is_user else accounts.group_id(name)
        packed.append((_USER if is_user else _GROUP, number, allowed))
    data = struct.pack("<I", _VERSION)
    for tag, number, allowed in sorted(packed):  # the kernel requires this order
        data += struct.pack("<HHI", tag, allowed, number)
    os.setxattr(path, attribute, data)


def _planned(machine: Planned, path: str, entries: Sequence[AclEntry]) -> Result:
    """Plan it."""
    real_path, refused = machine._resolve(_WHAT, path)
    old = machine.apparent(real_path) if refused is None else None
    if old is None or old.file_type not in ("file", "directory"):
        return refused or error(f"cannot {_WHAT} {path}: it is neither a file nor a directory")
    new = old.copy()
    new.acl = tuple(entry for entry in entries if " " not in entry[0])
    if new.acl:
        owning = [entry for entry in old.acl if entry[0] == "owning group"]
        new.acl += tuple(owning or [("owning group", "", old.mode >> 3 & 7)])
    else:
        new.mode = access.outcome(old.acl, old.mode, None, False)[1]
    new.acl += tuple(entry for entry in entries if " " in entry[0])
    refused = machine._foreign(path, old, new, _WHAT)
    if refused is not None:
        return refused
    machine._touch(real_path, old)
    machine.changes.path(real_path, old, None, new, None)
    entry = machine.entries.get(real_path)
    blob, fresh = (entry.blob, entry.fresh) if entry is not None else (None, False)
    machine.entries[real_path] = Entry(new, machine._tick(), blob, fresh)
    return ok()
