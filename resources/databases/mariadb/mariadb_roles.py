"""Whether a user of MariaDB still has privileges that a node removes: from all users, or from one of its roles."""

from __future__ import annotations

import re

from statecfg.remote.graph.model import CheckError
from statecfg.remote.machine.world import World
from statecfg.resources.databases.mariadb import mariadb, mariadb_rows
from statecfg.resources.databases.mariadb.mariadb import literal, name
from statecfg.resources.shared import records

PUBLIC = "PUBLIC"  # MariaDB 10.11: what all users have
_ROLES = (
    "SELECT Role FROM mysql.roles_mapping WHERE User = %s AND Host = %s "
    "UNION SELECT User FROM mysql.global_priv WHERE Host = '' AND User = 'PUBLIC'"
)
_NAME = r"`((?:[^`]|``)*)`"
# A line of SHOW GRANTS. It shows the privileges of the roles that a role has, too.
_GRANT = re.compile(rf"GRANT (.+) ON (\*\.\*|{_NAME}\.(?:\*|{_NAME})) TO (?:{_NAME}|(PUBLIC))")
_OF_COLUMNS = re.compile(r"[A-Z ]+ \([^)]*\)")


def refuse_others(attrs: records.Attrs, world: World, unwanted: set[str]) -> None:
    """Check that the user has none of the privileges from elsewhere. It can use its roles whenever it likes.

    :raises CheckError: if it has one, or if the roles can't be read
    """
    who = f"{attrs['user']}@{attrs['host']}"
    for role in _roles(attrs, world, who):
        sql = "SHOW GRANTS FOR " + (role if role == PUBLIC else name(role))
        for words, each, database, table, source, public in _GRANT.findall(_told(attrs, world, sql, who)):
            if not _concerns(attrs, each, database.replace("``", "`"), table.replace("``", "`")):
                continue
            has = {word.strip() for word in _OF_COLUMNS.sub("", words).split(",")}
            found = sorted(unwanted if "ALL PRIVILEGES" in has else unwanted & has)
            if found:
                through = "from all users (PUBLIC)" if public else f"from the role {source}, which it can use"
                text = "%s still has %s on %s %s: remove it there, and require that node"
                raise CheckError(text % (who, ", ".join(found), each, through))


def _roles(attrs: records.Attrs, world: World, who: str) -> list[str]:
    """Return the roles that the user has itself."""
    return _told(attrs, world, _ROLES % (literal(attrs["user"]), literal(attrs["host"])), who).splitlines()


def _told(attrs: records.Attrs, world: World, sql: str, who: str) -> str:
    return mariadb.told(world, attrs["socket"], sql, "the roles of the user " + who)


def _concerns(attrs: records.Attrs, each: str, database: str, table: str) -> bool:
    """Return whether a privilege on an object is one on an object of the node."""
    if each == "*.*" or attrs["database"] == "*":
        return each == "*.*"
    if not table:
        return mariadb_rows.matches(database, attrs["database"])
    return database == attrs["database"] and table in (attrs.get("tables") or ())
