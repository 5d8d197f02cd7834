"""The format of the ledger: open its database, and migrate an older one."""

from __future__ import annotations

import json
import os

from statecfg.remote.ledger import sqlite
from statecfg.remote.ledger.sqlite import Connection
from statecfg.remote.ledger.state import StateError, machine_id

SCHEMA = 4
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
}  # 4: see `_hide`


def _hide(database: Connection) -> None:
    """Convert the attributes that earlier versions stored with masks in their text, see `machine.hidden`."""
    from statecfg.remote.machine.hidden import upgraded

    for rowid, text in database.execute("SELECT rowid, attrs FROM resource").fetchall():
        attrs = json.loads(text)
        new = upgraded(attrs)
        if new != attrs:
            database.execute("UPDATE resource SET attrs = ? WHERE rowid = ?", (json.dumps(new), rowid))
    for rowid, text in database.execute("SELECT rowid, how FROM owed WHERE how != 'null'").fetchall():
        how = json.loads(text)
        how["attrs"] = upgraded(how["attrs"])
        database.execute("UPDATE owed SET how = ? WHERE rowid = ?", (json.dumps(how), rowid))


def open_database(path: str, reading: bool) -> Connection:
    """Open the ledger's database, and migrate it if it has an older format.

    :param reading: don't write the file. A missing ledger then counts as empty, and an older one is migrated in memory
    :raises StateError: if it has a newer format
    :raises sqlite.DatabaseError: if it can't be used
    """
    database = _connect(path, reading)
    version: int = database.execute("PRAGMA user_version").fetchone()[0]
    if version > SCHEMA:
        raise StateError(f"the ledger {path} has format {version}; this statecfg supports {SCHEMA}")
    if version < SCHEMA and reading:
        database = in_memory(database)
    if version < SCHEMA:
        _migrate(database, version, not reading)
    return database


def in_memory(database: Connection) -> Connection:
    """Return a copy of a database in memory, and close the original."""
    copy = sqlite.connect(":memory:")
    database.backup(copy)
    database.close()
    return copy


def _connect(path: str, reading: bool) -> Connection:
    if reading and not os.path.exists(path):
        return sqlite.connect(":memory:")
    if reading and os.path.exists(path + "-journal"):
        reading = False  # a commit was interrupted: only a writer can roll it back
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    mode = "ro" if reading else "rwc"
    database = sqlite.connect(f"file:{quoted}?mode={mode}", uri=True, timeout=10.0)
    if not reading:
        if os.stat(path).st_mode & 0o777 != 0o600:
            os.chmod(path, 0o600)
        database.execute("PRAGMA synchronous=EXTRA")
    return database


def _migrate(database: Connection, version: int, lasting: bool) -> None:
    """Migrate an older or new database to the current format, in one transaction.

    :param lasting: migrate the file, not a copy in memory. A copy gets no lineage, as it would change each time
    """
    steps = "".join(_STEPS.get(number, "") for number in range(version + 1, SCHEMA + 1))
    database.executescript(f"BEGIN IMMEDIATE;{steps}")
    if version:
        _hide(database)
    if lasting:
        import uuid

        begun = [("lineage", uuid.uuid4().hex), ("machine", machine_id())]
        database.executemany("INSERT OR IGNORE INTO meta VALUES (?, ?)", begun)
    database.execute(f"PRAGMA user_version={SCHEMA}")
    database.commit()
