"""The run under way on a host: the lock that lets one in at a time, and the journal of what it does."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat as st
import time

from statecfg.remote.graph.errors import StatecfgError
from statecfg.remote.graph.names import ActionStatus, Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

    from statecfg.remote.graph.model import Result

LOCK = "lock"
LEDGER = "ledger.db"
RUNS = "runs"
BEFORE = "before"  # the directory of content that stood in the place of ours
OLD = 30 * 86400  # seconds that a hook that runs here is kept
HOOKS = "hooks"  # the directory of hooks that run on this host
SPOOL = "spool-"  # what the names of directories of content that has arrived begin with
LOOKING = 0.2  # seconds that another process may look at the lock


class StateError(StatecfgError):
    """The host can't keep its record, so nothing may be done on it."""


def directory() -> str:
    """Return where this host keeps its record, as an absolute path.

    STATECFG_STATE_DIR names it. Without that it is /var/lib/statecfg for root, and the state directory of other users.
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


def prepare(place: str) -> None:
    """Make the directory, ours alone. Raises StateError where it is not, or can't be made."""
    try:
        os.makedirs(place, 0o700, exist_ok=True)
        info = os.lstat(place)
        if not st.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
            raise StateError("%s is not a directory of ours (owner %d)" % (place, info.st_uid))
        if info.st_mode & 0o077:
            os.chmod(place, 0o700)
    except OSError as problem:
        raise StateError("cannot keep a record in %s: %s" % (place, problem.strerror)) from None


def sweep(place: str) -> None:
    """Remove what runs had been sent which were killed, and not put in its place; it carries the id of its process.

    A hook that was sent long ago goes as well: where it is still in use, it is sent again.
    """
    found = [
        (place, name, name[len(SPOOL) :].partition("-")[0]) for name in os.listdir(place) if name.startswith(SPOOL)
    ]
    hooks = os.path.join(place, HOOKS)
    if os.path.isdir(hooks):
        found += [(hooks, name, name.rpartition(".")[2]) for name in os.listdir(hooks)]
    for folder, name, pid in found:
        killed = pid.isdigit() and not os.path.exists("/proc/" + pid)
        if killed or (folder == hooks and time.time() - os.lstat(os.path.join(folder, name)).st_mtime > OLD):
            import shutil

            shutil.rmtree(os.path.join(folder, name))


def set_aside(place: str, mark: str) -> str:
    """Move the ledger, the journals and the former content away, into a directory of their own; return its path.

    :param mark: what its name ends in
    """
    number, aside = 0, os.path.join(place, "of-%s" % mark)
    while os.path.exists(os.path.join(aside, LEDGER)):
        number += 1
        aside = os.path.join(place, "of-%s-%d" % (mark, number))
    os.makedirs(aside, 0o700, exist_ok=True)
    for name in (RUNS, BEFORE, LEDGER):  # the ledger last: killed in between, the next run moves the rest
        if os.path.exists(os.path.join(place, name)):
            _move(os.path.join(place, name), os.path.join(aside, name))
    return aside


def _move(source: str, target: str) -> None:
    """Move a file, or all files of a directory: overlayfs can't rename a directory that came with an image."""
    if not os.path.isdir(source) or os.path.islink(source):
        os.rename(source, target)
        return
    os.makedirs(target, 0o700, exist_ok=True)
    for name in os.listdir(source):
        _move(os.path.join(source, name), os.path.join(target, name))
    os.rmdir(source)


