"""The tables: one schema for SQLite and PostgreSQL. Every change needs a new version in `migrations`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    CheckConstraint,
    Column,
    ColumnElement,
    Double,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)

from statecfg.store.connection import from_json, to_json

metadata = MetaData()


class Json(TypeDecorator[Any]):
    """Any JSON value, as ASCII text. The databases' JSON types lose large numbers or refuse the character NUL."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Any) -> str:
        """Convert a value to text."""
        return to_json(value)

    def process_result_value(self, value: str | None, dialect: Any) -> Any:
        """Convert a string to its value.

        :raises StoreError: the text is not JSON
        """
        return None if value is None else from_json(value)


def numbered(name: str, *columns: Any, number: str = "id", since: int = 1) -> Table:
    """Return a table whose rows are numbered in the order of their creation. A number is never used again.

    :param columns: the other columns, constraints and indexes
    :param number: the name of the column with the number
    :param since: the version of the schema that added the table
    """
    first = Column(number, Integer, primary_key=True)
    return Table(name, metadata, first, *columns, sqlite_autoincrement=True, info={"since": since})


def of_project(project: str, column: ColumnElement[str]) -> ColumnElement[bool]:
    """Return the condition that a run belongs to a project. Runs of 0.3.0 have no project, and match."""
    return column.in_(("", project))


# The version of the schema: one row.
schema_version = Table(
    "schema_version",
    metadata,
    Column("one", Integer, CheckConstraint("one = 1"), primary_key=True, autoincrement=False),
    Column("version", Integer, nullable=False),
)

# PostgreSQL: the holder of a lock (see `locks`). `expires`: by the server's clock, seconds since 1970.
lease = Table(
    "lease",
    metadata,
    Column("name", String(255), primary_key=True),
    Column("holder", Text, nullable=False),
    Column("token", Integer, nullable=False),
    Column("who", Text, nullable=False),
    Column("expires", Double, nullable=False),
)

# PostgreSQL: marks of committed transactions, so that one whose response was lost is not repeated (see `database`).
commit_mark = Table(
    "commit_mark",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("at", Double, nullable=False, index=True),
)

# A project in this store. `mark` distinguishes it from projects with the same name in other stores: hosts store it with
# their units. `next_relation` is the number of its next relation.
project = Table(
    "project",
    metadata,
    Column("name", String(255), primary_key=True),
    Column("mark", String(32), nullable=False),
    Column("next_relation", Integer, nullable=False),
    info={"since": 3},
)

# Times are seconds since 1970. `registered` is null if the host was tagged or bound and never contacted. A host in two
# projects has two rows. `project` is "" for a host from 0.3.0 whose project is unknown: the first project that changes
# the host gets the row.
host = numbered(
    "host",
    Column("project", String(255), nullable=False),
    Column("name", String(255), nullable=False),
    Column("facts", Json, nullable=False),
    Column("tags", Json, nullable=False),
    Column("metadata", Json, nullable=False),
    Column("boot_id", Text, nullable=False),
    Column("ledger", Text, nullable=False),
    Column("registered", Double),
    Column("last_checkin", Double),
    Column("installed", Text),
    Column("installed_at", Double),
    UniqueConstraint("project", "name"),
)

binding = Table(
    "binding",
    metadata,
    Column("host", ForeignKey("host.id", ondelete="CASCADE"), primary_key=True),
    Column("playbook", Text, primary_key=True),
    Column("since", Double, nullable=False),
    # Lineage of the ledger with the playbook's resources. On one host, root and other users have separate ledgers.
    Column("ledger", Text, nullable=False, default=""),
)

