"""The tables of services, their units and relations. Rows of different projects never meet.

What hosts say is kept as JSON: PostgreSQL takes not every text.
"""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Double, ForeignKey, Integer, String, Table, Text, UniqueConstraint

from statecfg.store.tables import Json, metadata

_NEW = {"since": 2}

# A project in this store. `mark` tells it from a project of the same name in another store: hosts remember it with the
# units they have. `next_relation` is the number of its next relation.
project = Table(
    "project",
    metadata,
    Column("name", String(255), primary_key=True),
    Column("mark", String(32), nullable=False),
    Column("next_relation", Integer, nullable=False),
    info={"since": 3},
)

# A service stays when it is destroyed (`alive`), so that `next`, the number of its next unit, never goes back.
# `settings` are the playbook's and `overrides` those of `service set`; neither holds a secret: of the secret ones only
# a slow hash with a salt of the service's own is here, so that a change of them is seen. `hosts` are those of its
# pattern when it was last deployed; `without` is what somebody took away by hand and the playbook still declares.
service = Table(
    "service",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("project", String(255), nullable=False),
    Column("name", String(255), nullable=False),
    Column("playbook", Text, nullable=False),
    Column("alive", Boolean, nullable=False),
    Column("charm", Text, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("endpoints", Json, nullable=False),
    Column("schema", Json, nullable=False),
    Column("settings", Json, nullable=False),
    Column("overrides", Json, nullable=False),
    Column("salt", String(32), nullable=False),
    Column("secrets", String(64), nullable=False),
    Column("leader", Json, nullable=False),
    Column("timeout", Double, nullable=False),
    Column("hosts", Json, nullable=False),
    Column("without", Json, nullable=False),
    Column("next", Integer, nullable=False),
    Column("created", Double, nullable=False),
    UniqueConstraint("project", "name"),
    sqlite_autoincrement=True,
    info=_NEW,
)

# `state` is the one last reached, `error` the error state it is in instead ("" for none), `tried` the run in which its
# hook failed last. `charm` and `configured` are the digests of the files and settings it has been told of, and `failed`
# of those that the hook that failed was to tell it of ("" for none).
# A unit that is `gone` stays until nobody in its relations has to be told so.
# `early`: it was made by 0.3.0 or before, which kept the charms of all projects in one directory of the host.
unit = Table(
    "unit",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("service", ForeignKey("service.id", ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("host", String(255), nullable=False, index=True),
    Column("added", Boolean, nullable=False),
    Column("dying", Boolean, nullable=False),
    Column("gone", Boolean, nullable=False),
    Column("state", String(32), nullable=False),
    Column("error", String(32), nullable=False),
    Column("failed", String(64), nullable=False),
    Column("why", Json, nullable=False),
    Column("tried", String(64), nullable=False),
    Column("charm", String(64), nullable=False),
    Column("configured", String(64), nullable=False),
    Column("addresses", Json, nullable=False),
    Column("ports", Json, nullable=False),
    Column("status", Json, nullable=False),
    Column("message", Json, nullable=False),
    Column("since", Double, nullable=False),
    Column("early", Boolean, nullable=False, default=False),
    UniqueConstraint("service", "number"),
    sqlite_autoincrement=True,
    info=_NEW,
)

# A relation of peers has no other end. `playbook` is who declares it, "" for one made by `service relate`. `number` is
# what charms see behind the colon: it counts the relations of a project from 0 and is never given again.
relation = Table(
    "relation",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("playbook", Text, nullable=False),
    Column("service", ForeignKey("service.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("name", String(255), nullable=False),
    Column("other", ForeignKey("service.id", ondelete="CASCADE"), index=True),
    Column("other_name", String(255)),
    Column("dying", Boolean, nullable=False),
    Column("created", Double, nullable=False),
    Column("number", Integer, nullable=False),
    sqlite_autoincrement=True,
    info=_NEW,
)

# A unit that has entered a relation: its settings there, and the units it was told of (`members`, names).
# `gone`: it has left; `failed` and `remote` are the hook that failed and its remote unit, `upto` the last event that
# it was to answer. `unsettled`: a run stopped the unit there because its hooks would have gone on for ever.
relation_unit = Table(
    "relation_unit",
    metadata,
    Column("relation", ForeignKey("relation.id", ondelete="CASCADE"), primary_key=True),
    Column("unit", ForeignKey("unit.id", ondelete="CASCADE"), primary_key=True, index=True),
    Column("name", String(255), nullable=False),
    Column("settings", Json, nullable=False),
    Column("members", Json, nullable=False),
    Column("gone", Boolean, nullable=False),
    Column("failed", Text, nullable=False),
    Column("remote", String(300), nullable=False),
    Column("upto", Integer, nullable=False),
    Column("why", Json, nullable=False),
    Column("tried", String(64), nullable=False),
    Column("unsettled", Boolean, nullable=False, default=False),
    info=_NEW,
)

# What happened, in the order in which it did: they are reduced when the next hook is asked for (see
# `units.scheduler`), so what happens while a hook runs is never taken for what that hook has seen.
unit_event = Table(
    "unit_event",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("unit", ForeignKey("unit.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("relation", ForeignKey("relation.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("remote", String(300), nullable=False),
    Column("op", String(16), nullable=False),
    sqlite_autoincrement=True,
    info=_NEW,
)

# What hooks said. It outlives the unit.
unit_log = Table(
    "unit_log",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("service", ForeignKey("service.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("at", Double, nullable=False),
    Column("unit", String(300), nullable=False),
    Column("hook", Json, nullable=False),
    Column("level", Integer, nullable=False),
    Column("text", Json, nullable=False),
    sqlite_autoincrement=True,
    info=_NEW,
)
