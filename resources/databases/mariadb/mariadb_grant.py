"""Privileges of users in MariaDB servers."""

from __future__ import annotations

from typing import Unpack

from statecfg import AbsolutePath, Name, NodeOptions, PublicLine, node_type
from statecfg.resources.databases.mariadb import mariadb, mariadb_grants, mariadb_rules


@node_type
def mariadb_grant(
    name: Name,
    *,
    user: PublicLine,
    host: PublicLine = "localhost",
    database: PublicLine,
    privileges: list[PublicLine],
    tables: list[PublicLine] | None = None,
    socket: AbsolutePath = mariadb.SOCKET,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Grant privileges to a user of a MariaDB server on the host (see [mariadb_user](#mariadb_user)).

    Other privileges of the user stay. In the name of a database, ``_`` and ``%`` are ordinary characters. Of the rows
    that match a database, the server uses only the most specific, such as one for ``my%``. statecfg compares this row.
    If it has to add a more specific one, that row gets the privileges of the former one, too. With `absent`, statecfg
    takes a privilege away from this database only, and refuses to do so if the user has it on all databases, from one
    of its roles, or like all users (``PUBLIC``).

    Undo: statecfg revokes the privileges that the user did not have before. Then the server uses the former row again.

    :param name: what the grant is for; reports and requirements use this name
    :param user: the name of the user
    :param host: the host of the user
    :param database: the database, or ``"*"`` for all databases and the server
    :param privileges: the privileges, such as ``SELECT``, or ``ALL``; ``GRANT OPTION`` is not a part of ``ALL``
    :param tables: names of tables and views; default: everything in the database
    :param socket: the socket of the server
    :param absent: the user must not have these privileges. What root and the server's own users at localhost may do on
        ``"*"`` and in the server's own databases can't be removed

    In YAML::

        - mariadb_grant: shop
          user: shop
          database: shop
          privileges: [ALL]
          requires: ["mariadb_user:shop", "mariadb_database:shop"]

    In Python::

        mariadb_grant("monitoring", user="monitor", database="*", privileges=["PROCESS"])
    """


mariadb_grant.identity([])  # several nodes can grant the same privileges
mariadb_grant.needs([])  # `user` is not a user of the host
mariadb_grant.validate(mariadb_rules.check_grant)
mariadb_grant.implemented_by(mariadb_grants)
