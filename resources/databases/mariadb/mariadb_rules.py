"""Rules for objects of MariaDB. Only the controller uses this module."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Any

from statecfg.remote.graph.suggestions import did_you_mean
from statecfg.remote.graph.wrong_values import Wrong, show
from statecfg.resources.databases.mariadb import mariadb, mariadb_grants

# Attribute → the longest name in characters. Source: the page "Identifier Names" of MariaDB's documentation.
LONGEST = {"name": 64, "database": 64, "tables": 64, "user": 128, "host": 255}
SYSTEM = ("information_schema", "mysql", "performance_schema", "sys")
ACCOUNTS = ("root", "mariadb.sys", "mysql")  # Debian's server needs these at localhost


def check_name(text: str, what: str) -> None:
    """Check the name of a database, table, user or host.

    :param what: the attribute
    :raises Wrong: if MariaDB does not allow it
    """
    if not text or len(text) > LONGEST[what] or text.endswith(" ") or "\0" in text or "\\" in text:
        help = f"write 1 to {LONGEST[what]} characters, without backslashes and without a blank at the end"
        raise Wrong(f"{what}: {show(text)} can't be a name in MariaDB", help)


def check_socket(attrs: Mapping[str, Any]) -> None:
    """Check the path of a socket.

    :raises Wrong: if statecfg does not look for sockets there
    """
    directory, name = posixpath.split(posixpath.normpath(attrs["socket"]))
    if directory not in mariadb.DIRECTORIES or not name.endswith(".sock"):
        help = f"sockets of servers are files *.sock in {', '.join(mariadb.DIRECTORIES)}"
        raise Wrong(f"socket: {show(attrs['socket'])} is not the socket of a server", help)


def check_database(attrs: Mapping[str, Any]) -> None:
    """Check the attributes of a `mariadb_database` together.

    :raises ValueError: if one is not valid
    """
    check_socket(attrs)
    check_name(attrs["name"], "name")
    if attrs["name"].lower() in SYSTEM:
        raise ValueError(f"the server needs the database {attrs['name']}")
    for word in ("character_set", "collate"):
        if attrs.get(word) is not None and not re.fullmatch("[a-z0-9_]+", attrs[word]):
            raise Wrong(f"{word}: {show(attrs[word])} is not a name of MariaDB", "write a name such as utf8mb4")
    charset, collate = attrs.get("character_set"), attrs.get("collate")
    if collate and collate.startswith("uca1400_") and not charset:
        raise Wrong(
            f"collate: {show(collate)} is for several character sets", f"add character_set, or write utf8mb4_{collate}"
        )
    if charset and collate and collate != charset and not collate.startswith((charset + "_", "uca1400_")):
        raise ValueError(f"the collation {collate} does not belong to the character set {charset}")


def check_user(attrs: Mapping[str, Any]) -> None:
    """Check the attributes of a `mariadb_user` together.

    :raises ValueError: if one is not valid, or the server needs the user as it is
    """
    check_socket(attrs)
    check_name(attrs["name"], "user")
    check_name(attrs["host"], "host")
    if attrs.get("password") == "":
        raise Wrong("password is empty", "omit it to prevent logins with a password")
    if not 0 <= (attrs.get("max_connections") or 0) < 1 << 31:
        raise ValueError("max_connections is a number from 0, which means no limit")
    if attrs["host"].lower() == "localhost" and attrs["name"] in ACCOUNTS:
        if attrs.get("absent") or attrs.get("locked"):
            raise ValueError(f"the server needs the user {attrs['name']}@localhost")
        if attrs["name"] == "root" and attrs.get("password") is not None and not attrs.get("unix_socket"):
            raise Wrong("statecfg logs in as root@localhost through the socket", "add unix_socket: true")
        if attrs["name"] == "root" and attrs.get("require_tls"):
            raise Wrong("statecfg logs in as root@localhost through the socket, which has no TLS", "omit require_tls")


def check_grant(attrs: Mapping[str, Any]) -> None:
    """Check the attributes of a `mariadb_grant` together.

    :raises ValueError: if one is not valid, or they contradict each other
    """
    check_socket(attrs)
    for what in ("user", "host"):
        check_name(attrs[what], what)
    if attrs["database"] != "*":
        check_name(attrs["database"], "database")
    elif attrs.get("tables") is not None:
        raise ValueError("tables requires the name of their database")
    if attrs.get("tables") == []:
        raise ValueError("tables is empty; write names, or omit it for all tables of the database")
    for each in attrs.get("tables") or ():
        check_name(each, "tables")
    if not attrs["privileges"]:
        raise ValueError("privileges is empty")
    needed = attrs["host"].lower() == "localhost" and attrs["user"] in ACCOUNTS
    if attrs.get("absent") and needed and attrs["database"].lower() in ("*", *SYSTEM):
        what = f"the server or statecfg needs the privileges of {attrs['user']}@localhost on {attrs['database']}"
        raise Wrong(what, "name another user or another database")
    object_type = mariadb_grants.object_type(attrs)
    known = mariadb_grants.PRIVILEGES.get(object_type)
    for word in attrs["privileges"]:
        normal = " ".join(word.upper().split())
        if not re.fullmatch("[A-Z ]+", normal) or (
            known is not None and normal not in (*known, "ALL", mariadb_grants.OPTION)
        ):
            help = did_you_mean(normal, known or ()) or f"use {', '.join(known or ())} or ALL"
            raise Wrong(f"privileges: {show(word)} is not valid for {object_type}", help)
