"""Privileges of roles in PostgreSQL servers."""

from __future__ import annotations

from typing import Literal, Unpack

from statecfg import Name, NodeOptions, Port, PublicLine, node_type
from statecfg.resources.databases.postgresql import postgresql_grants, postgresql_rules


@node_type
def postgresql_grant(
    name: Name,
    *,
    role: PublicLine,
    database: PublicLine,
    privileges: list[PublicLine],
    schema: PublicLine | None = None,
    tables: Literal["all"] | list[PublicLine] | None = None,
    sequences: Literal["all"] | list[PublicLine] | None = None,
    default_for: PublicLine | None = None,
    port: Port = 5432,
    absent: bool = False,
    allow_override: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Grant privileges to a role of a PostgreSQL server on the host (see [postgresql_user](#postgresql_user)).

    Without `schema`, `tables` and `sequences`, the privileges are those on the database. The node compares the
    privileges of each object: with ``all``, an apply also grants them on objects that were created since the last one.
    Other privileges stay.

    Undo: statecfg revokes the privileges that the role did not have before.

    :param name: what the grant is for; reports and requirements use this name
    :param role: the role, or ``public`` for all roles
    :param database: the database
    :param privileges: the privileges, such as ``SELECT``, or ``ALL``
    :param schema: the schema; without `tables` and `sequences`, the privileges are those on the schema itself
    :param tables: names of tables and views, or ``all`` in the schema; its default is then public
    :param sequences: names of sequences, or ``all`` in the schema
    :param default_for: a role that creates tables or sequences: the privileges are those on each one that it will
        create in the `schema`, or in any schema without it. They don't change existing ones
    :param port: the port of the server
    :param absent: the role must not have these privileges. The node fails if it still has them from `public` or from a
        role to which it belongs
    :param allow_override: with `absent`: accept that

    In YAML::

        - postgresql_grant: reports-read
          role: reports
          database: shop
          tables: all
          privileges: [SELECT]
          requires: ["postgresql_user:reports", "postgresql_database:shop"]
        - postgresql_grant: reports-read-later
          role: reports
          database: shop
          tables: all
          default_for: shop
          privileges: [SELECT]

    In Python::

        postgresql_grant("private", role="public", database="shop", privileges=["CONNECT"], absent=True)
    """


postgresql_grant.identity([])  # several nodes can grant the same privileges
postgresql_grant.validate(postgresql_rules.check_grant)
postgresql_grant.implemented_by(postgresql_grants)
