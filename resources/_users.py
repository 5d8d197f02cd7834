"""The ops that create, change and remove users, with the tools of Debian's passwd package."""

from __future__ import annotations

import hashlib

from statecfg.remote.graph.model import CheckError
from statecfg.remote.graph.nodetype import table
from statecfg.remote.graph.ops import op
from statecfg.resources import _before, _tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional

    from statecfg.remote.graph.model import Action, Node, Result
    from statecfg.remote.machine.world import Machine, World

FLAGS = {"uid": "--uid", "group": "--gid", "home": "--home-dir", "shell": "--shell", "comment": "--comment"}


def fingerprint(password_hash: str) -> str:
    """Return what stands for a password's hash where people can see it: not to be turned back."""
    return "sha256:" + hashlib.sha256(password_hash.encode()).hexdigest()[:16]


@table("passwords")
def passwords(host: World) -> Dict[str, Dict[str, Any]]:
    """Load the fingerprints of the password hashes: user → `hash`. Raises OSError where we may not read them."""
    text = host.read("/etc/shadow").decode("utf-8", "replace")
    entries = [line.split(":") for line in text.splitlines() if ":" in line]
    return {fields[0]: {"hash": fingerprint(fields[1])} for fields in entries}


@op(turn="accounts")
def useradd(
    machine: Machine,
    name: str,
    uid: Optional[int],
    group: Optional[str],
    groups: List[str],
    home: Optional[str],
    shell: Optional[str],
    comment: Optional[str],
    system: bool,
    create_home: bool,
    gid: Optional[int] = None,
) -> Result:
    """Make a user, with a group of its own where `group` is not given; `gid`: that group's number, where known."""
    given = {"uid": uid, "group": group, "home": home, "shell": shell, "comment": comment}
    argv = ["useradd", *options(given), "--create-home" if create_home else "--no-create-home"]
    argv += [] if group else ["--user-group"]
    argv += ["--groups", ",".join(groups)] if groups else []
    argv += ["--system"] if system else []
    place = home or "/home/" + name
    fields = {"uid": uid, "gid": gid, "home": place, "shell": shell, "comment": comment or "", "groups": groups}
    effect: Dict[str, Any] = {"users": {name: {key: value for key, value in fields.items() if value is not None}}}
    if not group:
        effect["groups"] = {name: {"members": []}}
    result = machine.run([*argv, "--", name], effect)
    if result["status"] != "ok" or not create_home:
        return result
    return machine.mkdir(place, owner=name, group=group or name, parents=True)


@op(turn="accounts")
def usermod(machine: Machine, name: str, changed: Dict[str, Any], gid: Optional[int] = None) -> Result:
    """Change a user: `changed` has the fields that become different, `groups` all the further groups it is in then."""
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
    """Make the home directory of a user that has none."""
    return machine.mkdir(home, 0o700, owner=name)


@op(turn="accounts")
def userdel(machine: Machine, name: str, group: bool, home: Optional[str] = None) -> Result:
    """Remove a user; `group`: the group of its own goes with it; `home`: the directory that goes too."""
    effect: Dict[str, Any] = {"users": {name: None}, "passwords": {name: None}}
    if group:
        effect["groups"] = {name: None}
    result = machine.run(["userdel", "--", name], effect)
    if result["status"] != "ok" or home is None:
        return result
    return machine.remove(home, recursive=True)


@op(turn="accounts")
def groupadd(machine: Machine, name: str, gid: Optional[int] = None, system: bool = False) -> Result:
    """Make a group."""
    number = ["--gid", str(gid)] if gid is not None else []
    argv = ["groupadd", *number, *(["--system"] if system else []), "--", name]
    return machine.run(argv, {"groups": {name: {"gid": gid, "members": []}}})


def options(given: Dict[str, Any]) -> List[str]:
    """Return the options of useradd(8) and usermod(8) for the fields that are given."""
    return [part for field, flag in FLAGS.items() if given.get(field) is not None for part in (flag, str(given[field]))]


