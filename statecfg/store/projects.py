"""Projects in the store. Their marks distinguish them from projects with the same name in other stores."""

from __future__ import annotations

import secrets
from typing import Any

from sqlalchemy import Connection, Row, insert, select

from statecfg.store.service_tables import project, service, unit


def ensure(connection: Connection, name: str) -> Row[Any]:
    """Return the row of a project. Create it if it does not exist."""
    query = select(project).where(project.c.name == name)
    row = connection.execute(query).one_or_none()
    if row is None:
        connection.execute(insert(project).values(name=name, mark=secrets.token_hex(16), next_relation=0))
        row = connection.execute(query).one()
    return row


def mark(connection: Connection, name: str) -> str:
    """Return the mark of a project; "" if the project has no units yet."""
    return str(connection.execute(select(project.c.mark).where(project.c.name == name)).scalar_one_or_none() or "")


def has_units(connection: Connection, name: str, playbook: str) -> bool:
    """Tell whether services of a playbook have units. Most playbooks have none, and need no other code for them."""
    query = select(unit.c.id).join(service).where(service.c.project == name, service.c.playbook == playbook)
    return connection.execute(query.where(~unit.c.gone).limit(1)).first() is not None
