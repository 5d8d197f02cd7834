"""Projects in the store: what tells them from projects of the same name elsewhere."""

from __future__ import annotations

import secrets
from typing import Any

from sqlalchemy import Connection, Row, insert, select

from statecfg.store.service_tables import project


def ensure(connection: Connection, name: str) -> Row[Any]:
    """Return the row of a project; it is entered where it is not known."""
    asked = select(project).where(project.c.name == name)
    found = connection.execute(asked).one_or_none()
    if found is None:
        connection.execute(insert(project).values(name=name, mark=secrets.token_hex(16), next_relation=0))
        found = connection.execute(asked).one()
    return found


def mark(connection: Connection, name: str) -> str:
    """Return what tells a project from one of the same name in another store; "" for one that has no units yet."""
    return str(connection.execute(select(project.c.mark).where(project.c.name == name)).scalar_one_or_none() or "")
