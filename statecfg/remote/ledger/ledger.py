"""The ledger: the host's own record of its managed resources, its runs and its owed restarts (SQLite)."""

from __future__ import annotations

import json
import os
import time

from statecfg.remote.graph.names import Outcome, RunStatus
from statecfg.remote.ledger.state import BEFORE, LEDGER, RUNS, StateError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

    from statecfg.remote.ledger.state import Account

SCHEMA = 3
KEPT = 1000  # the ledger keeps this many runs, the newest ones
_STEPS = {
    1: """
CREATE TABLE run (id TEXT PRIMARY KEY, started REAL NOT NULL, ended REAL, mode TEXT NOT NULL, who TEXT NOT NULL,
                  playbook TEXT NOT NULL, status TEXT NOT NULL);
CREATE TABLE outcome (run TEXT NOT NULL REFERENCES run(id), node TEXT NOT NULL, outcome TEXT NOT NULL,
                      PRIMARY KEY (run, node));
CREATE TABLE owed (playbook TEXT NOT NULL, node TEXT NOT NULL, cause TEXT NOT NULL, since REAL NOT NULL,
                   run TEXT NOT NULL, PRIMARY KEY (playbook, node, cause));
""",
    2: """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE action (run TEXT NOT NULL REFERENCES run(id), number INTEGER NOT NULL, node TEXT NOT NULL,
                     op TEXT NOT NULL, status TEXT NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (run, number));
CREATE TABLE resource (playbook TEXT NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL, module TEXT NOT NULL,
                       claims TEXT NOT NULL, digest TEXT NOT NULL, state TEXT NOT NULL, memory TEXT NOT NULL,
                       after TEXT NOT NULL, attrs TEXT NOT NULL, requires TEXT NOT NULL, tags TEXT NOT NULL,
                       protect INTEGER NOT NULL, position TEXT NOT NULL, owing TEXT NOT NULL,
                       first_run TEXT NOT NULL, last_run TEXT NOT NULL, since REAL NOT NULL,
                       PRIMARY KEY (playbook, name));
CREATE TABLE hook (name TEXT PRIMARY KEY, base TEXT NOT NULL, configuration TEXT NOT NULL);
""",
    # triggers: null if 0.3.0 wrote the record; how: the data to perform an owed restart of a node without a definition.
    3: """
ALTER TABLE resource ADD COLUMN triggers TEXT NOT NULL DEFAULT 'null';
ALTER TABLE owed ADD COLUMN how TEXT NOT NULL DEFAULT 'null';
""",
}
_JSON = ("claims", "memory", "attrs", "requires", "tags", "owing", "triggers")
_COLUMNS = (
    "name", "type", "module", "claims", "digest", "state", "memory", "after", "attrs", "requires", "tags", "protect",
    "position", "owing", "first_run", "last_run", "since", "triggers",
)  # fmt: skip
# The columns that an apply may change in the record of a managed resource.
_DEFINED = (
    "type", "module", "claims", "digest", "after", "attrs", "requires", "tags", "protect", "position", "triggers",
)  # fmt: skip


