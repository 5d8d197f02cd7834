"""The host's own memory of runs: the lock, the journal of the run under way, and the ledger."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat as st
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

LOCK = "lock"
LEDGER = "ledger.db"
RUNS = "runs"
SPOOL = "spool-"  # what the names of directories of content that has arrived begin with
CUT_OFF = "cut off"  # the status of a run that never came to its end
LOOKING = 0.2  # seconds that another process may look at the lock
SCHEMA = 1
_TABLES = """
CREATE TABLE run (id TEXT PRIMARY KEY, started REAL NOT NULL, ended REAL, mode TEXT NOT NULL, who TEXT NOT NULL,
                  playbook TEXT NOT NULL, status TEXT NOT NULL);
CREATE TABLE outcome (run TEXT NOT NULL REFERENCES run(id), node TEXT NOT NULL, outcome TEXT NOT NULL,
                      PRIMARY KEY (run, node));
CREATE TABLE owed (playbook TEXT NOT NULL, node TEXT NOT NULL, cause TEXT NOT NULL, since REAL NOT NULL,
                   run TEXT NOT NULL, PRIMARY KEY (playbook, node, cause));
"""


class StateError(Exception):
    """The host can't keep its record, so nothing may be done on it."""


def directory() -> str:
    """Return where the record is kept: /var/lib/statecfg for root, the user's state directory otherwise."""
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
    """Remove the content that runs had been sent which were killed; a spool carries the id of its process."""
    for name in os.listdir(place):
        pid = name[len(SPOOL) :].partition("-")[0] if name.startswith(SPOOL) else ""
        if pid.isdigit() and not os.path.exists("/proc/" + pid):
            import shutil

            shutil.rmtree(os.path.join(place, name))


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
            os.ftruncate(self.descriptor, 0)
            os.pwrite(self.descriptor, json.dumps(holder).encode(), 0)
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

    def __init__(self, place: str, run: str) -> None:
        folder = os.path.join(place, RUNS)
        try:
            os.makedirs(folder, 0o700, exist_ok=True)
            self.path = os.path.join(folder, run + ".jsonl")
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            self.descriptor = os.open(self.path, flags, 0o600)
        except OSError as problem:
            raise StateError("cannot journal in %s: %s" % (folder, problem.strerror)) from None
        self.broken = ""

    def add(self, **line: Any) -> None:
        """Append a line. A journal that can't be written ends the run before its next action."""
        data = (json.dumps(line) + "\n").encode()
        try:
            if os.write(self.descriptor, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as problem:
            self.broken = "the journal %s can't be written: %s" % (self.path, problem.strerror)

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

    def finished(self, node: str, outcome: str) -> None:
        """Write down how a node ended."""
        self.add(node=node, outcome=outcome)


class Account:
    """What a journal says of its run: nodes started, and how nodes ended."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.started: Set[str] = set()
        self.outcomes: Dict[str, str] = {}
        for line in lines:
            try:
                found = json.loads(line)
            except ValueError:  # the line that a crash cut off
                continue
            if not isinstance(found, dict) or not isinstance(found.get("node"), str):
                continue
            if "outcome" in found:
                self.outcomes[found["node"]] = found["outcome"]
            elif "op" in found:
                self.started.add(found["node"])

    @property
    def under_way(self) -> List[str]:
        """The nodes that were started and of whose end nothing is known."""
        return sorted(self.started - set(self.outcomes))

    def still_owed(self, node: str, cause: str) -> bool:
        """Tell whether `node` still has to answer the change of `cause`."""
        if self.outcomes.get(node) in ("changed", "unchanged"):
            return False
        return cause in self.started and self.outcomes.get(cause) != "unchanged"


def left_over(place: str) -> List[Tuple[str, Account]]:
    """Return the journals that runs left behind which never came to their end, oldest first."""
    folder = os.path.join(place, RUNS)
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".jsonl"))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []
    found = []
    for name in names:
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as stream:
            found.append((name[: -len(".jsonl")], Account(stream.read().split("\n"))))
    return found


class Ledger:
    """The host's record of runs and of what it owes (SQLite)."""

    def __init__(self, place: str, reading: bool = False) -> None:
        import sqlite3

        self.errors = sqlite3.DatabaseError
        self.place = place
        path = os.path.join(place, LEDGER)
        try:
            quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
            if reading and os.path.exists(path + "-journal"):
                reading = False  # a commit was cut off: only who may write can take it back
            mode = "ro" if reading else "rwc"
            self.database = sqlite3.connect("file:%s?mode=%s" % (quoted, mode), uri=True, timeout=10.0)
            if not reading:
                os.chmod(path, 0o600)
                self.database.execute("PRAGMA synchronous=EXTRA")
            version = self.database.execute("PRAGMA user_version").fetchone()[0]
            if version > SCHEMA:
                raise StateError("the ledger %s has format %d; this statecfg knows %d" % (path, version, SCHEMA))
            if version == 0 and reading:  # made by a run that was cut off before it wrote anything
                self.database.close()
                self.database = sqlite3.connect(":memory:")
            if version == 0:
                self.database.executescript("BEGIN;%sPRAGMA user_version=%d;COMMIT;" % (_TABLES, SCHEMA))
        except (sqlite3.DatabaseError, OSError) as problem:
            raise StateError("the ledger %s can't be used: %s" % (path, problem)) from None

    def begin(self, run: Dict[str, Any], owed: Sequence[Tuple[str, str]]) -> None:
        """Enter a run and, before anything is changed, all that its changes will owe. Raises StateError."""
        with self, self.database as database:
            database.execute(
                "INSERT INTO run VALUES (?, ?, NULL, ?, ?, ?, 'running')",
                (run["id"], time.time(), run["mode"], run["who"], run["playbook"]),
            )
            database.executemany(
                "INSERT OR IGNORE INTO owed VALUES (?, ?, ?, ?, ?)",
                [(run["playbook"], node, cause, time.time(), run["id"]) for node, cause in owed],
            )

    def end(self, run: str, account: Account, status: str) -> None:
        """Close a run by its account: outcomes in, debts that are paid (or never arose) out. Raises StateError."""
        with self, self.database as database:
            rows = database.execute("SELECT playbook, node, cause, run FROM owed").fetchall()
            for playbook, node, cause, since in rows:
                mine = since == run and not account.still_owed(node, cause)
                paid = account.outcomes.get(node) in ("changed", "unchanged")
                if mine or (paid and playbook == self.playbook(run)):
                    database.execute(
                        "DELETE FROM owed WHERE playbook = ? AND node = ? AND cause = ?", (playbook, node, cause)
                    )
            outcomes = dict(dict.fromkeys(account.under_way, "unknown"), **account.outcomes)
            database.executemany(
                "INSERT OR REPLACE INTO outcome VALUES (?, ?, ?)",
                [(run, node, outcome) for node, outcome in sorted(outcomes.items())],
            )
            database.execute("UPDATE run SET ended = ?, status = ? WHERE id = ?", (time.time(), status, run))
        os.unlink(os.path.join(self.place, RUNS, run + ".jsonl"))

    def playbook(self, run: str) -> Optional[str]:
        """Return the playbook of a run."""
        row = self.database.execute("SELECT playbook FROM run WHERE id = ?", (run,)).fetchone()
        return row[0] if row else None

    def owed(self, playbook: str, cut_off: Sequence[Tuple[str, Account]] = ()) -> List[Dict[str, Any]]:
        """Return what a playbook's earlier runs still owe: node, cause, since (epoch seconds), run."""
        accounts = dict(cut_off)
        found = []
        rows = self.database.execute(
            "SELECT node, cause, since, run FROM owed WHERE playbook = ? ORDER BY node, cause", (playbook,)
        )
        for node, cause, since, run in rows:
            if run not in accounts or accounts[run].still_owed(node, cause):
                found.append({"node": node, "cause": cause, "since": since, "run": run})
        return found

    def interrupted(self, playbook: str) -> str:
        """Return the playbook's last run, and whose it was, where its controller was lost in mid-run; "" otherwise."""
        query = "SELECT id, who, status FROM run WHERE playbook = ? ORDER BY started DESC, rowid DESC LIMIT 1"
        row = self.database.execute(query, (playbook,)).fetchone()
        return "%s by %s" % row[:2] if row and row[2] == CUT_OFF else ""

    def who(self, run: str) -> Dict[str, Any]:
        """Return who made a run and when it began."""
        row = self.database.execute("SELECT who, started, playbook FROM run WHERE id = ?", (run,)).fetchone()
        return {"run": run, "who": row[0], "started": row[1], "playbook": row[2]} if row else {"run": run}

    def __enter__(self) -> None:
        """Begin to write: what goes wrong with the file from here is a StateError that names it."""

    def __exit__(self, kind: object, problem: Optional[BaseException], traceback: object) -> None:
        if isinstance(problem, self.errors):
            raise StateError("the ledger in %s can't be written: %s" % (self.place, problem)) from None

    def close(self) -> None:
        """Close the file."""
        self.database.close()
