"""Groups of users."""

from __future__ import annotations

from typing import Unpack

from statecfg import Attrs, GroupName, Id, NodeOptions, UserName, node_type
from statecfg.resources.accounts import groups
from statecfg.resources.shared.paths import refuse_with_absent


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
    if attrs.get("absent"):
        return [f"whole:the members of {name}"]
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


group.managed_by(groups.GroupEntry)
group.logins()
