"""Restore paths from their snapshots when a node is removed."""

from __future__ import annotations

import posixpath
from collections.abc import Container, Iterable, Mapping
from typing import Any

from statecfg.remote.graph import undoing
from statecfg.remote.graph.model import Action, ActionSpec, Blob, HostNode, Unknown
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result, ok
from statecfg.remote.ledger import claims
from statecfg.remote.machine import hidden
from statecfg.remote.machine.world import Machine, Stat, World
from statecfg.resources.shared import paths, records, snapshot, tree


@op
def remove_empty(machine: Machine, path: str) -> Result:
    """Remove a directory if it is empty. If not, the last node that manages something in it removes it."""
    result = machine.remove(path)
    empty = result["status"] == "ok" or not machine.listdir(path)
    return result if empty else ok(f"{path} is not empty yet")


class Restore:
    """Compute the actions that restore paths.

    :param memory: what `remember` returned for the node
    :param to_remove: the nodes that this run removes
    :param users: accounts that earlier actions create, so that the host does not know them yet
    """

    def __init__(
        self,
        world: World,
        memory: snapshot.Memory,
        to_remove: Mapping[str, HostNode] | None = None,
        users: Iterable[str] = (),
    ) -> None:
        self.world, self.lost, self.users = world, list(memory.get("lost") or ()), set(users)
        self.untouched = bool(memory.get("untouched"))
        managed = (path for node in (to_remove or {}).values() for path in tree.managed(node))
        gone = {claims.located(world, path) if path[0] == "~" else path for path in managed}
        self.to_remove = gone.union(*map(tree.parents, gone))  # and the directories above them
        self.actions: list[Action] = []
        self.left: list[str] = []
        self.removed: set[str] = set()
        self.emptied: set[str] = set()  # directories that are removed together with their last entry
        self.created: set[str] = set()

    def spec(self) -> ActionSpec:
        """Return the actions and messages about what stays."""
        return ActionSpec(self.actions, left=[*self.left, *self.lost])

    def back(
        self,
        path: str,
        was: snapshot.PathRecord | None,
        ours: tuple[str, ...],
        made: records.Attrs | None = None,
    ) -> None:
        """Restore a path, or remove it if it did not exist. What others have changed since stays.

        :param ours: file types that the node may have created there; a path of another type stays
        :param made: what the node set: `content` or `target`, `mode`, `owner` and `group`, as the ledger has them;
            None if that is unknown
        """
        now = self.world.stat(path)
        if now is not None and now.file_type not in ours and (was is None or now.file_type != was["kind"]):
            self.left.append(
                f"{path} is now {paths.FILE_TYPES[now.file_type]}, which the node did not create: it stays"
            )
        elif now is not None and made is not None and not self._as_made(path, was, made, now):
            unknown = not hidden.known(made.get("content") or "")
            self.left.append(f"{path}: {hidden.UNKNOWN}: the file stays" if unknown else _other(path, now))
        elif was is None:
            if now is not None:
                self.remove(path, now)
        else:
            self._restore(path, was, now, made)

    def _as_made(self, path: str, was: snapshot.PathRecord | None, made: records.Attrs, now: Stat) -> bool:
        """Tell whether a path still has the content or target that the node gave it, or has its former one again."""
        if was is not None and now.file_type == was["kind"] and not self.differs(path, was, now):
            return True
        if now.file_type == "symlink":
            return made.get("target") in (None, now.target)
        content = made.get("content")
        if now.file_type != "file" or content is None:
            return True
        if isinstance(content, str):
            if not hidden.known(content) and self.untouched:
                return True
            if hidden.same(f"sha256:{self.world.digest(path)} ({now.size} bytes)", content):
                return True
            return hidden.same(text_of(self.world, path), content)
        return Blob.of(content).sha256 == self.world.digest(path)

    def back_if_missing(self, path: str, was: snapshot.PathRecord) -> None:
        """Restore a path that the node removed. If something is there again, it stays."""
        now = self.world.stat(path)
        if now is None:
            self._restore(path, was, None)
        elif now.file_type != was["kind"] or self.differs(path, was, now):
            self.left.append(f"{path} exists again: it stays as it is")

    def remove(self, path: str, now: Stat) -> None:
        """Remove what the node created. A directory stays if it contains something that others created."""
        if now.file_type == "directory":
            inside = {posixpath.join(path, name): name for name in self.world.listdir(path)}
            others = [name for entry, name in inside.items() if entry not in self.removed]
            if others and not self.world.acted and self.to_remove.issuperset(set(inside) - self.removed):
                # This run removes these as well, perhaps concurrently. The last removal also removes the directory.
                self.emptied.add(path)
                self.actions.append(remove_empty(path))
                return
            if others:
                listed = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
                self.left.append(f"{path} is not empty ({listed}): it stays")
                return
        self.removed.add(path)
        self.actions.append(paths.remove(path))

    def remove_above(self, path: str, above: Iterable[str]) -> None:
        """Remove the directories that were created for `path`, the nearest first, up to one that is in use."""
        for parent in above:
            now = self.world.stat(parent)
            if now is not None and now.file_type == "directory" and self._goes(path):
                self.remove(parent, now)
            path = parent

    def _goes(self, path: str) -> bool:
        return self.world.stat(path) is None or path in self.removed or path in self.emptied

    def attributes(
        self,
        path: str,
        now: Stat,
        was: snapshot.PathRecord,
        fields: Container[str],
        made: records.Attrs | None = None,
    ) -> None:
        """Restore mode, owner and group, as far as they are in `fields`.

        :param made: what the node set, by field; what others have changed since stays. None: restore in any case
        """
        if made is not None:
            was = self._unless_changed(path, now, was, made, fields)
        owner, group = self.owners(path, was)
        owner = owner if "owner" in fields and owner != now.owner else None
        group = group if "group" in fields and group != now.group else None
        if owner is not None or group is not None:
            self.actions.append(paths.chown(path, owner, group))
        lost = ("owner" in fields or "group" in fields) and _lost_bits(was, now)
        if now.file_type == "symlink" or (self.world.acted and _lost_bits(was, now)):
            return
        mode = was["mode"] if "mode" in fields or lost else now.mode
        if now.file_type == "file" and owner is not None and mode & 0o6000 and self._rewritable(path, was, now):
            mode &= 0o1777
            self.left.append(f"{path} does not get its set-user-id bits back: {now.owner} may have changed its content")
        # A change of owner may clear the set-user-id and set-group-id bits.
        if mode != now.mode or ((owner or group) and mode & 0o6000):
            self.actions.append(paths.chmod(path, mode))

    def _rewritable(self, path: str, was: snapshot.PathRecord, now: Stat) -> bool:
        """Tell whether the present owner, who is neither root nor the running user, may have changed the content."""
        return paths.changes_hands(now, None) and self.differs(path, was, now)

    def _unless_changed(
        self, path: str, now: Stat, was: snapshot.PathRecord, made: records.Attrs, fields: Container[str]
    ) -> snapshot.PathRecord:
        """Return the record with the present values in place of those that others have changed; say what stays."""
        former: Any = was
        kept: dict[str, Any] = {}
        for field in ("owner", "group") if now.file_type == "symlink" else ("mode", "owner", "group"):
            present = getattr(now, field)
            if field not in fields or present == former[field] or self._as_set(field, now, was, made):
                continue
            kept[field] = present
            shown = f"{present:04o}" if field == "mode" else present
            self.left.append(undoing.stays(f"the {field} of {path}", shown))
        result: Any = {**former, **kept}
        record: snapshot.PathRecord = result
        return record

    def _as_set(self, field: str, now: Stat, was: snapshot.PathRecord, made: records.Attrs) -> bool:
        """Tell whether mode, owner or group is as the node set it."""
        wanted = made.get(field)
        if field == "mode":
            if wanted is None:
                return _lost_bits(was, now)
            return paths.mode_bits(wanted, now, now.file_type == "directory") == now.mode
        return wanted is not None and _same_account(self.world, field, str(wanted), getattr(now, field))

    def restore_attributes(
        self, path: str, was: snapshot.PathRecord, fields: Container[str], made: records.Attrs | None = None
    ) -> None:
        """Restore mode, owner and group, as far as they are in `fields`, if the path still has the same file type.

        :param made: see `attributes`
        """
        now = self.world.stat(path)
        if now is not None and now.file_type == was["kind"]:
            self.attributes(path, now, was, fields, made)

    def _restore(
        self, path: str, was: snapshot.PathRecord, now: Stat | None, made: records.Attrs | None = None
    ) -> None:
        file_type = was["kind"]
        if now is None and not self._has_parent(path):
            self.left.append(f"{path} is not restored: its directory no longer exists")
            return
        if file_type == "other":
            return
        if now is not None and now.file_type == file_type and made is not None:
            was = self._unless_changed(path, now, was, made, ("mode", "owner", "group"))
        if now is None or now.file_type != file_type or self.differs(path, was, now):
            owner, group = self.owners(path, was)
            if file_type == "directory":
                self.created.add(path)
                self.actions.append(tree.make(path, was["mode"], owner, group))
            elif file_type == "symlink":
                self.actions.append(tree.link(path, was["target"], owner, group))
            elif "content" in was:
                self.actions.append(tree.put(path, was["content"], was["mode"], owner, group))
            else:
                self.left.append(f"{path} is not restored: its previous content is unknown")
        elif file_type == "file" and "content" in was and now.owner != was["owner"]:
            self.actions.append(tree.put(path, was["content"], was["mode"], *self.owners(path, was)))
        else:
            self.attributes(path, now, was, ("mode", "owner", "group"))

    def differs(self, path: str, was: snapshot.PathRecord, now: Stat) -> bool:
        """Tell whether a path of the same file type has another target or other content."""
        if now.file_type == "symlink":
            return bool(now.target != was["target"])
        if now.file_type == "file":
            content = was.get("content")
            return content is None or now.size != content.size or self.world.digest(path) != content.sha256
        return False

    def _has_parent(self, path: str) -> bool:
        parent = posixpath.dirname(path)
        if parent in self.created:
            return True
        stat = self.world.apparent(paths.followed(self.world, parent))
        return stat is not None and stat.file_type == "directory" and parent not in self.removed

    def owners(self, path: str, was: snapshot.PathRecord) -> tuple[str | None, str | None]:
        """Return the former owner and group. For one that the host no longer has, return None and add a message."""
        owner, group = was["owner"], was["group"]
        has_owner = self._exists(path, "users", "owner", owner)
        has_group = self._exists(path, "groups", "group", group)
        return owner if has_owner else None, group if has_group else None

    def _exists(self, path: str, facet: str, field: str, name: str) -> bool:
        """Return whether an account exists. If not, add a message."""
        if name.isdigit() or name in self.users or self._on_host(facet, name):
            return True
        self.left.append(f"{path} does not get its {field} {name} back: {name} no longer exists")
        return False

    def _on_host(self, facet: str, name: str) -> bool:
        try:
            return self.world.entry(facet, name) is not None
        except Unknown:
            return True


