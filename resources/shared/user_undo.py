"""Users before a node changed them: record them, and restore them when the node is removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statecfg.remote.graph import undoing
from statecfg.remote.graph.model import ActionSpec, CheckError, HostNode
from statecfg.remote.machine.world import World
from statecfg.resources.shared import groups, lingering, records, restore, snapshot, users

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NotRequired

    class UserMemory(snapshot.Memory):
        """The memory of a `user`.

        :ivar own: the group with the user's name
        :ivar password: whether the node sets the password
        :ivar group: the name of the primary group
        :ivar was: the home directory, if the node removes it
        :ivar inside: the entries of this home directory
        :ivar lingered: whether the user lingered, if the node sets it or removes the user
        """

        entry: records.Fields | None
        own: records.Fields | None
        password: bool
        group: NotRequired[str | None]
        home: str
        had_home: bool
        was: NotRequired[snapshot.PathRecord | None]
        inside: NotRequired[Mapping[str, snapshot.PathRecord]]
        lingered: NotRequired[bool]


RESTORED = ("uid", "home", "shell", "comment")  # fields that a node sets and `undo` restores
WORDS = {"uid": "UID", "gid": "primary group", "home": "home directory", "shell": "login shell"}


def remember(node: HostNode, world: World) -> UserMemory:
    """Record the user, its primary group and what a removal takes: the group of its name and its home directory."""
    attrs = node.attrs
    name = attrs["name"]
    entry, own = world.entry("users", name), world.entry("groups", name)
    home = attrs.get("home") or (entry or {}).get("home") or "/home/" + name
    memory: UserMemory = {
        "entry": entry,
        "own": own,
        "password": attrs.get("password_hash") is not None,
        "home": home,
        "had_home": world.stat(home) is not None,
    }
    if entry is not None:
        memory["group"] = groups.with_gid(world, entry["gid"])
    if attrs.get("linger") is not None or attrs.get("absent"):
        memory["lingered"] = lingering.lingers(world, name)
    snap = snapshot.Snapshot(world)
    if entry is not None and attrs.get("absent") and attrs.get("remove_home"):
        was = memory["was"] = snap.entry(home)
        memory["inside"] = {}
        if was is not None and was["kind"] == "directory":
            try:
                memory["inside"] = snap.inside(home)
            except LookupError as problem:
                snap.lost.append(f"{problem}: it will not be restored")
    return snap.with_lost(memory)


def undo(node: HostNode, memory: UserMemory, world: World) -> ActionSpec:
    """Remove a new user, or restore a former user or the fields that the node changed."""
    attrs, was = node.attrs, memory["entry"]
    if was is None:
        return ActionSpec() if attrs.get("absent") else _removed(world, attrs, memory)
    if attrs.get("absent"):
        return _created_again(world, attrs["name"], was, memory)
    return _changed_back(world, attrs, was, memory)


def _removed(world: World, attrs: records.Attrs, memory: UserMemory) -> ActionSpec:
    """Return what removes a new user; with `remove_home`, also a home directory that did not exist before the user."""
    restoring = restore.Restore(world, memory)
    name = attrs["name"]
    entry = world.entry("users", name)
    if entry is None:
        return restoring.spec()
    try:
        actions = users.removal(world, name, entry, bool(attrs.get("remove_home")) and not memory["had_home"])
    except CheckError as problem:
        restoring.left.append(str(problem))
        actions = users.removal(world, name, entry, False)
    restoring.actions.extend(actions)
    own = memory["own"]
    if own is not None and world.entry("groups", name) is not None and any(act.args.get("group") for act in actions):
        restoring.actions.append(groups.groupadd(name, own["gid"]))  # userdel(8) removes the group of this name, too
    return restoring.spec()


def _created_again(world: World, name: str, was: records.Fields, memory: UserMemory) -> ActionSpec:
    """Return what creates a removed user again, with the home directory if the node removed it."""
    restoring = restore.Restore(world, memory, users=[name])
    group = memory.get("group")
    if world.entry("users", name) is None:
        if group is not None and world.entry("groups", group) is None:
            restoring.actions.append(groups.groupadd(group, was["gid"]))
        fields = {field: was[field] for field in RESTORED}
        present = [other for other in was["groups"] if world.entry("groups", other) is not None]
        more = {"system": False, "create_home": False, "gid": was["gid"]}
        restoring.actions.append(users.useradd(name, group=group or str(was["gid"]), groups=present, **fields, **more))
        restoring.left.append(f"the password of {name} is not restored: statecfg does not record passwords")
        restoring.actions += lingering.changes(world, name, memory.get("lingered"))
    home = memory.get("was")
    if home is not None:
        restoring.users.add(group or "")
        restoring.back_if_missing(memory["home"], home)
        tree: snapshot.TreeMemory = {"path": memory["home"], "inside": memory["inside"], "source": ()}
        restore.bring_back(restoring, tree, {"absent": True})
    return restoring.spec()


def _changed_back(world: World, attrs: records.Attrs, was: records.Fields, memory: UserMemory) -> ActionSpec:
    """Return what restores the fields of a user that the node set."""
    restoring = restore.Restore(world, memory)
    name, now = attrs["name"], world.entry("users", attrs["name"])
    if memory["password"]:
        restoring.left.append(f"the password of {name} stays: statecfg does not record passwords")
    if now is None:
        restoring.left.append(f"the user {name} no longer exists")
        return restoring.spec()
    if attrs.get("linger") is not None:
        restoring.actions += lingering.changes(world, name, memory.get("lingered"))
    changed, left = _reverted(world, attrs, was, now, memory)
    restoring.left += left
    if changed:
        restoring.actions.append(users.usermod(name, changed, was["gid"]))
    home = attrs.get("home") or memory["home"]
    if attrs.get("create_home") and not memory["had_home"] and world.stat(home) is not None:
        restoring.left.append(f"{home}, the home directory that was created for {name}, stays")
    return restoring.spec()


def _reverted(
    world: World, attrs: records.Attrs, was: records.Fields, now: records.Fields, memory: UserMemory
) -> tuple[records.Fields, list[str]]:
    """Return the fields to restore, and the messages about those that others have changed since."""
    name = attrs["name"]
    made = {field: attrs[field] for field in RESTORED if attrs.get(field) is not None}
    if attrs.get("group") is not None:
        made["gid"] = (world.entry("groups", attrs["group"]) or {}).get("gid")
    changed, left = undoing.reverted(was, made, now, lambda field: f"the {WORDS.get(field, field)} of {name}")
    if changed.pop("gid", None) is not None:
        changed["group"] = memory.get("group") or str(was["gid"])
    if attrs.get("groups") is not None:
        former, exact = was["groups"], bool(attrs.get("exact_groups"))
        if exact:
            former = [other for other in former if world.entry("groups", other) is not None]
        wanted, more = undoing.items(former, attrs["groups"], now.get("groups"), exact, f"the groups of {name}")
        left += more
        if wanted != sorted(now.get("groups") or ()):
            changed["groups"] = wanted
    return changed, left
