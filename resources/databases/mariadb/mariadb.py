"""MariaDB servers of the host: the facets with their users and databases, and how to run SQL.

Each server is reached through its socket, as the user who runs statecfg. Debian lets root log in there without a
password.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from statecfg.remote.graph.model import CheckError
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, Probe, World
from statecfg.resources.databases import sql_answers
from statecfg.resources.shared import records
from statecfg.resources.shared.paths import nearest

SOCKET = "/run/mysqld/mysqld.sock"
DIRECTORIES = ("/run/mysqld", "/run/mysql", "/var/lib/mysql")  # of sockets: Debian, SUSE, Red Hat
SERVER = "MariaDB"  # in messages
GRANTS = "mariadb_grants"  # what actions that change privileges make unknown
# The statements are written for this mode, regardless of the server's default.
MODE = "SET sql_mode = 'NO_AUTO_CREATE_USER,STRICT_ALL_TABLES'; "
_OVERVIEW = """
SELECT JSON_OBJECT('version', VERSION(), 'utf8', CHARSET(CONVERT('' USING utf8)));
SELECT JSON_OBJECT('all', PRIVILEGE_TYPE) FROM information_schema.USER_PRIVILEGES
  WHERE GRANTEE = CONCAT("'", REPLACE(CURRENT_USER(), '@', "'@'"), "'");
SELECT JSON_OBJECT('database', SCHEMA_NAME, 'character_set', DEFAULT_CHARACTER_SET_NAME,
  'collate', DEFAULT_COLLATION_NAME) FROM information_schema.SCHEMATA;
SELECT JSON_OBJECT('user', User, 'host', Host, 'account', Priv) FROM mysql.global_priv
"""
_ACCOUNTS = "SELECT JSON_OBJECT('user', User, 'host', Host, 'account', Priv) FROM mysql.global_priv"
NATIVE = "mysql_native_password"
_TLS = ("none", "ssl", "x509", "specified")


def command(socket: str) -> list[str]:
    """Return the command that runs the SQL on its standard input and stops at the first error."""
    options = ["--batch", "--raw", "--skip-column-names", "--default-character-set=utf8mb4", "--connect-timeout=10"]
    return ["mariadb", *options, "--socket=" + socket]


def name(text: str) -> str:
    """Return a quoted name for SQL."""
    return f"`{text.replace('`', '``')}`"


def literal(text: str) -> str:
    """Return a quoted text for SQL."""
    return "'%s'" % text.replace("\\", "\\\\").replace("'", "''")


def account(user: str, host: str) -> str:
    """Return an account for SQL."""
    return f"{literal(user)}@{literal(host)}"


def _sockets(host: World) -> Iterator[str]:
    """Yield the sockets of servers."""
    for directory in DIRECTORIES:
        stat = host.stat(directory)
        for entry in host.listdir(directory) if stat is not None and stat.file_type == "directory" else ():
            if entry.endswith(".sock") and entry != "mysqlx.sock":  # the latter has another protocol
                yield f"{directory}/{entry}"


def _told(host: World, socket: str, sql: str) -> list[dict[str, Any]]:
    """Return the rows of queries, which are JSON; none if no server answers."""
    answer = host.probe(command(socket), input=(MODE + sql).encode())
    return [json.loads(line) for line in answer.text.splitlines()] if answer.status == 0 else []


def methods(account: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return how an account can log in: the plugins, each with what the server stores for it.

    Source: MariaDB's documentation of the table mysql.global_priv.
    """
    ways = [way or {**account} for way in account.get("auth_or") or [{}]]
    return [(way.get("plugin") or NATIVE, str(way.get("authentication_string", ""))) for way in ways]


def _login(account: Mapping[str, Any]) -> list[str]:
    """Return the names of the ways to log in; `password` for one with a password, none for an invalid one."""
    found = []
    for plugin, stored in methods(account):
        if plugin != NATIVE:
            found.append(plugin)
        elif not stored:
            found.append("empty password")
        elif stored.startswith("*"):
            found.append("password")
    return sorted(found)


def _fields(account: Mapping[str, Any]) -> records.Fields:
    return {
        "login": _login(account),
        "locked": bool(account.get("account_locked")),
        "max_connections": int(account.get("max_user_connections") or 0),
        "tls": _TLS[int(account.get("ssl_type") or 0) % len(_TLS)],
    }


