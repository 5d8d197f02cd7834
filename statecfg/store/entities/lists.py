"""Lists of interfaces, types, entities and tasks: filtered, limited to what a user may see, sorted, and in pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, Table, and_, delete, func, or_, select, true

from statecfg.store import conditions
from statecfg.store.conditions import Condition
from statecfg.store.connection import Connection
from statecfg.store.entities.tables import entity, entity_type, grant, implemented, interface, task, token


def page(
    connection: Connection,
    table: Table,
    scope: Sequence[Any],
    condition: Condition | None,
    order: tuple[str, tuple[str, ...]] | None,
    descending: bool,
    offset: int,
    limit: int,
) -> tuple[Sequence[Row[Any]], int]:
    """Return a page of a list, and the number of rows of the whole list.

    :param scope: SQL conditions: the subject of the list, and what the user may see (see the functions below)
    :param condition: the user's filter; None for all rows
    :param order: the column to sort by and the keys inside its JSON; None for the order of creation
    :param offset: number of rows to skip
    :param limit: maximum number of rows
    """
    wanted = and_(true(), *scope, *([] if condition is None else [conditions.sql(condition, table, connection.shared)]))
    counted = select(func.count()).select_from(table).where(wanted)
    first = next(iter(table.primary_key))
    keys = [first]
    if order is not None:
        field, path = order
        keys = [*conditions.sort_keys(table.c[field], path, connection.shared), first]
    # Sort only the numbers, because rows are large. A filter on JSON reads every row, so select and count together.
    costly = condition is not None and conditions.looks_inside(condition)
    columns = (first, func.count().over()) if costly else (first,)
    numbers = select(*columns).where(wanted).order_by(*(key.desc() if descending else key.asc() for key in keys))
    rows = connection.execute(numbers.offset(offset).limit(limit)).all()
    total = rows[0][1] if costly and rows else connection.execute(counted).scalar_one()
    chosen = [row[0] for row in rows]
    by_number = {row[0]: row for row in connection.execute(select(table).where(first.in_(chosen)))}
    return [by_number[number] for number in chosen], total


def of(table: Table, **key: Any) -> list[Any]:
    """Return the scope of rows whose columns have these values. A list means: one of its values."""
    return [
        table.c[name].in_(value) if isinstance(value, list) else table.c[name] == value for name, value in key.items()
    ]


def seen_entities(owner: str, org: str, members: Sequence[str]) -> list[Any]:
    """Return the scope of the entities that a user owns or has access to.

    :param owner, org: the user's name and organization
    :param members: URNs of the user and of the organization
    """
    granted = select(grant.c.object).where(grant.c.member.in_(members))
    return [or_(and_(entity.c.owner == owner, entity.c.org == org), entity.c.id.in_(granted))]


def seen_types(members: Sequence[str]) -> list[Any]:
    """Return the scope of the types that a user has access to."""
    return [entity_type.c.id.in_(select(grant.c.object).where(grant.c.member.in_(members)))]


def seen_tasks(owner: str, org: str, members: Sequence[str]) -> list[Any]:
    """Return the scope of the tasks that a user started, and of the tasks of entities that the user may see."""
    seen = select(entity.c.id).where(*seen_entities(owner, org, members))
    return [or_(and_(task.c.user == owner, task.c.org == org), task.c.entity.in_(seen))]


def types_of(connection: Connection, vendor: str, nss: str, version: str) -> list[str]:
    """Return the ids of types.

    :param version: a complete version, its first one or two numbers, or "" for any
    """
    return _versions(connection, entity_type, vendor, nss, version)


def types_of_interface(connection: Connection, vendor: str, nss: str, version: str) -> list[str]:
    """Return the ids of the types that implement an interface.

    :param version: a complete version of the interface, its first one or two numbers, or "" for any
    """
    interfaces = _versions(connection, interface, vendor, nss, version)
    types = select(implemented.c.type).where(implemented.c.interface.in_(interfaces)).distinct()
    return list(connection.execute(types).scalars())


def _versions(connection: Connection, table: Table, vendor: str, nss: str, version: str) -> list[str]:
    rows = connection.execute(select(table.c.id, table.c.version).where(table.c.vendor == vendor, table.c.nss == nss))
    # A complete version must be equal, not a prefix: 1.0.0-rc does not select 1.0.0-rc.1.
    short = re.fullmatch(r"[0-9]+(\.[0-9]+)?", version, re.ASCII) is not None
    return [row.id for row in rows if version in ("", row.version) or (short and row.version.startswith(f"{version}."))]


def has_entities(connection: Connection, types: Sequence[str]) -> bool:
    """Return whether an entity of one of these types exists."""
    return connection.execute(select(entity.c.number).where(entity.c.type.in_(types)).limit(1)).first() is not None


def forget_tokens(connection: Connection, now: float) -> None:
    """Delete the expired tokens."""
    connection.execute(delete(token).where(token.c.expires <= now))
