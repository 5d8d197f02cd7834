"""Users: the ops that create, change and remove them with Debian's passwd tools, and which of them are needed."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from statecfg.remote.graph.model import Action, CheckError, Unknown
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.services import lingering
from statecfg.resources.shared import paths, records, sources, tree

FLAGS = {"uid": "--uid", "group": "--gid", "home": "--home-dir", "shell": "--shell", "comment": "--comment"}
SHELLS = "/etc/shells"
BREAKING = frozenset(":\r\n")  # these end a field or an entry of passwd(5) and shadow(5)


def fingerprint(password_hash: str) -> str:
    """Return a short digest that identifies a password hash in reports. The hash cannot be computed from it."""
    return "sha256:" + hashlib.sha256(password_hash.encode()).hexdigest()[:16]


@facet("passwords", of="users")
def passwords(host: World) -> dict[str, records.Fields]:
    """Load the fingerprints of the password hashes: user → `hash`.

    :raises OSError: if this user may not read `/etc/shadow`
    """
    text = host.read("/etc/shadow").decode("utf-8", "replace")
    entries = [line.split(":") for line in text.splitlines() if ":" in line]
    return {fields[0]: {"hash": fingerprint(fields[1])} for fields in entries}


@op(mutex="accounts")
def useradd(
    machine: Machine,
    name: str,
    uid: int | None,
    group: str | None,
    groups: list[str],
    home: str | None,
    shell: str | None,
    comment: str | None,
    system: bool,
    create_home: bool,
    gid: int | None = None,
) -> Result:
    """Create a user.

    :param group: the primary group; None: create a group with the user's name
    :param gid: the GID of the primary group, if it is known; only the plan uses it
    """
    fields_to_set = {"uid": uid, "group": group, "home": home, "shell": shell, "comment": comment}
    argv = ["useradd", *options(fields_to_set), "--create-home" if create_home else "--no-create-home"]
    argv += [] if group else ["--user-group"]
    argv += ["--groups", ",".join(groups)] if groups else []
    argv += ["--system"] if system else []
    directory = home or "/home/" + name
    fields = {"uid": uid, "gid": gid, "home": directory, "shell": shell, "comment": comment or "", "groups": groups}
    effect: dict[str, Any] = {"users": {name: {key: value for key, value in fields.items() if value is not None}}}
    if not group:
        effect["groups"] = {name: {"members": []}}
    result = machine.run([*argv, "--", name], effect)
    if result["status"] != "ok" or not create_home:
        return result
    return machine.mkdir(directory, owner=name, group=group or name, parents=True)


@op(mutex="accounts")
def usermod(machine: Machine, name: str, changed: records.Fields, gid: int | None = None) -> Result:
    """Change a user.

    :param changed: the fields that change; `groups` is the complete list of additional groups
    :param gid: the GID of the new primary group, if it is known
    """
    argv = ["usermod", *options(dict(changed, home=None))]
    argv += ["--home", changed["home"]] if "home" in changed else []
    argv += ["--groups", ",".join(changed["groups"])] if "groups" in changed else []
    fields = {field: value for field, value in changed.items() if field != "group"}
    if "group" in changed:
        fields["gid"] = gid
    return machine.run([*argv, "--", name], {"users": {name: fields}})


@op(mutex="accounts")
def set_password(machine: Machine, name: str, password_hash: str) -> Result:
    """Set the hash of a user's password."""
    effect = {"passwords": {name: {"hash": fingerprint(password_hash)}}}
    return machine.run(["chpasswd", "--encrypted"], effect, input=f"{name}:{password_hash}\n".encode())


@op(mutex="accounts")
def make_home(machine: Machine, name: str, home: str, group: str | None = None, mode: int = 0o700) -> Result:
    """Create the missing home directory of a user."""
    return machine.mkdir(home, mode, owner=name, group=group)


def home_mode(world: World) -> int:
    """Return the mode of new home directories, as useradd(8) reads it from login.defs(5)."""
    found = {"HOME_MODE": "", "UMASK": "022"}
    settings = sources.places(world, "/etc/login.defs")
    for place in settings:
        words = place.text.partition("#")[0].split()
        if len(words) == 2 and words[0] in found and re.match(r"0?[0-7]{3}\Z", words[1]):
            found[words[0]] = words[1]
    if not settings:
        return 0o700
    return int(found["HOME_MODE"], 8) if found["HOME_MODE"] else 0o777 & ~int(found["UMASK"], 8)


