"""Databases of PostgreSQL and their extensions: their checks, the ops that change them, and the undo."""

from __future__ import annotations

from collections.abc import Mapping

from statecfg.remote.graph.facet_entry import FacetEntry
from statecfg.remote.graph.model import Action, ActionSpec, CheckError
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine
from statecfg.resources.databases.databases import DatabaseEntry
from statecfg.resources.databases.postgresql import postgresql
from statecfg.resources.databases.postgresql.postgresql import extension, key, literal, name
from statecfg.resources.shared import records

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


class PostgresqlDatabaseEntry(DatabaseEntry):
    """The owner of a database."""

    facet, fields = "postgresql", ("owner",)

    def key(self) -> str:
        """Return the key of the database."""
        return key("database", self.attrs["name"], self.attrs["port"])

    @property
    def who(self) -> tuple[str, int, str]:
        """The database, and the port and the user of its server. Raises CheckError if the server does not run."""
        port = self.attrs["port"]
        return self.attrs["name"], port, postgresql.server(self.world, port)["user"]

    def present(self) -> records.Fields | None:
        """Return the database.

        :raises CheckError: if the server does not run
        """
        postgresql.server(self.world, self.attrs["port"])
        return super().present()

    def require(self, now: records.Fields | None) -> None:
        """Check that the owner exists, and that the database has what can't be changed."""
        attrs = self.attrs
        if attrs.get("owner") is not None:
            postgresql.require(self.world, "role", attrs["owner"], attrs["port"])
        for field, present in (now or {}).items():
            if field in FIXED and str(present).lower() != str(attrs.get(field) or present).lower():
                text = "the database %s has the %s %s, which can't be changed: create another database"
                raise CheckError(text % (attrs["name"], field, present))

    def create(self, fields: records.Fields) -> list[Action]:
        """Create the database."""
        more = {field: self.attrs[field] for field in FIXED if self.attrs.get(field) is not None}
        owner = fields.get("owner") or self.who[2]
        return [create_database(*self.who, {"owner": owner, **more}, self.attrs.get("template"))]

    def change(self, now: records.Fields, fields: records.Fields) -> list[Action]:
        """Change the owner."""
        return [set_owner(*self.who, fields["owner"])]

    def remove(self, now: records.Fields) -> list[Action]:
        """Remove the database."""
        return [drop_database(*self.who)]

    def content(self) -> int:
        """Return the number of tables and views, without those of extensions."""
        database, port, user = self.who
        what = "the content of the database " + database
        return postgresql.count(self.world, port, user, database, _CONTENT, what)

    def give_back(self, now: records.Fields, was: records.Fields) -> ActionSpec:
        """Restore the owner, if it still exists."""
        if self.world.entry("postgresql", key("role", was["owner"], self.attrs["port"])) is None:
            text = "the database %s does not get its owner %s back: that role no longer exists"
            return ActionSpec(left=[text % (self.attrs["name"], was["owner"])])
        return super().give_back(now, was)


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


class PostgresqlExtensionEntry(FacetEntry):
    """The version of an extension, which can't go back, and its schema, which stays."""

    facet, fields = "postgresql_extensions", ("version", "schema")
    noun = "the extension"

    def key(self) -> str:
        """Return the key of the extension."""
        return extension(self.attrs["name"], self.attrs["database"], self.attrs["port"])

    @property
    def who(self) -> tuple[str, str, int, str]:
        """The extension, its database, and the port and the user of the server."""
        attrs = self.attrs
        return attrs["name"], attrs["database"], attrs["port"], postgresql.server(self.world, attrs["port"])["user"]

    def present(self) -> records.Fields | None:
        """Return the extension; None if the database does not contain it, or does not exist.

        :raises CheckError: if the server does not run, or the extensions of the database can't be read
        """
        _, database, port, _ = self.who
        if self.world.entry("postgresql", key("database", database, port)) is None:
            return None
        if self.world.entry(self.facet, extension("", database, port)) is not None:
            raise postgresql.unreadable("the extensions of the database " + database, "the query failed")
        return super().present()

    def require(self, now: records.Fields | None) -> None:
        """Check that the database exists, that the server has the extension, and that its schema is right."""
        name, database, port, user = self.who
        postgresql.require(self.world, "database", database, port)
        if now is None:
            sql = f"SELECT 1 FROM pg_available_extensions WHERE name = {literal(name)}"  # noqa: S608  # it is quoted
            if not postgresql.told(self.world, port, user, "postgres", sql, "the list of available extensions").strip():
                raise CheckError(f"the server has no extension {name}; require the package that contains it")
        elif self.attrs.get("schema") is not None and now.get("schema", self.attrs["schema"]) != self.attrs["schema"]:
            raise CheckError(f"the extension {name} is in the schema {now['schema']}, not {self.attrs['schema']}")

    def create(self, fields: records.Fields) -> list[Action]:
        """Create the extension."""
        cascade = bool(self.attrs.get("cascade"))
        return [create_extension(*self.who, fields.get("schema"), fields.get("version"), cascade)]

    def change(self, now: records.Fields, fields: records.Fields) -> list[Action]:
        """Update the extension."""
        return [update_extension(*self.who, fields["version"])] if "version" in fields else []

    def remove(self, now: records.Fields) -> list[Action]:
        """Remove the extension."""
        return [drop_extension(*self.who)]

    def drop(self, now: records.Fields) -> ActionSpec:
        """Remove a new extension, unless something depends on it."""
        name, database, port, user = self.who
        sql = "SELECT count(*) FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid WHERE d.deptype = 'n' AND "
        sql += f"d.refclassid = 'pg_extension'::regclass AND e.extname = {literal(name)}"
        dependents = postgresql.count(self.world, port, user, database, sql, "what depends on the extension " + name)
        if dependents:
            text = "the extension %s of %s stays: %d objects depend on it"
            return ActionSpec(left=[text % (name, database, dependents)])
        return super().drop(now)

    def give_back(self, now: records.Fields, was: records.Fields) -> ActionSpec:
        """Report that the new version stays."""
        text = "the extension %s stays in version %s: PostgreSQL can't downgrade extensions"
        return ActionSpec(left=[text % (self.attrs["name"], now["version"])] if "version" in was else [])
