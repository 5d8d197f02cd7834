"""Users of MariaDB: the ops that change them, and a user as an entry of the facet."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import Any

from statecfg.remote.graph.facet_entry import FacetEntry
from statecfg.remote.graph.model import Action, ActionSpec, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.databases.mariadb import mariadb, mariadb_rows
from statecfg.resources.databases.mariadb.mariadb import account, key, literal
from statecfg.resources.shared import records

WITHOUT_PASSWORD: tuple[list[str], ...] = ([], ["unix_socket"])  # former logins that the undo can restore
_TLS = {"none": "NONE", "ssl": "SSL", "x509": "X509"}
_NEW: records.Fields = {"login": [], "locked": False, "max_connections": 0, "tls": "none"}


def digest(password: str) -> str:
    """Return the hash of a password, as MariaDB stores it. Source: its documentation of PASSWORD()."""
    first = hashlib.new("sha1", password.encode()).digest()  # noqa: S324  # the server's format
    return "*" + hashlib.new("sha1", first).hexdigest().upper()  # noqa: S324  # the same


def _options(fields: records.Fields) -> str:
    words = [f"REQUIRE {_TLS[fields['tls']]}"] if fields.get("tls") is not None else []
    if fields.get("max_connections") is not None:
        words.append(f"WITH MAX_USER_CONNECTIONS {fields['max_connections']}")
    if fields.get("locked") is not None:
        words.append("ACCOUNT LOCK" if fields["locked"] else "ACCOUNT UNLOCK")
    return " ".join(words)


def _effect(user: str, host: str, socket: str, fields: Mapping[str, object] | None) -> records.Effect:
    return {"mariadb": {key("user", f"{user}@{host}", socket): dict(fields) if fields is not None else None}}


@op(mutex="mariadb")
def create_user(machine: Machine, user: str, host: str, socket: str, fields: records.Fields) -> Result:
    """Create a user who can't log in yet."""
    method = f"IDENTIFIED VIA {mariadb.NATIVE} USING 'invalid'"
    sql = f"CREATE USER {account(user, host)} {method} {_options(fields)}"
    return mariadb.run(machine, socket, sql, _effect(user, host, socket, {**_NEW, **fields}))


@op(mutex="mariadb")
def alter_user(machine: Machine, user: str, host: str, socket: str, fields: records.Fields) -> Result:
    """Change attributes of a user."""
    sql = f"ALTER USER {account(user, host)} {_options(fields)}"
    return mariadb.run(machine, socket, sql, _effect(user, host, socket, fields))


@op(mutex="mariadb")
def drop_user(machine: Machine, user: str, host: str, socket: str) -> Result:
    """Remove a user."""
    effect = {**_effect(user, host, socket, None), "unknown": [mariadb.GRANTS]}
    return mariadb.run(machine, socket, f"DROP USER {account(user, host)}", effect)


@op(mutex="mariadb")
def set_login(
    machine: Machine, user: str, host: str, socket: str, login: list[str], password: str | None = None
) -> Result:
    """Set how a user can log in. The server gets only a digest, so its log can't contain the password.

    :param login: `password`, `unix_socket`, or both
    """
    stored = {"password": f"{mariadb.NATIVE} USING {literal(digest(password or ''))}"}
    methods = " OR ".join(stored.get(method, method) for method in login) or mariadb.NATIVE + " USING 'invalid'"
    effect = dict(_effect(user, host, socket, {"login": login}))
    if password is not None:
        effect["mariadb_passwords"] = {key("user", f"{user}@{host}", socket): {"password": "new"}}
    return mariadb.run(machine, socket, f"ALTER USER {account(user, host)} IDENTIFIED VIA {methods}", effect)


