"""Extensions in databases of PostgreSQL servers."""

from __future__ import annotations

from typing import Unpack

from statecfg import Attrs, NodeOptions, Port, PublicLine, node_type
from statecfg.resources.databases.postgresql import postgresql_databases, postgresql_rules
from statecfg.resources.shared import paths


@node_type
def postgresql_extension(
    name: PublicLine,
    *,
    database: PublicLine,
    schema: PublicLine | None = None,
    version: PublicLine | None = None,
    cascade: bool = False,
    port: Port = 5432,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage an extension in a database of a PostgreSQL server on the host (see [postgresql_user](#postgresql_user)).

    Several databases can have the same extension; each node then needs its own `provides`.

    Undo: statecfg removes an extension that it created, unless something depends on it. An update can't be undone.

    :param name: the name of the extension
    :param database: the database
    :param schema: the schema of its objects; an existing extension stays in its schema
    :param version: the version; default: the newest for a new extension, any for an existing one
    :param cascade: also create the extensions that it needs
    :param port: the port of the server
    :param absent: the database must not contain the extension

    In YAML::

        - postgresql_extension: pg_trgm
          database: shop
          requires: ["postgresql_database:shop"]

    In Python::

        postgresql_extension("postgis", database="maps", requires=[package("postgresql-15-postgis-3")])
    """


@postgresql_extension.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse invalid names, and attributes that have no effect."""
    postgresql_rules.check_name(attrs["name"], "extension")
    postgresql_rules.check_name(attrs["database"], "database")
    paths.refuse_with_absent({**attrs, "port": None}, ("name", "absent", "database"))


postgresql_extension.identity(["postgresql:{port}: extension {name} in {database}"])
postgresql_extension.managed_by(postgresql_databases.PostgresqlExtensionEntry)
