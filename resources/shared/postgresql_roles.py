"""Roles of PostgreSQL: their check, the ops that change them, and the undo."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from statecfg.remote.graph import undoing
from statecfg.remote.graph.model import Action, ActionSpec, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import postgresql, records
from statecfg.resources.shared.postgresql import key, literal, name

if TYPE_CHECKING:
    from typing import TypedDict

    class RoleMemory(TypedDict):
        """The memory of a `postgresql_user`. `password` tells whether the node sets the password."""

        entry: records.Fields | None
        password: bool


# Field of a role → its words in SQL, for true and false.
FLAGS = {
    "login": ("LOGIN", "NOLOGIN"),
    "superuser": ("SUPERUSER", "NOSUPERUSER"),
    "create_databases": ("CREATEDB", "NOCREATEDB"),
    "create_roles": ("CREATEROLE", "NOCREATEROLE"),
    "replication": ("REPLICATION", "NOREPLICATION"),
    "bypass_rls": ("BYPASSRLS", "NOBYPASSRLS"),
}
FIELDS = (*FLAGS, "connection_limit")
ROUNDS = 4096  # of PBKDF2: PostgreSQL's default for scram-sha-256


def verifier(password: str, salt: bytes, rounds: int = ROUNDS) -> str:
    """Return what PostgreSQL stores in place of a password. Sources: RFC 5802, and PostgreSQL's pg_authid."""
    import unicodedata

    normal = password if password.isascii() else unicodedata.normalize("NFKC", password)
    salted = hashlib.pbkdf2_hmac("sha256", normal.encode(), salt, rounds)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    words = [base64.b64encode(each).decode() for each in (salt, stored, hmac.digest(salted, b"Server Key", "sha256"))]
    return "SCRAM-SHA-256${}:{}${}:{}".format(rounds, *words)


def matches(password: str, stored: str) -> bool:
    """Return whether a stored verifier belongs to a password."""
    found = re.match(r"SCRAM-SHA-256\$([0-9]+):([^$]+)\$", stored)
    if found is None:
        return False  # an MD5 digest of an older server: replace it
    return hmac.compare_digest(verifier(password, base64.b64decode(found.group(2)), int(found.group(1))), stored)


def _options(fields: records.Fields) -> str:
    words = [FLAGS[field][0 if fields[field] else 1] for field in FLAGS if fields.get(field) is not None]
    if fields.get("connection_limit") is not None:
        words.append(f"CONNECTION LIMIT {fields['connection_limit']}")
    return " ".join(words)


def _effect(role: str, port: int, fields: Mapping[str, object] | None) -> records.Effect:
    return {"postgresql": {key("role", role, port): dict(fields) if fields is not None else None}}


@op(mutex="postgresql")
def create_role(machine: Machine, role: str, port: int, user: str, fields: records.Fields) -> Result:
    """Create a role."""
    all_fields = {**dict.fromkeys(FLAGS, False), "connection_limit": -1, "member_of": [], **fields}
    sql = f"CREATE ROLE {name(role)} {_options(fields)}"
    return postgresql.run(machine, port, user, sql, _effect(role, port, all_fields))


@op(mutex="postgresql")
def alter_role(machine: Machine, role: str, port: int, user: str, fields: records.Fields) -> Result:
    """Change attributes of a role."""
    sql = f"ALTER ROLE {name(role)} {_options(fields)}"
    return postgresql.run(machine, port, user, sql, _effect(role, port, fields))


@op(mutex="postgresql")
def drop_role(machine: Machine, role: str, port: int, user: str) -> Result:
    """Remove a role."""
    return postgresql.run(machine, port, user, f"DROP ROLE {name(role)}", _effect(role, port, None))


@op(mutex="postgresql")
def set_password(machine: Machine, role: str, port: int, user: str, password: str) -> Result:
    """Set the password of a role. The server gets only a verifier, so its log can't contain the password."""
    sql = f"ALTER ROLE {name(role)} PASSWORD {literal(verifier(password, os.urandom(16)))}"
    effect = {"postgresql_passwords": {key("role", role, port): {"password": "new"}}}
    return postgresql.run(machine, port, user, sql, effect)


