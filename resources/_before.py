"""Snapshots of paths: record what exists before a node changes it, and restore it when the node is removed."""

from __future__ import annotations

import posixpath

from statecfg.remote.graph.model import ActionSpec, Blob, CheckError, Unknown, ok
from statecfg.remote.graph.ops import op
from statecfg.remote.machine.changes import DIFFED
from statecfg.resources import _lines, _paths, _tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Container, Dict, Iterable, List, Mapping, Optional, Set, Tuple

    from statecfg.remote.graph.model import Action, Node, Result
    from statecfg.remote.machine.world import Machine, Stat, World

    Entry = Dict[str, Any]

REMEMBERED = 64 << 20  # bytes of content that are kept for one node
SMALL = 1 << 20  # bytes of a file that are kept although its content is not the node's to change, yet
DEEPEST = 200  # levels of directories that are kept for one node
ENTRIES = 10000  # files, directories and links that are kept for one node


@op
def remove_empty(machine: Machine, path: str) -> Result:
    """Remove a directory, unless something is still in it: then whoever empties it removes it."""
    result = machine.remove(path)
    empty = result["status"] == "ok" or not machine.listdir(path)
    return result if empty else ok("%s is not empty yet" % path)


class Looking:
    """Takes down what stands at paths, up to the limits for one node.

    :param room: bytes of content that may be kept
    """

    def __init__(self, world: World, room: int = REMEMBERED) -> None:
        self.world, self.room, self.entries = world, room, 0
        self.lost: List[str] = []

    def entry(self, path: str) -> Optional[Entry]:
        """Return what stands at a path, with its content; None where nothing does."""
        stat = self.world.stat(path)
        return None if stat is None else self._full(path, stat)

    def _full(self, path: str, stat: Stat) -> Entry:
        found: Entry = {"kind": stat.kind, "mode": stat.mode, "owner": stat.owner, "group": stat.group}
        if stat.kind == "symlink":
            found["target"] = stat.target
        elif stat.kind == "file":
            content = self._content(path, stat.size)
            if content is not None:
                found["content"] = content
        elif stat.kind == "other":
            self.lost.append("%s, %s, is not remembered" % (path, _paths.KINDS["other"]))
        return found

    def _content(self, path: str, size: int) -> Optional[Blob]:
        if size > self.room:
            self.lost.append("the content of %s is not remembered: %d bytes are too much" % (path, size))
            return None
        try:
            # What is large is read again when it is put away, and never stands in memory.
            large = size > DIFFED
            content = Blob(self.world.digest(path), size, path=path) if large else Blob.of(self.world.read(path))
        except PermissionError:
            self.lost.append("the content of %s is not remembered: it may not be read" % path)
            return None
        self.room -= content.size
        return content

    def inside(self, root: str, wanted: Optional[Container[str]] = None) -> Dict[str, Entry]:
        """Return what is in a directory and below it: relative path → entry; raises LookupError where it is too much.

        :param wanted: the paths of which all is taken down; of the others only that they are there
        """
        found: Dict[str, Entry] = {}
        waiting = [""]
        while waiting:
            above = waiting.pop()
            for name in self._names(posixpath.join(root, above)):
                path = posixpath.join(above, name)
                stat = self.world.stat(posixpath.join(root, path))
                if stat is None:
                    continue
                if path.count("/") > DEEPEST:
                    raise LookupError("%s holds directories more than %d levels deep" % (root, DEEPEST))
                self.entries += 1
                if self.entries > ENTRIES:
                    raise LookupError("%s holds more than %d files" % (root, ENTRIES))
                whole = wanted is None or path in wanted
                found[path] = self._full(posixpath.join(root, path), stat) if whole else {"kind": stat.kind}
                if stat.kind == "directory":
                    waiting.append(path)
        return found

    def _names(self, path: str) -> List[str]:
        try:
            return self.world.listdir(path)
        except PermissionError:
            self.lost.append("what is in %s is not remembered: it may not be read" % path)
            return []

    def kept(self, path: str, suffix: str) -> Entry:
        """Return what stands where a node keeps the old file."""
        return {"suffix": suffix, "was": self.entry(path + suffix)}

    def memory(self, **known: Any) -> Dict[str, Any]:
        """Return what a type remembers, with what it does not."""
        return dict(known, lost=self.lost) if self.lost else known


