"""Privileges in MariaDB: their check, the op that grants and revokes them, and the undo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.databases.mariadb import mariadb, mariadb_roles, mariadb_rows
from statecfg.resources.databases.mariadb.mariadb import account, key, literal, name
from statecfg.resources.databases.privileges import both, items, undone
from statecfg.resources.shared import records
from statecfg.resources.shared.paths import nearest

if TYPE_CHECKING:
    from typing import NotRequired, TypedDict

    class PrivilegeMemory(TypedDict):
        """The memory of a `mariadb_grant`.

        :ivar held: object → those privileges of the node that the user had
        :ivar own: object → all privileges in the row that the node writes; None if there was no such row
        :ivar used: object → all privileges in the row that the server used
        """

        held: dict[str, list[str]]
        own: NotRequired[dict[str, list[str] | None]]
        used: NotRequired[dict[str, list[str]]]


Items = Sequence[Sequence[Sequence[str] | str]]  # objects with privileges

OPTION = "GRANT OPTION"
# Object type → its privileges; each server has its own global ones. Source: the page GRANT of MariaDB's manual.
PRIVILEGES = {
    "database": (
        "ALTER", "ALTER ROUTINE", "CREATE", "CREATE ROUTINE", "CREATE TEMPORARY TABLES", "CREATE VIEW", "DELETE",
        "DELETE HISTORY", "DROP", "EVENT", "EXECUTE", "INDEX", "INSERT", "LOCK TABLES", "REFERENCES", "SELECT",
        "SHOW CREATE ROUTINE", "SHOW VIEW", "TRIGGER", "UPDATE",
    ),
    "tables": (
        "ALTER", "CREATE", "CREATE VIEW", "DELETE", "DELETE HISTORY", "DROP", "INDEX", "INSERT", "REFERENCES", "SELECT",
        "SHOW VIEW", "TRIGGER", "UPDATE",
    ),
}  # fmt: skip


def object_type(attrs: records.Attrs) -> str:
    """Return the object type of a node."""
    return "tables" if attrs.get("tables") is not None else "global" if attrs["database"] == "*" else "database"


def pattern(database: str) -> str:
    """Return the name of a database as grants contain it, where `_` and `%` match any characters."""
    return database.replace("_", "\\_").replace("%", "\\%")


def privileges(attrs: records.Attrs, server: records.Fields) -> list[str]:
    """Return the privileges of a node; `ALL` means all of its object type that statecfg can grant on the server."""
    words = {" ".join(word.upper().split()) for word in attrs["privileges"]}
    return sorted({*words - {"ALL"}, *(_known(attrs, server) if "ALL" in words else ())})


def _known(attrs: records.Attrs, server: records.Fields) -> list[str]:
    every: Sequence[str] = server["all"]
    return [word for word in PRIVILEGES.get(object_type(attrs), every) if word in every and word != OPTION]


def _require(attrs: records.Attrs, server: records.Fields) -> None:
    known = _known(attrs, server)
    for word in privileges(attrs, server):
        if word not in known and word != OPTION:
            raise CheckError(f"statecfg can't grant {word} on this server{nearest(word, known)}")


def held(attrs: records.Attrs, world: World) -> dict[str, list[str]]:
    """Return the privileges that the rows of the user itself contain: object → privileges.

    :raises Unknown: if a required node may change them
    :raises CheckError: if they can't be read
    """
    if object_type(attrs) == "global":
        sql = "SELECT JSON_ARRAY(GRANTEE, '*', PRIVILEGE_TYPE, IS_GRANTABLE) FROM information_schema.USER_PRIVILEGES"
        found = _rows(attrs, world, f"{sql} WHERE {_of_user(attrs, exactly=True)}")
        return {row.pattern: sorted(row.words) for row in found}
    return {row.pattern: sorted(row.words) for rows in effective(attrs, world).values() for row in rows if row.own}


def effective(attrs: records.Attrs, world: World) -> dict[str, list[mariadb_rows.Row]]:
    """Return the rows that concern each object of the node, the one that the server uses first.

    The server uses only the most specific row. Rows can belong to another host pattern of the user, or to
    the anonymous user.

    :raises Unknown: if a required node may change them
    :raises CheckError: if they can't be read
    """
    columns = "SELECT JSON_ARRAY(GRANTEE, %s, PRIVILEGE_TYPE, IS_GRANTABLE) FROM information_schema.%s WHERE %s"
    who, database = _of_user(attrs), attrs["database"]
    if object_type(attrs) == "database":
        rows = _rows(attrs, world, columns % ("TABLE_SCHEMA", "SCHEMA_PRIVILEGES", who))
        return {database: mariadb_rows.of_database(rows, database)}
    where = f"{who} AND TABLE_SCHEMA = {literal(database)}"
    rows = _rows(attrs, world, columns % ("TABLE_NAME", "TABLE_PRIVILEGES", where))
    return {table: mariadb_rows.of_table(rows, table) for table in attrs["tables"]}


def _of_user(attrs: records.Attrs, exactly: bool = False) -> str:
    """Return the condition for the rows of the user.

    :param exactly: only for those of its own host, and not for those of the anonymous user
    """
    start, anonymous = f"'{attrs['user']}'@'", "''@'"
    if exactly:
        whole = start + attrs["host"] + "'"
        return f"GRANTEE = BINARY {literal(whole)}"
    own = f"LEFT(GRANTEE, {len(start)}) = BINARY {literal(start)}"
    return f"({own} OR LEFT(GRANTEE, {len(anonymous)}) = {literal(anonymous)})"


def _rows(attrs: records.Attrs, world: World, sql: str) -> list[mariadb_rows.Row]:
    answer = mariadb.told(world, attrs["socket"], sql, "the privileges of the user " + _user(attrs))
    return mariadb_rows.read(answer, attrs["user"], attrs["host"])


def _target(attrs: Mapping[str, str], what: str, each: str) -> str:
    if what == "global":
        return "*.*"
    return f"{name(each)}.*" if what == "database" else f"{name(attrs['database'])}.{name(each)}"


@op(mutex="mariadb")
def change_privileges(
    machine: Machine, user: str, host: str, socket: str, kind: str, database: str, revoke: Items, grant: Items
) -> Result:
    """Grant and revoke privileges.

    :param kind: `global`, `database` or `tables`
    :param grant: objects with privileges
    """
    where, who = {"database": database}, account(user, host)
    sql = [f"GRANT {', '.join(words)} ON {_target(where, kind, str(each))} TO {who};" for each, words in grant]
    sql += [f"REVOKE {', '.join(words)} ON {_target(where, kind, str(each))} FROM {who};" for each, words in revoke]
    return mariadb.run(machine, socket, "\n".join(sql), {"unknown": [mariadb.GRANTS]})


def action(attrs: records.Attrs, grant: Mapping[str, list[str]], revoke: Mapping[str, list[str]]) -> Action:
    """Return the action that changes privileges: object → privileges."""
    where = (attrs["user"], attrs["host"], attrs["socket"], object_type(attrs), attrs["database"])
    return change_privileges(*where, items(revoke), items(grant))


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> ActionSpec:
    """Compare the privileges with the wanted ones.

    :raises CheckError: if the user, the database or one of the tables does not exist, or statecfg can't grant them
    """
    attrs, socket = node.attrs, node.attrs["socket"]
    server = mariadb.server(world, socket)
    if attrs.get("absent"):
        grant, revoke = _removal(attrs, world, server) if _exists(attrs, world) else ({}, {})
        lost = ", ".join(privileges(attrs, server))
        text = "{} keeps its other privileges on {} in a row without {}, which replaces a row for several databases"
        left = [text.format(_user(attrs), each, lost) for each in grant]
        return ActionSpec([action(attrs, grant, revoke)] if grant or revoke else [], left=left)
    mariadb.require(world, "user", _user(attrs), socket)
    if object_type(attrs) != "global":
        mariadb.require(world, "database", attrs["database"], socket)
    _require(attrs, server)
    if object_type(attrs) == "tables":
        _require_tables(attrs, world)
    missing = _missing(attrs, world, set(privileges(attrs, server)))
    return ActionSpec([action(attrs, missing, {})] if missing else [])


def _missing(attrs: records.Attrs, world: World, wanted: set[str]) -> dict[str, list[str]]:
    """Return the privileges to grant, by object.

    A new row of the user replaces the less specific row that the server used so far, so it gets its privileges, too.
    """
    if object_type(attrs) == "global":
        missing = wanted.difference(held(attrs, world).get("*", ()))
        return {"*": sorted(missing)} if missing else {}
    found: dict[str, list[str]] = {}
    for each, rows in effective(attrs, world).items():
        now = rows[0].words if rows else set()
        if wanted - now:
            own = row_name(attrs, each)
            new = wanted - now if rows and rows[0].own and rows[0].pattern == own else wanted | now
            found[own] = sorted(new)
    return found


def row_name(attrs: records.Attrs, each: str) -> str:
    """Return the name of a database or table in the row that the node writes."""
    return pattern(each) if object_type(attrs) == "database" else each


def _removal(
    attrs: records.Attrs, world: World, server: records.Fields
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the privileges to grant and revoke so that the user has none of the privileges: object → privileges.

    :raises CheckError: if the user has them from something that this node can't change
    """
    unwanted = set(privileges(attrs, server))
    mariadb_roles.refuse_others(attrs, world, unwanted)
    if object_type(attrs) == "global":
        return {}, both(held(attrs, world), sorted(unwanted))
    grant: dict[str, list[str]] = {}
    revoke: dict[str, list[str]] = {}
    for each, rows in effective(attrs, world).items():
        rest = mariadb_rows.without(rows, (each, row_name(attrs, each)), unwanted, f"{_user(attrs)} on {each}", revoke)
        if rest:
            grant[row_name(attrs, each)] = rest
    _refuse_wider(attrs, world, unwanted)
    return grant, revoke


