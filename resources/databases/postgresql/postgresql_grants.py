"""Privileges in PostgreSQL: their check, the op that grants and revokes them, and the undo."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.databases import sql_answers
from statecfg.resources.databases.postgresql import postgresql, postgresql_effect
from statecfg.resources.databases.postgresql.postgresql import key, literal, name
from statecfg.resources.databases.privileges import both, items, undone, without
from statecfg.resources.shared import records

if TYPE_CHECKING:
    from typing import TypedDict

    class GrantMemory(TypedDict):
        """The memory of a `postgresql_grant`: object → those privileges of the node that the role had."""

        held: dict[str, list[str]]


Items = Sequence[Sequence[Sequence[str] | str]]  # objects with privileges

# Object type → all its privileges. Source: the chapter "Privileges" of PostgreSQL's manual.
PRIVILEGES = {
    "database": ("CREATE", "CONNECT", "TEMPORARY"),
    "schema": ("CREATE", "USAGE"),
    "tables": ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"),
    "sequences": ("SELECT", "UPDATE", "USAGE"),
}
_WORDS = {"database": "DATABASE", "schema": "SCHEMA", "tables": "TABLE", "sequences": "SEQUENCE"}
# Object type → the catalog with the objects, the column of their names, and their access list.
CATALOGS = {
    "database": ("pg_database", "datname", "coalesce(datacl, acldefault('d', datdba))"),
    "schema": ("pg_namespace", "nspname", "coalesce(nspacl, acldefault('n', nspowner))"),
    "tables": (
        "pg_class JOIN pg_namespace n ON n.oid = relnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')",
        "relname",
        "coalesce(relacl, acldefault('r', relowner))",
    ),
    "sequences": (
        "pg_class JOIN pg_namespace n ON n.oid = relnamespace AND relkind = 'S'",
        "relname",
        "coalesce(relacl, acldefault('s', relowner))",
    ),
}
# Object type → its letter in pg_default_acl, and its name in ALTER DEFAULT PRIVILEGES.
_DEFAULTS = {"tables": ("r", "TABLES"), "sequences": ("S", "SEQUENCES")}
FUTURE = "future "  # precedes the type of these objects in ops


def object_type(attrs: records.Attrs) -> str:
    """Return the object type of a node."""
    for each in ("tables", "sequences", "schema"):
        if attrs.get(each) is not None:
            return each
    return "database"


def privileges(attrs: records.Attrs) -> list[str]:
    """Return the privileges of a node; `ALL` means all of its object type."""
    words = ["TEMPORARY" if word.upper() == "TEMP" else word.upper() for word in attrs["privileges"]]
    return sorted(PRIVILEGES[object_type(attrs)] if "ALL" in words else set(words))


def named(attrs: records.Attrs) -> list[str] | None:
    """Return the names of the objects of a node; None for all of the object type in the schema."""
    what = object_type(attrs)
    if attrs.get("default_for") is not None:
        return [attrs["default_for"]]
    if what in ("tables", "sequences"):
        return None if attrs[what] == "all" else list(attrs[what])
    return [attrs[what]]


def held(attrs: records.Attrs, world: World, user: str) -> dict[str, list[str]]:
    """Return the privileges that the role has on each object that exists: object → privileges.

    With `default_for`, the object is the role that creates the objects of the future.

    :raises Unknown: if a required node may change them
    :raises CheckError: if the database can't be read
    """
    what, database, port = object_type(attrs), attrs["database"], attrs["port"]
    public = attrs["role"].lower() == "public"
    found = _objects(attrs)
    sql = "SELECT coalesce(json_object_agg(object, words), '{}') FROM (%s) x" % found  # noqa: S608  # the same
    answer = postgresql.query(world, port, user, database, sql)
    if answer.status == 0:
        told: dict[str, list[str]] = json.loads(answer.text)
        return told
    entry = world.entry("postgresql", key("database", database, port))
    if entry is None:
        return {}
    sql = f"SELECT count(*) FROM pg_database WHERE datname = {literal(database)}"  # noqa: S608  # the same
    if postgresql.count(world, port, user, "postgres", sql, "the privileges of the role " + attrs["role"]):
        raise postgresql.unreadable("the privileges of the role " + attrs["role"], sql_answers.first_line(answer))
    if attrs.get("default_for") is not None:
        return {attrs["default_for"]: []}
    # An action of this plan creates the database: it has a schema `public`, no tables, and the default privileges.
    version = postgresql.server(world, port)["version"]
    defaults: dict[str, list[str]] = {database: [], "public": []} if what in ("database", "schema") else {}
    if public and defaults:
        defaults = {database: ["CONNECT", "TEMPORARY"], "public": ["USAGE", *(["CREATE"] if version < 150000 else [])]}
    elif entry.get("owner") == attrs["role"] and defaults:
        defaults[database] = list(PRIVILEGES["database"])
    return {each: defaults[each] for each in named(attrs) or () if each in defaults}


def _objects(attrs: records.Attrs) -> str:
    """Return the query for the objects of a node, each with the privileges that the role has."""
    what, who = object_type(attrs), literal(attrs["role"])
    by_name = f"(SELECT oid FROM pg_roles WHERE rolname = {who})"  # noqa: S608  # it is quoted
    grantee = "0" if attrs["role"].lower() == "public" else by_name
    words = "array_remove(array_agg(a.privilege_type), NULL) AS words"
    joined = f"LEFT JOIN LATERAL aclexplode(%s) a ON a.grantee = {grantee}"
    found = "SELECT %s AS object, %s FROM %s %s WHERE %s GROUP BY 1"
    if attrs.get("default_for") is None:
        catalog, column, access = CATALOGS[what]
        return found % (column, words, catalog, joined % access, " AND ".join(rules(attrs, column)))
    letter, namespace, built_in = _DEFAULTS[what][0], "0", f"acldefault('{_DEFAULTS[what][0].lower()}', r.oid)"
    if _schema(attrs):  # privileges in a schema are only added to those in all schemas
        namespace = f"(SELECT oid FROM pg_namespace WHERE nspname = {literal(_schema(attrs))})"  # noqa: S608  # quoted
        built_in = "NULL"
    on = f"d.defaclrole = r.oid AND d.defaclobjtype = '{letter}' AND d.defaclnamespace = {namespace}"
    catalog = f"pg_roles r LEFT JOIN pg_default_acl d ON {on}"
    access = f"coalesce(d.defaclacl, {built_in})"
    return found % ("rolname", words, catalog, joined % access, f"rolname = {literal(attrs['default_for'])}")


def rules(attrs: records.Attrs, column: str) -> list[str]:
    """Return the conditions for the objects of a node.

    :param column: the column with their names
    """
    names = named(attrs)
    found = [f"{column} IN ({', '.join(map(literal, names))})"] if names is not None else []
    inside = object_type(attrs) in ("tables", "sequences")
    return [*found, f"n.nspname = {literal(_schema(attrs))}"] if inside else found


def _schema(attrs: records.Attrs) -> str:
    """Return the schema of a node's objects; "" for all schemas."""
    return str(attrs.get("schema") or ("public" if attrs.get("default_for") is None else ""))