class Undoing:
    """Works out what brings paths back to what they were.

    :param memory: what the type remembered
    :param leaving: the nodes that go in this run
    :param users: names that will be known by then although the host does not know them yet
    """

    def __init__(
        self,
        world: World,
        memory: Mapping[str, Any],
        leaving: Optional[Mapping[str, Node]] = None,
        users: Iterable[str] = (),
    ) -> None:
        self.world, self.lost, self.users = world, list(memory.get("lost") or ()), set(users)
        self.leaving = {path for node in (leaving or {}).values() for path in _with_parents(node)}
        self.actions: List[Action] = []
        self.left: List[str] = []
        self.gone: Set[str] = set()
        self.emptied: Set[str] = set()  # directories that go with the last of what is in them
        self.made: Set[str] = set()

    def spec(self) -> ActionSpec:
        """Return the actions, and what they leave."""
        return ActionSpec(self.actions, left=[*self.left, *self.lost])

    def back(self, path: str, was: Optional[Mapping[str, Any]], ours: Tuple[str, ...]) -> None:
        """Bring a path back to what it was.

        :param ours: kinds that the node may have put there; anything else is somebody's own and stays
        """
        now = self.world.stat(path)
        if now is not None and now.kind not in ours and (was is None or now.kind != was["kind"]):
            self.left.append("%s is %s by now, which the node did not make: it stays" % (path, _paths.KINDS[now.kind]))
        elif was is None:
            if now is not None:
                self.remove(path, now)
        else:
            self._restore(path, was, now)

    def back_if_missing(self, path: str, was: Mapping[str, Any]) -> None:
        """Bring back what the node removed; what somebody has put there since stays."""
        now = self.world.stat(path)
        if now is None:
            self._restore(path, was, None)
        elif now.kind != was["kind"] or self._differs(path, was, now):
            self.left.append("%s is there again, as somebody made it: it stays as it is" % path)

    def remove(self, path: str, now: Stat) -> None:
        """Remove what the node made; of a directory what others put there stays, and the directory with it."""
        if now.kind == "directory":
            inside = {posixpath.join(path, name): name for name in self.world.listdir(path)}
            others = [name for place, name in inside.items() if place not in self.gone]
            if others and not self.world.acted and self.leaving.issuperset(set(inside) - self.gone):
                # They go in this run as well, perhaps at the same moment: whoever comes last empties it.
                self.emptied.add(path)
                self.actions.append(remove_empty(path))
                return
            if others:
                shown = ", ".join(others[:3]) + (" and %d more" % (len(others) - 3) if len(others) > 3 else "")
                self.left.append("%s is not empty (%s): it stays" % (path, shown))
                return
        self.gone.add(path)
        self.actions.append(_paths.remove(path))

    def remove_above(self, path: str, above: Iterable[str]) -> None:
        """Remove the directories above `path` that were made for it, the nearest first, up to one that is in use."""
        for place in above:
            now = self.world.stat(place)
            if now is not None and now.kind == "directory" and self._goes(path):
                self.remove(place, now)
            path = place

    def _goes(self, path: str) -> bool:
        return self.world.stat(path) is None or path in self.gone or path in self.emptied

    def attributes(self, path: str, now: Stat, was: Mapping[str, Any], fields: Container[str]) -> None:
        """Bring mode, owner and group back, those of them that are in `fields`."""
        owner, group = self._owners(path, was)
        owner = owner if "owner" in fields and owner != now.owner else None
        group = group if "group" in fields and group != now.group else None
        if owner is not None or group is not None:
            self.actions.append(_paths.chown(path, owner, group))
        if now.kind == "symlink" or "mode" not in fields:
            return
        # A change of owner takes the set-user-id and set-group-id bits away.
        if was["mode"] != now.mode or ((owner or group) and was["mode"] & 0o6000):
            self.actions.append(_paths.chmod(path, was["mode"]))

    def restore_attributes(self, path: str, was: Mapping[str, Any], fields: Container[str]) -> None:
        """Bring those of mode, owner and group back that are in `fields`, where the same kind of thing still stands."""
        now = self.world.stat(path)
        if now is not None and now.kind == was["kind"]:
            self.attributes(path, now, was, fields)

    def _restore(self, path: str, was: Mapping[str, Any], now: Optional[Stat]) -> None:
        kind = was["kind"]
        if now is None and not self._has_parent(path):
            self.left.append("%s does not come back: its directory is gone" % path)
            return
        if kind == "other":
            return
        if now is None or now.kind != kind or self._differs(path, was, now):
            owner, group = self._owners(path, was)
            if kind == "directory":
                self.made.add(path)
                self.actions.append(_tree.make(path, was["mode"], owner, group))
            elif kind == "symlink":
                self.actions.append(_tree.link(path, was["target"], owner, group))
            elif "content" in was:
                self.actions.append(_tree.put(path, was["content"], was["mode"], owner, group))
            else:
                self.left.append("%s does not come back as it was: its content is not known" % path)
        elif kind == "file" and "content" in was and now.owner != was["owner"]:
            self.actions.append(_tree.put(path, was["content"], was["mode"], *self._owners(path, was)))
        else:
            self.attributes(path, now, was, ("mode", "owner", "group"))

    def _differs(self, path: str, was: Mapping[str, Any], now: Stat) -> bool:
        """Tell whether something of the same kind is another link, or has another content."""
        if now.kind == "symlink":
            return bool(now.target != was["target"])
        if now.kind == "file":
            content = was.get("content")
            return content is None or now.size != content.size or self.world.digest(path) != content.sha256
        return False

    def _has_parent(self, path: str) -> bool:
        parent = posixpath.dirname(path)
        if parent in self.made:
            return True
        stat = self.world.apparent(_paths.followed(self.world, parent))
        return stat is not None and stat.kind == "directory" and parent not in self.gone

    def _owners(self, path: str, was: Mapping[str, Any]) -> Tuple[Optional[str], Optional[str]]:
        """Return the former owner and group; None, and a word about it, for one that the host has no more."""
        found: List[Optional[str]] = []
        for table, field in (("users", "owner"), ("groups", "group")):
            name = was[field]
            if not name.isdigit() and name not in self.users and not self._known(table, name):
                self.left.append("%s does not get its %s %s back: there is none" % (path, field, name))
                name = None
            found.append(name)
        return found[0], found[1]

    def _known(self, table: str, name: str) -> bool:
        try:
            return self.world.entry(table, name) is not None
        except Unknown:
            return True


