"""PostgreSQL servers of the host: the facets with their roles, databases and extensions, and how to run SQL.

Each server is reached through its socket, as the user who runs it. So no password is needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from statecfg.remote.graph.model import CheckError
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, Probe, World
from statecfg.resources.databases import sql_answers
from statecfg.resources.shared import records
from statecfg.resources.shared.paths import nearest

SOCKETS = "/run/postgresql"
SERVER = "PostgreSQL"  # in messages
GRANTS = "postgresql_grants"  # what actions that change privileges make unknown
USER = "postgres"  # who runs a server that does not run yet
_OVERVIEW = """
SELECT json_build_object(
  'version', current_setting('server_version_num')::int,
  'roles', (SELECT coalesce(json_object_agg(rolname, json_build_object('login', rolcanlogin, 'superuser', rolsuper,
      'create_databases', rolcreatedb, 'create_roles', rolcreaterole, 'replication', rolreplication,
      'bypass_rls', rolbypassrls, 'connection_limit', rolconnlimit,
      'member_of', (SELECT coalesce(json_agg(g.rolname ORDER BY g.rolname), '[]'::json) FROM pg_auth_members m
                    JOIN pg_roles g ON g.oid = m.roleid WHERE m.member = r.oid))), '{}'::json)
    FROM pg_roles r WHERE rolname !~ '^pg_'),
  'databases', (SELECT json_object_agg(datname, json_build_object('owner', pg_get_userbyid(datdba),
      'encoding', pg_encoding_to_char(encoding), 'collate', datcollate, 'ctype', datctype))
    FROM pg_database WHERE datallowconn))
"""
_PASSWORDS = "SELECT json_object_agg(rolname, rolpassword) FROM pg_authid WHERE rolpassword IS NOT NULL"
_EXTENSIONS = """
SELECT json_object_agg(extname, json_build_object('version', extversion, 'schema', nspname))
FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace
"""


def command(port: int, database: str) -> list[str]:
    """Return the command that runs the SQL on its standard input and stops at the first error."""
    options = ["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=terse"]
    return ["psql", *options, "-h", SOCKETS, "-p", str(port), "-d", database]


def name(text: str) -> str:
    """Return a quoted name for SQL."""
    return '"%s"' % text.replace('"', '""')


def literal(text: str) -> str:
    """Return a quoted text for SQL."""
    quoted = text.replace("\\", "\\\\").replace("'", "''")
    return ("E'%s'" if "\\" in text else "'%s'") % quoted


def _servers(host: World) -> Iterator[tuple[int, str]]:
    """Yield port and user of each server with a socket."""
    if host.stat(SOCKETS) is None:
        return
    for entry in host.listdir(SOCKETS):
        found = re.match(r"\.s\.PGSQL\.([0-9]+)\Z", entry)
        stat = host.stat(f"{SOCKETS}/{entry}") if found is not None else None
        if found is not None and stat is not None:
            yield int(found.group(1)), stat.owner


def _told(host: World, port: int, user: str, database: str, sql: str) -> Any:
    """Return what a query returns as JSON, {} for nothing; None if no server answers."""
    answer = host.probe(command(port, database), user=user, input=sql.encode())
    return json.loads(answer.text.strip() or "{}") if answer.status == 0 else None


@facet("postgresql", volatile=True)
def objects(host: Any) -> dict[str, records.Fields]:
    """Load all running servers with their roles and databases."""
    loaded: dict[str, records.Fields] = {}
    for port, user in _servers(host):
        told = _told(host, port, user, "postgres", _OVERVIEW)
        if told:
            loaded[key("server", "", port)] = {"user": user, "version": told["version"]}
            for object_type in ("role", "database"):
                entries = told[object_type + "s"].items()
                loaded.update((key(object_type, each, port), fields) for each, fields in entries)
    return loaded


@facet("postgresql_passwords", volatile=True, of="postgresql")
def passwords(host: Any) -> dict[str, records.Fields]:
    """Load what the servers store in place of passwords. Reports never show it. A failed query has an entry."""
    loaded: dict[str, records.Fields] = {}
    for port, user in _servers(host):
        stored = _told(host, port, user, "postgres", _PASSWORDS)
        if stored is None:
            loaded[key("server", "", port)] = {"unread": True}
        loaded.update((key("role", role, port), {"verifier": verifier}) for role, verifier in (stored or {}).items())
    return loaded


@facet("postgresql_extensions", volatile=True)
def extensions(host: Any) -> dict[str, records.Fields]:
    """Load the extensions of all databases. A database that can't be read has an entry with an empty name."""
    loaded: dict[str, records.Fields] = {}
    for port, user in _servers(host):
        for entry in host.facet("postgresql"):
            object_type, _, rest = entry.partition(" ")
            database, _, number = rest.rpartition(" on ")
            if object_type == "database" and number == str(port):
                told = _told(host, port, user, database, _EXTENSIONS)
                if told is None:
                    loaded[extension("", database, port)] = {"unread": True}
                loaded.update((extension(each, database, port), fields) for each, fields in (told or {}).items())
    return loaded