def _accounts(rows: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield user and host of each account, and its data. Roles have no host."""
    for row in rows:
        if "account" in row and not (row["host"] == "" and row["user"]):
            data = row["account"]
            yield f"{row['user']}@{row['host']}", json.loads(data) if isinstance(data, str) else data


@facet("mariadb", volatile=True)
def objects(host: Any) -> dict[str, records.Fields]:
    """Load all running servers with their users and databases."""
    loaded: dict[str, records.Fields] = {}
    for socket in _sockets(host):
        rows = _told(host, socket, _OVERVIEW)
        if rows:
            every = sorted(row["all"] for row in rows if "all" in row)
            utf8 = rows[0]["utf8"]
            loaded[key("server", "", socket)] = {"version": rows[0]["version"], "all": every, "utf8": utf8}
        for row in rows:
            if "database" in row:
                database = row.pop("database")
                loaded[key("database", database, socket)] = row
        for user, data in _accounts(rows):
            loaded[key("user", user, socket)] = _fields(data)
    return loaded


@facet("mariadb_passwords", volatile=True, of="mariadb")
def passwords(host: Any) -> dict[str, records.Fields]:
    """Load what the servers store in place of passwords. Reports never show it."""
    loaded: dict[str, records.Fields] = {}
    for socket in _sockets(host):
        for user, data in _accounts(_told(host, socket, _ACCOUNTS)):
            for plugin, stored in methods(data):
                if plugin == NATIVE and stored.startswith("*"):
                    loaded[key("user", user, socket)] = {"digest": stored}
    return loaded


def key(object_type: str, name: str, socket: str) -> str:
    """Return the key of a server, user or database in its facet."""
    return f"{object_type}{' ' + name if name else ''} on {socket}"


def server(world: World, socket: str) -> records.Fields:
    """Return version and privileges of a running server.

    :raises Unknown: if a required node may start it
    :raises CheckError: if it does not run, or refuses this user
    """
    entry = world.entry("mariadb", key("server", "", socket))
    if entry is None:
        answer = world.probe(command(socket), input=_OVERVIEW.encode())
        text = "no MariaDB server answers on %s: %s; require the service that starts it"
        raise CheckError(text % (socket, sql_answers.first_line(answer)))
    return entry


def require(world: World, object_type: str, name: str, socket: str) -> records.Fields:
    """Return the entry of a user or database.

    :param name: of a user, with its host: ``shop@localhost``
    :raises CheckError: if it does not exist
    """
    entry = world.entry("mariadb", key(object_type, name, socket))
    if entry is None:
        start, end = object_type + " ", " on " + socket
        names = [each for each in world.facet("mariadb") if each.startswith(start) and each.endswith(end)]
        near = nearest(name, [each[len(start) : -len(end)] for each in names])
        raise CheckError(f"{object_type} {name} does not exist in MariaDB{near}; declare it and require it")
    return entry


def query(world: World, socket: str, sql: str) -> Probe:
    """Run a query that only reads, on the present server.

    :raises Unknown: if a required node changes privileges, or may change the server in an unknown way
    """
    # The statement is in the arguments, so that the answers of several queries are not mistaken for each other.
    return world.probe([*command(socket), "--execute=" + MODE + sql], inputs=(GRANTS, list(DIRECTORIES)))


def told(world: World, socket: str, sql: str, what: str) -> str:
    """Return what a query prints, see `query`.

    :param what: what it reads, for the message
    :raises CheckError: if it fails; an empty answer would mean that there is nothing
    """
    return sql_answers.text(query(world, socket, sql), what, SERVER)


def count(world: World, socket: str, sql: str, what: str) -> int:
    """Return the number that a query prints, see `told`."""
    return sql_answers.number(query(world, socket, sql), what, SERVER)


def unreadable(what: str, why: str) -> CheckError:
    """Return the error for a query that failed."""
    return sql_answers.unreadable(what, why, SERVER)


def run(machine: Machine, socket: str, sql: str, effect: Mapping[str, Any]) -> Result:
    """Run SQL. It is on the standard input, where other users can't see it."""
    return machine.run(command(socket), effect, input=(MODE + sql).encode(), timeout=600.0)