@op(mutex="postgresql")
def change_privileges(
    machine: Machine,
    role: str,
    database: str,
    port: int,
    user: str,
    kind: str,
    schema: str,
    grant: Items,
    revoke: Items,
) -> Result:
    """Grant and revoke privileges.

    :param kind: the type of the objects; after `FUTURE`, that of the objects which the given roles will create
    :param grant: objects, each with the privileges to grant
    :param revoke: objects, each with the privileges to revoke
    """
    who = "PUBLIC" if role.lower() == "public" else name(role)
    rows = []
    for verb, word, changed in (("GRANT", "TO", grant), ("REVOKE", "FROM", revoke)):
        for each, words in changed:
            if kind.startswith(FUTURE):
                objects = _DEFAULTS[kind[len(FUTURE) :]][1]
                within = f" IN SCHEMA {name(schema)}" if schema else ""
                rows.append(f"ALTER DEFAULT PRIVILEGES FOR ROLE {name(str(each))}{within}")
            else:
                target = name(str(each)) if kind in ("database", "schema") else f"{name(schema)}.{name(str(each))}"
                objects = f"{_WORDS[kind]} {target}"
            rows.append(f"{verb} {', '.join(words)} ON {objects} {word} {who};")
    sql = "BEGIN;\n%s\nCOMMIT;" % "\n".join(rows)
    return postgresql.run(machine, port, user, sql, {"unknown": [postgresql.GRANTS]}, database)


