"""Create, change and remove users and groups with the tools of Debian's passwd package."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from statecfg.remote.graph.model import Action, CheckError, Node
from statecfg.remote.graph.nodetype import table
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.values import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import restore, snapshot, tree

FLAGS = {"uid": "--uid", "group": "--gid", "home": "--home-dir", "shell": "--shell", "comment": "--comment"}


def fingerprint(password_hash: str) -> str:
    """Return a short digest that identifies a password hash in reports. The hash cannot be computed from it."""
    return "sha256:" + hashlib.sha256(password_hash.encode()).hexdigest()[:16]


@table("passwords")
def passwords(host: World) -> dict[str, dict[str, Any]]:
    """Load the fingerprints of the password hashes: user → `hash`.

    :raises OSError: if this user may not read `/etc/shadow`
    """
    text = host.read("/etc/shadow").decode("utf-8", "replace")
    entries = [line.split(":") for line in text.splitlines() if ":" in line]
    return {fields[0]: {"hash": fingerprint(fields[1])} for fields in entries}


@op(turn="accounts")
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
    given = {"uid": uid, "group": group, "home": home, "shell": shell, "comment": comment}
    argv = ["useradd", *options(given), "--create-home" if create_home else "--no-create-home"]
    argv += [] if group else ["--user-group"]
    argv += ["--groups", ",".join(groups)] if groups else []
    argv += ["--system"] if system else []
    place = home or "/home/" + name
    fields = {"uid": uid, "gid": gid, "home": place, "shell": shell, "comment": comment or "", "groups": groups}
    effect: dict[str, Any] = {"users": {name: {key: value for key, value in fields.items() if value is not None}}}
    if not group:
        effect["groups"] = {name: {"members": []}}
    result = machine.run([*argv, "--", name], effect)
    if result["status"] != "ok" or not create_home:
        return result
    return machine.mkdir(place, owner=name, group=group or name, parents=True)


@op(turn="accounts")
def usermod(machine: Machine, name: str, changed: dict[str, Any], gid: int | None = None) -> Result:
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


@op(turn="accounts")
def set_password(machine: Machine, name: str, password_hash: str) -> Result:
    """Set the hash of a user's password."""
    said = ("%s:%s\n" % (name, password_hash)).encode()
    effect = {"passwords": {name: {"hash": fingerprint(password_hash)}}}
    return machine.run(["chpasswd", "--encrypted"], effect, input=said)


@op(turn="accounts")
def make_home(machine: Machine, name: str, home: str) -> Result:
    """Create the missing home directory of a user."""
    return machine.mkdir(home, 0o700, owner=name)


@op(turn="accounts")
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


@op(turn="accounts")
def groupadd(machine: Machine, name: str, gid: int | None = None, system: bool = False) -> Result:
    """Create a group."""
    number = ["--gid", str(gid)] if gid is not None else []
    argv = ["groupadd", *number, *(["--system"] if system else []), "--", name]
    return machine.run(argv, {"groups": {name: {"gid": gid, "members": []}}})


def options(given: dict[str, Any]) -> list[str]:
    """Return the options of useradd(8) and usermod(8) for the fields that are not None."""
    return [part for field, flag in FLAGS.items() if given.get(field) is not None for part in (flag, str(given[field]))]


def removal(world: World, name: str, entry: dict[str, Any] | None, remove_home: bool) -> list[Action]:
    """Return the actions that remove a user.

    :raises CheckError: if the home directory must go too, but is vital, belongs to another user or is not a directory
    """
    if entry is None:
        return []
    own = world.entry("groups", name)
    with_group = own is not None and own.get("gid") == entry.get("gid") and not set(own.get("members") or ()) - {name}
    home = entry.get("home")
    stat = world.stat(home) if remove_home and home else None
    if stat is None:
        return [userdel(name, with_group)]
    if stat.kind != "directory" or stat.owner != name or str(home).strip("/") in tree.VITAL:
        raise CheckError("the home of %s, %s, belongs to %s: it is not removed" % (name, home, stat.owner))
    return [userdel(name, with_group, home)]


def remember(node: Node, world: World) -> dict[str, Any]:
    """Record the user, its primary group and what a removal takes: the group of its name and its home directory."""
    attrs = node.attrs
    name = attrs["name"]
    entry, own = world.entry("users", name), world.entry("groups", name)
    snap = snapshot.Snapshot(world)
    known: dict[str, Any] = {"entry": entry, "own": own, "password": attrs.get("password_hash") is not None}
    if entry is not None:
        groups = world.table("groups")
        known["group"] = next((key for key, found in groups.items() if found.get("gid") == entry["gid"]), None)
    home = attrs.get("home") or (entry or {}).get("home") or "/home/" + name
    known.update(home=home, had_home=world.stat(home) is not None)
    if entry is not None and attrs.get("absent") and attrs.get("remove_home"):
        known.update(was=snap.entry(home), inside={})
        if known["was"] is not None and known["was"]["kind"] == "directory":
            try:
                known["inside"] = snap.inside(home)
            except LookupError as problem:
                snap.lost.append("%s: it does not come back" % problem)
    return snap.memory(**known)


def newcomer_undone(world: World, name: str, memory: Mapping[str, Any], remove_home: bool) -> restore.Restore:
    """Return what removes a user that did not exist before.

    :param remove_home: also remove the home directory, if it did not exist before the user
    """
    restoring = restore.Restore(world, memory)
    entry = world.entry("users", name)
    if entry is None:
        return restoring
    try:
        gone = removal(world, name, entry, remove_home and not memory["had_home"])
    except CheckError as problem:
        restoring.left.append(str(problem))
        gone = removal(world, name, entry, False)
    restoring.actions.extend(gone)
    own = memory["own"]
    if own is not None and world.entry("groups", name) is not None and any(act.args.get("group") for act in gone):
        restoring.actions.append(groupadd(name, own["gid"]))  # userdel(8) removes the group of this name, too
    return restoring