def require_shell(world: World, shell: str | None) -> None:
    """Check that a login shell exists, as far as this is known now.

    :raises CheckError: if it does not
    """
    if shell is None or world.apparent(SHELLS) is None:  # without this file, it is only an imagined host
        return
    try:
        stat = world.stat(sources.target(world, shell))
        listed = [place.text for place in sources.places(world, SHELLS) if place.text.startswith("/")]
        near = paths.nearest(shell, [name for name in listed if world.stat(name) is not None])
    except Unknown:
        return
    if stat is None:
        raise CheckError(f"the shell {shell} does not exist on this host{near}; require the package that installs it")
    if stat.file_type != "file" or not stat.mode & 0o111:
        raise CheckError(f"the shell {shell} is not a program{near}; name a program that users can run")


@op(mutex="accounts")
def userdel(machine: Machine, name: str, group: bool, home: str | None = None) -> Result:
    """Remove a user.

    :param group: whether userdel(8) also removes the group with the user's name
    :param home: the home directory to remove; None: keep it
    """
    effect: dict[str, Any] = {"users": {name: None}, "passwords": {name: None}}
    if group:
        effect["groups"] = {name: None}
    result = machine.run(["userdel", "--", name], effect)
    if result["status"] != "ok" or home is None:
        return result
    return machine.remove(home, recursive=True)


def options(values: records.Fields) -> list[str]:
    """Return the options of useradd(8) and usermod(8) for the fields that are not None."""
    return [
        part for field, flag in FLAGS.items() if values.get(field) is not None for part in (flag, str(values[field]))
    ]


def removal(world: World, name: str, entry: records.Fields | None, remove_home: bool) -> list[Action]:
    """Return the actions that remove a user.

    :raises CheckError: if the home directory must go too, but is vital, belongs to another user or is not a directory
    """
    if entry is None:
        return []
    own = world.entry("groups", name)
    with_group = own is not None and own.get("gid") == entry.get("gid") and not set(own.get("members") or ()) - {name}
    home = entry.get("home")
    stat = world.stat(home) if remove_home and home else None
    ended = lingering.end(world, name)
    if stat is None:
        return [*ended, userdel(name, with_group)]
    if stat.file_type != "directory" or stat.owner != name or str(home).strip("/") in tree.VITAL:
        raise CheckError(f"the home of {name}, {home}, belongs to {stat.owner}: it is not removed")
    return [*ended, userdel(name, with_group, home)]


def creation(world: World, attrs: records.Attrs) -> Action:
    """Return the action that creates the user.

    :raises CheckError: if another user has the UID
    """
    name, uid = attrs["name"], attrs.get("uid")
    if uid is not None:
        taken = [other for other, fields in world.facet("users").items() if fields.get("uid") == uid]
        if taken:
            raise CheckError(f"the UID {uid} is taken by user {taken[0]}")
    group = attrs.get("group") or (name if world.entry("groups", name) is not None else None)
    primary = world.entry("groups", group) if group is not None else None
    create_home = attrs.get("create_home")
    return useradd(
        name,
        uid=uid,
        group=group,
        groups=sorted(attrs.get("groups") or ()),
        home=attrs.get("home"),
        shell=attrs.get("shell"),
        comment=attrs.get("comment"),
        system=bool(attrs.get("system")),
        create_home=create_home if create_home is not None else not attrs.get("system"),
        gid=(primary or {}).get("gid"),
    )


def missing_home(world: World, attrs: records.Attrs, entry: records.Fields) -> list[Action]:
    """Return the action that creates the missing home directory of an existing user, if the node wants one."""
    home, group = attrs.get("home") or entry.get("home"), attrs.get("group")
    if not attrs.get("create_home") or not home or world.apparent(home) is not None:
        return []
    gid = (world.entry("groups", group) or {}).get("gid") if group is not None else entry.get("gid")
    named = next((name for name, fields in world.facet("groups").items() if fields.get("gid") == gid), None)
    return [make_home(attrs["name"], home, group or named, home_mode(world))]


def password_actions(world: World, name: str, password_hash: str) -> list[Action]:
    """Return the action that sets the hash of a user's password, if the host has another one.

    :raises CheckError: if the hash would break the host's files
    """
    if BREAKING.intersection(password_hash):  # a secret can only be checked here, on the host
        raise CheckError("password_hash has a colon or line break: write only the hash")
    present = world.entry("passwords", name) or {}
    return [] if present.get("hash") == fingerprint(password_hash) else [set_password(name, password_hash)]
