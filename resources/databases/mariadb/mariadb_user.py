"""Users of MariaDB servers."""

from __future__ import annotations

from typing import Any, Unpack

from statecfg import AbsolutePath, Attrs, Line, NodeOptions, PublicLine, node_type
from statecfg.resources.databases.mariadb import mariadb, mariadb_rules, mariadb_users
from statecfg.resources.shared import paths


@node_type
def mariadb_user(
    name: PublicLine,
    *,
    host: PublicLine = "localhost",
    password: Line | None = None,
    unix_socket: bool = False,
    locked: bool | None = None,
    max_connections: int | None = None,
    require_tls: bool | None = None,
    socket: AbsolutePath = mariadb.SOCKET,
    allow_override: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a user of a MariaDB server (10.4 or later) on the host. Attributes that you omit stay as they are.

    statecfg connects through the server's socket as the user who runs statecfg, so root needs no password. It sends a
    digest in place of the password; neither the server's log nor the arguments of a program contain the password. If
    you write neither `password` nor `unix_socket`, an existing login stays, and a new user can't log in.

    The same name with several hosts is several users; each of these nodes then needs its own `provides`.

    The server looks for the most specific host first. If an anonymous user would take the logins of a user with a
    pattern as its host, the node fails and names it, already in the plan.

    Undo: statecfg removes a user that it created, unless views, routines, triggers or events run with its rights. For
    an older user, it restores the attributes that the node sets. It does not store passwords: a changed login stays.

    :param name: the name of the user
    :param host: the host from which the user connects; ``%`` matches any characters
    :param password: the password; a secret
    :param unix_socket: whether the user of the host with the same name can log in through the socket
    :param locked: whether the user can't log in
    :param max_connections: maximum number of connections at the same time; 0: the limit of the server
    :param require_tls: whether connections must be encrypted; not for root at localhost, who uses the socket
    :param socket: the socket of the server
    :param allow_override: accept that the server uses an anonymous user instead
    :param absent: the user must not exist

    In YAML::

        - mariadb_user: shop
          password: !secret {env: SHOP_DB_PASSWORD}
          requires: ["service:mariadb"]

    In Python::

        mariadb_user("backup", unix_socket=True)
    """


@mariadb_user.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse invalid names, changes that lock statecfg out, and attributes that have no effect."""
    mariadb_rules.check_user(attrs)
    paths.refuse_with_absent({**attrs, "socket": None}, ("name", "host", "absent"))


@mariadb_user.to_wire
def to_wire(node: Any, context: Any) -> Any:
    """Turn the password into a secret, so that no report shows it."""
    attrs = node.attrs
    if not isinstance(attrs.get("password"), str):
        return node
    name = f"mariadb-password-of-{attrs['name']}@{attrs['host']}"
    return node.with_attrs(password=context.secret(name, attrs["password"]))


mariadb_user.effect(mariadb_users.effect)
mariadb_user.identity(["mariadb:{socket}: user {name}@{host}"])
mariadb_user.managed_by(mariadb_users.MariadbUser)
