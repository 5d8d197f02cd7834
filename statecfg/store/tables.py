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
    UniqueConstraint,
)

from statecfg.store import StoreError

metadata = MetaData()


class Json(TypeDecorator[Any]):
    """Any JSON value, as ASCII text: the databases' own types lose large numbers or refuse the character 0."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Any) -> str:
        """Return the value as text."""
        return json.dumps(value, separators=(",", ":"))

    def process_result_value(self, value: str | None, dialect: Any) -> Any:
        """Return the value of a text. Raises StoreError where it is damaged."""
        try:
            return None if value is None else json.loads(value)
        except ValueError:
            raise StoreError(
                "the store is damaged: it holds a text that is no JSON", "put a backup in its place"
            ) from None


# The schema itself: one row.
schema_version = Table(
    "schema_version",
    metadata,
    Column("one", Integer, CheckConstraint("one = 1"), primary_key=True, autoincrement=False),
    Column("version", Integer, nullable=False),
)

# PostgreSQL: the holder of a lock (see `locks`). `expires` by the server's clock, seconds since 1970.
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
# `project`: a host that two projects have is two rows. It is "" for a host of 0.3.0 whose project is not known: the
# first project that asks for the host gets the row.
host = Table(
    "host",
    metadata,
    Column("id", Integer, primary_key=True),
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
    sqlite_autoincrement=True,
)

binding = Table(
    "binding",
    metadata,
    Column("host", ForeignKey("host.id", ondelete="CASCADE"), primary_key=True),
    Column("playbook", Text, primary_key=True),
    Column("since", Double, nullable=False),
    # Lineage of the ledger that has the playbook's resources: root's and another user's on one host are two.
    Column("ledger", Text, nullable=False, default=""),
)

# `project` is "" for runs of 0.3.0 and before.
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

# A run that has begun and not ended. `beat` is when it last said that it goes on; the row goes when the run is entered.
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

# Its hosts; `status` is "" as long as the run goes on there.
going_host = Table(
    "going_host",
    metadata,
    Column("run", ForeignKey("going.id", ondelete="CASCADE"), primary_key=True),
    Column("host", String(255), primary_key=True),
    Column("status", Text, nullable=False),
    Column("summary", Json, nullable=False),
    info={"since": 2},
)

# Hook objects. `folded` is the name without regard to case; `folder`, where its type was when it was made; `spec`, what
# it is for (see `hooks.records.HookObject`); `access`, the users who have Full Control of it.
hook = Table(
    "hook",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(250), nullable=False),
    Column("folded", Text, nullable=False, unique=True),
    Column("type", Text, nullable=False),
    Column("folder", Text, nullable=False),
    Column("configuration", Json, nullable=False),
    Column("spec", Json, nullable=False),
    Column("access", Json, nullable=False),
    Column("created", Double, nullable=False),
    sqlite_autoincrement=True,
)

# The queue: what is still to be run, by id. `host` is the host's id then, and `given` what was known of it; `started`
# counts how often it was begun.
invocation = Table(
    "invocation",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("hook", ForeignKey("hook.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("event", Text, nullable=False),
    Column("host", Integer),
    Column("given", Json, nullable=False),
    Column("playbook", Text),
    Column("queued", Double, nullable=False),
    Column("started", Integer, nullable=False),
    sqlite_autoincrement=True,
)

# The log of hooks. It outlives the hook, the host and the invocation.
event = Table(
    "event",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at", Double, nullable=False),
    Column("hook", ForeignKey("hook.id", ondelete="SET NULL"), index=True),
    Column("host", ForeignKey("host.id", ondelete="SET NULL"), index=True),
    Column("playbook", Text),
    Column("invocation", Integer, index=True),
    Column("severity", Text, nullable=False),
    Column("entry", Json, nullable=False),
    Column("detail", Text, nullable=False),
    sqlite_autoincrement=True,
)

# Reconciled objects: a playbook on a host, as HTTP hooks know it. `digest` is that of its definition, and `generation`
# counts how often that has changed; `deleted` is when its end was asked for. It outlives the host's record, since its
# finalizers are still to be called.
reconciled = Table(
    "object",
    metadata,
    Column("id", Integer, primary_key=True),
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
    sqlite_autoincrement=True,
)

# Calls of HTTP hooks that failed and are still owed; `since` is when the first try failed, `next` when to try again.
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