def _refuse_wider(attrs: records.Attrs, world: World, unwanted: set[str]) -> None:
    """Check that the user does not have the privileges on something larger, because these add up.

    :raises CheckError: if it does
    """
    wider = [{**attrs, "database": "*", "tables": None}]
    if object_type(attrs) == "tables":
        wider.append({**attrs, "tables": None})
    for larger in wider:
        if larger["database"] == "*":
            has = set(held(larger, world).get("*", ()))
        else:
            rows = effective(larger, world)[attrs["database"]]
            has = rows[0].words if rows else set()
        words = sorted((has & unwanted) - {OPTION})
        if words:
            what = "all databases" if larger["database"] == "*" else f"the database {attrs['database']}"
            text = "%s has %s on %s: revoke it there first, and require that node"
            raise CheckError(text % (_user(attrs), ", ".join(words), what))


def _require_tables(attrs: records.Attrs, world: World) -> None:
    sql = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s"
    sql %= literal(attrs["database"])
    present = mariadb.told(world, attrs["socket"], sql, "the tables of the database " + attrs["database"]).splitlines()
    for each in attrs["tables"]:
        if each not in present:
            near = nearest(each, present)
            raise CheckError(f"table {each} does not exist in the database {attrs['database']}{near}")


def _user(attrs: records.Attrs) -> str:
    return f"{attrs['user']}@{attrs['host']}"


