"""Privileges in MariaDB: their check, the op that grants and revokes them, and the undo."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import mariadb, records
from statecfg.resources.shared.mariadb import account, key, literal, name
from statecfg.resources.shared.paths import nearest

if TYPE_CHECKING:
    from typing import TypedDict

    class PrivilegeMemory(TypedDict):
        """The memory of a `mariadb_grant`: object → those privileges of the node that the user had."""

        held: dict[str, list[str]]


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
_VIEWS = {
    "global": ("USER_PRIVILEGES", "'*'"),
    "database": ("SCHEMA_PRIVILEGES", "TABLE_SCHEMA"),
    "tables": ("TABLE_PRIVILEGES", "TABLE_NAME"),
}


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
    """Return the privileges that the user has: object → privileges. A database can be there in two spellings.

    :raises Unknown: if a required node may change them
    :raises CheckError: if they can't be read
    """
    what = object_type(attrs)
    view, column = _VIEWS[what]
    grantee = f"'{attrs['user']}'@'{attrs['host']}'"
    rules = [f"GRANTEE = BINARY {literal(grantee)}"]
    if what == "database":
        both = sorted({attrs["database"], pattern(attrs["database"])})
        rules.append(f"TABLE_SCHEMA IN ({', '.join(map(literal, both))})")
    elif what == "tables":
        rules.append(f"TABLE_SCHEMA = {literal(attrs['database'])}")
        rules.append(f"TABLE_NAME IN ({', '.join(map(literal, attrs['tables']))})")
    sql = "SELECT JSON_ARRAY(%s, PRIVILEGE_TYPE, IS_GRANTABLE) FROM information_schema.%s WHERE %s"
    sql %= (column, view, " AND ".join(rules))
    answer = mariadb.told(world, attrs["socket"], sql, "the privileges of the user " + _user(attrs))
    found: dict[str, list[str]] = {}
    for line in answer.splitlines():
        each, word, grantable = json.loads(line)
        words = found.setdefault(each, [])
        words += [new for new in (word, OPTION) if new not in words and (new == word or grantable == "YES")]
    return {each: sorted(word for word in words if word != "USAGE") for each, words in found.items()}


def _target(attrs: Mapping[str, str], what: str, each: str) -> str:
    if what == "global":
        return "*.*"
    return f"{name(each)}.*" if what == "database" else f"{name(attrs['database'])}.{name(each)}"


@op(mutex="mariadb")
def change_privileges(
    machine: Machine, user: str, host: str, socket: str, kind: str, database: str, grant: Items, revoke: Items
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
    return change_privileges(*where, _items(grant), _items(revoke))


def _items(privileges: Mapping[str, list[str]]) -> Items:
    return [[each, words] for each, words in sorted(privileges.items())]


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the privileges with the wanted ones.

    :raises CheckError: if the user, the database or one of the tables does not exist, or statecfg can't grant them
    """
    attrs, socket = node.attrs, node.attrs["socket"]
    server = mariadb.server(world, socket)
    if attrs.get("absent"):
        surplus = _both(held(attrs, world), privileges(attrs, server)) if _exists(attrs, world) else {}
        return [action(attrs, {}, surplus)] if surplus else []
    mariadb.require(world, "user", _user(attrs), socket)
    if object_type(attrs) != "global":
        mariadb.require(world, "database", attrs["database"], socket)
    _require(attrs, server)
    wanted, now = privileges(attrs, server), held(attrs, world)
    if object_type(attrs) != "tables":
        has = {word for words in now.values() for word in words}
        each = pattern(attrs["database"]) if object_type(attrs) == "database" else "*"
        missing = {each: [word for word in wanted if word not in has]}
    else:
        _require_tables(attrs, world)
        missing = {each: [word for word in wanted if word not in now.get(each, ())] for each in attrs["tables"]}
    missing = {each: words for each, words in missing.items() if words}
    return [action(attrs, missing, {})] if missing else []


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


def _both(now: Mapping[str, Iterable[str]], wanted: Sequence[str]) -> dict[str, list[str]]:
    """Return the objects with those of the privileges that they have."""
    found = {each: [word for word in wanted if word in has] for each, has in now.items()}
    return {each: words for each, words in found.items() if words}


def remember(node: HostNode, world: World) -> PrivilegeMemory:
    """Record which of the privileges the user has already."""
    attrs = node.attrs
    server = mariadb.server(world, attrs["socket"])
    return {"held": _both(held(attrs, world), privileges(attrs, server)) if _exists(attrs, world) else {}}


def undo(node: HostNode, memory: PrivilegeMemory, world: World) -> ActionSpec:
    """Revoke the privileges that the node granted, or grant those again that it revoked."""
    attrs, was = node.attrs, memory["held"]
    server = mariadb.server(world, attrs["socket"])
    if not _exists(attrs, world):
        return ActionSpec()
    now = _both(held(attrs, world), privileges(attrs, server))
    if attrs.get("absent"):
        lost = {each: [word for word in words if word not in now.get(each, ())] for each, words in was.items()}
        lost = {each: words for each, words in lost.items() if words}
        return ActionSpec([action(attrs, lost, {})] if lost else [])
    surplus = {each: [word for word in words if word not in was.get(each, ())] for each, words in now.items()}
    surplus = {each: words for each, words in surplus.items() if words}
    return ActionSpec([action(attrs, {}, surplus)] if surplus else [])
