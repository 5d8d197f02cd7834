"""Groups of users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from statecfg import (
    Action,
    ActionSpec,
    CheckError,
    GroupName,
    HostNode,
    Id,
    NodeOptions,
    UserName,
    World,
    node_type,
)
from statecfg.resources.shared import accounts
from statecfg.resources.shared.paths import account, refuse_with_absent


@node_type
def group(
    name: GroupName,
    *,
    gid: Id | None = None,
    system: bool = False,
    members: list[UserName] | None = None,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a local group of the host (not one from a directory service).

    Undo: statecfg removes a group that did not exist before, unless it is now the primary group of a user. For a group
    that existed before, it restores the GID and the members if the node sets them.

    :param name: the name of the group
    :param gid: the GID; by default, the host chooses one
    :param system: a new group gets a GID from the system range
    :param members: the exact list of members; user nodes may also name their groups
    :param absent: the group must not exist

    In YAML::

        - group: deploy
          gid: 2000

    In Python::

        group("www-data", members=["deploy"])
    """


@group.validate
def contradictions(attrs: dict[str, Any]) -> None:
    """Refuse what only a group that is there can have."""
    refuse_with_absent(attrs, ("name", "absent"))


@group.check
def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the group's number and members with what is wanted."""
    attrs = node.attrs
    name, gid, members = attrs["name"], attrs.get("gid"), attrs.get("members")
    entry = world.entry("groups", name)
    if attrs.get("absent"):
        if entry is None:
            return []
        inside = accounts.first_of(world, entry)
        if inside:
            raise CheckError("%s is the first group of %s; give them another" % (name, ", ".join(inside)))
        return [accounts.groupdel(name)]
    actions: list[Action] = []
    if gid is not None and (entry is None or gid != entry.get("gid")):
        taken = [other for other, fields in world.table("groups").items() if fields.get("gid") == gid]
        if taken:
            raise CheckError("the number %d is taken by group %s" % (gid, taken[0]))
    if entry is None:
        actions.append(accounts.groupadd(name, gid, bool(attrs.get("system"))))
    elif gid is not None and gid != entry.get("gid"):
        actions.append(accounts.groupmod(name, gid))
    if members is not None and sorted(members) != sorted((entry or {}).get("members") or ()):
        for member in members:
            account(world, "users", member, node, nodes)
        actions.append(accounts.set_members(name, sorted(members)))
    return actions


@group.remember
def remember(node: HostNode, world: World) -> dict[str, Any]:
    """Take down the group."""
    return {"entry": world.entry("groups", node.attrs["name"])}


@group.undo
def undo(node: HostNode, memory: Mapping[str, Any], world: World) -> ActionSpec:
    """Take a new group away; bring back an old one, or what was changed of it."""
    attrs, was = node.attrs, memory["entry"]
    name, now = attrs["name"], world.entry("groups", attrs["name"])
    if was is None:
        if now is None or attrs.get("absent"):
            return ActionSpec()
        inside = accounts.first_of(world, now)
        if inside:
            return ActionSpec(left=["%s stays: it is the first group of %s" % (name, ", ".join(inside))])
        return ActionSpec([accounts.groupdel(name)])
    actions: list[Action] = []
    left: list[str] = []
    number = was["gid"] if now is None or attrs.get("gid") is not None else now["gid"]
    if now is None and not attrs.get("absent"):
        return ActionSpec(left=["there is no group %s any more" % name])
    if now is None or number != now["gid"]:
        taken = [other for other, fields in world.table("groups").items() if fields.get("gid") == number]
        if taken:
            left.append("%s does not get its number %d back: %s has it" % (name, number, taken[0]))
        elif now is not None:
            actions.append(accounts.groupmod(name, number))
        if now is None:
            actions.append(accounts.groupadd(name, number if not taken else None))
    if attrs.get("members") is not None or now is None:
        has = set((now or {}).get("members") or ())
        known = {each for each in was["members"] if world.entry("users", each) is not None}
        wanted = (has - set(attrs.get("members") or ())) | known
        if wanted != has:
            actions.append(accounts.set_members(name, sorted(wanted)))
    return ActionSpec(actions, left=left)
