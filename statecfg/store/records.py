"""Read and write rows of a table by the values of some columns, inside a transaction of the caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Column, Row, Table, delete, insert, select, update

from statecfg.store.connection import Connection


def add(connection: Connection, table: Table, values: Mapping[str, Any]) -> None:
    """Insert a row."""
    connection.execute(insert(table).values(dict(values)))


def find(connection: Connection, table: Table, **key: Any) -> Row[Any] | None:
    """Return the row whose columns have these values, or None."""
    return connection.execute(_where(select(table), table, key)).one_or_none()


def every(connection: Connection, table: Table, **key: Any) -> Sequence[Row[Any]]:
    """Return the rows whose columns have these values, in the order of insertion. A list means: one of its values."""
    first: Column[Any] = next(iter(table.primary_key))
    return connection.execute(_where(select(table), table, key).order_by(first)).all()


def change(connection: Connection, table: Table, values: Mapping[str, Any], **key: Any) -> int:
    """Set columns of the rows whose columns have these values; return the number of rows."""
    return connection.execute(_where(update(table), table, key).values(dict(values))).rowcount


def drop(connection: Connection, table: Table, **key: Any) -> int:
    """Delete the rows whose columns have these values; return their number."""
    return connection.execute(_where(delete(table), table, key)).rowcount


def _where(statement: Any, table: Table, key: Mapping[str, Any]) -> Any:
    for name, value in key.items():
        column = table.c[name]
        statement = statement.where(column.in_(value) if isinstance(value, list) else column == value)
    return statement
