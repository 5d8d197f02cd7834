"""The current run on a host: the lock that allows one run at a time, and the journal of its actions."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat as st
import time

from statecfg.remote.graph.errors import StatecfgError
from statecfg.remote.graph.names import ActionStatus, Outcome
from statecfg.remote.ledger.records import Resource, StateChange

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union

    from typing_extensions import TypedDict

    from statecfg.remote.graph.model import Result

    class Holder(TypedDict, total=False):
        """The run that holds the lock: its id, its user, since when (epoch seconds), and its process id."""

        run: str
        who: str
        since: float
        pid: int


LOCK = "lock"
LEDGER = "ledger.db"
RUNS = "runs"
BEFORE = "before"  # the directory with the former content of files
OLD = 30 * 86400  # seconds after which a hook's files are deleted
HOOKS = "hooks"  # the directory of hooks that run on this host
SPOOL = "spool-"  # the prefix of directories with received content
LOOKING = 0.2  # seconds for which a plan of another process may hold the lock


class StateError(StatecfgError):
    """The host can't keep its record, so no run may change it.

    :param hint: what to do; "" if the message says it
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


def prepare(state_dir: str) -> None:
    """Create the state directory, accessible only to this user.

    :raises StateError: if it can't be created, or if it belongs to somebody else
    """
    try:
        os.makedirs(state_dir, 0o700, exist_ok=True)
        info = os.lstat(state_dir)
        if not st.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
            raise StateError("%s is not a directory that this user owns (owner %d)" % (state_dir, info.st_uid))
        if info.st_mode & 0o077:
            os.chmod(state_dir, 0o700)
    except OSError as problem:
        raise StateError("cannot write to the state directory %s: %s" % (state_dir, problem.strerror)) from None


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
    """Move the ledger, the journals and the former content to a directory of their own; return its path.

    :param state_dir: the state directory
    :param mark: a part of the new directory's name
    """
    number, aside = 0, os.path.join(state_dir, "of-%s" % mark)
    while os.path.exists(os.path.join(aside, LEDGER)):
        number += 1
        aside = os.path.join(state_dir, "of-%s-%d" % (mark, number))
    os.makedirs(aside, 0o700, exist_ok=True)
    for name in (RUNS, BEFORE, LEDGER):  # the ledger last: if this is interrupted, the next run moves the rest
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


class Lock:
    """A lock that allows one run at a time on a host. The kernel releases it when the process ends."""

    def __init__(self, state_dir: str) -> None:
        self.path = os.path.join(state_dir, LOCK)
        self.descriptor: Optional[int] = None

    def take(self, holder: Holder, wait: float) -> Optional[Holder]:
        """Take the lock; return None, or data about its holder if another run still holds it.

        :param holder: data about this run, which others see while it holds the lock
        :param wait: the maximum time to wait, in seconds
        :raises StateError: if the lock can't be created or written
        """
        try:
            self.descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as problem:
            raise StateError("cannot create the lock %s: %s" % (self.path, problem.strerror)) from None
        # A plan that checks the lock holds it for a moment.
        other = self.wait(fcntl.LOCK_EX, max(wait, LOOKING))
        if other is not None:
            return other
        try:
            text = json.dumps(holder).encode()
            os.pwrite(self.descriptor, text, 0)
            os.ftruncate(self.descriptor, len(text))  # not before the write: an empty file would be flushed immediately
        except OSError as problem:
            raise StateError("cannot write the lock %s: %s" % (self.path, problem.strerror)) from None
        return None

    def current_holder(self, wait: float) -> Optional[Holder]:
        """Return data about the run that still holds the lock after `wait` seconds, or None; don't take the lock.

        :raises StateError: if the lock can't be read
        """
        try:
            self.descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise StateError("cannot read %s: %s" % (self.path, problem.strerror)) from None
        holder = self.wait(fcntl.LOCK_SH, wait)
        self.drop()
        return holder

    def wait(self, operation: int, wait: float) -> Optional[Holder]:
        """Try to take the open lock for `wait` seconds; return None, or close it and return data about its holder.

        :param operation: `LOCK_EX` or `LOCK_SH`
        """
        assert self.descriptor is not None
        deadline = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(self.descriptor, operation | fcntl.LOCK_NB)
                return None
            except OSError as problem:
                if problem.errno not in (errno.EAGAIN, errno.EACCES):
                    raise
                if time.monotonic() >= deadline:
                    holder = self.holder()
                    self.drop()
                    return holder
                time.sleep(0.05)

    def holder(self) -> Holder:
        """Return the data that the holder wrote about itself; it is only for messages."""
        assert self.descriptor is not None
        try:
            data: Holder = json.loads(os.pread(self.descriptor, 4096, 0))
        except ValueError:
            data = {}
        return data if isinstance(data, dict) else {}

    def drop(self) -> None:
        """Release the lock."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None


class Journal:
    """The log of the current run: one line before and after each action."""

    def __init__(self, state_dir: str, run: str, mask: Callable[[Any], Any] = lambda value: value) -> None:
        """Create a journal.

        :param state_dir: the state directory
        :param run: the run's id
        :param mask: replaces the secrets in reasons
        :raises StateError: if the journal can't be created
        """
        folder = os.path.join(state_dir, RUNS)
        try:
            os.makedirs(folder, 0o700, exist_ok=True)
            self.path = os.path.join(folder, run + ".jsonl")
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            self.descriptor = os.open(self.path, flags, 0o600)
        except OSError as problem:
            raise StateError("cannot create the journal in %s: %s" % (folder, problem.strerror)) from None
        self.mask = mask
        self.broken = ""
        self.torn = False  # the last line is incomplete

    def add(self, **line: Any) -> None:
        """Append a complete line. If that fails, set `broken`, which ends the run."""
        data = ("\n" * self.torn + json.dumps(line) + "\n").encode()
        rest = data
        try:
            while rest:
                rest = rest[os.write(self.descriptor, rest) :]
            self.torn = False
        except OSError as problem:
            self.torn = self.torn or len(rest) < len(data)
            self.broken = "the journal %s can't be written: %s" % (self.path, problem.strerror)

    def discard(self) -> None:
        """Delete the journal of a run that did not start."""
        os.close(self.descriptor)
        os.unlink(self.path)

    def sync(self) -> None:
        """Make the appended lines durable."""
        try:
            os.fsync(self.descriptor)
        except OSError as problem:
            self.broken = "the journal %s can't be synced to disk: %s" % (self.path, problem.strerror)

    def intend(self, nodes: Sequence[str]) -> None:
        """Record durably which nodes are about to act."""
        self.add(intend=list(nodes))
        self.sync()

    def started(self, node: str, op: str) -> None:
        """Record that an action starts."""
        self.add(node=node, op=op)

    def took(self, node: str, op: str, result: Result) -> None:
        """Record how an action ended."""
        self.add(node=node, took=op, status=result["status"], reason=self.mask(result.get("reason", "")))

    def finished(self, node: str, outcome: str) -> None:
        """Record a node's outcome."""
        self.add(node=node, outcome=outcome)

    def manage(self, resources: Sequence[Resource]) -> None:
        """Record durably the nodes that become managed, with their snapshots."""
        for resource in resources:
            self.add(manage=resource.to_json())
        self.sync()

    def state_changed(self, node: str, **fields: Any) -> None:
        """Record the new state of a resource ("" if it is deleted) and its owed hooks.

        This is not durable: after a power failure, the next run determines the state again and calls its hooks again.
        """
        self.add(entity=node, **fields)


