"""Look up users and groups of the host by name and by number."""

from __future__ import annotations

import grp
import os
import pwd
from typing import Dict, Optional, Tuple

from statecfg.remote.machine.world import Fields, World

# Numbers → names, while nothing changes the host. A look-up reads files, and all paths of a plan have few owners.
_users: Dict[int, str] = {}
_groups: Dict[int, str] = {}
_remembering = False

_NUMBERS = {"users": "uid", "groups": "gid"}  # facet → the field with the number


def user_fields(name: str) -> Optional[Fields]:
    """Return a user's fields (uid, gid, comment, home, shell and `groups`, the additional groups), or None."""
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        return None
    return {
        "uid": user.pw_uid,
        "gid": user.pw_gid,
        "comment": user.pw_gecos,
        "home": user.pw_dir,
        "shell": user.pw_shell,
        "groups": sorted(group.gr_name for group in grp.getgrall() if name in group.gr_mem),
    }


def group_fields(name: str) -> Optional[Fields]:
    """Return a group's fields (gid, members), or None."""
    try:
        group = grp.getgrnam(name)
    except KeyError:
        return None
    return {"gid": group.gr_gid, "members": sorted(group.gr_mem)}


FIELDS = {"users": user_fields, "groups": group_fields}  # facet → the look-up of one entry


class Remembering:
    """A block that looks up the name of each number only once. It must not change the host."""

    def __enter__(self) -> None:
        global _remembering
        _remembering = True

    def __exit__(self, *error: object) -> None:
        global _remembering
        _remembering = False
        _users.clear()
        _groups.clear()


def user_name(uid: int) -> str:
    """Return the name of a user, or the UID as text if it has no name."""
    if uid in _users:
        return _users[uid]
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
    if _remembering:
        _users[uid] = name
    return name


def group_name(gid: int) -> str:
    """Return the name of a group, or the GID as text if it has no name."""
    if gid in _groups:
        return _groups[gid]
    try:
        name = grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
    if _remembering:
        _groups[gid] = name
    return name


def user_id(owner: str) -> int:
    """Return the UID of a user who is given by name or number.

    :raises LookupError: if the host has no such user
    """
    try:
        return pwd.getpwnam(owner).pw_uid
    except KeyError:
        if owner.isdigit():
            return int(owner)
        raise LookupError(f"no user {owner} on this host") from None


def group_id(group: str) -> int:
    """Return the GID of a group that is given by name or number.

    :raises LookupError: if the host has no such group
    """
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError:
        if group.isdigit():
            return int(group)
        raise LookupError(f"no group {group} on this host") from None


def own_names() -> Tuple[str, str]:
    """Return the names of the user and the group that this process acts as."""
    return user_name(os.geteuid()), group_name(os.getegid())


def known_name(world: World, facet: str, name: str) -> Optional[str]:
    """Return the name of a user or group that is given by name or number; None for an unknown name.

    :param facet: "users" or "groups"
    """
    if world.entry(facet, name) is not None:
        return name
    if not name.isdigit():
        return None
    number = int(name)
    for key, fields in world.facet(facet).items():
        if fields.get(_NUMBERS[facet]) == number:
            return key
    return str(number)
