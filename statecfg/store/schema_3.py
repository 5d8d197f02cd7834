"""Migrate to version 3 of the schema, in which hosts, runs and numbers of relations belong to a project."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from statecfg.store.connection import Connection, Row

# Statements for both databases. `sort_out` changes the table of hosts: SQLite can't drop its old constraint.
STATEMENTS = {
    "run": ["ALTER TABLE run ADD COLUMN project VARCHAR(255) DEFAULT '' NOT NULL"],
    "going": ["ALTER TABLE going ADD COLUMN project VARCHAR(255) DEFAULT '' NOT NULL"],
    "unit": ["ALTER TABLE unit ADD COLUMN early BOOLEAN DEFAULT true NOT NULL"],
    "relation": [
        "ALTER TABLE relation ADD COLUMN number INTEGER DEFAULT 0 NOT NULL",
        "UPDATE relation SET number = id",  # charms may have stored it
    ],
    "relation_unit": ["ALTER TABLE relation_unit ADD COLUMN unsettled BOOLEAN DEFAULT false NOT NULL"],
}
_COLUMNS = "id, name, facts, tags, metadata, boot_id, ledger, registered, last_checkin, installed, installed_at"
_REBUILT = """
CREATE TABLE host_3 (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, project VARCHAR(255) NOT NULL, name VARCHAR(255) NOT NULL,
    facts TEXT NOT NULL, tags TEXT NOT NULL, metadata TEXT NOT NULL, boot_id TEXT NOT NULL, ledger TEXT NOT NULL,
    registered DOUBLE, last_checkin DOUBLE, installed TEXT, installed_at DOUBLE, UNIQUE (project, name)
)
"""
_WIDENED = (
    "ALTER TABLE host ADD COLUMN project VARCHAR(255) DEFAULT '' NOT NULL",
    "ALTER TABLE host DROP CONSTRAINT host_name_key",
    "ALTER TABLE host ADD UNIQUE (project, name)",
)
# 0.3.0 still showed a playbook as installed after it was destroyed or unbound.
_UNBOUND = """
UPDATE host SET installed = NULL, installed_at = NULL WHERE installed IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM binding WHERE binding.host = host.id AND binding.playbook = host.installed)
"""


def sort_out(connection: Connection) -> None:
    """Assign each host to the projects that use it, and let each project's relations continue at the next number."""
    if connection.shared:
        for statement in _WIDENED:
            connection.change(statement)
    else:
        _rebuild(connection)
    connection.change(_UNBOUND)
    for row in connection.rows("SELECT * FROM host ORDER BY id"):
        _divide(connection, row)
    following = _last(connection, "relation") + 1
    for row in connection.rows("SELECT DISTINCT project FROM service ORDER BY project"):
        values = {"name": row["project"], "mark": secrets.token_hex(16), "next": following}
        connection.change("INSERT INTO project (name, mark, next_relation) VALUES (:name, :mark, :next)", **values)


def _rebuild(connection: Connection) -> None:
    """Rebuild the table of hosts with its rows. Restore the references to it, which dropping the old table removes."""
    last = _last(connection, "host")
    bindings = connection.rows("SELECT host, playbook, since, ledger FROM binding")
    events = connection.rows("SELECT id, host FROM event WHERE host IS NOT NULL")
    connection.change(_REBUILT)
    connection.change(f"INSERT INTO host_3 (project, {_COLUMNS}) SELECT '', {_COLUMNS} FROM host")
    connection.change("DROP TABLE host")
    connection.change("ALTER TABLE host_3 RENAME TO host")
    connection.change("DELETE FROM sqlite_sequence WHERE name = 'host'")
    connection.change("INSERT INTO sqlite_sequence (name, seq) VALUES ('host', :last)", last=last)
    for row in bindings:
        names = "host, playbook, since, ledger"
        connection.change(f"INSERT INTO binding ({names}) VALUES (:host, :playbook, :since, :ledger)", **row)
    for row in events:
        connection.change("UPDATE event SET host = :host WHERE id = :id", **row)


def _last(connection: Connection, table: str) -> int:
    """Return the highest id that a table ever assigned, including those of deleted rows; 0 if it never had a row."""
    if connection.shared:
        query = (
            "SELECT last_value AS last FROM pg_sequences"
            " WHERE sequencename = :table || '_id_seq' AND schemaname = current_schema()"
        )
    else:
        query = "SELECT seq AS last FROM sqlite_sequence WHERE name = :table"
    return max((int(row["last"] or 0) for row in connection.rows(query, table=table)), default=0)


def _divide(connection: Connection, row: Row) -> None:
    """Assign a host to the first project that uses it, and a copy of the host to each other project."""
    bound = connection.rows("SELECT playbook FROM binding WHERE host = :id ORDER BY since, playbook", id=row["id"])
    query = (
        "SELECT DISTINCT service.project FROM unit JOIN service ON unit.service = service.id"
        " WHERE unit.host = :name AND NOT unit.gone ORDER BY service.project"
    )
    units = [unit["project"] for unit in connection.rows(query, name=row["name"])]
    playbooks = [row["installed"] or "", *(binding["playbook"] for binding in bound)]
    projects = list(dict.fromkeys([*map(_project, playbooks), *units]))
    first, *others = [name for name in projects if name] or [""]
    connection.change("UPDATE host SET project = :project WHERE id = :id", project=first, id=row["id"])
    for project in others:
        _copy(connection, row, project)


def _copy(connection: Connection, row: Row, project: str) -> None:
    """Create a project's own record of a host, and move the rows about the project's playbooks to it."""
    values = {**row, "project": project, "installed": None, "installed_at": None}
    del values["id"]
    names = ", ".join(values)
    marks = ", ".join(f":{name}" for name in values)
    new_id = connection.add(f"INSERT INTO host ({names}) VALUES ({marks})", **values)
    for table in ("binding", "event", "invocation"):
        query = f"SELECT DISTINCT playbook FROM {table} WHERE host = :id AND playbook IS NOT NULL"
        for used in connection.rows(query, id=row["id"]):
            if _project(used["playbook"]) == project:
                move = f"UPDATE {table} SET host = :new_id WHERE host = :id AND playbook = :playbook"
                connection.change(move, new_id=new_id, id=row["id"], playbook=used["playbook"])


def _project(playbook: str) -> str:
    """Return the project of a playbook (PROJECT/PATH); "" if it has none."""
    return playbook.partition("/")[0]