class Lock:
    """One run at a time on a host, by a lock that the kernel holds and drops with the process."""

    def __init__(self, place: str) -> None:
        self.path = os.path.join(place, LOCK)
        self.descriptor: Optional[int] = None

    def take(self, holder: Dict[str, Any], wait: float) -> Optional[Dict[str, Any]]:
        """Take the lock, waiting at most `wait` seconds; return None, or who holds it. Raises StateError."""
        try:
            self.descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as problem:
            raise StateError("cannot make the lock %s: %s" % (self.path, problem.strerror)) from None
        # A plan that looks whether somebody holds it, holds it itself for that moment.
        held = self.wait(fcntl.LOCK_EX, max(wait, LOOKING))
        if held is not None:
            return held
        try:
            text = json.dumps(holder).encode()
            os.pwrite(self.descriptor, text, 0)
            os.ftruncate(
                self.descriptor, len(text)
            )  # not before: a file that was empty for a moment is flushed at once
        except OSError as problem:
            raise StateError("cannot write the lock %s: %s" % (self.path, problem.strerror)) from None
        return None

    def held(self, wait: float) -> Optional[Dict[str, Any]]:
        """Return who still holds the lock after `wait` seconds, or None; takes nothing and makes nothing."""
        try:
            self.descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        found = self.wait(fcntl.LOCK_SH, wait)
        self.drop()
        return found

    def wait(self, kind: int, wait: float) -> Optional[Dict[str, Any]]:
        """Ask for the lock until it is had, or `wait` seconds are over: then return who holds it, and let go."""
        assert self.descriptor is not None
        deadline = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(self.descriptor, kind | fcntl.LOCK_NB)
                return None
            except OSError as problem:
                if problem.errno not in (errno.EAGAIN, errno.EACCES):
                    raise
                if time.monotonic() >= deadline:
                    found = self.holder()
                    self.drop()
                    return found
                time.sleep(0.05)

    def holder(self) -> Dict[str, Any]:
        """Return what the holder wrote of itself; that text informs and decides nothing."""
        assert self.descriptor is not None
        try:
            found = json.loads(os.pread(self.descriptor, 4096, 0))
        except ValueError:
            found = {}
        return found if isinstance(found, dict) else {}

    def drop(self) -> None:
        """Give the lock back."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None


class Journal:
    """What the run under way is about to do and has done, a line each, appended before and after the act."""

    def __init__(self, place: str, run: str, mask: Callable[[Any], Any] = lambda value: value) -> None:
        """Begin a journal.

        :param mask: takes the secrets out of what programs and problems say
        """
        folder = os.path.join(place, RUNS)
        try:
            os.makedirs(folder, 0o700, exist_ok=True)
            self.path = os.path.join(folder, run + ".jsonl")
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            self.descriptor = os.open(self.path, flags, 0o600)
        except OSError as problem:
            raise StateError("cannot journal in %s: %s" % (folder, problem.strerror)) from None
        self.mask = mask
        self.broken = ""
        self.torn = False  # the last line is not whole

    def add(self, **line: Any) -> None:
        """Append a line, however many writes that takes. A journal that can't be written ends the run."""
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
        """Throw it away: nothing of what it is about was begun."""
        os.close(self.descriptor)
        os.unlink(self.path)

    def sync(self) -> None:
        """Make what was appended durable."""
        try:
            os.fsync(self.descriptor)
        except OSError as problem:
            self.broken = "the journal %s can't be made durable: %s" % (self.path, problem.strerror)

    def intend(self, nodes: Sequence[str]) -> None:
        """Write down, durably, which nodes are about to be acted on."""
        self.add(intend=list(nodes))
        self.sync()

    def started(self, node: str, op: str) -> None:
        """Write down that an action begins."""
        self.add(node=node, op=op)

    def took(self, node: str, op: str, result: Result) -> None:
        """Write down how an action ended."""
        self.add(node=node, took=op, status=result["status"], reason=self.mask(result.get("reason", "")))

    def finished(self, node: str, outcome: str) -> None:
        """Write down how a node ended."""
        self.add(node=node, outcome=outcome)

    def manage(self, rows: Sequence[Dict[str, Any]]) -> None:
        """Write down, durably, the nodes that come under management, with what stood there before."""
        for row in rows:
            self.add(manage=row)
        self.sync()

    def entity(self, node: str, **fields: Any) -> None:
        """Write down an entity's new state ("" once it is gone), and what of its hooks is owed.

        What a power cut takes away of it, the next run finds out anew: its hooks are then fired once more.
        """
        self.add(entity=node, **fields)


class Account:
    """What a journal says of its run: nodes started, and how nodes ended.

    `records` has what came under management ("manage", row) and became of entities ("entity", fields), in order.
    """

    def __init__(self, lines: Sequence[str] = ()) -> None:
        self.started: Set[str] = set()
        self.outcomes: Dict[str, str] = {}
        self.actions: List[Tuple[str, str, str, str]] = []  # node, op, status, reason
        self.records: List[Tuple[str, Dict[str, Any]]] = []
        open_actions: Dict[Tuple[str, str], int] = {}
        for line in lines:
            try:
                found = json.loads(line)
            except ValueError:  # the line that a crash cut off
                continue
            if isinstance(found, dict):
                self._take(found, open_actions)

    def _take(self, found: Dict[str, Any], open_actions: Dict[Tuple[str, str], int]) -> None:
        if isinstance(found.get("manage"), dict):
            self.manage(found["manage"])
        elif isinstance(found.get("entity"), str):
            self.records.append(("entity", found))
        if not isinstance(found.get("node"), str):
            return
        node = found["node"]
        if "outcome" in found:
            self.outcomes[node] = found["outcome"]
        elif "op" in found:
            self.started.add(node)
            open_actions[node, found["op"]] = len(self.actions)
            self.actions.append((node, found["op"], ActionStatus.UNKNOWN, ""))
        elif found.get("took") is not None and (node, found["took"]) in open_actions:
            at = open_actions[node, found["took"]]
            self.actions[at] = (node, found["took"], found["status"], found["reason"])

    def manage(self, row: Dict[str, Any]) -> None:
        """Take in that a node came under management."""
        self.records.append(("manage", row))

    @property
    def managed(self) -> List[str]:
        """The nodes that came under management."""
        return [row["name"] for what, row in self.records if what == "manage"]

    @property
    def under_way(self) -> List[str]:
        """The nodes that were started and of whose end nothing is known."""
        return sorted(self.started - set(self.outcomes))

    def still_owed(self, node: str, cause: str) -> bool:
        """Tell whether `node` still has to answer the change of `cause`."""
        if self.outcomes.get(node) in Outcome.SOUND:
            return False
        return cause in self.started and self.outcomes.get(cause) != Outcome.UNCHANGED


def left_over(place: str) -> List[Tuple[str, Account]]:
    """Return the journals that runs left behind which never came to their end, oldest first."""
    folder = os.path.join(place, RUNS)
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".jsonl")]
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []
    found = []
    for name in sorted(names, key=lambda name: (os.stat(os.path.join(folder, name)).st_mtime_ns, name)):
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as stream:
            found.append((name[: -len(".jsonl")], Account(stream.read().split("\n"))))
    return found
