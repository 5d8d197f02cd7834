"""Databases of PostgreSQL servers."""

from __future__ import annotations

from typing import Unpack

from statecfg import Attrs, NodeOptions, Port, PublicLine, node_type
from statecfg.resources.databases.postgresql import postgresql_databases, postgresql_rules
from statecfg.resources.shared import paths


@node_type
def postgresql_database(
    name: PublicLine,
    *,
    owner: PublicLine | None = None,
    encoding: PublicLine | None = None,
    collate: PublicLine | None = None,
    ctype: PublicLine | None = None,
    template: PublicLine | None = None,
    port: Port = 5432,
    remove_content: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a database of a PostgreSQL server that runs on the host (see [postgresql_user](#postgresql_user)).

    Undo: statecfg removes a database that it created, if it contains no tables and views, or if you set
    `remove_content`. For an older database, it restores the owner.

    :param name: the name of the database
    :param owner: the role that owns it; default: the user who runs the server
    :param encoding: the encoding, such as ``UTF8``; an existing database can't change it, nor the next two
    :param collate: the locale for sorting, such as ``C.UTF-8``
    :param ctype: the locale for characters
    :param template: the database from which a new one is copied; default: template0
    :param port: the port of the server
    :param remove_content: remove the database also if it contains tables or views
    :param absent: the database must not exist

    In YAML::

        - postgresql_database: shop
          owner: shop
          encoding: UTF8
          requires: ["postgresql_user:shop"]

    In Python::

        postgresql_database("old", absent=True, remove_content=True)
    """


@postgresql_database.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse invalid names, the databases of the server itself, and attributes that have no effect."""
    for name in ("name", "owner", "template"):
        if attrs.get(name) is not None:
            postgresql_rules.check_name(attrs[name], name)
    if attrs.get("absent") and attrs["name"] in ("postgres", "template0", "template1"):
        raise ValueError(f"the server needs the database {attrs['name']}")
    paths.refuse_with_absent({**attrs, "port": None}, ("name", "absent", "remove_content"))


postgresql_database.identity(["postgresql:{port}: database {name}"])
postgresql_database.managed_by(postgresql_databases.PostgresqlDatabaseEntry)