def bring_back(undoing: Undoing, memory: Mapping[str, Any], attrs: Mapping[str, Any]) -> None:
    """Bring what is in a directory back to what it was.

    :param memory: `inside`, what was in it by relative path; `complete`, whether that is all; `source`, what the
        node's source had at first
    """
    root, inside = memory["path"], memory["inside"]
    ours = set() if attrs.get("absent") else {*(attrs.get("tree") or ()), *memory["source"]}
    for name in sorted({*ours, *inside}):
        was = inside.get(name)
        path = posixpath.join(root, name)
        if was is None or "mode" not in was:
            continue
        now = undoing.world.stat(path)
        if now is not None and now.kind == was["kind"] == "directory":
            undoing.attributes(path, now, was, given(attrs) if name in ours else ())
        elif name in ours:
            undoing.back(path, was, ("file", "symlink"))
        elif now is None or attrs.get("absent"):
            undoing.back_if_missing(path, was)
    for name in sorted(ours, reverse=True):
        path, was = posixpath.join(root, name), inside.get(name)
        if was is not None and "mode" in was:
            continue
        now = undoing.world.stat(path)
        if now is None:
            continue
        if was is None and memory["complete"]:
            undoing.remove(path, now)
        elif now.kind != "directory":
            undoing.left.append("%s stays: it is not known what was there before" % path)


def back_up(undoing: Undoing, memory: Mapping[str, Any], suffix: Optional[str]) -> None:
    """Bring back what stood where the node kept the old file."""
    kept = memory.get("backup")
    if suffix and kept is not None and kept["suffix"] == suffix:
        undoing.back(memory["path"] + suffix, kept["was"], ("file",))
    elif suffix and undoing.world.stat(memory["path"] + suffix) is not None:
        undoing.left.append("%s, the copy that the node kept, stays" % (memory["path"] + suffix))


def missing_above(world: World, path: str) -> List[str]:
    """Return the directories above a path that are not there, the nearest first."""
    found = []
    above = posixpath.dirname(path)
    while world.stat(above) is None:
        found.append(above)
        above = posixpath.dirname(above)
    return found


def masked(value: Any) -> bool:
    """Tell whether a secret stood somewhere in an attribute: the ledger keeps a mask in its place."""
    if isinstance(value, str):
        return _lines.SECRET.search(value) is not None
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return any(map(masked, items))


def _with_parents(node: Node) -> Set[str]:
    """Return the paths that a node keeps in being, and the directories above them."""
    found: Set[str] = set()
    for path in _tree.managed(node):
        while path not in found and path != "/":
            found.add(path)
            path = posixpath.dirname(path)
    return found


def given(attrs: Mapping[str, Any]) -> List[str]:
    """Return which of mode, owner and group a node was given."""
    return [field for field in ("mode", "owner", "group") if attrs.get(field) is not None]


def followed(world: World, path: str, follow: bool) -> str:
    """Return the path that a node manages; the path itself where its link can't be followed."""
    try:
        return _paths.followed(world, path) if follow else path
    except CheckError:
        return path