def removal(world: World, name: str, entry: Optional[Dict[str, Any]], remove_home: bool) -> List[Action]:
    """Return what removes a user. Raises CheckError where its home is not its own to be removed."""
    if entry is None:
        return []
    own = world.entry("groups", name)
    with_group = own is not None and own.get("gid") == entry.get("gid") and not set(own.get("members") or ()) - {name}
    home = entry.get("home")
    stat = world.stat(home) if remove_home and home else None
    if stat is None:
        return [userdel(name, with_group)]
    if stat.kind != "directory" or stat.owner != name or str(home).strip("/") in _tree.VITAL:
        raise CheckError("the home of %s, %s, belongs to %s: it is not removed" % (name, home, stat.owner))
    return [userdel(name, with_group, home)]


def remember(node: Node, world: World) -> Dict[str, Any]:
    """Take down the user, the group it has as its first, and what may go with it: its own group and its home."""
    attrs = node.attrs
    name = attrs["name"]
    entry, own = world.entry("users", name), world.entry("groups", name)
    looking = _before.Looking(world)
    known: Dict[str, Any] = {"entry": entry, "own": own, "password": attrs.get("password_hash") is not None}
    if entry is not None:
        groups = world.table("groups")
        known["group"] = next((key for key, found in groups.items() if found.get("gid") == entry["gid"]), None)
    home = attrs.get("home") or (entry or {}).get("home") or "/home/" + name
    known.update(home=home, had_home=world.stat(home) is not None)
    if entry is not None and attrs.get("absent") and attrs.get("remove_home"):
        known.update(was=looking.entry(home), inside={})
        if known["was"] is not None and known["was"]["kind"] == "directory":
            try:
                known["inside"] = looking.inside(home)
            except LookupError as problem:
                looking.lost.append("%s: it does not come back" % problem)
    return looking.memory(**known)


def newcomer_undone(world: World, name: str, memory: Mapping[str, Any], remove_home: bool) -> _before.Undoing:
    """Return what takes a user away that was not there before; its home goes where it is asked for and came with it."""
    undoing = _before.Undoing(world, memory)
    entry = world.entry("users", name)
    if entry is None:
        return undoing
    try:
        gone = removal(world, name, entry, remove_home and not memory["had_home"])
    except CheckError as problem:
        undoing.left.append(str(problem))
        gone = removal(world, name, entry, False)
    undoing.actions.extend(gone)
    own = memory["own"]
    if own is not None and world.entry("groups", name) is not None and any(act.args.get("group") for act in gone):
        undoing.actions.append(groupadd(name, own["gid"]))  # userdel(8) takes the group of its name along
    return undoing


def brought_back(world: World, name: str, memory: Mapping[str, Any]) -> _before.Undoing:
    """Return what makes a user again that the node removed, with its home as far as that was removed, too."""
    undoing = _before.Undoing(world, memory, users=[name])
    was, group = memory["entry"], memory.get("group")
    if world.entry("users", name) is None:
        if group is not None and world.entry("groups", group) is None:
            undoing.actions.append(groupadd(group, was["gid"]))
        fields = {field: was[field] for field in ("uid", "home", "shell", "comment")}
        groups = [each for each in was["groups"] if world.entry("groups", each) is not None]
        first = group or str(was["gid"])
        more = {"system": False, "create_home": False, "gid": was["gid"]}
        undoing.actions.append(useradd(name, group=first, groups=groups, **fields, **more))
        undoing.left.append("the password of %s does not come back: passwords are not remembered" % name)
    if memory.get("was") is not None:
        undoing.users.add(group or "")
        undoing.back_if_missing(memory["home"], memory["was"])
        root = {"path": memory["home"], "inside": memory["inside"], "source": ()}
        _before.bring_back(undoing, root, {"absent": True})
    return undoing


def changes_undone(world: World, attrs: Mapping[str, Any], memory: Mapping[str, Any]) -> _before.Undoing:
    """Return what gives a user those fields back that the node was given."""
    undoing = _before.Undoing(world, memory)
    name, was, now = attrs["name"], memory["entry"], world.entry("users", attrs["name"])
    if memory["password"]:
        undoing.left.append("the password of %s stays: no former one is remembered" % name)
    if now is None:
        undoing.left.append("there is no user %s any more" % name)
        return undoing
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
        undoing.actions.append(usermod(name, changed, was["gid"]))
    home = attrs.get("home") or memory["home"]
    if attrs.get("create_home") and not memory["had_home"] and world.stat(home) is not None:
        undoing.left.append("%s, the home that was made for %s, stays" % (home, name))
    return undoing
