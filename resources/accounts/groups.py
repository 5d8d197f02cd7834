"""Groups of users: the ops, and the group as an entry of its facet."""

from __future__ import annotations

from statecfg.remote.graph.facet_entry import FacetEntry
from statecfg.remote.graph.model import Action, ActionSpec, CheckError
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import paths, records


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


class GroupEntry(FacetEntry):
    """The GID and the members of a group."""

    facet, fields, lists = "groups", ("gid", "members"), ("members",)
    noun, words = "the group", {"gid": "GID"}
    permission = ("give them another one first", "")

    def known(self, field: str, item: str) -> bool:
        """Tell whether a former member still exists."""
        return self.world.entry("users", item) is not None

    def in_the_way(self, now: records.Fields) -> str:
        """Return the message about the users who have it as their primary group."""
        users = primary_users(self.world, now)
        return f"{self.key()} is the primary group of {', '.join(users)}" if users else ""

    def require(self, now: records.Fields | None) -> None:
        """Check that no other group has the GID, and that new members exist."""
        gid, members, present = self.attrs.get("gid"), self.attrs.get("members"), now or {}
        holder = with_gid(self.world, gid) if gid not in (None, present.get("gid")) else None
        if holder is not None:
            raise CheckError(f"the GID {gid} is taken by group {holder}")
        if members is not None and sorted(members) != sorted(present.get("members") or ()):
            for member in members:
                paths.account(self.world, "users", member, self.node, self.nodes)

    def create(self, fields: records.Fields) -> list[Action]:
        """Create the group."""
        members = [set_members(self.key(), fields["members"])] if fields.get("members") else []
        return [groupadd(self.key(), fields.get("gid"), bool(self.attrs.get("system"))), *members]

    def change(self, now: records.Fields, fields: records.Fields) -> list[Action]:
        """Change the GID and the members."""
        number = [groupmod(self.key(), fields["gid"])] if "gid" in fields else []
        return number + ([set_members(self.key(), fields["members"])] if "members" in fields else [])

    def remove(self, now: records.Fields) -> list[Action]:
        """Remove the group."""
        return [groupdel(self.key())]

    def check(self) -> ActionSpec:
        """Compare the group. Its files keep a former GID."""
        spec, former, gid = super().check(), (self.present() or {}).get("gid"), self.attrs.get("gid")
        if former is not None and gid not in (None, former):
            text = "files that belong to GID %d keep this number; to find them: find / -xdev -gid %d"
            spec.left.append(text % (former, former))
        return spec

    def restore(self, was: records.Fields) -> ActionSpec:
        """Create the group again, with its former GID if this is free."""
        fields, left = self._free(was)
        return ActionSpec(self.create(fields), left=left)

    def give_back(self, now: records.Fields, was: records.Fields) -> ActionSpec:
        """Restore former members, and the former GID if it is free."""
        fields, left = self._free(was)
        return ActionSpec(self.change(now, fields), left=left)

    def _free(self, was: records.Fields) -> tuple[records.Fields, list[str]]:
        """Return former fields, without a GID that another group has now, and the message about it."""
        holder = with_gid(self.world, was["gid"]) if "gid" in was else None
        if holder is None:
            return was, []
        rest = {field: value for field, value in was.items() if field != "gid"}
        return rest, [f"{self.key()} does not get its former GID {was['gid']} back: {holder} has it"]
