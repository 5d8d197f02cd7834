"""Groups of users: the ops, the snapshot and its restoration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statecfg.remote.graph import undoing
from statecfg.remote.graph.model import Action, ActionSpec, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import records

if TYPE_CHECKING:
    from typing import TypedDict

    class GroupMemory(TypedDict):
        """The memory of a `group`."""

        entry: records.Fields | None


@op(mutex="accounts")
def groupadd(machine: Machine, name: str, gid: int | None = None, system: bool = False) -> Result:
    """Create a group."""
    number = ["--gid", str(gid)] if gid is not None else []
    argv = ["groupadd", *number, *(["--system"] if system else []), "--", name]
    return machine.run(argv, {"groups": {name: {"gid": gid, "members": []}}})


@op(mutex="accounts")
def groupmod(machine: Machine, name: str, gid: int) -> Result:
    """Change the GID of a group. Its files keep the old GID."""
    return machine.run(["groupmod", "--gid", str(gid), "--", name], {"groups": {name: {"gid": gid}}})


@op(mutex="accounts")
def set_members(machine: Machine, name: str, members: list[str]) -> Result:
    """Set the members of a group to exactly these users."""
    argv = ["gpasswd", "--members", ",".join(members), name]
    return machine.run(argv, {"groups": {name: {"members": members}}})


@op(mutex="accounts")
def groupdel(machine: Machine, name: str) -> Result:
    """Remove a group."""
    return machine.run(["groupdel", "--", name], {"groups": {name: None}})


def primary_users(world: World, entry: records.Fields) -> list[str]:
    """Return the users whose primary group this is."""
    return sorted(name for name, fields in world.facet("users").items() if fields.get("gid") == entry.get("gid"))


def with_gid(world: World, gid: int) -> str | None:
    """Return the group with this GID, or None."""
    return next((name for name, fields in world.facet("groups").items() if fields.get("gid") == gid), None)


def remember(node: HostNode, world: World) -> GroupMemory:
    """Record the group."""
    return {"entry": world.entry("groups", node.attrs["name"])}


def undo(node: HostNode, memory: GroupMemory, world: World) -> ActionSpec:
    """Remove a new group, or restore a former group or what the node changed in it."""
    attrs, was = node.attrs, memory["entry"]
    name, now = attrs["name"], world.entry("groups", attrs["name"])
    if was is None:
        return ActionSpec() if now is None or attrs.get("absent") else _removed(world, name, now)
    if now is None and not attrs.get("absent"):
        return ActionSpec(left=[f"the group {name} no longer exists"])
    spec = _with_number(world, attrs, was, now)
    if attrs.get("members") is not None or now is None:
        present = (now or {}).get("members") or ()
        former = [member for member in was["members"] if world.entry("users", member) is not None]
        made = attrs.get("members") or ()
        wanted, left = undoing.items(former, made, present, True, f"the members of {name}")
        spec.left += left
        if wanted != sorted(present):
            spec.actions.append(set_members(name, wanted))
    return spec


def _removed(world: World, name: str, now: records.Fields) -> ActionSpec:
    """Return what removes a new group, unless it is now the primary group of a user."""
    users = primary_users(world, now)
    if users:
        return ActionSpec(left=[f"{name} stays: it is the primary group of {', '.join(users)}"])
    return ActionSpec([groupdel(name)])


def _with_number(world: World, attrs: records.Attrs, was: records.Fields, now: records.Fields | None) -> ActionSpec:
    """Return what creates a removed group again, or restores the GID that the node changed."""
    name = attrs["name"]
    gid = was["gid"]
    actions: list[Action] = []
    left: list[str] = []
    if now is not None:
        made = {"gid": attrs["gid"]} if attrs.get("gid") is not None else {}
        back, left = undoing.reverted(was, made, now, lambda field: f"the GID of {name}")
        if not back:
            return ActionSpec(left=left)
    holder = with_gid(world, gid)
    if holder is not None:
        left.append(f"{name} does not get its former GID {gid} back: {holder} has it")
    elif now is not None:
        actions.append(groupmod(name, gid))
    if now is None:
        actions.append(groupadd(name, gid if holder is None else None))
    return ActionSpec(actions, left=left)
