"""Extended attributes, on the real and on the simulated machine. Only hosts that need it get this module."""

from __future__ import annotations

import errno
import os
from typing import Dict, Optional

from statecfg.remote.graph.results import Result, error, ok
from statecfg.remote.machine import access, opened
from statecfg.remote.machine.paths import open_parent
from statecfg.remote.machine.planned import Planned
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.machine.world import Effect, Machine

CAPABILITIES = access.CAPABILITIES


def read(path: str) -> Dict[str, bytes]:
    """Return the extended attributes of a file or directory of this host: name → value; empty if it does not exist.

    :raises OSError: if they can't be read
    """
    try:
        parent, name, _ = open_parent(path)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    file = -1
    try:
        file = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        inside = f"/proc/self/fd/{file}"
        return {key: os.getxattr(inside, key) for key in os.listxattr(inside)}
    except OSError as problem:
        if problem.errno in (errno.ENOENT, errno.ENOTSUP, errno.ENODATA, errno.ELOOP):
            return {}
        raise
    finally:
        if file >= 0:
            os.close(file)
        os.close(parent)


def change(machine: Machine, path: str, name: str, value: Optional[bytes], effect: Effect) -> Result:
    """Set an extended attribute of a file or directory, or remove it.

    :param value: None removes it
    :param effect: what this means for facets
    :returns: the action's result
    """
    what = f"set {name} of"
    if isinstance(machine, Planned):
        stat = machine.apparent(path)
        if stat is None or stat.file_type not in ("file", "directory"):
            return error(f"cannot {what} {path}: it is neither a file nor a directory")
        if not machine.root and (not name.startswith("user.") or stat.owner != machine._me()[0]):
            return error(f"cannot {what} {path}: Operation not permitted; is root needed (-b)?")
        machine.affect(effect)
        return ok()

    def write(info: os.stat_result, file: str) -> None:
        if value is not None:
            os.setxattr(file, name, value)
            return
        try:
            os.removexattr(file, name)
        except OSError as problem:
            if problem.errno != errno.ENODATA:
                raise

    assert isinstance(machine, RealMachine)
    return opened.change(machine, what, path, write)
