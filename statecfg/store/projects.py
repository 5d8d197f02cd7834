"""Projects in the store. Their marks distinguish them from projects with the same name in other stores."""

from __future__ import annotations

import secrets

from statecfg.store.connection import Connection, Row, row_of

_FIND = "SELECT name, mark, next_relation FROM project WHERE name = :name"


def ensure(connection: Connection, name: str) -> Row:
    """Return the row of a project. Create it if it does not exist."""
    row = row_of(connection, _FIND, name=name)
    if row is None:
        row = {"name": name, "mark": secrets.token_hex(16), "next_relation": 0}
        enter = "INSERT INTO project (name, mark, next_relation) VALUES (:name, :mark, :next_relation)"
        connection.change(enter, row)
    return row


def mark(connection: Connection, name: str) -> str:
    """Return the mark of a project; "" if the project has no units yet."""
    row = row_of(connection, _FIND, name=name)
    return "" if row is None else str(row["mark"])


def has_units(connection: Connection, name: str, playbook: str) -> bool:
    """Return whether services of a playbook have units. Most playbooks have none, and need no other code for them."""
    query = (
        "SELECT unit.service FROM unit JOIN service ON unit.service = service.id"
        " WHERE service.project = :project AND service.playbook = :playbook AND NOT unit.gone LIMIT 1"
    )
    return bool(connection.rows(query, project=name, playbook=playbook))