@op(mutex="postgresql")
def set_groups(
    machine: Machine, role: str, port: int, user: str, add: list[str], remove: list[str], groups: list[str]
) -> Result:
    """Make a role a member of these roles, and of no others.

    :param groups: the roles afterwards
    """
    sql = [f"GRANT {name(group)} TO {name(role)};" for group in add]
    sql += [f"REVOKE {name(group)} FROM {name(role)};" for group in remove]
    return postgresql.run(machine, port, user, "\n".join(sql), _effect(role, port, {"member_of": groups}))


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare a role with the wanted one.

    :raises CheckError: if the server can't be read, or a role that it should be a member of does not exist
    """
    attrs, port, role = node.attrs, node.attrs["port"], node.attrs["name"]
    user = postgresql.server(world, port)["user"]
    entry = world.entry("postgresql", key("role", role, port))
    if attrs.get("absent"):
        return [drop_role(role, port, user)] if entry is not None else []
    wanted = {field: attrs[field] for field in FIELDS if attrs.get(field) is not None}
    actions: list[Action] = []
    if entry is None:
        actions.append(create_role(role, port, user, wanted))
    else:
        wrong = {field: value for field, value in wanted.items() if entry[field] != value}
        actions += [alter_role(role, port, user, wrong)] if wrong else []
    if attrs.get("member_of") is not None:
        groups, now = sorted(attrs["member_of"]), (entry or {}).get("member_of") or []
        for group in groups:
            postgresql.require(world, "role", group, port)
        actions += _groups(role, port, user, now, groups)
    stored = (world.entry("postgresql_passwords", key("role", role, port)) or {}).get("verifier")
    if attrs.get("password") is not None and world.entry("postgresql_passwords", key("server", "", port)) is not None:
        raise postgresql.unreadable("the password of the role " + role, "the query failed")
    if attrs.get("password") is not None and not (stored is not None and matches(attrs["password"], stored)):
        actions.append(set_password(role, port, user, attrs["password"]))
    return actions


def _groups(role: str, port: int, user: str, now: list[str], groups: list[str]) -> list[Action]:
    add, remove = sorted(set(groups) - set(now)), sorted(set(now) - set(groups))
    return [set_groups(role, port, user, add, remove, groups)] if add or remove else []


def remember(node: HostNode, world: World) -> RoleMemory:
    """Record the role, without its password."""
    attrs = node.attrs
    postgresql.server(world, attrs["port"])
    return {
        "entry": world.entry("postgresql", key("role", attrs["name"], attrs["port"])),
        "password": attrs.get("password") is not None,
    }


def undo(node: HostNode, memory: RoleMemory, world: World) -> ActionSpec:
    """Remove a role that the node created, or restore what it changed. A role that owns something stays."""
    attrs, was = node.attrs, memory["entry"]
    port, role = attrs["port"], attrs["name"]
    user = postgresql.server(world, port)["user"]
    entry = world.entry("postgresql", key("role", role, port))
    if attrs.get("absent"):
        left = [f"the role {role} is not restored: statecfg does not record passwords"] if was and not entry else []
        return ActionSpec(left=left)
    if entry is None:
        return ActionSpec()
    if was is None:
        owned = owns(world, port, user, role)
        if owned:
            return ActionSpec(left=[f"the role {role} of PostgreSQL stays: {owned}"])
        return ActionSpec([drop_role(role, port, user)])
    made = {field: attrs[field] for field in FIELDS if attrs.get(field) is not None}
    wrong, left = undoing.reverted(was, made, entry, lambda field: f"{field} of the role {role}")
    actions = [alter_role(role, port, user, wrong)] if wrong else []
    if attrs.get("member_of") is not None:
        known = [group for group in was["member_of"] if world.entry("postgresql", key("role", group, port)) is not None]
        named = f"the roles of {role}"
        groups, more = undoing.items(known, attrs["member_of"], entry["member_of"], True, named)
        actions += _groups(role, port, user, entry["member_of"], groups)
        left += more
    text = f"the password of the role {role} stays: statecfg does not record passwords"
    return ActionSpec(actions, left=[*left, *([text] if memory["password"] else [])])


def owns(world: World, port: int, user: str, role: str) -> str:
    """Return what depends on a role, so that it can't be removed; "" if nothing does.

    :raises CheckError: if it can't be read
    """
    databases = sorted(postgresql.names(world, "database", port))
    for database in databases:
        if (world.entry("postgresql", key("database", database, port)) or {}).get("owner") == role:
            return f"it owns the database {database}"
    sql = "SELECT DISTINCT coalesce(datname, 'postgres') FROM pg_shdepend d LEFT JOIN pg_database b ON b.oid = d.dbid "
    sql += f"WHERE refobjid = to_regrole({literal(name(role))}) AND classid <> 'pg_database'::regclass ORDER BY 1"
    found = postgresql.told(world, port, user, "postgres", sql, "what depends on the role " + role).splitlines()
    present = [each for each in found if each in databases]
    return f"something in the database {present[0]} depends on it" if present else ""