def action(attrs: records.Attrs, user: str, grant: Mapping[str, list[str]], revoke: Mapping[str, list[str]]) -> Action:
    """Return the action that changes privileges: object → privileges."""
    kind = (FUTURE if attrs.get("default_for") is not None else "") + object_type(attrs)
    where = (attrs["role"], attrs["database"], attrs["port"], user, kind, _schema(attrs))
    return change_privileges(*where, items(grant), items(revoke))


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the privileges with the wanted ones.

    :raises CheckError: if the role, the database or one of the objects does not exist
    """
    attrs, port = node.attrs, node.attrs["port"]
    user = postgresql.server(world, port)["user"]
    if attrs.get("absent") and not _exists(attrs, world):
        return []
    postgresql.require(world, "database", attrs["database"], port)
    if attrs["role"].lower() != "public":
        postgresql.require(world, "role", attrs["role"], port)
    if attrs.get("default_for") is not None:
        postgresql.require(world, "role", attrs["default_for"], port)
    now, wanted = held(attrs, world, user), privileges(attrs)
    if attrs.get("absent"):
        objects = CATALOGS[object_type(attrs)]
        sql = postgresql_effect.query(attrs["role"], objects, rules(attrs, objects[1]))
        postgresql_effect.refuse_elsewhere(node, world, user, wanted, sql)
        surplus = both(now, wanted)
        return [action(attrs, user, {}, surplus)] if surplus else []
    for each in named(attrs) or ():
        if each not in now:
            what = object_type(attrs).rstrip("s")
            raise CheckError(f"{what} {each} does not exist in the database {attrs['database']}")
    missing = without(dict.fromkeys(now, wanted), now)
    if not now or (missing and attrs.get("default_for") is not None):
        _require_schema(attrs, world, user)
    return [action(attrs, user, missing, {})] if missing else []


def _require_schema(attrs: records.Attrs, world: World, user: str) -> None:
    """Check that the schema exists. A database that this plan creates has only the schema `public`.

    :raises CheckError: if it does not
    """
    schema, port = _schema(attrs), attrs["port"]
    if schema in ("", "public"):
        return
    sql = f"SELECT count(*) FROM pg_namespace WHERE nspname = {literal(schema)}"  # noqa: S608  # it is quoted
    answer = postgresql.query(world, port, user, attrs["database"], sql)
    if answer.status or answer.text.strip() == "0":
        raise CheckError(f"schema {schema} does not exist in the database {attrs['database']}; require what creates it")


def _exists(attrs: records.Attrs, world: World) -> bool:
    database = world.entry("postgresql", key("database", attrs["database"], attrs["port"]))
    role = world.entry("postgresql", key("role", attrs["role"], attrs["port"]))
    return database is not None and (role is not None or attrs["role"].lower() == "public")


def remember(node: HostNode, world: World) -> GrantMemory:
    """Record which of the privileges the role has already."""
    attrs = node.attrs
    user = postgresql.server(world, attrs["port"])["user"]
    return {"held": both(held(attrs, world, user), privileges(attrs)) if _exists(attrs, world) else {}}


def undo(node: HostNode, memory: GrantMemory, world: World) -> ActionSpec:
    """Revoke the privileges that the node granted, or grant those again that it revoked."""
    attrs, was = node.attrs, memory["held"]
    user = postgresql.server(world, attrs["port"])["user"]
    if not _exists(attrs, world):
        return ActionSpec()
    held_now = held(attrs, world, user)
    lost, surplus = undone(was, both(held_now, privileges(attrs)), bool(attrs.get("absent")))
    lost = {each: words for each, words in lost.items() if each in held_now}
    return ActionSpec([action(attrs, user, lost, surplus)] if lost or surplus else [])
