"""Databases of MariaDB servers."""

from __future__ import annotations

from typing import Unpack

from statecfg import AbsolutePath, Attrs, NodeOptions, PublicLine, node_type
from statecfg.resources.databases.mariadb import mariadb, mariadb_databases, mariadb_rules
from statecfg.resources.shared import paths


@node_type
def mariadb_database(
    name: PublicLine,
    *,
    character_set: PublicLine | None = None,
    collate: PublicLine | None = None,
    socket: AbsolutePath = mariadb.SOCKET,
    remove_content: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a database of a MariaDB server that runs on the host (see [mariadb_user](#mariadb_user)).

    Undo: statecfg removes a database that it created, if it contains no tables and views, or if you set
    `remove_content`. For an older database, it restores the character set and the collation.

    :param name: the name of the database
    :param character_set: the character set of new tables, such as ``utf8mb4``; existing tables keep theirs
    :param collate: their collation, such as ``utf8mb4_unicode_ci``
    :param socket: the socket of the server
    :param remove_content: remove the database also if it contains tables or views
    :param absent: the database must not exist

    In YAML::

        - mariadb_database: shop
          character_set: utf8mb4
          requires: ["service:mariadb"]

    In Python::

        mariadb_database("old", absent=True, remove_content=True)
    """


@mariadb_database.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse invalid names, the databases of the server itself, and attributes that have no effect."""
    mariadb_rules.check_database(attrs)
    paths.refuse_with_absent({**attrs, "socket": None}, ("name", "absent", "remove_content"))


mariadb_database.identity(["mariadb:{socket}: database {name}"])
mariadb_database.managed_by(mariadb_databases.MariadbDatabaseEntry)