class MariadbUser(FacetEntry):
    """A user: its fields, and how it can log in."""

    facet, fields = "mariadb", ("login", "locked", "max_connections", "tls")

    def key(self) -> str:
        """Return the key of the user."""
        return key("user", "{name}@{host}".format(**self.attrs), self.attrs["socket"])

    @property
    def who(self) -> tuple[str, str, str]:
        """The user, the host pattern, and the socket of the server."""
        return self.attrs["name"], self.attrs["host"], self.attrs["socket"]

    def title(self) -> str:
        """Return the words for the user."""
        return "the user {name}@{host}".format(**self.attrs)

    def present(self) -> records.Fields | None:
        """Return the user.

        :raises CheckError: if the server does not run
        """
        mariadb.server(self.world, self.attrs["socket"])
        return super().present()

    def wanted(self) -> records.Fields:
        """Return the fields that the node sets. Without `password` and `unix_socket`, the login stays."""
        attrs = self.attrs
        login = ["password"] * (attrs.get("password") is not None) + ["unix_socket"] * bool(attrs.get("unix_socket"))
        tls = {"tls": "ssl" if attrs["require_tls"] else "none"} if attrs.get("require_tls") is not None else {}
        return {**super().wanted(), **tls, **({"login": login} if login else {})}

    def same(self, field: str, now: Any, value: Any) -> bool:
        """Tell whether a field is as wanted."""
        return now == value or (field == "login" and list(now or ()) == value)

    def enough(self, field: str, now: Any, value: Any) -> bool:
        """Tell whether the check accepts a field. Stricter rules for TLS include encryption."""
        if field == "login":
            return self.same(field, now, value) and self._has_password()
        return self.same(field, now, value) or (field == "tls" and value == "ssl" and now in ("x509", "specified"))

    def _has_password(self) -> bool:
        """Tell whether the stored digest belongs to the password of the node.

        :raises CheckError: if the digest can't be read
        """
        if self.attrs.get("password") is None:
            return True
        entry = self.world.entry("mariadb_passwords", self.key())
        if entry is None:
            raise mariadb.unreadable("the password of " + self.title(), "the query failed")
        stored = entry.get("digest")
        return stored is not None and hmac.compare_digest(stored, digest(self.attrs["password"]))

    def create(self, fields: records.Fields) -> list[Action]:
        """Create the user."""
        rest = {field: value for field, value in fields.items() if field != "login"}
        return [create_user(*self.who, rest), *self.change({}, {"login": fields["login"]} if "login" in fields else {})]

    def change(self, now: records.Fields, fields: records.Fields) -> list[Action]:
        """Change fields, and then the login."""
        rest = {field: value for field, value in fields.items() if field != "login"}
        actions = [alter_user(*self.who, rest)] if rest else []
        if "login" in fields:
            password = self.attrs["password"] if "password" in fields["login"] else None
            actions.append(set_login(*self.who, fields["login"], password))
        return actions

    def remove(self, now: records.Fields) -> list[Action]:
        """Remove the user."""
        return [drop_user(*self.who)]

    def restore(self, was: records.Fields) -> ActionSpec:
        """Report that a removed user does not come back."""
        return ActionSpec(left=[f"{self.title()} is not restored: statecfg does not record passwords"])

    def drop(self, now: records.Fields) -> ActionSpec:
        """Remove a new user, unless something runs with its rights."""
        used = _defines(self.world, self.attrs)
        text = "the user %s@%s of MariaDB stays: it is the definer of %d views, routines, triggers and events"
        return ActionSpec(left=[text % (*self.who[:2], used)]) if used else super().drop(now)

    def give_back(self, now: records.Fields, was: records.Fields) -> ActionSpec:
        """Restore fields, without rules for certificates and without passwords."""
        lost = [field for field in was if was[field] == "specified"]
        lost += ["login"] if was.get("login", []) not in WITHOUT_PASSWORD else []
        fields = {field: value for field, value in was.items() if field not in lost}
        text = f"{self.title()} no longer has its rules for certificates: statecfg does not record them"
        return ActionSpec(self.change(now, fields), left=[text] if "tls" in lost else [])

    def undo(self, memory: records.Attrs) -> ActionSpec:
        """Remove a new user, or restore what the node changed. A former password does not come back."""
        spec, was = super().undo(memory), memory["entry"]
        if was is not None and "login" in self.wanted() and was["login"] not in WITHOUT_PASSWORD and self.present():
            spec.left.append(f"the login of {self.title()} stays: statecfg does not record passwords")
        return spec


def effect(node: HostNode, world: World) -> str:
    """Return the anonymous user that the server uses in place of the node's user; "" if there is none.

    The server looks for the most specific host first, and only then for the name.
    """
    attrs = node.attrs
    if attrs.get("absent") or "%" not in attrs["host"]:
        return ""
    users = world.facet("mariadb")
    for each in users:
        found = re.fullmatch(rf"user @(\S+) on {re.escape(attrs['socket'])}", each)
        if found is None or "%" in found[1] or not mariadb_rows.matches(attrs["host"], found[1], fold=True):
            continue
        host = found[1]
        if key("user", f"{attrs['name']}@{host}", attrs["socket"]) not in users:
            what = f"the server prefers the anonymous user ''@'{host}'. Drop that one, or declare a user for {host}"
            return f"{attrs['name']} can't log in from {host}: {what}"
    return ""


def _defines(world: World, attrs: records.Attrs) -> int:
    """Return the number of objects that run with the rights of a user.

    :raises CheckError: if they can't be read
    """
    definer = literal(f"{attrs['name']}@{attrs['host']}")
    tables = ("VIEWS", "ROUTINES", "TRIGGERS", "EVENTS")
    counts = [f"(SELECT COUNT(*) FROM information_schema.{each} WHERE DEFINER = {definer})" for each in tables]  # noqa: S608  # it is quoted
    what = f"what runs with the rights of the user {attrs['name']}@{attrs['host']}"
    return mariadb.count(world, attrs["socket"], f"SELECT {' + '.join(counts)}", what)
