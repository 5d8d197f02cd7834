"""Migrate to version 3 of the schema, in which hosts, runs and numbers of relations belong to a project."""

from __future__ import annotations

import secrets
from typing import Any

from sqlalchemy import Connection, text

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
    if connection.dialect.name == "sqlite":
        _rebuild(connection)
    else:
        for statement in _WIDENED:
            connection.exec_driver_sql(statement)
    connection.exec_driver_sql(_UNBOUND)
    for row in connection.execute(text("SELECT * FROM host ORDER BY id")).mappings().all():
        _divide(connection, row)
    projects = list(connection.execute(text("SELECT DISTINCT project FROM service ORDER BY project")).scalars())
    following = _last(connection, "relation") + 1
    for name in projects:
        enter = text("INSERT INTO project (name, mark, next_relation) VALUES (:name, :mark, :next)")
        connection.execute(enter, {"name": name, "mark": secrets.token_hex(16), "next": following})


def _rebuild(connection: Connection) -> None:
    """Rebuild the table of hosts with its rows. Restore the references to it, which dropping the old table removes."""
    last = _last(connection, "host")
    bindings = connection.execute(text("SELECT * FROM binding")).mappings().all()
    events = connection.execute(text("SELECT id, host FROM event WHERE host IS NOT NULL")).mappings().all()
    connection.exec_driver_sql(_REBUILT)
    connection.exec_driver_sql(f"INSERT INTO host_3 (project, {_COLUMNS}) SELECT '', {_COLUMNS} FROM host")
    connection.exec_driver_sql("DROP TABLE host")
    connection.exec_driver_sql("ALTER TABLE host_3 RENAME TO host")
    connection.exec_driver_sql("DELETE FROM sqlite_sequence WHERE name = 'host'")
    connection.exec_driver_sql("INSERT INTO sqlite_sequence (name, seq) VALUES ('host', ?)", (last,))
    for row in bindings:
        insert = "INSERT INTO binding (host, playbook, since, ledger) VALUES (:host, :playbook, :since, :ledger)"
        connection.execute(text(insert), dict(row))
    for row in events:
        connection.execute(text("UPDATE event SET host = :host WHERE id = :id"), dict(row))


def _last(connection: Connection, table: str) -> int:
    """Return the highest id that a table ever assigned, including those of deleted rows; 0 if it never had a row."""
    if connection.dialect.name == "sqlite":
        query = "SELECT seq FROM sqlite_sequence WHERE name = :table"
    else:
        query = (
            "SELECT last_value FROM pg_sequences"
            " WHERE sequencename = :table || '_id_seq' AND schemaname = current_schema()"
        )
    return int(connection.execute(text(query), {"table": table}).scalar_one_or_none() or 0)


def _divide(connection: Connection, row: Any) -> None:
    """Assign a host to the first project that uses it, and a copy of the host to each other project."""
    bound = text("SELECT playbook FROM binding WHERE host = :id ORDER BY since, playbook")
    playbooks = list(connection.execute(bound, {"id": row["id"]}).scalars())
    query = text(
        "SELECT DISTINCT service.project FROM unit JOIN service ON unit.service = service.id"
        " WHERE unit.host = :name AND NOT unit.gone ORDER BY service.project"
    )
    units = connection.execute(query, {"name": row["name"]}).scalars()
    projects = list(dict.fromkeys([*map(_project, [row["installed"] or "", *playbooks]), *units]))
    first, *others = [name for name in projects if name] or [""]
    connection.execute(text("UPDATE host SET project = :project WHERE id = :id"), {"project": first, "id": row["id"]})
    for project in others:
        _copy(connection, row, project)


def _copy(connection: Connection, row: Any, project: str) -> None:
    """Create a project's own record of a host, and move the rows about the project's playbooks to it."""
    values = {**row, "project": project, "installed": None, "installed_at": None}
    del values["id"]
    names = ", ".join(values)
    marks = ", ".join(f":{name}" for name in values)
    connection.execute(text(f"INSERT INTO host ({names}) VALUES ({marks})"), values)
    query = text("SELECT id FROM host WHERE project = :project AND name = :name")
    new_id = connection.execute(query, {"project": project, "name": row["name"]}).scalar_one()
    for table in ("binding", "event", "invocation"):
        pairs = text(f"SELECT DISTINCT playbook FROM {table} WHERE host = :id AND playbook IS NOT NULL")
        for playbook in connection.execute(pairs, {"id": row["id"]}).scalars().all():
            if _project(playbook) == project:
                move = f"UPDATE {table} SET host = :new_id WHERE host = :id AND playbook = :playbook"
                connection.execute(text(move), {"new_id": new_id, "id": row["id"], "playbook": playbook})


def _project(playbook: str) -> str:
    """Return the project of a playbook (PROJECT/PATH); "" if it has none."""
    return playbook.partition("/")[0]