def _other(path: str, now: Stat) -> str:
    """Return the message about a path with other content, or another target, than the node gave it."""
    if now.file_type == "symlink":
        return undoing.stays(f"the target of {path}", now.target)
    return f"others have changed the content of {path} (now {now.size} bytes): it stays"


def _lost_bits(was: snapshot.PathRecord, now: Stat) -> bool:
    """Tell whether a change of owner cleared the set-user-id and set-group-id bits, as it did before 0.5."""
    return bool(was["mode"] & 0o6000) and now.mode == was["mode"] & 0o1777


def _same_account(world: World, field: str, made: str, present: str) -> bool:
    """Tell whether a user or group, given by name or number, is the present owner or group."""
    if made == present or not made.isdigit():
        return made == present
    facet, number = ("users", "uid") if field == "owner" else ("groups", "gid")
    try:
        return (world.entry(facet, present) or {}).get(number) == int(made)
    except Unknown:
        return False


def bring_back(restoring: Restore, memory: snapshot.TreeMemory, attrs: records.Attrs) -> None:
    """Restore the content of a directory."""
    root, inside = memory["path"], memory["inside"]
    ours = set() if attrs.get("absent") else {*(attrs.get("tree") or ()), *memory["source"]}
    for name in sorted({*ours, *inside}):
        was = inside.get(name)
        path = posixpath.join(root, name)
        if was is None or "mode" not in was:
            continue
        now = restoring.world.stat(path)
        if now is not None and now.file_type == was["kind"] == "directory":
            restoring.attributes(path, now, was, managed_attributes(attrs) if name in ours else (), attrs)
        elif name in ours:
            restoring.back(path, was, ("file", "symlink"), made_entry(attrs, memory, name))
        elif now is None or attrs.get("absent"):
            restoring.back_if_missing(path, was)
    for name in sorted(ours, reverse=True):
        path, was = posixpath.join(root, name), inside.get(name)
        if was is not None and "mode" in was:
            continue
        now = restoring.world.stat(path)
        if now is None:
            continue
        if was is None and memory["complete"]:
            if now.file_type == "directory":
                restoring.remove(path, now)
            else:
                restoring.back(path, None, ("file", "symlink"), made_entry(attrs, memory, name))
        elif now.file_type != "directory":
            restoring.left.append(f"{path} stays: its previous state is unknown")


