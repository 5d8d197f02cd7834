"""The tables of services, their units and relations. Rows of different projects are never related.

Texts from hosts are stored as JSON, because PostgreSQL does not accept every text.
"""

from __future__ import annotations

from functools import partial

from sqlalchemy import Boolean, Column, Double, ForeignKey, Integer, String, Table, Text, UniqueConstraint

from statecfg.store.tables import Json, metadata, numbered

_NEW = {"since": 2}
_numbered = partial(numbered, since=2)

# The row of a destroyed service stays (`alive` is false), so that `next`, the number of its next unit, never decreases.
# `settings` are from the playbook, `overrides` from `service set`. Neither contains secrets: `secrets` is a slow hash
# of them with the service's own `salt`, to detect changes. `hosts` are those of its pattern at the last deployment.
# `without` lists what was removed manually although the playbook still declares it.
service = _numbered(
    "service",
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
)

# `state` is the last state that the unit reached, `error` its error state ("" for none), `tried` the run in which its
# hook failed last. `charm` and `configured` are the digests of the files and settings that the unit knows. `failed` is
# the digest of those that the failed hook should have announced ("" for none).
# The row of a unit that is `gone` stays until all units in its relations were notified.
# `early`: created by 0.3.0 or earlier, which stored the charms of all projects in one directory on the host.
unit = _numbered(
    "unit",
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
)

# A peer relation has no other end. `playbook` declares it; "" if `service relate` made it. `number` is what charms see
# after the colon: it counts the relations of a project from 0 and is never reused.
relation = _numbered(
    "relation",
    Column("playbook", Text, nullable=False),
    Column("service", ForeignKey("service.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("name", String(255), nullable=False),
    Column("other", ForeignKey("service.id", ondelete="CASCADE"), index=True),
    Column("other_name", String(255)),
    Column("dying", Boolean, nullable=False),
    Column("created", Double, nullable=False),
    Column("number", Integer, nullable=False),
)

# A unit that has entered a relation: its settings there, and the names of the units that it knows (`members`).
# `gone`: it has left. `failed` and `remote` are the failed hook and its remote unit, `upto` the last event that this
# hook handles. `unsettled`: a run stopped the unit's hooks there because they would never end.
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

# The events of units in relations, in their order. They are reduced when the next hook is determined (see
# `unit_rules.scheduler`). So events that happen while a hook runs do not count as handled by that hook.
unit_event = _numbered(
    "unit_event",
    Column("unit", ForeignKey("unit.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("relation", ForeignKey("relation.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("remote", String(300), nullable=False),
    Column("op", String(16), nullable=False),
)

# The log of the hooks. It remains when the unit is deleted.
unit_log = _numbered(
    "unit_log",
    Column("service", ForeignKey("service.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("at", Double, nullable=False),
    Column("unit", String(300), nullable=False),
    Column("hook", Json, nullable=False),
    Column("level", Integer, nullable=False),
    Column("text", Json, nullable=False),
)
