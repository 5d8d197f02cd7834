"""Projects in the store. Their marks distinguish them from projects with the same name in other stores."""

from __future__ import annotations

import secrets
from typing import Any

from sqlalchemy import Boolean, Connection, Row, column, insert, select, table

from statecfg.store.tables import project

# Every apply asks `has_units`. Loading the complete tables of services would take longer than the query.
_service = table("service", column("id"), column("project"), column("playbook"))
_unit = table("unit", column("service"), column("gone", Boolean))


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
    query = select(_unit.c.service).join(_service, _unit.c.service == _service.c.id)
    query = query.where(_service.c.project == name, _service.c.playbook == playbook, ~_unit.c.gone)
    return connection.execute(query.limit(1)).first() is not None
