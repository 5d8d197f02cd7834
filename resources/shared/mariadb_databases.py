"""Databases of MariaDB: their check, the ops that change them, and the undo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from statecfg.remote.graph import undoing
from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import mariadb, records
from statecfg.resources.shared.mariadb import key, literal, name

if TYPE_CHECKING:
    from typing import TypedDict

    class DatabaseMemory(TypedDict):
        """The memory of a `mariadb_database`."""

        entry: records.Fields | None


# Attribute → its words in SQL.
FIELDS = {"character_set": "CHARACTER SET", "collate": "COLLATE"}


def _change(machine: Machine, verb: str, database: str, socket: str, fields: records.Fields) -> Result:
    words = [f"{FIELDS[field]} {fields[field]}" for field in FIELDS if fields.get(field) is not None]
    sql = " ".join([verb, "DATABASE", name(database), *words])
    return mariadb.run(machine, socket, sql, {"mariadb": {key("database", database, socket): fields}})


@op(mutex="mariadb")
def create_database(machine: Machine, database: str, socket: str, fields: records.Fields) -> Result:
    """Create a database."""
    return _change(machine, "CREATE", database, socket, fields)


@op(mutex="mariadb")
def alter_database(machine: Machine, database: str, socket: str, fields: records.Fields) -> Result:
    """Change the defaults of a database for new tables."""
    return _change(machine, "ALTER", database, socket, fields)


@op(mutex="mariadb")
def drop_database(machine: Machine, database: str, socket: str) -> Result:
    """Remove a database with its content."""
    effect = {"mariadb": {key("database", database, socket): None}}
    return mariadb.run(machine, socket, f"DROP DATABASE {name(database)}", effect)


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare a database with the wanted one.

    :raises CheckError: if the server does not run, or the database should be absent and is not known to be empty
    """
    attrs, socket, database = node.attrs, node.attrs["socket"], node.attrs["name"]
    server = mariadb.server(world, socket)
    entry = world.entry("mariadb", key("database", database, socket))
    if attrs.get("absent"):
        if entry is None:
            return []
        inside = "" if attrs.get("remove_content") else content(world, socket, database)
        if inside:
            text = "the database %s contains %s; remove_content: true removes it with its content"
            raise CheckError(text % (database, inside))
        return [drop_database(database, socket)]
    wanted = own_names(attrs, server)
    if entry is None:
        return [create_database(database, socket, wanted)]
    wrong = any(entry.get(field) != value for field, value in wanted.items())
    return [alter_database(database, socket, wanted)] if wrong else []


def own_names(attrs: records.Attrs, server: records.Fields) -> dict[str, str]:
    """Return the wanted defaults of a database under the names that the server shows.

    The character set `utf8` is another name of utf8mb3, or of utf8mb4 if the server is configured so. Of the collations
    that begin with `uca1400`, the server shows the character set, too.
    """
    utf8 = server.get("utf8") or "utf8mb3"
    wanted = {field: str(attrs[field]).lower() for field in FIELDS if attrs.get(field) is not None}
    for field, value in wanted.items():
        charset, line, rest = value.partition("_")
        if charset == "utf8" or (charset == "utf8mb3" and utf8 == "utf8"):
            wanted[field] = utf8 + line + rest
    if wanted.get("collate", "").startswith("uca1400_") and wanted.get("character_set"):
        wanted["collate"] = f"{wanted['character_set']}_{wanted['collate']}"
    return wanted


def content(world: World, socket: str, database: str) -> str:
    """Return what users have stored in a database; "" for nothing.

    :raises CheckError: if it can't be read
    """
    sql = f"SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = {literal(database)}"  # noqa: S608  # it is quoted
    count = mariadb.count(world, socket, sql, "the content of the database " + database)
    return f"{count} tables and views" if count else ""


def remember(node: HostNode, world: World) -> DatabaseMemory:
    """Record the defaults of an existing database."""
    mariadb.server(world, node.attrs["socket"])
    return {"entry": world.entry("mariadb", key("database", node.attrs["name"], node.attrs["socket"]))}


def undo(node: HostNode, memory: DatabaseMemory, world: World) -> ActionSpec:
    """Remove a database that the node created, unless it has content; restore the defaults of another one."""
    attrs, was, socket, database = node.attrs, memory["entry"], node.attrs["socket"], node.attrs["name"]
    server = mariadb.server(world, socket)
    entry = world.entry("mariadb", key("database", database, socket))
    if attrs.get("absent"):
        left = [f"the database {database} is not restored: statecfg does not record its content"]
        return ActionSpec(left=left if was is not None and entry is None else [])
    if entry is None:
        return ActionSpec()
    if was is None:
        inside = "" if attrs.get("remove_content") else content(world, socket, database)
        if inside:
            text = "the database %s contains %s: it stays; with remove_content: true, it is removed"
            return ActionSpec(left=[text % (database, inside)])
        return ActionSpec([drop_database(database, socket)])
    made = own_names(attrs, server)
    back, left = undoing.reverted(was, made, entry, lambda field: f"{field} of the database {database}")
    if left or not back:  # a character set changes the collation, too
        return ActionSpec(left=left)
    former = {field: was[field] for field in FIELDS}
    return ActionSpec([alter_database(database, socket, former)])
