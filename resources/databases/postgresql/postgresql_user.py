"""Users and groups of PostgreSQL servers."""

from __future__ import annotations

from typing import Any, Unpack

from statecfg import Attrs, Line, NodeOptions, Port, PublicLine, node_type
from statecfg.resources.databases.postgresql import postgresql_roles, postgresql_rules
from statecfg.resources.shared import paths


@node_type
def postgresql_user(
    name: PublicLine,
    *,
    password: Line | None = None,
    login: bool = True,
    superuser: bool | None = None,
    create_databases: bool | None = None,
    create_roles: bool | None = None,
    replication: bool | None = None,
    bypass_rls: bool | None = None,
    connection_limit: int | None = None,
    member_of: list[PublicLine] | None = None,
    port: Port = 5432,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a role of a PostgreSQL server that runs on the host. Attributes that you omit stay as they are.

    statecfg connects through the server's socket as the user who runs the server, so it needs no password. It sends a
    verifier (SCRAM-SHA-256) in place of the password; neither the server's log nor the arguments of a program contain
    the password.

    Undo: statecfg removes a role that it created, unless the role still owns something. For an older role, it restores
    the attributes that the node sets. It does not store passwords: a changed password stays changed.

    :param name: the name of the role
    :param password: the password; a secret
    :param login: whether the role can log in; false for a group of roles
    :param superuser: whether it may do everything
    :param create_databases: whether it may create databases
    :param create_roles: whether it may create roles
    :param replication: whether it may start replication
    :param bypass_rls: whether row-level security does not apply to it
    :param connection_limit: maximum number of its connections; -1: no limit
    :param member_of: the exact list of roles that it is a member of
    :param port: the port of the server, which is part of the name of its socket
    :param absent: the role must not exist

    In YAML::

        - postgresql_user: shop
          password: !secret {env: SHOP_DB_PASSWORD}
          requires: ["service:postgresql"]

    In Python::

        postgresql_user("readers", login=False)
    """


@postgresql_user.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse invalid names, and attributes that have no effect."""
    postgresql_rules.check_name(attrs["name"], "name")
    for group in attrs.get("member_of") or ():
        postgresql_rules.check_name(group, "member_of")
    paths.refuse_with_absent({**attrs, "login": None, "port": None}, ("name", "absent"))


@postgresql_user.to_wire
def to_wire(node: Any, context: Any) -> Any:
    """Turn the password into a secret, so that no report shows it."""
    password = node.attrs.get("password")
    if not isinstance(password, str):
        return node
    return node.with_attrs(password=context.secret("postgresql-password-of-" + node.attrs["name"], password))


postgresql_user.identity(["postgresql:{port}: role {name}"])
postgresql_user.managed_by(postgresql_roles.PostgresqlRole)
