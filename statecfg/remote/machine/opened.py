"""Change a file or directory in other ways than content, mode and owner. Only hosts that need it get this module."""

from __future__ import annotations

import os
from typing import Callable

from statecfg.remote.graph.results import Result, error, ok
from statecfg.remote.machine import files
from statecfg.remote.machine.paths import open_parent
from statecfg.remote.machine.real import RealMachine


def change(machine: RealMachine, what: str, path: str, function: Callable[[os.stat_result, str], None]) -> Result:
    """Open a file or directory without following a link, let a function change it, and make the change durable.

    :param what: what the function does, for errors, such as "set the access list of"
    :param function: receives the Stat of the system, and a path that always means the opened file; may raise OSError,
        and LookupError for an unknown account
    :returns: the action's result
    """
    machine.calls += 1
    try:
        parent, name, _ = open_parent(path)
    except OSError as problem:
        return files.failed(what, path, problem)
    opened = -1
    try:
        opened = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        info = os.fstat(opened)
        if files.file_type_of(info) not in ("file", "directory"):
            return error(f"cannot {what} {path}: it is neither a file nor a directory")
        if files.planted(os.fstat(parent), info):
            return error(f"cannot change {path}: it has other names (hard links) that another user may have made")
        function(info, f"/proc/self/fd/{opened}")
        files.sync(parent, name, info)
        return ok()
    except (OSError, LookupError) as problem:
        return files.failed(what, path, problem)
    finally:
        if opened >= 0:
            os.close(opened)
        os.close(parent)
