"""Databases of PostgreSQL and their extensions: their checks, the ops that change them, and the undo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from statecfg.remote.graph import undoing
from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import postgresql, records
from statecfg.resources.shared.postgresql import extension, key, literal, name

if TYPE_CHECKING:
    from typing import TypedDict

    class EntryMemory(TypedDict):
        """The memory of a `postgresql_database` or a `postgresql_extension`."""

        entry: records.Fields | None


FIXED = ("encoding", "collate", "ctype")  # a database keeps them
_CONTENT = """
SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
"""


@op(mutex="postgresql")
def create_database(
    machine: Machine, database: str, port: int, user: str, fields: records.Fields, template: str | None = None
) -> Result:
    """Create a database."""
    words = [f"OWNER {name(fields['owner'])}"]
    words += [f"ENCODING {literal(fields['encoding'])}"] if fields.get("encoding") else []
    words += [f"LC_COLLATE {literal(fields['collate'])}"] if fields.get("collate") else []
    words += [f"LC_CTYPE {literal(fields['ctype'])}"] if fields.get("ctype") else []
    sql = f"CREATE DATABASE {name(database)} TEMPLATE {name(template or 'template0')} {' '.join(words)}"
    return postgresql.run(machine, port, user, sql, {"postgresql": {key("database", database, port): fields}})


@op(mutex="postgresql")
def set_owner(machine: Machine, database: str, port: int, user: str, owner: str) -> Result:
    """Give a database another owner."""
    sql = f"ALTER DATABASE {name(database)} OWNER TO {name(owner)}"
    effect = {"postgresql": {key("database", database, port): {"owner": owner}}, "unknown": [postgresql.GRANTS]}
    return postgresql.run(machine, port, user, sql, effect)


@op(mutex="postgresql")
def drop_database(machine: Machine, database: str, port: int, user: str) -> Result:
    """Remove a database with its content, and end its connections."""
    sql = f"DROP DATABASE {name(database)} WITH (FORCE)"
    return postgresql.run(machine, port, user, sql, {"postgresql": {key("database", database, port): None}})


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare a database with the wanted one.

    :raises CheckError: if the server does not run, the owner does not exist, or something can't be changed
    """
    attrs, port, database = node.attrs, node.attrs["port"], node.attrs["name"]
    user = postgresql.server(world, port)["user"]
    entry = world.entry("postgresql", key("database", database, port))
    if attrs.get("absent"):
        if entry is None:
            return []
        inside = "" if attrs.get("remove_content") else content(world, port, user, database)
        if inside:
            text = "the database %s contains %s; remove_content: true removes it with its content"
            raise CheckError(text % (database, inside))
        return [drop_database(database, port, user)]
    owner = attrs.get("owner")
    if owner is not None:
        postgresql.require(world, "role", owner, port)
    if entry is None:
        fields = {"owner": owner or user, **{field: attrs[field] for field in FIXED if attrs.get(field) is not None}}
        return [create_database(database, port, user, fields, attrs.get("template"))]
    for field in FIXED:
        if attrs.get(field) is not None and str(entry.get(field, attrs[field])).lower() != attrs[field].lower():
            text = "the database %s has the %s %s, which can't be changed: create another database"
            raise CheckError(text % (database, field, entry[field]))
    return [set_owner(database, port, user, owner)] if owner is not None and entry["owner"] != owner else []


def content(world: World, port: int, user: str, database: str) -> str:
    """Return what users have stored in a database; "" for nothing.

    :raises CheckError: if it can't be read
    """
    count = postgresql.count(world, port, user, database, _CONTENT, "the content of the database " + database)
    return f"{count} tables and views" if count else ""


def remember(node: HostNode, world: World) -> EntryMemory:
    """Record the owner of an existing database."""
    postgresql.server(world, node.attrs["port"])
    return {"entry": world.entry("postgresql", key("database", node.attrs["name"], node.attrs["port"]))}


def undo(node: HostNode, memory: EntryMemory, world: World) -> ActionSpec:
    """Remove a database that the node created, unless it has content; restore the owner of another one."""
    attrs, was, port, database = node.attrs, memory["entry"], node.attrs["port"], node.attrs["name"]
    user = postgresql.server(world, port)["user"]
    entry = world.entry("postgresql", key("database", database, port))
    if attrs.get("absent"):
        left = [f"the database {database} is not restored: statecfg does not record its content"]
        return ActionSpec(left=left if was is not None and entry is None else [])
    if entry is None:
        return ActionSpec()
    if was is None:
        inside = "" if attrs.get("remove_content") else content(world, port, user, database)
        if inside:
            text = "the database %s contains %s: it stays; with remove_content: true, it is removed"
            return ActionSpec(left=[text % (database, inside)])
        return ActionSpec([drop_database(database, port, user)])
    made = {"owner": attrs["owner"]} if attrs.get("owner") is not None else {}
    back, left = undoing.reverted(was, made, entry, lambda field: f"the owner of the database {database}")
    if not back:
        return ActionSpec(left=left)
    if world.entry("postgresql", key("role", was["owner"], port)) is None:
        text = "the database %s does not get its owner %s back: that role no longer exists"
        return ActionSpec(left=[text % (database, was["owner"])])
    return ActionSpec([set_owner(database, port, user, was["owner"])])


