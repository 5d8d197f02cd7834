"""The tables: one schema for SQLite and PostgreSQL. A change of it is a new version in `migrations`."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
)

metadata = MetaData()


class Json(TypeDecorator[Any]):
    """Any JSON value, as ASCII text: the databases' own types lose large numbers or refuse the character 0."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Any) -> str:
        """Return the value as text."""
        return json.dumps(value, separators=(",", ":"))

    def process_result_value(self, value: str | None, dialect: Any) -> Any:
        """Return the value of a text."""
        return None if value is None else json.loads(value)


# The schema itself: one row.
schema_version = Table(
    "schema_version",
    metadata,
    Column("one", Integer, CheckConstraint("one = 1"), primary_key=True, autoincrement=False),
    Column("version", Integer, nullable=False),
)

# PostgreSQL: who has the turn (see `turns`). `expires` by the server's clock, seconds since 1970.
lease = Table(
    "lease",
    metadata,
    Column("name", String(255), primary_key=True),
    Column("holder", Text, nullable=False),
    Column("token", Integer, nullable=False),
    Column("who", Text, nullable=False),
    Column("expires", Double, nullable=False),
)

# PostgreSQL: the writes that were committed, so that one whose answer was lost is not done twice (see `database`).
commit_mark = Table(
    "commit_mark",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("at", Double, nullable=False, index=True),
)

# Times are seconds since 1970. A host may be tagged or bound before it was ever met: then `registered` is null.
host = Table(
    "host",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(255), nullable=False, unique=True),
    Column("facts", Json, nullable=False),
    Column("tags", Json, nullable=False),
    Column("metadata", Json, nullable=False),
    Column("boot_id", Text, nullable=False),
    Column("ledger", Text, nullable=False),
    Column("registered", Double),
    Column("last_checkin", Double),
    Column("installed", Text),
    Column("installed_at", Double),
    sqlite_autoincrement=True,
)

binding = Table(
    "binding",
    metadata,
    Column("host", ForeignKey("host.id", ondelete="CASCADE"), primary_key=True),
    Column("playbook", Text, primary_key=True),
    Column("since", Double, nullable=False),
)

run = Table(
    "run",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("started", Double, nullable=False, index=True),
    Column("ended", Double, nullable=False),
    Column("mode", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("playbook", Text, nullable=False),
)

# A run's hosts by name: the record outlives a host that is forgotten.
run_host = Table(
    "run_host",
    metadata,
    Column("run", ForeignKey("run.id", ondelete="CASCADE"), primary_key=True),
    Column("host", String(255), primary_key=True, index=True),
    Column("status", Text, nullable=False),
    Column("summary", Json, nullable=False),
    Column("report", Json, nullable=False),
)
