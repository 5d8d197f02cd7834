"""The state directory of a host: where it is, its parts, and how incomplete or foreign parts are removed."""

from __future__ import annotations

import os
import stat as st
import time
from typing import Dict, Tuple

from statecfg.remote.graph.errors import StatecfgError
from statecfg.remote.graph.names import HostStatus
from statecfg.remote.graph.sha256 import sha256

CLAIMS = "claims "  # begins the key of a playbook in `meta` whose records contain all that their nodes own
LEDGER = "ledger.db"
SNAPSHOT = "ledger.snapshot"  # what a run reads in the ledger, see `snapshot`
APPENDED = "ledger.appended"  # runs that are not in the ledger yet, see `appended`
RUNS = "runs"
DIGESTS = "digests"  # the directory of recorded digests of files, see `machine.digests`
BEFORE = "before"  # the directory with the former content of files
OLD = 30 * 86400  # seconds after which a hook's files are deleted
HOOKS = "hooks"  # the directory of hooks that run on this host
GENERATED = "generated"  # the directory of values that this host generated
REFERENCE = "statecfgGenerated"  # the prefix of what a definition contains in place of such a value
SPOOL = "spool-"  # the prefix of directories with received content


class StateError(StatecfgError):
    """The host can't keep its record, so no run may change it.

    :param hint: what to do; "" if the message contains it
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def directory() -> str:
    """Return the absolute path of the state directory.

    STATECFG_STATE_DIR overrides it. The default is /var/lib/statecfg for root, and for other users `statecfg` in
    XDG_STATE_HOME or ~/.local/state.
    """
    chosen = os.environ.get("STATECFG_STATE_DIR", "")
    if chosen.startswith("/"):
        return chosen
    if os.geteuid() == 0:
        return "/var/lib/statecfg"
    home = os.environ.get("HOME") or _home()
    return os.path.join(os.environ.get("XDG_STATE_HOME") or os.path.join(home, ".local/state"), "statecfg")


def _home() -> str:
    import pwd

    return pwd.getpwuid(os.geteuid()).pw_dir


def generated(state_dir: str, playbook: str, name: str) -> str:
    """Return the path of a value that a playbook has this host generate."""
    return os.path.join(state_dir, GENERATED, sha256(f"{playbook}\x00{name}".encode()).hexdigest()[:32])


def revealed(state_dir: str, playbook: str, name: str) -> Tuple[str, Dict[str, str]]:
    """Return a value that this host generated, as the status of the run and the other fields of the frame `end`."""
    path = generated(state_dir, playbook, name)
    try:
        with open(path, encoding="utf-8") as stream:
            return HostStatus.OK, {"revealed": stream.read()}
    except OSError as problem:
        why = f"this host has no value of {name}: {path}: {problem.strerror}"
        return HostStatus.FAILED, {"error": why, "hint": "apply the playbook; if it was applied, restore the file"}


def prepare(state_dir: str) -> None:
    """Create the state directory, accessible only to this user.

    :raises StateError: if it can't be created, or if it belongs to another user
    """
    try:
        os.makedirs(state_dir, 0o700, exist_ok=True)
        info = os.lstat(state_dir)
        if not st.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
            raise StateError(f"{state_dir} is not a directory that this user owns (owner {info.st_uid})")
        if info.st_mode & 0o077:
            os.chmod(state_dir, 0o700)
    except OSError as problem:
        raise StateError(f"cannot write to the state directory {state_dir}: {problem.strerror}") from None


def sweep(state_dir: str) -> None:
    """Delete the incomplete content that killed runs received, and hooks that were sent long ago.

    The name of incomplete content contains the id of its process. A deleted hook is sent again when it is needed.
    """
    spools = (name for name in os.listdir(state_dir) if name.startswith(SPOOL))
    entries = [(state_dir, name, name[len(SPOOL) :].partition("-")[0]) for name in spools]
    hooks = os.path.join(state_dir, HOOKS)
    if os.path.isdir(hooks):
        entries += [(hooks, name, name.rpartition(".")[2]) for name in os.listdir(hooks)]
    for folder, name, pid in entries:
        killed = pid.isdigit() and not os.path.exists("/proc/" + pid)
        if killed or (folder == hooks and time.time() - os.lstat(os.path.join(folder, name)).st_mtime > OLD):
            import shutil

            shutil.rmtree(os.path.join(folder, name))


def set_aside(state_dir: str, mark: str) -> str:
    """Move the ledger, the journals and the former content to a separate directory; return its path.

    :param state_dir: the state directory
    :param mark: a part of the new directory's name
    """
    number, aside = 0, os.path.join(state_dir, f"of-{mark}")
    while os.path.exists(os.path.join(aside, LEDGER)):
        number += 1
        aside = os.path.join(state_dir, f"of-{mark}-{number}")
    os.makedirs(aside, 0o700, exist_ok=True)
    # The ledger last: if this is interrupted, the next run moves the rest.
    for name in (RUNS, BEFORE, APPENDED, LEDGER):
        if os.path.exists(os.path.join(state_dir, name)):
            _move(os.path.join(state_dir, name), os.path.join(aside, name))
    return aside


def _move(source: str, target: str) -> None:
    """Move a file, or each file of a directory, because overlayfs can't rename a directory from an image."""
    if not os.path.isdir(source) or os.path.islink(source):
        os.rename(source, target)
        return
    os.makedirs(target, 0o700, exist_ok=True)
    for name in os.listdir(source):
        _move(os.path.join(source, name), os.path.join(target, name))
    os.rmdir(source)


def machine_id() -> str:
    """Return the content of /etc/machine-id, "" if it can't be read."""
    try:
        with open("/etc/machine-id", encoding="utf-8", errors="replace") as stream:
            return stream.readline().strip()
    except OSError:
        return ""


def foreign(machine: str) -> str:
    """Return why a ledger belongs to another machine; "" if it doesn't or if that is unknown.

    :param machine: the machine that created the ledger
    """
    here = machine_id()
    if here and machine and here != machine:
        return f"it was created on another machine (machine-id {machine[:12]}; this machine has {here[:12]})"
    return ""