def text_of(world: World, path: str) -> str:
    """Return the content of a file as text."""
    return world.read(path).decode("utf-8", "surrogateescape")


def made_entry(attrs: records.Attrs, memory: snapshot.TreeMemory, name: str) -> records.Attrs | None:
    """Return the fields that the node set of an entry of its source: content or target, mode, owner and group.

    None if that is unknown: for an archive of an interrupted run, or of an earlier version.
    """
    source = (attrs.get("tree") or {}).get(name) or {}
    known = {**source, **(memory.get("ours") or {}).get(name, {})}
    if "content" not in known and "target" not in known:
        return None
    mode = attrs.get("file_mode") or ("0755" if known.get("executable") else "0644")
    return {**known, "mode": mode, "owner": attrs.get("owner"), "group": attrs.get("group")}


def back_up(restoring: Restore, memory: snapshot.BackedUp, suffix: str | None) -> None:
    """Restore what was at the path of the node's backup. A backup that others have changed stays."""
    kept, copy = memory.get("backup"), memory.get("copy")
    if suffix and kept is not None and kept["suffix"] == suffix:
        now = restoring.world.stat(memory["path"] + suffix)
        if copy and now is not None and now.identity is not None and [*now.identity[1:], now.size] != copy:
            restoring.left.append(f"others have changed the backup copy {memory['path'] + suffix}: it stays")
        else:
            restoring.back(memory["path"] + suffix, kept["was"], ("file",))
    elif suffix and restoring.world.stat(memory["path"] + suffix) is not None:
        restoring.left.append(f"the backup copy {memory['path'] + suffix} stays")


def managed_attributes(attrs: records.Attrs) -> list[str]:
    """Return which of mode, owner and group the node sets."""
    return [field for field in ("mode", "owner", "group") if attrs.get(field) is not None]