def key(object_type: str, name: str, port: int) -> str:
    """Return the key of a server, role or database in its facet."""
    return f"{object_type}{' ' + name if name else ''} on {port}"


def extension(name: str, database: str, port: int) -> str:
    """Return the key of an extension in its facet."""
    return f"{name} in {database} on {port}"


def server(world: World, port: int) -> records.Fields:
    """Return user and version of a running server.

    :raises Unknown: if a required node may start it
    :raises CheckError: if it does not run
    """
    entry = world.entry("postgresql", key("server", "", port))
    if entry is None:
        answer = world.probe(command(port, "postgres"), user=USER, input=b"SELECT 1")
        text = "no PostgreSQL server answers on port %d of this host: %s; require the service that starts it"
        raise CheckError(text % (port, sql_answers.first_line(answer)))
    return entry


def require(world: World, object_type: str, name: str, port: int) -> records.Fields:
    """Return the entry of a role or database.

    :raises CheckError: if it does not exist
    """
    entry = world.entry("postgresql", key(object_type, name, port))
    if entry is None:
        near = nearest(name, names(world, object_type, port))
        raise CheckError(f"{object_type} {name} does not exist in PostgreSQL{near}; declare it and require it")
    return entry


def names(world: World, object_type: str, port: int) -> list[str]:
    """Return the names of all roles or databases of a server."""
    start, end = object_type + " ", f" on {port}"
    entries = [each for each in world.facet("postgresql") if each.startswith(start) and each.endswith(end)]
    return [each[len(start) : -len(end)] for each in entries]


def query(world: World, port: int, user: str, database: str, sql: str) -> Probe:
    """Run a query that only reads, on the present server.

    :raises Unknown: if a required node changes privileges, or may change the server in an unknown way
    """
    # The statement is in the arguments too, so that the answers of several queries are not mistaken for each other.
    argv = [*command(port, database), "-c", sql]
    return world.probe(argv, inputs=(GRANTS, [SOCKETS]), user=user)


def told(world: World, port: int, user: str, database: str, sql: str, what: str) -> str:
    """Return what a query prints, see `query`.

    :param what: what it reads, for the message
    :raises CheckError: if it fails; an empty answer would mean that there is nothing
    """
    return sql_answers.text(query(world, port, user, database, sql), what, SERVER)


def count(world: World, port: int, user: str, database: str, sql: str, what: str) -> int:
    """Return the number that a query prints, see `told`."""
    return sql_answers.number(query(world, port, user, database, sql), what, SERVER)


def unreadable(what: str, why: str) -> CheckError:
    """Return the error for a query that failed."""
    return sql_answers.unreadable(what, why, SERVER)


def run(
    machine: Machine,
    port: int,
    user: str,
    sql: str,
    effect: Mapping[str, Any],
    database: str = "postgres",
) -> Result:
    """Run SQL. It is on the standard input, where other users can't see it."""
    return machine.run(command(port, database), effect, user=user, input=sql.encode(), timeout=600.0)
