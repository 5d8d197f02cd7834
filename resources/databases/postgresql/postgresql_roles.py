"""Roles of PostgreSQL: the ops that change them, and a role as an entry of the facet."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
from collections.abc import Mapping

from statecfg.remote.graph.facet_entry import FacetEntry
from statecfg.remote.graph.model import Action, ActionSpec
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.databases.postgresql import postgresql
from statecfg.resources.databases.postgresql.postgresql import key, literal, name
from statecfg.resources.shared import records

# Field of a role → its words in SQL, for true and false.
FLAGS = {
    "login": ("LOGIN", "NOLOGIN"),
    "superuser": ("SUPERUSER", "NOSUPERUSER"),
    "create_databases": ("CREATEDB", "NOCREATEDB"),
    "create_roles": ("CREATEROLE", "NOCREATEROLE"),
    "replication": ("REPLICATION", "NOREPLICATION"),
    "bypass_rls": ("BYPASSRLS", "NOBYPASSRLS"),
}
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


class PostgresqlRole(FacetEntry):
    """A role: its flags, its limit of connections and the roles that it is a member of. It has a password, too."""

    facet, fields, lists, secret = "postgresql", (*FLAGS, "connection_limit", "member_of"), ("member_of",), "password"
    noun, words = "the role", {"member_of": "roles"}

    def key(self) -> str:
        """Return the key of the role."""
        return key("role", self.attrs["name"], self.attrs["port"])

    @property
    def who(self) -> tuple[str, int, str]:
        """The role, and the port and the user of its server. Raises CheckError if the server does not run."""
        port = self.attrs["port"]
        return self.attrs["name"], port, postgresql.server(self.world, port)["user"]

    def known(self, field: str, item: str) -> bool:
        """Tell whether a former role still exists."""
        return self.world.entry("postgresql", key("role", item, self.attrs["port"])) is not None

    def present(self) -> records.Fields | None:
        """Return the role.

        :raises CheckError: if the server does not run
        """
        postgresql.server(self.world, self.attrs["port"])
        return super().present()

    def require(self, now: records.Fields | None) -> None:
        """Check that the roles exist that the role should be a member of."""
        for group in sorted(self.attrs.get("member_of") or ()):
            postgresql.require(self.world, "role", group, self.attrs["port"])

    def create(self, fields: records.Fields) -> list[Action]:
        """Create the role."""
        options = {field: value for field, value in fields.items() if field != "member_of"}
        groups = self.change({}, {"member_of": fields["member_of"]}) if fields.get("member_of") else []
        return [create_role(*self.who, options), *groups]

    def change(self, now: records.Fields, fields: records.Fields) -> list[Action]:
        """Change fields."""
        options = {field: value for field, value in fields.items() if field != "member_of"}
        actions = [alter_role(*self.who, options)] if options else []
        if "member_of" in fields:
            groups, present = fields["member_of"], now.get("member_of") or ()
            add, remove = sorted(set(groups) - set(present)), sorted(set(present) - set(groups))
            actions.append(set_groups(*self.who, add, remove, groups))
        return actions

    def remove(self, now: records.Fields) -> list[Action]:
        """Remove the role."""
        return [drop_role(*self.who)]

    def set_secret(self, now: records.Fields | None) -> list[Action]:
        """Set the password, unless the server stores its verifier."""
        role, port, _ = self.who
        if self.world.entry("postgresql_passwords", key("server", "", port)) is not None:
            raise postgresql.unreadable("the password of the role " + role, "the query failed")
        stored = (self.world.entry("postgresql_passwords", self.key()) or {}).get("verifier")
        right = stored is not None and matches(self.attrs["password"], stored)
        return [] if right else [set_password(*self.who, self.attrs["password"])]

    def drop(self, now: records.Fields) -> ActionSpec:
        """Remove a new role, unless something depends on it."""
        role, port, user = self.who
        owned = owns(self.world, port, user, role)
        text = f"the role {role} of PostgreSQL stays: {owned}"
        return ActionSpec(left=[text]) if owned else super().drop(now)


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
