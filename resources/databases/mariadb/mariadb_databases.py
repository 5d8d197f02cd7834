"""Databases of MariaDB: their check, the ops that change them, and the undo."""

from __future__ import annotations

from statecfg.remote.graph.model import Action
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine
from statecfg.resources.databases.databases import DatabaseEntry
from statecfg.resources.databases.mariadb import mariadb
from statecfg.resources.databases.mariadb.mariadb import key, literal, name
from statecfg.resources.shared import records

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


class MariadbDatabaseEntry(DatabaseEntry):
    """The defaults of a database. A character set changes the collation, too."""

    facet, fields, together = "mariadb", tuple(FIELDS), True

    def key(self) -> str:
        """Return the key of the database."""
        return key("database", *self.who)

    @property
    def who(self) -> tuple[str, str]:
        """The database and the socket of its server."""
        return self.attrs["name"], self.attrs["socket"]

    def present(self) -> records.Fields | None:
        """Return the database.

        :raises CheckError: if the server does not run
        """
        mariadb.server(self.world, self.attrs["socket"])
        return super().present()

    def wanted(self) -> records.Fields:
        """Return the defaults that the node sets."""
        return dict(own_names(self.attrs, mariadb.server(self.world, self.attrs["socket"])))

    def create(self, fields: records.Fields) -> list[Action]:
        """Create the database."""
        return [create_database(*self.who, fields)]

    def change(self, now: records.Fields, fields: records.Fields) -> list[Action]:
        """Change the defaults."""
        return [alter_database(*self.who, fields)]

    def remove(self, now: records.Fields) -> list[Action]:
        """Remove the database."""
        return [drop_database(*self.who)]

    def content(self) -> int:
        """Return the number of tables and views."""
        database, socket = self.who
        sql = f"SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = {literal(database)}"  # noqa: S608  # it is quoted
        return mariadb.count(self.world, socket, sql, "the content of the database " + database)
