"""A connection to the store inside a transaction, for SQL text and for statements of SQLAlchemy.

Statements that ordinary runs execute are SQL text that SQLite and PostgreSQL both accept. So a run whose store is a
file does not load SQLAlchemy, which would take a third of its time. All other statements are SQLAlchemy's.
Reasons: docs/decisions/runs-without-sqlalchemy.md
"""

from __future__ import annotations

import abc
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from statecfg.store.errors import StoreError

if TYPE_CHECKING:
    import sqlalchemy

    Result = sqlalchemy.CursorResult[*tuple[Any, ...]]

Row = Mapping[str, Any]  # column → value


class Connection(abc.ABC):
    """A connection inside a transaction. Only the functions that receive it use it, one at a time.

    :ivar shared: whether the database is PostgreSQL
    """

    shared: bool

    @property
    @abc.abstractmethod
    def full(self) -> sqlalchemy.Connection:
        """SQLAlchemy's connection, in the same transaction."""

    @abc.abstractmethod
    def rows(self, query: str, /, **values: Any) -> list[Row]:
        """Return the rows that a query finds.

        :param query: SQL text with `:NAME` for each value
        """

    @abc.abstractmethod
    def change(self, statement: str, /, *rows: Row, **values: Any) -> int:
        """Execute a statement once, or once for each row of values; return the number of changed rows.

        :param statement: SQL text with `:NAME` for each value
        """

    @abc.abstractmethod
    def add(self, statement: str, /, **values: Any) -> int:
        """Execute an INSERT of one row; return the `id` that the database gave it."""

    def execute(self, statement: Any, *parameters: Any, **options: Any) -> Result:
        """Execute a statement of SQLAlchemy. Parameters: those of SQLAlchemy's method."""
        return self.full.execute(statement, *parameters, **options)

    def exec_driver_sql(self, statement: str) -> Result:
        """Execute SQL text in the database's own dialect."""
        return self.full.exec_driver_sql(statement)


def row_of(connection: Connection, query: str, /, **values: Any) -> Row | None:
    """Return the row that a query finds, or None. There is at most one."""
    rows = connection.rows(query, **values)
    assert len(rows) < 2, query
    return rows[0] if rows else None


def among(name: str, values: Iterable[Any]) -> tuple[str, dict[str, Any]]:
    """Return the SQL text of a list of values, for `IN`, and the values by name. An empty list contains nothing.

    :param name: the names of the values begin with it
    """
    named = {f"{name}_{number}": value for number, value in enumerate(values)}
    return "(" + (", ".join(f":{key}" for key in named) or "NULL") + ")", named


def to_json(value: Any) -> str:
    """Return a value as a column contains it: as JSON in ASCII."""
    return json.dumps(value, separators=(",", ":"))


def from_json(text: Any) -> Any:
    """Return the value that a column with JSON contains.

    :raises StoreError: it is not JSON
    """
    try:
        return json.loads(text)
    except (ValueError, TypeError):
        raise StoreError("the store is damaged: it contains a value that is not JSON", "restore a backup") from None
