"""The tables of entities: interfaces, behaviors, types, entities, access controls, tasks and tokens."""

from __future__ import annotations

from functools import partial

from sqlalchemy import Boolean, Column, Double, ForeignKey, Index, Integer, String, Table, Text, UniqueConstraint

from statecfg.store.tables import Json, metadata, numbered

_NEW = {"since": 2}
_numbered = partial(numbered, number="number", since=2)

# Ids are URNs; ids of behaviors contain two of them. `number` is the order of creation; it is never reused.
interface = _numbered(
    "entity_interface",
    Column("id", String(255), nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("vendor", Text, nullable=False),
    Column("nss", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("readonly", Boolean, nullable=False),
)

# `owner` is the interface that contains the behavior, or the type that overrides it.
behavior = _numbered(
    "entity_behavior",
    Column("owner", String(255), nullable=False),
    Column("id", String(640), nullable=False),
    Column("ref", String(640), nullable=False),
    Column("name", Text, nullable=False),
    Column("description", Text),
    Column("execution", Json, nullable=False),
    UniqueConstraint("owner", "ref"),
)

entity_type = _numbered(
    "entity_type",
    Column("id", String(255), nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("vendor", Text, nullable=False),
    Column("nss", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("description", Text),
    Column("external_id", Text),
    Column("schema", Json, nullable=False),
    Column("interfaces", Json, nullable=False),
    Column("hooks", Json, nullable=False),
    Column("inherited_version", Text),
    Column("max_implicit_right", Text),
    Column("readonly", Boolean, nullable=False),
)

# Which types implement which interface: the reverse of the type's `interfaces`.
implemented = Table(
    "entity_type_interface",
    metadata,
    Column("interface", ForeignKey("entity_interface.id"), primary_key=True),
    Column("type", ForeignKey("entity_type.id", ondelete="CASCADE"), primary_key=True),
    info=_NEW,
)

# `owner`, `org` and `tenant` are names. The owner belongs to the organization `org` and created the entity for the
# organization `tenant`. The two differ only if the provider created it. Times are seconds since 1970.
entity = _numbered(
    "entity",
    Column("id", String(255), nullable=False, unique=True),
    Column("type", ForeignKey("entity_type.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("external_id", Text),
    Column("content", Json, nullable=False),
    Column("state", String(32), nullable=False),
    Column("message", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("owner", Text, nullable=False),
    Column("org", Text, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("created", Double, nullable=False),
    Column("modified", Double, nullable=False),
    Index("entity_by_type", "type", "number"),
    Index("entity_by_state", "type", "state"),
    Index("entity_by_name", "type", "name"),
    Index("entity_by_owner", "org", "owner"),
)

# Metadata of an entity, in addition to its content. Only administrators see the `domain` PROVIDER.
metadata_entry = _numbered(
    "entity_metadata",
    Column("id", String(255), nullable=False, unique=True),
    Column("entity", ForeignKey("entity.id", ondelete="CASCADE"), nullable=False),
    Column("domain", String(32), nullable=False),
    Column("namespace", String(255), nullable=False),
    Column("key", String(255), nullable=False),
    Column("type", String(32), nullable=False),
    Column("value", Json, nullable=False),
    Column("persistent", Boolean, nullable=False),
    Column("readonly", Boolean, nullable=False),
    Column("revision", Integer, nullable=False),
    UniqueConstraint("entity", "domain", "namespace", "key"),
)

# `object` is a type or an entity, `member` the URN of a user or an organization.
grant = _numbered(
    "entity_grant",
    Column("id", String(255), nullable=False, unique=True),
    Column("object", String(255), nullable=False),
    Column("member", String(255), nullable=False, index=True),
    Column("level", Text, nullable=False),
    UniqueConstraint("object", "member"),
)

behavior_grant = _numbered(
    "entity_behavior_grant",
    Column("type", ForeignKey("entity_type.id", ondelete="CASCADE"), nullable=False),
    Column("behavior", String(640), nullable=False),
    Column("level", Text, nullable=False),
    UniqueConstraint("type", "behavior", "level"),
)

# A task. It remains when its entity is deleted. `work` is the remaining work, including the current step. `due` is when
# a worker can claim it: 0 for immediately, the end of the lease while `worker` has it, null if there is nothing to run.
# Of the `serial` tasks of one entity, only the oldest can be claimed. `invocation` is the id of the behavior's
# invocation; its programs identify themselves with it. `log` is `details` for administrators, with names and paths.
task = _numbered(
    "entity_task",
    Column("id", String(255), nullable=False, unique=True),
    Column("parent", String(255), nullable=False, index=True),
    Column("name", String(64), nullable=False),
    Column("operation", Text, nullable=False),
    Column("entity", String(255), nullable=False, index=True),
    Column("entity_name", Text, nullable=False),
    Column("user", Text, nullable=False),
    Column("org", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("status", String(32), nullable=False, index=True),
    Column("progress", Integer, nullable=False),
    Column("details", Text, nullable=False),
    Column("log", Text, nullable=False, server_default=""),
    Column("result", Json, nullable=False),
    Column("error", Json, nullable=False),
    Column("created", Double, nullable=False),
    Column("started", Double),
    Column("ended", Double, index=True),
    Column("work", Json, nullable=False),
    Column("serial", Boolean, nullable=False),
    Column("due", Double, index=True),
    Column("worker", Text, nullable=False),
    Column("invocation", String(64), index=True),
)

# `digest` is the SHA-256 of the token; the token itself is not stored. `invocation`: the running behavior that uses the
# token; the token ends with it.
token = _numbered(
    "api_token",
    Column("digest", String(64), nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("org", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("created", Double, nullable=False),
    Column("expires", Double),
    Column("invocation", String(64), index=True),
    number="id",
)

# A browser that logged in with a token. `digest` is the SHA-256 of its cookie. `ends`: seconds since 1970.
browser_session = _numbered(
    "browser_session",
    Column("digest", String(64), nullable=False, unique=True),
    Column("token", ForeignKey("api_token.id", ondelete="CASCADE"), nullable=False),
    Column("ends", Double, nullable=False),
    since=3,
)
