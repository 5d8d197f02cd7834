"""Groups of users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from statecfg import (
    Action,
    ActionSpec,
    Attrs,
    CheckError,
    GroupName,
    HostNode,
    Id,
    NodeOptions,
    UserName,
    World,
    node_type,
)
from statecfg.resources.shared import groups
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


group.manners = ("system",)


@group.owns
def owns(attrs: Attrs) -> list[str]:
    """Own the GID, and the list of the members, if it is given."""
    name, members = attrs["name"], attrs.get("members")
    found = [f"gid:{attrs['gid']}"] if attrs.get("gid") is not None else []
    if members is None:
        return found
    of_users = [f"adds:the groups of {user}: {name}" for user in members]
    found += [f"whole:the members of {name}", *(f"part:the members of {name}: {user}" for user in members)]
    return found + of_users


@group.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse attributes that a group with `absent` can't have."""
    refuse_with_absent(attrs, ("name", "absent"))


@group.check
def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> ActionSpec:
    """Compare the GID and the members of the host's group with the wanted ones."""
    attrs = node.attrs
    name, gid, members = attrs["name"], attrs.get("gid"), attrs.get("members")
    entry = world.entry("groups", name)
    if attrs.get("absent"):
        users = groups.primary_users(world, entry) if entry is not None else []
        if users:
            text = "%s is the primary group of %s; give them another one first"
            raise CheckError(text % (name, ", ".join(users)))
        return ActionSpec([groups.groupdel(name)] if entry is not None else [])
    actions: list[Action] = []
    left: list[str] = []
    if gid is not None and (entry is None or gid != entry.get("gid")):
        holder = groups.with_gid(world, gid)
        if holder is not None:
            raise CheckError(f"the GID {gid} is taken by group {holder}")
    if entry is None:
        actions.append(groups.groupadd(name, gid, bool(attrs.get("system"))))
    elif gid is not None and gid != entry.get("gid"):
        actions.append(groups.groupmod(name, gid))
        text = "files that belong to GID %d keep this number; to find them: find / -xdev -gid %d"
        left.append(text % (entry["gid"], entry["gid"]))
    if members is not None and sorted(members) != sorted((entry or {}).get("members") or ()):
        for member in members:
            account(world, "users", member, node, nodes)
        actions.append(groups.set_members(name, sorted(members)))
    return ActionSpec(actions, left=left)


group.implemented_by(groups)
group.logins()