def brought_back(world: World, name: str, memory: Mapping[str, Any]) -> restore.Restore:
    """Return what creates a user again that the node removed, with the home directory if the node removed it."""
    restoring = restore.Restore(world, memory, users=[name])
    was, group = memory["entry"], memory.get("group")
    if world.entry("users", name) is None:
        if group is not None and world.entry("groups", group) is None:
            restoring.actions.append(groupadd(group, was["gid"]))
        fields = {field: was[field] for field in ("uid", "home", "shell", "comment")}
        groups = [each for each in was["groups"] if world.entry("groups", each) is not None]
        first = group or str(was["gid"])
        more = {"system": False, "create_home": False, "gid": was["gid"]}
        restoring.actions.append(useradd(name, group=first, groups=groups, **fields, **more))
        restoring.left.append("the password of %s does not come back: passwords are not remembered" % name)
    if memory.get("was") is not None:
        restoring.users.add(group or "")
        restoring.back_if_missing(memory["home"], memory["was"])
        root = {"path": memory["home"], "inside": memory["inside"], "source": ()}
        restore.bring_back(restoring, root, {"absent": True})
    return restoring


def changes_undone(world: World, attrs: Mapping[str, Any], memory: Mapping[str, Any]) -> restore.Restore:
    """Return what restores the fields of a user that the node set."""
    restoring = restore.Restore(world, memory)
    name, was, now = attrs["name"], memory["entry"], world.entry("users", attrs["name"])
    if memory["password"]:
        restoring.left.append("the password of %s stays: no former one is remembered" % name)
    if now is None:
        restoring.left.append("there is no user %s any more" % name)
        return restoring
    changed = {field: was[field] for field in ("uid", "home", "shell", "comment") if attrs.get(field) is not None}
    changed = {field: value for field, value in changed.items() if value != now.get(field)}
    if attrs.get("group") is not None and now.get("gid") != was["gid"]:
        changed["group"] = memory.get("group") or str(was["gid"])
    if attrs.get("groups") is not None:
        has = set(now.get("groups") or ())
        wanted = (has - set(attrs["groups"])) | (has & set(was["groups"]))
        if attrs.get("exact_groups"):
            wanted |= {each for each in was["groups"] if world.entry("groups", each) is not None}
        if wanted != has:
            changed["groups"] = sorted(wanted)
    if changed:
        restoring.actions.append(usermod(name, changed, was["gid"]))
    home = attrs.get("home") or memory["home"]
    if attrs.get("create_home") and not memory["had_home"] and world.stat(home) is not None:
        restoring.left.append("%s, the home that was made for %s, stays" % (home, name))
    return restoring


@op(turn="accounts")
def groupmod(machine: Machine, name: str, gid: int) -> Result:
    """Change the GID of a group. Its files keep the old GID."""
    return machine.run(["groupmod", "--gid", str(gid), "--", name], {"groups": {name: {"gid": gid}}})


@op(turn="accounts")
def set_members(machine: Machine, name: str, members: list[str]) -> Result:
    """Set the members of a group to exactly these users."""
    argv = ["gpasswd", "--members", ",".join(members), name]
    return machine.run(argv, {"groups": {name: {"members": members}}})


@op(turn="accounts")
def groupdel(machine: Machine, name: str) -> Result:
    """Remove a group."""
    return machine.run(["groupdel", "--", name], {"groups": {name: None}})


def first_of(world: World, entry: Mapping[str, Any]) -> list[str]:
    """Return the users whose primary group this is."""
    return sorted(name for name, fields in world.table("users").items() if fields.get("gid") == entry.get("gid"))


def creation(world: World, attrs: dict[str, Any]) -> Action:
    """Return the action that creates the user.

    :raises CheckError: if another user has the UID
    """
    name, uid = attrs["name"], attrs.get("uid")
    if uid is not None:
        taken = [other for other, fields in world.table("users").items() if fields.get("uid") == uid]
        if taken:
            raise CheckError("the number %d is taken by user %s" % (uid, taken[0]))
    group = attrs.get("group") or (name if world.entry("groups", name) is not None else None)
    known = world.entry("groups", group) if group is not None else None
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
        gid=(known or {}).get("gid"),
    )


def changes(world: World, attrs: dict[str, Any], entry: dict[str, Any]) -> list[Action]:
    """Return the actions that change an existing user to the wanted attributes."""
    changed = {field: attrs[field] for field in ("uid", "home", "shell", "comment") if attrs.get(field) is not None}
    changed = {field: value for field, value in changed.items() if value != entry.get(field)}
    group, groups = attrs.get("group"), attrs.get("groups")
    gid = (world.entry("groups", group) or {}).get("gid") if group is not None else None
    if group is not None and (gid is None or gid != entry.get("gid")):
        changed["group"] = group
    actions: list[Action] = []
    if groups is not None:
        has = set(entry.get("groups") or ())
        wanted = set(groups) if attrs.get("exact_groups") else has | set(groups)
        if wanted != has:
            changed["groups"] = sorted(wanted)
    if changed:
        actions.append(usermod(attrs["name"], changed, gid))
    home = attrs.get("home") or entry.get("home")
    if attrs.get("create_home") and home and world.apparent(home) is None:
        actions.append(make_home(attrs["name"], home))
    return actions
