"""Groups of users."""

from __future__ import annotations

from statecfg.remote.model import CheckError
from statecfg.remote.nodetype import node_type
from statecfg.remote.ops import op
from statecfg.resources._paths import account, refuse_with_absent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional

    from typing_extensions import Unpack

    from statecfg.remote.model import Action, Node, Result
    from statecfg.remote.nodetype import NodeOptions
    from statecfg.remote.values import GroupName, Id, UserName
    from statecfg.remote.world import Machine, World


@node_type
def group(
    name: GroupName,
    *,
    gid: Optional[Id] = None,
    system: bool = False,
    members: Optional[List[UserName]] = None,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """A group of the host's own (not of a directory service).

    :param name: the group's name
    :param gid: its number; the host's choice where it is not given
    :param system: a new group gets a number of the range for services
    :param members: who is in it, exactly; users may also name their groups themselves
    :param absent: there is to be no such group

    In YAML::

        - group: deploy
          gid: 2000

    In Python::

        group("www-data", members=["deploy"])
    """


@op(turn="accounts")
def groupadd(machine: Machine, name: str, gid: Optional[int] = None, system: bool = False) -> Result:
    """Make a group."""
    number = ["--gid", str(gid)] if gid is not None else []
    argv = ["groupadd", *number, *(["--system"] if system else []), "--", name]
    return machine.run(argv, {"groups": {name: {"gid": gid, "members": []}}})


@op(turn="accounts")
def groupmod(machine: Machine, name: str, gid: int) -> Result:
    """Give a group another number; what its files keep is the old one."""
    return machine.run(["groupmod", "--gid", str(gid), "--", name], {"groups": {name: {"gid": gid}}})


@op(turn="accounts")
def set_members(machine: Machine, name: str, members: List[str]) -> Result:
    """Have exactly these users in a group."""
    argv = ["gpasswd", "--members", ",".join(members), name]
    return machine.run(argv, {"groups": {name: {"members": members}}})


@op(turn="accounts")
def groupdel(machine: Machine, name: str) -> Result:
    """Remove a group."""
    return machine.run(["groupdel", "--", name], {"groups": {name: None}})


@group.validate
def contradictions(attrs: Dict[str, Any]) -> None:
    """Refuse what only a group that is there can have."""
    refuse_with_absent(attrs, ("name", "absent"))


@group.check
def check(node: Node, nodes: Mapping[str, Node], world: World) -> List[Action]:
    """Compare the group's number and members with what is wanted."""
    attrs = node.attrs
    name, gid, members = attrs["name"], attrs.get("gid"), attrs.get("members")
    entry = world.entry("groups", name)
    if attrs.get("absent"):
        if entry is None:
            return []
        inside = [user for user, fields in world.table("users").items() if fields.get("gid") == entry.get("gid")]
        if inside:
            raise CheckError("%s is the first group of %s; give them another" % (name, ", ".join(sorted(inside))))
        return [groupdel(name)]
    actions: List[Action] = []
    if gid is not None and (entry is None or gid != entry.get("gid")):
        taken = [other for other, fields in world.table("groups").items() if fields.get("gid") == gid]
        if taken:
            raise CheckError("the number %d is taken by group %s" % (gid, taken[0]))
    if entry is None:
        actions.append(groupadd(name, gid, bool(attrs.get("system"))))
    elif gid is not None and gid != entry.get("gid"):
        actions.append(groupmod(name, gid))
    if members is not None and sorted(members) != sorted((entry or {}).get("members") or ()):
        for member in members:
            account(world, "users", member, node, nodes)
        actions.append(set_members(name, sorted(members)))
    return actions
