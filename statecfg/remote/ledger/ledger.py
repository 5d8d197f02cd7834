"""The ledger: the host's own record of its managed resources, its runs and its owed restarts (SQLite)."""

from __future__ import annotations

import json
import os
import time
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from statecfg.remote.graph.model import Attrs, JsonMap
from statecfg.remote.graph.names import Mode, Outcome, RunStatus
from statecfg.remote.ledger import appended, sqlite, state
from statecfg.remote.ledger.journal import Account
from statecfg.remote.ledger.records import (
    COLUMNS,
    SAID,
    Debt,
    Resource,
    StateChange,
    StoredDefinition,
    as_cells,
    distinct,
    from_cells,
    renamed,
)
from statecfg.remote.ledger.schema import in_memory, open_database
from statecfg.remote.ledger.state import BEFORE, LEDGER, RUNS, StateError
from statecfg.remote.machine.changes import HIDDEN

Defined = Mapping[str, Optional[Resource]]  # see `Ledger.fold`

DAMAGED = "Restore the file from a backup, or move it away: statecfg then starts a new ledger, which is empty."
KEPT = 1000  # the ledger keeps this many runs, the newest ones
# The columns that an apply may change in the record of a managed resource.
_DEFINED = (*StoredDefinition.fields, "digest", "after")