def _change(machine: Machine, attrs: Mapping[str, str], port: int, user: str, sql: str, fields: object) -> Result:
    effect = {"postgresql_extensions": {extension(attrs["name"], attrs["database"], port): fields}}
    return postgresql.run(machine, port, user, sql, effect, attrs["database"])


@op(mutex="postgresql")
def create_extension(
    machine: Machine, extension: str, database: str, port: int, user: str, schema: str | None, version: str | None,
    cascade: bool,
) -> Result:  # fmt: skip
    """Create an extension in a database."""
    words = [f"SCHEMA {name(schema)}"] if schema is not None else []
    words += [f"VERSION {literal(version)}"] if version is not None else []
    sql = f"CREATE EXTENSION {name(extension)} {' '.join(words)} {'CASCADE' if cascade else ''}"
    fields = {"version": version or "default", **({"schema": schema} if schema is not None else {})}
    return _change(machine, {"name": extension, "database": database}, port, user, sql, fields)


@op(mutex="postgresql")
def update_extension(machine: Machine, extension: str, database: str, port: int, user: str, version: str) -> Result:
    """Update an extension to a version."""
    sql = f"ALTER EXTENSION {name(extension)} UPDATE TO {literal(version)}"
    return _change(machine, {"name": extension, "database": database}, port, user, sql, {"version": version})


@op(mutex="postgresql")
def drop_extension(machine: Machine, extension: str, database: str, port: int, user: str) -> Result:
    """Remove an extension from a database, unless something depends on it."""
    sql = f"DROP EXTENSION {name(extension)}"
    return _change(machine, {"name": extension, "database": database}, port, user, sql, None)


def check_extension(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare an extension with the wanted one.

    :raises CheckError: if the database does not exist, or the server has no such extension
    """
    attrs, port, database = node.attrs, node.attrs["port"], node.attrs["database"]
    user = postgresql.server(world, port)["user"]
    if attrs.get("absent") and world.entry("postgresql", key("database", database, port)) is None:
        return []
    postgresql.require(world, "database", database, port)
    entry = _extension(attrs, world)
    if attrs.get("absent"):
        return [drop_extension(attrs["name"], database, port, user)] if entry is not None else []
    version, schema = attrs.get("version"), attrs.get("schema")
    if entry is None:
        sql = f"SELECT 1 FROM pg_available_extensions WHERE name = {literal(attrs['name'])}"  # noqa: S608  # it is quoted
        if not postgresql.told(world, port, user, "postgres", sql, "the list of available extensions").strip():
            raise CheckError(f"the server has no extension {attrs['name']}; require the package that contains it")
        return [create_extension(attrs["name"], database, port, user, schema, version, bool(attrs.get("cascade")))]
    if schema is not None and entry.get("schema", schema) != schema:
        raise CheckError(f"the extension {attrs['name']} is in the schema {entry['schema']}, not {schema}")
    if version is not None and entry["version"] != version:
        return [update_extension(attrs["name"], database, port, user, version)]
    return []


def remember_extension(node: HostNode, world: World) -> EntryMemory:
    """Record the version of an existing extension."""
    attrs = node.attrs
    postgresql.server(world, attrs["port"])
    return {"entry": _extension(attrs, world)}


def _extension(attrs: records.Attrs, world: World) -> records.Fields | None:
    """Return the entry of an extension; None if the database does not contain it.

    :raises CheckError: if the extensions of the database can't be read
    """
    database, port = attrs["database"], attrs["port"]
    if world.entry("postgresql_extensions", extension("", database, port)) is not None:
        raise postgresql.unreadable("the extensions of the database " + database, "the query failed")
    return world.entry("postgresql_extensions", extension(attrs["name"], database, port))


def undo_extension(node: HostNode, memory: EntryMemory, world: World) -> ActionSpec:
    """Remove an extension that the node created, unless something depends on it."""
    attrs, was, port, database = node.attrs, memory["entry"], node.attrs["port"], node.attrs["database"]
    user = postgresql.server(world, port)["user"]
    if world.entry("postgresql", key("database", database, port)) is None:
        return ActionSpec()
    entry = _extension(attrs, world)
    if attrs.get("absent"):
        if was is None or entry is not None:
            return ActionSpec()
        return ActionSpec([create_extension(attrs["name"], database, port, user, was["schema"], was["version"], False)])
    if entry is None:
        return ActionSpec()
    if was is not None:
        same = attrs.get("version") is None or entry["version"] == was["version"]
        text = "the extension %s stays in version %s: PostgreSQL can't downgrade extensions"
        text %= (attrs["name"], entry["version"])
        return ActionSpec(left=[] if same else [text])
    sql = "SELECT count(*) FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid WHERE d.deptype = 'n' AND "
    sql += f"d.refclassid = 'pg_extension'::regclass AND e.extname = {literal(attrs['name'])}"
    what = "what depends on the extension " + attrs["name"]
    dependents = postgresql.count(world, port, user, database, sql, what)
    if dependents:
        text = "the extension %s of %s stays: %d objects depend on it"
        return ActionSpec(left=[text % (attrs["name"], database, dependents)])
    return ActionSpec([drop_extension(attrs["name"], database, port, user)])