class Ledger:
    """The host's record.

    :param place: the state directory
    :param reading: don't write the file. A missing ledger then counts as empty, and an older one is migrated in memory
    :raises StateError: if the ledger can't be used
    """

    def __init__(self, place: str, reading: bool = False) -> None:
        import sqlite3

        self.errors = sqlite3.DatabaseError
        self.place = place
        path = os.path.join(place, LEDGER)
        try:
            self.database = self._open(path, reading)
            version = self._version()
            if version > SCHEMA:
                raise StateError("the ledger %s has format %d; this statecfg knows %d" % (path, version, SCHEMA))
            if version < SCHEMA and reading:  # migrate a copy in memory
                older, self.database = self.database, sqlite3.connect(":memory:")
                older.backup(self.database)
                older.close()
            if version < SCHEMA:
                self._migrate(version, not reading)
        except (sqlite3.DatabaseError, OSError) as problem:
            raise StateError("the ledger %s can't be used: %s" % (path, problem)) from None

    def _open(self, path: str, reading: bool) -> sqlite3.Connection:
        import sqlite3

        if reading and not os.path.exists(path):
            return sqlite3.connect(":memory:")
        if reading and os.path.exists(path + "-journal"):
            reading = False  # a commit was interrupted: only a writer can roll it back
        quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        mode = "ro" if reading else "rwc"
        database = sqlite3.connect("file:%s?mode=%s" % (quoted, mode), uri=True, timeout=10.0)
        if not reading:
            os.chmod(path, 0o600)
            database.execute("PRAGMA synchronous=EXTRA")
        return database

    def _version(self) -> int:
        found: int = self.database.execute("PRAGMA user_version").fetchone()[0]
        return found

    def _migrate(self, version: int, lasting: bool) -> None:
        """Migrate an older or new ledger to the current format, in one transaction.

        :param lasting: migrate the file, not a copy in memory. A copy gets no lineage, as it would change each time
        """
        steps = "".join(_STEPS[number] for number in range(version + 1, SCHEMA + 1))
        self.database.executescript("BEGIN IMMEDIATE;%s" % steps)
        if lasting:
            import uuid

            begun = [("lineage", uuid.uuid4().hex), ("machine", machine_id())]
            self.database.executemany("INSERT OR IGNORE INTO meta VALUES (?, ?)", begun)
        self.database.execute("PRAGMA user_version=%d" % SCHEMA)
        self.database.commit()

    def meta(self, key: str) -> str:
        """Return a property of the ledger: its `lineage`, or the `machine` that created it; "" if unknown."""
        row = self.database.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(row[0]) if row else ""

    def foreign(self) -> str:
        """Return why the ledger belongs to another machine; "" if it doesn't or if that is unknown."""
        here, there = machine_id(), self.meta("machine")
        if here and there and here != there:
            return "it was begun on another machine (machine-id %s, and this is %s)" % (there[:12], here[:12])
        return ""

    # Resources

    def resources(self, playbook: str, name: str = "") -> Dict[str, Dict[str, Any]]:
        """Return a playbook's managed resources by name.

        :param name: return only the resource of this name; "" for all
        """
        query = "SELECT %s FROM resource WHERE playbook = ? AND ? IN ('', name) ORDER BY name" % ", ".join(_COLUMNS)
        return {row[0]: _row(row) for row in self.database.execute(query, (playbook, name))}

    def others(self, playbook: str) -> List[Dict[str, Any]]:
        """Return the resources of all other playbooks: playbook, name, type, claims, digest, since."""
        rows = self.database.execute(
            "SELECT playbook, name, type, claims, digest, since FROM resource WHERE playbook != ?", (playbook,)
        )
        names = ("playbook", "name", "type", "claims", "digest", "since")
        return [dict(zip(names, row), claims=json.loads(row[3])) for row in rows]

    def memories(self, kind: str) -> List[Tuple[Dict[str, Any], Dict[str, Any]]]:
        """Return the attributes and snapshots of all resources of a type, in all playbooks."""
        query = "SELECT attrs, memory FROM resource WHERE type = ?"
        return [(json.loads(row[0]), json.loads(row[1])) for row in self.database.execute(query, (kind,))]

    def count(self) -> int:
        """Return the number of managed resources on this host."""
        found: int = self.database.execute("SELECT count(*) FROM resource").fetchone()[0]
        return found

    # Runs

    def begin(self, run: Mapping[str, Any], owed: Sequence[Tuple[str, str, Optional[Dict[str, Any]]]]) -> None:
        """Record a run and, before any change, all restarts that its changes will owe.

        :param owed: node, cause, and the data to perform the restart if the node is no longer defined then
        :raises StateError: if the ledger can't be written
        """
        with self, self.database as database:
            database.execute(
                "INSERT INTO run VALUES (?, ?, NULL, ?, ?, ?, 'running')",
                (run["id"], time.time(), run["mode"], run["who"], run["playbook"]),
            )
            database.executemany(
                "INSERT OR IGNORE INTO owed VALUES (?, ?, ?, ?, ?, ?)",
                [(run["playbook"], node, cause, time.time(), run["id"], json.dumps(how)) for node, cause, how in owed],
            )

    def end(
        self, run: Mapping[str, Any], account: Account, status: str, defined: Optional[Mapping[str, Any]] = None
    ) -> None:
        """Complete a run's record with its account, and delete its journal. See `fold`.

        :raises StateError: if the ledger can't be written
        """
        self.fold(run, account, status, defined)
        self._drop([run["id"]])
        if account.records:
            self._sweep()

    def take_over(self, cut_off: Sequence[Tuple[str, Account]]) -> None:
        """Record what interrupted runs did, and delete their journals.

        :param cut_off: run id and account of each interrupted run
        :raises StateError: if the ledger can't be written
        """
        for run, account in self.open_runs(cut_off):
            self.fold({"id": run}, account, RunStatus.CUT_OFF)
        self._drop([run for run, _ in cut_off])
        if cut_off:
            self._sweep()

    def recall(self, cut_off: Sequence[Tuple[str, Account]]) -> None:
        """Record what interrupted runs did, in memory only: the next run that writes stores it in the file."""
        import sqlite3

        stored, self.database = self.database, sqlite3.connect(":memory:")
        stored.backup(self.database)
        stored.close()
        for run, account in self.open_runs(cut_off):
            self.fold({"id": run}, account, RunStatus.CUT_OFF)

    def open_runs(self, left: Iterable[Tuple[str, Account]]) -> List[Tuple[str, Account]]:
        """Return the runs that have no end in the ledger. The others are complete, and only their journal remains."""
        query = "SELECT 1 FROM run WHERE id = ? AND ended IS NOT NULL"
        return [(run, account) for run, account in left if not self.database.execute(query, (run,)).fetchone()]

    def _drop(self, runs: Iterable[str]) -> None:
        for run in runs:
            journal = os.path.join(self.place, RUNS, run + ".jsonl")
            if os.path.exists(journal):
                os.unlink(journal)

    def fold(
        self, run: Mapping[str, Any], account: Account, status: str, defined: Optional[Mapping[str, Any]] = None
    ) -> None:
        """Record what a run did, and the run itself if it is new.

        This adds outcomes and actions, deletes owed restarts that were performed or never arose, and updates resources.

        :param run: its `id`; mode, who and playbook if the run can be new
        :param account: what the run did
        :param status: how the run ended
        :param defined: name → record of each resource that is as defined; None if the ledger has this record already
        :raises StateError: if the ledger can't be written
        """
        with self, self.database as database:
            database.execute(
                "INSERT OR IGNORE INTO run VALUES (?, ?, NULL, ?, ?, ?, 'running')",
                (run["id"], time.time(), run.get("mode", ""), run.get("who", ""), run.get("playbook", "")),
            )
            outcomes = dict(dict.fromkeys(account.under_way, Outcome.UNKNOWN), **account.outcomes)
            database.executemany(
                "INSERT OR REPLACE INTO outcome VALUES (?, ?, ?)",
                [(run["id"], node, outcome) for node, outcome in sorted(outcomes.items())],
            )
            database.executemany(
                "INSERT OR REPLACE INTO action VALUES (?, ?, ?, ?, ?, ?)",
                [(run["id"], number, *action) for number, action in enumerate(account.actions)],
            )
            self._bring_up(str(self.playbook(run["id"])), run["id"], account, defined or {})
            self._pay(run["id"], account)
            database.execute("UPDATE run SET ended = ?, status = ? WHERE id = ?", (time.time(), status, run["id"]))
            old = "SELECT id FROM run ORDER BY started DESC, rowid DESC LIMIT -1 OFFSET %d" % KEPT
            for table, column in (("outcome", "run"), ("action", "run"), ("run", "id")):
                database.execute("DELETE FROM %s WHERE %s IN (%s)" % (table, column, old))

    def _pay(self, run: str, account: Account) -> None:
        rows = self.database.execute("SELECT playbook, node, cause, run FROM owed").fetchall()
        for playbook, node, cause, since in rows:
            mine = since == run and not account.still_owed(node, cause)
            paid = account.outcomes.get(node) in Outcome.SOUND
            if mine or (paid and playbook == self.playbook(run)):
                self.database.execute(
                    "DELETE FROM owed WHERE playbook = ? AND node = ? AND cause = ?", (playbook, node, cause)
                )

    def _bring_up(self, playbook: str, run: str, account: Account, defined: Mapping[str, Any]) -> None:
        """Update the playbook's resources with what a run did."""
        database = self.database
        for what, record in account.records:
            if what == "manage":
                self._enter(playbook, run, record)
            else:
                self._become(playbook, run, record)
        database.executemany(
            "UPDATE resource SET last_run = ? WHERE playbook = ? AND name = ?",
            [(run, playbook, name) for name in defined],
        )
        database.executemany(
            "UPDATE resource SET %s WHERE playbook = ? AND name = ?"
            % ", ".join("%s = ?" % column for column in _DEFINED),
            [(*_cells(fields, _DEFINED), playbook, name) for name, fields in defined.items() if fields],
        )
        database.executemany(
            "UPDATE resource SET memory = ? WHERE playbook = ? AND name = ?",
            [
                (json.dumps(fields["memory"]), playbook, name)
                for name, fields in defined.items()
                if fields and "memory" in fields
            ],
        )

    def _enter(self, playbook: str, run: str, record: Mapping[str, Any]) -> None:
        """Add a resource; if another resource has its name, rename that one and keep its record."""
        database = self.database
        row = dict(record, first_run=record.get("first_run", run), last_run=run, since=record.get("since", time.time()))
        former = row.get("replaces")
        if former:  # the same object under another name
            claims = json.dumps(former["claims"])
            database.execute("DELETE FROM resource WHERE playbook = ? AND claims = ?", (playbook, claims))
            for column in ("node", "cause"):
                query = "UPDATE OR REPLACE owed SET %s = ? WHERE playbook = ? AND %s = ?" % (column, column)
                database.execute(query, (row["name"], playbook, former["name"]))
        there = self.resources(playbook, row["name"]).get(row["name"])
        if there is not None and (there["type"] != row["type"] or distinct(there["claims"], row["claims"])):
            query = "UPDATE OR REPLACE resource SET name = ? WHERE playbook = ? AND name = ?"
            database.execute(query, (displaced(there), playbook, row["name"]))
        database.execute(
            "INSERT OR IGNORE INTO resource (playbook, %s) VALUES (?%s)" % (", ".join(_COLUMNS), ", ?" * len(_COLUMNS)),
            (playbook, *_cells(row, _COLUMNS)),
        )

    def _become(self, playbook: str, run: str, entity: Mapping[str, Any]) -> None:
        """Change a resource's state, or forget the resource."""
        database, name = self.database, entity["entity"]
        if entity["state"]:
            query = "UPDATE resource SET state = ?, owing = ?, last_run = ? WHERE playbook = ? AND name = ?"
            database.execute(query, (entity["state"], json.dumps(entity.get("owing", [])), run, playbook, name))
            return
        if entity.get("heir"):
            self._hand_on(playbook, name, *entity["heir"])
        database.execute("DELETE FROM resource WHERE playbook = ? AND name = ?", (playbook, name))
        database.execute("DELETE FROM owed WHERE playbook = ? AND node = ?", (playbook, name))

    def _hand_on(self, playbook: str, name: str, heir: str, heirs_name: str) -> None:
        """Give a resource's snapshot to a later resource of the same object, as it shows the state before both.

        Skip this if the types differ, because only the same type can read the snapshot.
        """
        mine, theirs = self.resources(playbook, name).get(name), self.resources(heir, heirs_name).get(heirs_name)
        if not mine or not theirs or mine["type"] != theirs["type"] or theirs["since"] <= mine["since"]:
            return
        if heir != playbook or mine["claims"] == theirs["claims"]:
            query = "UPDATE resource SET memory = ?, since = ? WHERE playbook = ? AND name = ?"
            self.database.execute(query, (json.dumps(mine["memory"]), mine["since"], heir, heirs_name))

    def _sweep(self) -> None:
        """Delete the content of former files that no snapshot refers to."""
        folder = os.path.join(self.place, BEFORE)
        if os.path.isdir(folder):
            text = "".join(row[0] for row in self.database.execute("SELECT memory FROM resource"))
            for name in os.listdir(folder):
                if name not in text:
                    os.unlink(os.path.join(folder, name))

    def playbook(self, run: str) -> Optional[str]:
        """Return the playbook of a run."""
        row = self.database.execute("SELECT playbook FROM run WHERE id = ?", (run,)).fetchone()
        return row[0] if row else None

    def owed(self, playbook: str) -> List[Dict[str, Any]]:
        """Return what a playbook's earlier runs still owe.

        :returns: node, cause, since (epoch seconds), run, and how: the data to perform the restart of a node that is no
            longer defined, None for other nodes
        """
        query = "SELECT node, cause, since, run, how FROM owed WHERE playbook = ? ORDER BY node, cause"
        names = ("node", "cause", "since", "run", "how")
        return [dict(zip(names, row), how=json.loads(row[4])) for row in self.database.execute(query, (playbook,))]

    def interrupted(self, playbook: str) -> str:
        """Return the id and the user of the playbook's last run if it was interrupted, otherwise ""."""
        query = "SELECT id, who, status FROM run WHERE playbook = ? ORDER BY started DESC, rowid DESC LIMIT 1"
        row = self.database.execute(query, (playbook,)).fetchone()
        return "%s by %s" % row[:2] if row and row[2] == RunStatus.CUT_OFF else ""

    def completed(self, playbook: str) -> bool:
        """Tell whether an apply of the playbook ever succeeded."""
        query = "SELECT 1 FROM run WHERE playbook = ? AND mode = 'apply' AND status = 'ok' LIMIT 1"
        return self.database.execute(query, (playbook,)).fetchone() is not None

    def who(self, run: str) -> Dict[str, Any]:
        """Return who started a run, when, and for which playbook; only its id if the ledger doesn't contain it."""
        row = self.database.execute("SELECT who, started, playbook FROM run WHERE id = ?", (run,)).fetchone()
        return {"run": run, "who": row[0], "started": row[1], "playbook": row[2]} if row else {"run": run}

    # Hooks that run on the host

    def hook(self, name: str, base: str) -> Optional[Dict[str, Any]]:
        """Return a hook's configuration on this host; None if there is none or if it is based on another one.

        :param base: the digest of the controller's configuration
        """
        row = self.database.execute("SELECT base, configuration FROM hook WHERE name = ?", (name,)).fetchone()
        found: Optional[Dict[str, Any]] = json.loads(row[1]) if row and row[0] == base else None
        return found

    def set_hook(self, name: str, base: str, configuration: Mapping[str, Any]) -> None:
        """Store a hook's configuration in one transaction.

        :param base: the digest of the controller's configuration
        :raises StateError: if the ledger can't be written
        """
        with self, self.database as database:
            database.execute("INSERT OR REPLACE INTO hook VALUES (?, ?, ?)", (name, base, json.dumps(configuration)))

    def __enter__(self) -> None:
        """Start writing: until `__exit__`, an error of the database becomes a StateError that names the directory."""

    def __exit__(self, kind: object, problem: Optional[BaseException], traceback: object) -> None:
        if isinstance(problem, self.errors):
            raise StateError("the ledger in %s can't be written: %s" % (self.place, problem)) from None

    def close(self) -> None:
        """Close the file."""
        self.database.close()


def machine_id() -> str:
    """Return the content of /etc/machine-id, "" if it can't be read."""
    try:
        with open("/etc/machine-id", encoding="ascii", errors="replace") as stream:
            return stream.readline().strip()
    except OSError:
        return ""


def distinct(some: Sequence[str], others: Sequence[str]) -> bool:
    """Tell whether two lists of claims name different objects. An empty list matches every list."""
    return bool(some and others) and not set(some).intersection(others)


def displaced(row: Mapping[str, Any]) -> str:
    """Return the new name of a resource whose own name another resource has taken over."""
    identity = row["claims"][0].partition(":")[2] if row["claims"] else ""
    return "%s (the %s)" % (row["name"], ("%s %s" % (row["type"], identity)).strip())


def _row(row: Sequence[Any]) -> Dict[str, Any]:
    found = dict(zip(_COLUMNS, row))
    for column in _JSON:
        found[column] = [] if found[column] == "[]" else json.loads(found[column])
    return found


def _cells(fields: Mapping[str, Any], columns: Iterable[str]) -> List[Any]:
    # Journals of 0.3.0 have no `triggers`.
    return [json.dumps(fields.get(column)) if column in _JSON else fields[column] for column in columns]
