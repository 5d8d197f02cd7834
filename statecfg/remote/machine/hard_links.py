"""Hard links, on the real and on the simulated machine. Only hosts that need it get this module."""

from __future__ import annotations

import errno
import os
import stat as st

from statecfg.remote.graph.results import Result, error, ok
from statecfg.remote.machine import files
from statecfg.remote.machine.paths import open_parent, sync_directory
from statecfg.remote.machine.planned import Planned
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.machine.world import Machine


def create(machine: Machine, path: str, target: str) -> Result:
    """Make `path` another name of the file `target`. A file or link at `path` is replaced atomically.

    :returns: the action's result, an error if the target is not a file, or something else is at the path
    """
    if isinstance(machine, Planned):
        return _planned(machine, path, target)
    assert isinstance(machine, RealMachine)
    machine.calls += 1
    try:
        parent, name, _ = open_parent(path)
    except OSError as problem:
        return files.failed("link", path, problem)
    temporary, holder = "", -1
    try:
        holder, other, _ = open_parent(target)
        info = os.lstat(other, dir_fd=holder)
        if not st.S_ISREG(info.st_mode):
            return error(f"cannot link {path}: {target} is not a file")
        old = files.lstat(name, parent)
        if old is not None and not st.S_ISREG(old.st_mode) and not st.S_ISLNK(old.st_mode):
            return error(f"cannot link {path}: neither a file nor a link is there")
        if old is not None and os.path.samestat(old, info):
            return ok()
        files.sweep(parent, machine.facets.began)
        temporary = files.temporary_name()
        os.link(other, temporary, src_dir_fd=holder, dst_dir_fd=parent, follow_symlinks=False)
        # Not compared with the earlier state: linking a file of an overlay's lower layer copies the file.
        linked = os.lstat(temporary, dir_fd=parent)
        if not st.S_ISREG(linked.st_mode) or not os.path.samestat(linked, os.lstat(other, dir_fd=holder)):
            raise OSError(errno.EBUSY, "another program is changing it", target)
        os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        temporary = ""
        sync_directory(parent)
        return ok()
    except OSError as problem:
        return files.failed("link", path, problem)
    finally:
        if temporary:
            files.unlink(temporary, parent)
        if holder >= 0:
            os.close(holder)
        os.close(parent)


def _planned(machine: Planned, path: str, target: str) -> Result:
    """Plan it: the path gets content, mode, owner and access list of the target."""
    real_path, refused = machine._resolve("link", path)
    refused = refused or machine._forbidden("link", path, real_path)
    if refused is not None:
        return refused
    stat, old = machine.apparent(target), machine.apparent(real_path)
    if stat is None or stat.file_type != "file":
        return error(f"cannot link {path}: {target} is not a file")
    if old is not None and old.file_type not in ("file", "symlink"):
        return error(f"cannot link {path}: neither a file nor a link is there")
    if not machine.root and stat.owner != machine._me()[0]:  # fs.protected_hardlinks, see proc_sys_fs(5)
        return error(f"cannot link {path}: Operation not permitted; is root needed (-b)?")
    machine._put(real_path, stat.copy(), machine.content(machine.canonical(target), stat.size))
    machine.changes.note(path, "hard link", None if old is None else f"another {old.file_type}", target)
    return ok()