class Ledger:
    """The host's record.

    :param state_dir: the state directory
    :param reading: don't write the file. A missing ledger then counts as empty, and an older one is migrated in memory
    :raises StateError: if the ledger can't be used
    """

    def __init__(self, state_dir: str, reading: bool = False) -> None:
        self.state_dir, self.reading = state_dir, reading
        path = os.path.join(state_dir, LEDGER)
        runs, _ = appended.read(state_dir)  # first, because a run may add them to the ledger meanwhile
        try:
            self.database = open_database(path, reading)
            if runs and reading:
                self.database = in_memory(self.database)
            if runs:
                appended.fold(self.database, runs)
        except (sqlite.DatabaseError, OSError) as problem:
            damaged = "not a database" in str(problem) or "malformed" in str(problem)
            raise StateError(f"the ledger {path} can't be used: {problem}", DAMAGED if damaged else "") from None
        if not reading:
            appended.clear(state_dir)

    def meta(self, key: str) -> str:
        """Return a property of the ledger: its `lineage`, or the `machine` that created it; "" if unknown."""
        row = self.database.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(row[0]) if row else ""

    def foreign(self) -> str:
        """Return why the ledger belongs to another machine; "" if it doesn't or if that is unknown."""
        return state.foreign(self.meta("machine"))

    def opened(self) -> Ledger:
        """Return this ledger, whose database is open."""
        return self

    def append(self, run: Mapping[str, Any], status: str, names: Iterable[str]) -> bool:
        """Return False: the caller has to call `end`. See `snapshot.Front.append`."""
        return False

    # Resources

    def resources(self, playbook: str, name: str = "") -> Dict[str, Resource]:
        """Return a playbook's managed resources by name.

        :param name: return only the resource of this name; "" for all
        """
        query = f"SELECT {', '.join(COLUMNS)} FROM resource WHERE playbook = ? AND ? IN ('', name) ORDER BY name"
        return {row[0]: from_cells(row) for row in self.database.execute(query, (playbook, name))}

    def rows(self) -> Iterable[Sequence[Any]]:
        """Return the playbook and the columns of each managed resource, by playbook and name."""
        query = f"SELECT playbook, {', '.join(COLUMNS)} FROM resource ORDER BY playbook, name"
        return self.database.execute(query)

    def claims_elsewhere(self, playbook: str) -> List[Tuple[str, str, str, List[str]]]:
        """Return playbook, name, digest and claims of each resource of all other playbooks."""
        query = "SELECT playbook, name, digest, claims FROM resource WHERE playbook != ? ORDER BY playbook, name"
        rows = self.database.execute(query, (playbook,))
        return [(owner, name, digest, json.loads(claims)) for owner, name, digest, claims in rows]

    def memories(self, node_type: str) -> List[Tuple[Attrs, JsonMap]]:
        """Return the attributes and snapshots of all resources of a type, in all playbooks."""
        query = "SELECT attrs, memory FROM resource WHERE type = ?"
        return [(json.loads(row[0]), json.loads(row[1])) for row in self.database.execute(query, (node_type,))]

    def with_secrets(self) -> List[Tuple[str, str, Attrs, JsonMap]]:
        """Return playbook, name, attributes and snapshot of the resources of all playbooks that contain secrets."""
        query = "SELECT playbook, name, attrs, memory FROM resource WHERE attrs LIKE ?"
        rows = self.database.execute(query, (f'%"{HIDDEN}"%',))
        return [(playbook, name, json.loads(attrs), json.loads(memory)) for playbook, name, attrs, memory in rows]

    def count(self) -> int:
        """Return the number of managed resources on this host."""
        number: int = self.database.execute("SELECT count(*) FROM resource").fetchone()[0]
        return number

    # Runs

    def begin(self, run: Mapping[str, Any], owed: Sequence[Tuple[str, str, Optional[JsonMap]]]) -> None:
        """Record a run and, before any change, all restarts that its changes will owe.

        The ledger has the run already if it continues after a reboot.

        :param owed: node, cause, and the data to perform the restart if the node is no longer defined then
        :raises StateError: if the ledger can't be written
        """
        with self, self.database as database:
            self._enter(run, time.time())
            database.executemany(
                "INSERT OR IGNORE INTO owed VALUES (?, ?, ?, ?, ?, ?)",
                [(run["playbook"], node, cause, time.time(), run["id"], json.dumps(how)) for node, cause, how in owed],
            )

    def end(self, run: Mapping[str, Any], account: Account, status: str, defined: Optional[Defined] = None) -> None:
        """Complete a run's record with its account, and delete its journal, unless the run continues. See `fold`.

        :raises StateError: if the ledger can't be written
        """
        self.fold(run, account, status, defined)
        if status != RunStatus.RUNNING:
            self._drop([run["id"]])
        if account.records:
            self._sweep()

    def conclude(self, run: Mapping[str, Any], status: str, began: float) -> None:
        """Record when a run began, and how it ended after more than its changes; delete its journal.

        :raises StateError: if the ledger can't be written
        """
        with self, self.database as database:
            self._enter(run, began)
            ended = (began, time.time(), status, run["id"])
            database.execute("UPDATE run SET started = min(started, ?), ended = ?, status = ? WHERE id = ?", ended)
        self._drop([run["id"]])

    def _enter(self, run: Mapping[str, Any], began: float) -> None:
        """Add a run that has not ended, unless the ledger has it already."""
        row = (run["id"], began, run.get("mode", ""), run.get("who", ""), run.get("playbook", ""))
        self.database.execute("INSERT OR IGNORE INTO run VALUES (?, ?, NULL, ?, ?, ?, 'running')", row)

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
        self.database = in_memory(self.database)
        for run, account in self.open_runs(cut_off):
            self.fold({"id": run}, account, RunStatus.CUT_OFF)

    def open_runs(self, left: Iterable[Tuple[str, Account]]) -> List[Tuple[str, Account]]:
        """Return the runs that have no end in the ledger. The others are complete, and only their journal remains."""
        query = "SELECT 1 FROM run WHERE id = ? AND ended IS NOT NULL"
        return [(run, account) for run, account in left if not self.database.execute(query, (run,)).fetchone()]

    def _drop(self, runs: Iterable[str]) -> None:
        for run in runs:
            journal = os.path.join(self.state_dir, RUNS, run + ".jsonl")
            if os.path.exists(journal):
                os.unlink(journal)

    def fold(self, run: Mapping[str, Any], account: Account, status: str, defined: Optional[Defined] = None) -> None:
        """Record what a run did, and the run itself if it is new.

        This adds outcomes and actions, deletes owed restarts that were performed or never arose, and updates resources.

        :param run: its `id`; mode, who and playbook if the run can be new
        :param account: what the run did
        :param status: how the run ended; `RUNNING` if it continues after a reboot
        :param defined: name → record of each resource that is as defined, with `memory` if that has changed; None for a
            record that the ledger has already
        :raises StateError: if the ledger can't be written
        """
        with self, self.database as database:
            self._enter(run, time.time())
            outcomes = dict(dict.fromkeys(account.under_way, Outcome.UNKNOWN), **account.outcomes)
            database.executemany(
                "INSERT OR REPLACE INTO outcome VALUES (?, ?, ?)",
                [(run["id"], node, outcome) for node, outcome in sorted(outcomes.items())],
            )
            database.executemany(
                "INSERT OR REPLACE INTO action VALUES (?, ?, ?, ?, ?, ?)",
                [(run["id"], number, *action) for number, action in enumerate(account.actions)],
            )
            playbook = str(self.playbook(run["id"]))
            self._update_resources(playbook, run["id"], account, defined or {})
            self._delete_paid(playbook, run["id"], account)
            ended = time.time() if status != RunStatus.RUNNING else None
            if ended and run.get("mode") == Mode.DESTROY:  # no later run could perform these
                never_ran = "how = 'null' AND node NOT IN (SELECT name FROM resource WHERE playbook = ?)"
                database.execute("DELETE FROM owed WHERE playbook = ? AND " + never_ran, (playbook, playbook))
            database.execute("UPDATE run SET ended = ?, status = ? WHERE id = ?", (ended, status, run["id"]))
            outdated = f"SELECT id FROM run ORDER BY started DESC, rowid DESC LIMIT -1 OFFSET {KEPT}"
            for table, column in (("outcome", "run"), ("action", "run"), ("run", "id")):
                database.execute(f"DELETE FROM {table} WHERE {column} IN ({outdated})")

    def _delete_paid(self, own: str, run: str, account: Account) -> None:
        """Delete the owed restarts that a run performed, and those that it announced but that never arose."""
        rows = self.database.execute("SELECT playbook, node, cause, run FROM owed").fetchall()
        for playbook, node, cause, since in rows:
            mine = since == run and not account.still_owed(node, cause)
            paid = account.outcomes.get(node) in Outcome.SOUND
            if mine or (paid and playbook == own):
                self.database.execute(
                    "DELETE FROM owed WHERE playbook = ? AND node = ? AND cause = ?", (playbook, node, cause)
                )

    def _update_resources(self, playbook: str, run: str, account: Account, defined: Defined) -> None:
        """Update the playbook's resources with what a run did."""
        database = self.database
        for record in account.records:
            if isinstance(record, Resource):
                self._insert(playbook, run, record)
            else:
                self.change_state(playbook, run, record)
        database.executemany(
            "UPDATE resource SET last_run = ? WHERE playbook = ? AND name = ?",
            [(run, playbook, name) for name in defined],
        )
        database.executemany(
            "UPDATE resource SET %s WHERE playbook = ? AND name = ?"
            % ", ".join("%s = ?" % column for column in _DEFINED),
            [(*as_cells(record.to_json(), _DEFINED), playbook, name) for name, record in defined.items() if record],
        )
        database.executemany(
            "UPDATE resource SET memory = ? WHERE playbook = ? AND name = ?",
            [
                (json.dumps(record.memory), playbook, name)
                for name, record in defined.items()
                if record and record.memory is not None
            ],
        )

        self._update_action_texts(playbook, account)

    def _update_action_texts(self, playbook: str, account: Account) -> None:
        """Record the values that the actions of nodes returned (see `NodeType.produces`), and delete earlier ones."""
        query = "SELECT name, memory FROM resource WHERE playbook = ? AND memory LIKE ?"
        sought = "%" if any(account.said.values()) else '%"' + SAID + '"%'
        rows = self.database.execute(query, (playbook, sought)).fetchall()
        self.database.executemany(
            "UPDATE resource SET memory = ? WHERE playbook = ? AND name = ?",
            [
                (json.dumps(dict(json.loads(memory) or {}, **{SAID: account.said[name]})), playbook, name)
                for name, memory in rows
                if account.said.get(name) or (name in account.said and SAID in memory)
            ],
        )

    def _insert(self, playbook: str, run: str, resource: Resource) -> None:
        """Add a resource; if another resource has its name, rename that one and keep its record."""
        database, name, identities = self.database, resource.name, resource.definition.identities
        before = resource.replaces
        if before:  # the same object under another name
            query = "DELETE FROM resource WHERE playbook = ? AND claims = ?"
            database.execute(query, (playbook, json.dumps(before["claims"])))
            for column in ("node", "cause"):
                query = f"UPDATE OR REPLACE owed SET {column} = ? WHERE playbook = ? AND {column} = ?"
                database.execute(query, (name, playbook, before["name"]))
        there = self.resources(playbook, name).get(name)
        other_type = there is not None and there.definition.type != resource.definition.type
        if there is not None and (other_type or distinct(there.definition.identities, identities)):
            query = "UPDATE OR REPLACE resource SET name = ? WHERE playbook = ? AND name = ?"
            database.execute(query, (renamed(there), playbook, name))
        row = {"first_run": run, "since": time.time(), **resource.to_json(), "last_run": run}
        database.execute(
            f"INSERT OR IGNORE INTO resource (playbook, {', '.join(COLUMNS)}) VALUES (?{', ?' * len(COLUMNS)})",
            (playbook, *as_cells(row, COLUMNS)),
        )

    def change_state(self, playbook: str, run: str, change: StateChange) -> None:
        """Change a resource's state, or delete the record of a resource that is no longer managed."""
        database, name = self.database, change.name
        if change.state:
            query = "UPDATE resource SET state = ?, owing = ?, last_run = ? WHERE playbook = ? AND name = ?"
            database.execute(query, (change.state, json.dumps(change.owing), run, playbook, name))
            return
        if change.successor:
            self._hand_on(playbook, name, *change.successor)
        database.execute("DELETE FROM resource WHERE playbook = ? AND name = ?", (playbook, name))
        database.execute("DELETE FROM owed WHERE playbook = ? AND node = ?", (playbook, name))

    def _hand_on(self, playbook: str, name: str, new_playbook: str, new_name: str) -> None:
        """Give a resource's snapshot to a later resource of the same object, as it shows the state before both.

        Skip this if the types differ, because only the same type can read the snapshot.
        """
        earlier = self.resources(playbook, name).get(name)
        later = self.resources(new_playbook, new_name).get(new_name)
        if not earlier or not later or earlier.definition.type != later.definition.type or later.since <= earlier.since:
            return
        if new_playbook != playbook or earlier.definition.identities == later.definition.identities:
            query = "UPDATE resource SET memory = ?, since = ? WHERE playbook = ? AND name = ?"
            self.database.execute(query, (json.dumps(earlier.memory), earlier.since, new_playbook, new_name))

    def _sweep(self) -> None:
        """Delete the saved content of files that no snapshot refers to."""
        folder = os.path.join(self.state_dir, BEFORE)
        if os.path.isdir(folder):
            text = "".join(row[0] for row in self.database.execute("SELECT memory FROM resource"))
            for name in os.listdir(folder):
                if name not in text:
                    os.unlink(os.path.join(folder, name))

    def playbook(self, run: str) -> Optional[str]:
        """Return the playbook of a run."""
        row = self.database.execute("SELECT playbook FROM run WHERE id = ?", (run,)).fetchone()
        return row[0] if row else None

    def owed(self, playbook: str) -> List[Debt]:
        """Return the restarts that a playbook's earlier runs owe."""
        query = "SELECT node, cause, since, run, how FROM owed WHERE playbook = ? ORDER BY node, cause"
        rows = self.database.execute(query, (playbook,))
        return [Debt(node, cause, since, run, json.loads(how)) for node, cause, since, run, how in rows]

    def interrupted(self, playbook: str) -> str:
        """Return the id and the user of the playbook's last run if it was interrupted, otherwise ""."""
        query = "SELECT id, who, status FROM run WHERE playbook = ? ORDER BY started DESC, rowid DESC LIMIT 1"
        row = self.database.execute(query, (playbook,)).fetchone()
        return "%s by %s" % row[:2] if row and row[2] == RunStatus.CUT_OFF else ""

    def completed(self, playbook: str) -> bool:
        """Tell whether an apply of the playbook ever succeeded."""
        query = "SELECT 1 FROM run WHERE playbook = ? AND mode = 'apply' AND status = 'ok' LIMIT 1"
        return self.database.execute(query, (playbook,)).fetchone() is not None

    def who(self, run: str) -> str:
        """Return who started a run, "" if the ledger doesn't contain it."""
        row = self.database.execute("SELECT who FROM run WHERE id = ?", (run,)).fetchone()
        return str(row[0]) if row else ""

    # Hooks that run on the host

    def hook(self, name: str, base: str) -> Optional[JsonMap]:
        """Return a hook's configuration on this host; None if there is none or if it is based on another one.

        :param base: the digest of the controller's configuration
        """
        row = self.database.execute("SELECT base, configuration FROM hook WHERE name = ?", (name,)).fetchone()
        configuration: Optional[JsonMap] = json.loads(row[1]) if row and row[0] == base else None
        return configuration

    def set_hook(self, name: str, base: str, configuration: Mapping[str, Any]) -> None:
        """Store a hook's configuration in one transaction.

        :param base: the digest of the controller's configuration
        :raises StateError: if the ledger can't be written
        """
        with self, self.database as database:
            database.execute("INSERT OR REPLACE INTO hook VALUES (?, ?, ?)", (name, base, json.dumps(configuration)))

    def __enter__(self) -> None:
        """Start writing: until `__exit__`, an error of the database becomes a StateError that names the directory."""

    def __exit__(self, error_type: object, problem: Optional[BaseException], traceback: object) -> None:
        if isinstance(problem, sqlite.DatabaseError):
            raise StateError(f"the ledger in {self.state_dir} can't be written: {problem}") from None

    def close(self) -> None:
        """Close the file."""
        self.database.close()