class Account:
    """The contents of a journal: started nodes, outcomes, actions and records.

    :ivar records: in order: newly managed resources, and new states of resources
    """

    def __init__(self, lines: Sequence[str] = ()) -> None:
        self.started: Set[str] = set()
        self.outcomes: Dict[str, str] = {}
        self.actions: List[Tuple[str, str, str, str]] = []  # node, op, status, reason
        self.records: List[Union[Resource, StateChange]] = []
        open_actions: Dict[Tuple[str, str], int] = {}
        for line in lines:
            try:
                entry = json.loads(line)
            except ValueError:  # a crash interrupted this line
                continue
            if isinstance(entry, dict):
                self._take(entry, open_actions)

    def _take(self, entry: Mapping[str, Any], open_actions: Dict[Tuple[str, str], int]) -> None:
        if isinstance(entry.get("manage"), dict):
            self.manage(Resource.from_json(entry["manage"]))
        elif isinstance(entry.get("entity"), str):
            change = StateChange(entry["entity"], entry["state"], entry.get("owing", []), entry.get("heir"))
            self.records.append(change)
        if not isinstance(entry.get("node"), str):
            return
        node = entry["node"]
        if "outcome" in entry:
            self.outcomes[node] = entry["outcome"]
        elif "op" in entry:
            self.started.add(node)
            open_actions[node, entry["op"]] = len(self.actions)
            self.actions.append((node, entry["op"], ActionStatus.UNKNOWN, ""))
        elif entry.get("took") is not None and (node, entry["took"]) in open_actions:
            at = open_actions[node, entry["took"]]
            self.actions[at] = (node, entry["took"], entry["status"], entry["reason"])

    def manage(self, resource: Resource) -> None:
        """Add a resource that became managed."""
        self.records.append(resource)

    @property
    def managed(self) -> List[str]:
        """The names of the resources that became managed."""
        return [record.name for record in self.records if isinstance(record, Resource)]

    @property
    def under_way(self) -> List[str]:
        """The nodes that started and whose outcome is unknown."""
        return sorted(self.started - set(self.outcomes))

    def still_owed(self, node: str, cause: str) -> bool:
        """Tell whether `node` still has to react to the change of `cause`."""
        if self.outcomes.get(node) in Outcome.SOUND:
            return False
        return cause in self.started and self.outcomes.get(cause) != Outcome.UNCHANGED


def interrupted_runs(state_dir: str) -> List[Tuple[str, Account]]:
    """Return the run ids and journals of interrupted runs, oldest first."""
    folder = os.path.join(state_dir, RUNS)
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".jsonl")]
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []
    runs = []
    for name in sorted(names, key=lambda name: (os.stat(os.path.join(folder, name)).st_mtime_ns, name)):
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as stream:
            runs.append((name[: -len(".jsonl")], Account(stream.read().split("\n"))))
    return runs