def _exists(attrs: records.Attrs, world: World) -> bool:
    return world.entry("mariadb", key("user", _user(attrs), attrs["socket"])) is not None


def remember(node: HostNode, world: World) -> PrivilegeMemory:
    """Record which of the privileges the user has already, and the rows that the node may replace."""
    attrs = node.attrs
    server = mariadb.server(world, attrs["socket"])
    if not _exists(attrs, world):
        return {"held": {}}
    memory: PrivilegeMemory = {"held": both(held(attrs, world), privileges(attrs, server))}
    if object_type(attrs) != "global":
        found = {row_name(attrs, each): rows for each, rows in effective(attrs, world).items()}
        memory["own"] = {name: mariadb_rows.own(rows, name) for name, rows in found.items()}
        memory["used"] = {name: sorted(rows[0].words) if rows else [] for name, rows in found.items()}
    return memory


def undo(node: HostNode, memory: PrivilegeMemory, world: World) -> ActionSpec:
    """Revoke the privileges that the node granted, or grant those again that it revoked."""
    attrs, was = node.attrs, memory["held"]
    server = mariadb.server(world, attrs["socket"])
    if not _exists(attrs, world):
        return ActionSpec()
    everything, mine, absent = held(attrs, world), privileges(attrs, server), bool(attrs.get("absent"))
    lost, surplus = undone(was, both(everything, mine), absent)
    for each, words in (memory.get("own") or {}).items():
        if words is None and each in everything:  # this node has made the row
            surplus[each] = mariadb_rows.surplus(everything[each], mine, memory["used"][each], absent)
    surplus = {each: words for each, words in surplus.items() if words}
    return ActionSpec([action(attrs, lost, surplus)] if lost or surplus else [])
