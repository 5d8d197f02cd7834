"""Users of MariaDB: their check, the ops that change them, and the undo."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from statecfg.remote.graph import undoing
from statecfg.remote.graph.model import Action, ActionSpec, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import mariadb, records
from statecfg.resources.shared.mariadb import account, key, literal

if TYPE_CHECKING:
    from typing import TypedDict

    class MariadbUserMemory(TypedDict):
        """The memory of a `mariadb_user`. `login` tells whether the node sets how the user logs in."""

        entry: records.Fields | None
        login: bool


_TLS = {"none": "NONE", "ssl": "SSL", "x509": "X509"}
_NEW: records.Fields = {"login": [], "locked": False, "max_connections": 0, "tls": "none"}


def digest(password: str) -> str:
    """Return what MariaDB stores in place of a password. Source: its documentation of PASSWORD()."""
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


def _wanted(attrs: records.Attrs) -> records.Fields:
    """Return the fields that a node sets."""
    fields = {field: attrs[field] for field in ("locked", "max_connections") if attrs.get(field) is not None}
    if attrs.get("require_tls") is not None:
        fields["tls"] = "ssl" if attrs["require_tls"] else "none"
    return fields


def _login(attrs: records.Attrs) -> list[str]:
    """Return how the user of a node can log in; nothing if the node does not say it."""
    words = ["password"] if attrs.get("password") is not None else []
    return words + (["unix_socket"] if attrs.get("unix_socket") else [])


def _same(field: str, now: object, wanted: object) -> bool:
    """Return whether a field is as wanted. Stricter rules for TLS include encryption."""
    return now == wanted or (field == "tls" and wanted == "ssl" and now in ("x509", "specified"))


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare a user with the wanted one.

    :raises CheckError: if the server can't be read
    """
    attrs = node.attrs
    who: tuple[str, str, str] = (attrs["name"], attrs["host"], attrs["socket"])
    mariadb.server(world, attrs["socket"])
    entry = world.entry("mariadb", _key(attrs))
    if attrs.get("absent"):
        return [drop_user(*who)] if entry is not None else []
    wanted, login, actions = _wanted(attrs), _login(attrs), []
    if entry is None:
        actions.append(create_user(*who, wanted))
    else:
        wrong = {field: value for field, value in wanted.items() if not _same(field, entry.get(field), value)}
        actions += [alter_user(*who, wrong)] if wrong else []
    now: Sequence[str] = entry["login"] if entry is not None else []
    if login and not (list(now) == login and _matches(attrs, world)):
        actions.append(set_login(*who, login, attrs.get("password")))
    return actions


def _matches(attrs: records.Attrs, world: World) -> bool:
    """Return whether the stored digest belongs to the password of a node. Call it if the user has a password.

    :raises CheckError: if the digest can't be read
    """
    if attrs.get("password") is None:
        return True
    entry = world.entry("mariadb_passwords", _key(attrs))
    if entry is None:
        raise mariadb.unreadable(f"the password of the user {attrs['name']}@{attrs['host']}", "the query failed")
    stored = entry.get("digest")
    return stored is not None and hmac.compare_digest(stored, digest(attrs["password"]))


def _key(attrs: records.Attrs) -> str:
    return key("user", f"{attrs['name']}@{attrs['host']}", attrs["socket"])


def remember(node: HostNode, world: World) -> MariadbUserMemory:
    """Record the user, without the password."""
    mariadb.server(world, node.attrs["socket"])
    return {"entry": world.entry("mariadb", _key(node.attrs)), "login": bool(_login(node.attrs))}


def undo(node: HostNode, memory: MariadbUserMemory, world: World) -> ActionSpec:
    """Remove a user that the node created, or restore what it changed."""
    attrs, was = node.attrs, memory["entry"]
    who: tuple[str, str, str] = (attrs["name"], attrs["host"], attrs["socket"])
    shown = f"{attrs['name']}@{attrs['host']}"
    mariadb.server(world, attrs["socket"])
    entry = world.entry("mariadb", _key(attrs))
    if attrs.get("absent"):
        left = [f"the user {shown} is not restored: statecfg does not record passwords"] if was and not entry else []
        return ActionSpec(left=left)
    if entry is None:
        return ActionSpec()
    if was is None:
        used = _defines(world, attrs)
        text = "the user %s of MariaDB stays: it is the definer of %d views, routines, triggers and events"
        return ActionSpec(left=[text % (shown, used)]) if used else ActionSpec([drop_user(*who)])
    wrong, left = undoing.reverted(was, _wanted(attrs), entry, lambda field: f"{field} of the user {shown}")
    if wrong.get("tls") == "specified":
        del wrong["tls"]
        left.append(f"the user {shown} no longer has its rules for certificates: statecfg does not record them")
    actions = [alter_user(*who, wrong)] if wrong else []
    if memory["login"] and was["login"] in ([], ["unix_socket"]):
        actions += [set_login(*who, was["login"])] if entry["login"] != was["login"] else []
    elif memory["login"]:
        left.append(f"the login of the user {shown} stays: statecfg does not record passwords")
    return ActionSpec(actions, left=left)


def _defines(world: World, attrs: records.Attrs) -> int:
    """Return how many objects run with the rights of a user.

    :raises CheckError: if they can't be read
    """
    definer = literal(f"{attrs['name']}@{attrs['host']}")
    tables = ("VIEWS", "ROUTINES", "TRIGGERS", "EVENTS")
    counts = [f"(SELECT COUNT(*) FROM information_schema.{each} WHERE DEFINER = {definer})" for each in tables]  # noqa: S608  # it is quoted
    what = f"what runs with the rights of the user {attrs['name']}@{attrs['host']}"
    return mariadb.count(world, attrs["socket"], f"SELECT {' + '.join(counts)}", what)
