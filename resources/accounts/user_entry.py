"""Users as entries of their facet: what a node changes, the snapshot, and what the undo restores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from statecfg.remote.graph.facet_entry import FacetEntry
from statecfg.remote.graph.model import Action, ActionSpec, CheckError
from statecfg.resources.accounts import groups, users
from statecfg.resources.services import lingering
from statecfg.resources.shared import paths, records, restore, snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NotRequired

    class UserMemory(snapshot.Memory):
        """The memory of a `user`.

        :ivar own: the group with the user's name
        :ivar group: the name of the primary group
        :ivar was: the home directory, if the node removes it
        :ivar inside: the entries of this home directory
        :ivar lingered: whether the user lingered, if the node sets it or removes the user
        """

        entry: records.Fields | None
        own: records.Fields | None
        group: NotRequired[str | None]
        home: str
        had_home: bool
        was: NotRequired[snapshot.PathRecord | None]
        inside: NotRequired[Mapping[str, snapshot.PathRecord]]
        lingered: NotRequired[bool]


FIELDS = ("uid", "home", "shell", "comment")


class UserEntry(FacetEntry):
    """A user. Its primary group is the field `gid`."""

    facet, fields, lists, secret, noun = "users", (*FIELDS, "groups"), ("groups",), "password_hash", "the user"
    words = {
        "uid": "UID", "gid": "primary group", "home": "home directory", "shell": "login shell",
        "password_hash": "password",
    }  # fmt: skip

    def exact(self, field: str) -> bool:
        """Tell whether the user must not be in other groups."""
        return bool(self.attrs.get("exact_groups"))

    def known(self, field: str, item: str) -> bool:
        """Tell whether a former group still exists."""
        return self.world.entry("groups", item) is not None

    def wanted(self) -> records.Fields:
        """Return the fields that the node sets. The GID of a group that a required node creates may be unknown."""
        group = self.attrs.get("group")
        gid = {"gid": (self.world.entry("groups", group) or {}).get("gid")} if group is not None else {}
        return {**super().wanted(), **gid}

    def require(self, now: records.Fields | None) -> None:
        """Check that the groups and a new login shell exist."""
        attrs = self.attrs
        for group in [attrs.get("group"), *(attrs.get("groups") or ())]:
            paths.account(self.world, "groups", group, self.node, self.nodes)
        if attrs.get("shell") != (now or {}).get("shell"):
            users.require_shell(self.world, attrs.get("shell"))

    def create(self, fields: records.Fields) -> list[Action]:
        """Create the user."""
        return [users.creation(self.world, self.attrs)]

    def change(self, now: records.Fields, fields: records.Fields) -> list[Action]:
        """Change fields."""
        changed = {field: value for field, value in fields.items() if field != "gid"}
        if "gid" in fields:
            former = self.memory.get("group") or str(fields["gid"])
            changed["group"] = former if self.memory else self.attrs["group"]
        return [users.usermod(self.key(), changed, fields.get("gid"))]

    def remove(self, now: records.Fields) -> list[Action]:
        """Remove the user."""
        return users.removal(self.world, self.key(), now, bool(self.attrs.get("remove_home")))

    def set_secret(self, now: records.Fields | None) -> list[Action]:
        """Set the hash of the password."""
        return users.password_actions(self.world, self.key(), self.attrs["password_hash"])

    def check(self) -> ActionSpec:
        """Compare the user, and whether its home directory exists. Other files keep a former UID."""
        spec, now, uid = super().check(), self.present(), self.attrs.get("uid")
        if now is not None and not self.absent():
            spec.actions += users.missing_home(self.world, self.attrs, now)
            if uid not in (None, now["uid"]):
                text = "files outside of %s that belong to UID %d keep this number; to find them: find / -xdev -uid %d"
                spec.left.append(text % (now["home"], now["uid"], now["uid"]))
        spec.actions += lingering.changes(self.world, self.key(), self.attrs.get("linger"))
        return spec

    def remember(self) -> dict[str, Any]:
        """Record the user, its primary group and what a removal takes: the group of its name and its home directory."""
        attrs, world, name = self.attrs, self.world, self.key()
        entry, own = self.present(), world.entry("groups", name)
        home = attrs.get("home") or (entry or {}).get("home") or "/home/" + name
        memory: UserMemory = {"entry": entry, "own": own, "home": home, "had_home": world.stat(home) is not None}
        if entry is not None:
            memory["group"] = groups.with_gid(world, entry["gid"])
        if attrs.get("linger") is not None or self.absent():
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
        return dict(snap.with_lost(memory))

    def undo(self, memory: Any) -> ActionSpec:
        """Remove a new user, or restore a former user or the fields that the node changed."""
        was, now, attrs = memory["entry"], self.present(), self.attrs
        if was is not None and self.absent():
            return self._created_again(was, memory)
        spec = super().undo(memory)
        if was is not None and now is not None:
            if attrs.get("linger") is not None:
                spec.actions += lingering.changes(self.world, self.key(), memory.get("lingered"))
            if attrs.get("create_home"):
                spec.left += self._left_home(attrs.get("home") or memory["home"])
        return spec

    def _left_home(self, home: str) -> list[str]:
        made = not self.memory["had_home"] and self.world.stat(home) is not None
        return [f"{home}, the home directory that was created for {self.key()}, stays"] if made else []

    def drop(self, now: records.Fields) -> ActionSpec:
        """Remove a new user; with `remove_home`, also a home directory that did not exist before the user."""
        world, name, memory = self.world, self.key(), self.memory
        spec = ActionSpec()
        try:
            spec.actions = users.removal(
                world, name, now, bool(self.attrs.get("remove_home")) and not memory["had_home"]
            )
        except CheckError as problem:
            spec.left.append(str(problem))
            spec.actions = users.removal(world, name, now, False)
        spec.left += self._left_home(memory["home"]) if not self.attrs.get("remove_home") else []
        own, with_group = memory["own"], any(action.args.get("group") for action in spec.actions)
        if own is not None and world.entry("groups", name) is not None and with_group:
            spec.actions.append(groups.groupadd(name, own["gid"]))  # userdel(8) removes the group of this name, too
        return spec

    def _created_again(self, was: records.Fields, memory: UserMemory) -> ActionSpec:
        """Return the actions that create a removed user again, with the home directory if the node removed it."""
        name, group = self.key(), memory.get("group")
        restoring = restore.Restore(self.world, memory, users=[name])
        if self.present() is None:
            if group is not None and not self.known("groups", group):
                restoring.actions.append(groups.groupadd(group, was["gid"]))
            fields = {field: was[field] for field in FIELDS}
            present = [other for other in was["groups"] if self.known("groups", other)]
            more = {"system": False, "create_home": False, "gid": was["gid"]}
            again = users.useradd(name, group=group or str(was["gid"]), groups=present, **fields, **more)
            restoring.actions.append(again)
            restoring.left.append(f"{self.named(self.secret)} is not restored: statecfg does not record passwords")
            restoring.actions += lingering.changes(self.world, name, memory.get("lingered"))
        home = memory.get("was")
        if home is not None:
            restoring.users.add(group or "")
            restoring.back_if_missing(memory["home"], home)
            tree: snapshot.TreeMemory = {"path": memory["home"], "inside": memory["inside"], "source": ()}
            restore.bring_back(restoring, tree, {"absent": True})
        return restoring.spec()