# `project` is "" for runs of 0.3.0 and earlier.
run = Table(
    "run",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("started", Double, nullable=False, index=True),
    Column("ended", Double, nullable=False),
    Column("mode", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("playbook", Text, nullable=False),
    Column("project", String(255), nullable=False),
)

# A run's hosts, by name: the row remains when the host is deleted.
run_host = Table(
    "run_host",
    metadata,
    Column("run", ForeignKey("run.id", ondelete="CASCADE"), primary_key=True),
    Column("host", String(255), primary_key=True, index=True),
    Column("status", Text, nullable=False),
    Column("summary", Json, nullable=False),
    Column("report", Json, nullable=False),
)

# A run that has not ended. `beat` is the time of its last heartbeat. The row is deleted when the run is recorded.
going = Table(
    "going",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("started", Double, nullable=False),
    Column("beat", Double, nullable=False),
    Column("mode", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("playbook", Text, nullable=False),
    Column("project", String(255), nullable=False),
    info={"since": 2},
)

# The hosts of such a run. `status` is "" until the run ends on the host.
going_host = Table(
    "going_host",
    metadata,
    Column("run", ForeignKey("going.id", ondelete="CASCADE"), primary_key=True),
    Column("host", String(255), primary_key=True),
    Column("status", Text, nullable=False),
    Column("summary", Json, nullable=False),
    Column("report", Json, nullable=False, server_default="null"),
    info={"since": 2},
)

# Hook objects. `folded` is the case-folded name, `folder` the directory of its type at creation, `spec` when it is
# called and how (see `hooks.records.Spec`), `access` the users who have Full Control.
hook = numbered(
    "hook",
    Column("name", String(250), nullable=False),
    Column("folded", Text, nullable=False, unique=True),
    Column("type", Text, nullable=False),
    Column("folder", Text, nullable=False),
    Column("configuration", Json, nullable=False),
    Column("spec", Json, nullable=False),
    Column("access", Json, nullable=False),
    Column("created", Double, nullable=False),
)

# The queue of hook calls, ordered by id. `host` is the host's id and `given` the program's input, both from the time of
# queuing. `started` counts how often the call was started.
invocation = numbered(
    "invocation",
    Column("hook", ForeignKey("hook.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("event", Text, nullable=False),
    Column("host", Integer),
    Column("given", Json, nullable=False),
    Column("playbook", Text),
    Column("queued", Double, nullable=False),
    Column("started", Integer, nullable=False),
)

# The facts of a host that definitions used, and when the host sent them.
host_fact = Table(
    "host_fact",
    metadata,
    Column("host", ForeignKey("host.id", ondelete="CASCADE"), primary_key=True),
    Column("name", String(255), primary_key=True),
    Column("value", Json, nullable=False),
    Column("at", Double, nullable=False),
    info={"since": 4},
)

# The log of hooks. It remains when the hook, the host or the invocation is deleted.
event = numbered(
    "event",
    Column("at", Double, nullable=False),
    Column("hook", ForeignKey("hook.id", ondelete="SET NULL"), index=True),
    Column("host", ForeignKey("host.id", ondelete="SET NULL"), index=True),
    Column("playbook", Text),
    Column("invocation", Integer, index=True),
    Column("severity", Text, nullable=False),
    Column("entry", Json, nullable=False),
    Column("detail", Text, nullable=False),
)

# Reconciled objects: a playbook on a host, as HTTP hooks see it. `digest` is the digest of its definition, `generation`
# the number of the definition, `deleted` the time when its deletion was requested. It remains when the host is deleted,
# because its finalizers must still be called.
reconciled = numbered(
    "object",
    Column("playbook", Text, nullable=False),
    Column("host", String(255), nullable=False),
    Column("spec", Json, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("generation", Integer, nullable=False),
    Column("finalizers", Json, nullable=False),
    Column("status", Json, nullable=False),
    Column("created", Double, nullable=False),
    Column("deleted", Double),
    UniqueConstraint("playbook", "host"),
)

# Owed calls of HTTP hooks. `since` is the time of the first failure, `next` the time of the next attempt.
requeue = Table(
    "requeue",
    metadata,
    Column("object", ForeignKey("object.id", ondelete="CASCADE"), primary_key=True),
    Column("hook", String(250), primary_key=True),
    Column("phase", String(32), primary_key=True),
    Column("attempts", Integer, nullable=False),
    Column("since", Double, nullable=False),
    Column("next", Double, nullable=False, index=True),
    Column("error", Text, nullable=False),
)

# The last answer of an HTTP hook to `pre-reconcile`. `sent` has the children that it received, `children` its answer.
hook_answer = Table(
    "hook_answer",
    metadata,
    Column("object", ForeignKey("object.id", ondelete="CASCADE"), primary_key=True),
    Column("hook", String(250), primary_key=True),
    Column("at", Double, nullable=False),
    Column("sent", Json, nullable=False),
    Column("children", Json, nullable=False),
    info={"since": 6},
)

store_identity = Table(
    "store_identity",
    metadata,
    Column("one", Integer, CheckConstraint("one = 1"), primary_key=True, autoincrement=False),
    Column("identity", String(32), nullable=False),
    info={"since": 3},
)
