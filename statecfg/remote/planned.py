"""The planned machine: an overlay over a host (or over nothing) on which actions are taken without being done."""

from __future__ import annotations

import os

from statecfg.remote.changes import Changes
from statecfg.remote.model import Blob, Unknown, error, ok
from statecfg.remote.paths import normal
from statecfg.remote.world import ANYTHING, Machine, Probe, Stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import AbstractSet, Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple, Union

    from statecfg.remote.model import Result
    from statecfg.remote.world import Effect

_NOBODY: FrozenSet[str] = frozenset()
FILES = "files"


class _Entry:
    """What the plan puts at a path; `stat` None: nothing."""

    __slots__ = ("blob", "fresh", "stat", "when")

    def __init__(self, stat: Optional[Stat], when: int, blob: Optional[Blob] = None, fresh: bool = False) -> None:
        self.stat, self.when, self.blob, self.fresh = stat, when, blob, fresh


class _Cause:
    """A planned action whose outcome can't be known: the node, when it acts, and what it makes unknown."""

    __slots__ = ("kinds", "node", "paths", "when")

    def __init__(self, node: str, when: int, kinds: AbstractSet[str], paths: AbstractSet[str]) -> None:
        self.node, self.when, self.kinds, self.paths = node, when, kinds, paths


class Planned(Machine):
    """An imagined machine: reads fall through to `base` where the plan has changed nothing.

    :param base: the machine below; it is only read
    :param root: whether the imagined run has root's rights
    """

    def __init__(self, base: Any, root: Optional[bool] = None) -> None:
        self.base = base
        self.root = os.geteuid() == 0 if root is None else root
        self.entries: Dict[str, _Entry] = {}
        self.tables: Dict[str, Dict[str, Tuple[Optional[Dict[str, Any]], int]]] = {}
        self.causes: List[_Cause] = []
        self.clock = 0
        self._directories: Dict[str, str] = {}
        self.node = ""
        self.ancestors: AbstractSet[str] = _NOBODY
        self.changes = Changes()
        self.acted = False
        self._triggers: Sequence[str] = ()
        self._undecided: Optional[str] = None

    def turn(
        self,
        node: str,
        ancestors: AbstractSet[str] = _NOBODY,
        triggers: Sequence[str] = (),
        undecided: Optional[str] = None,
        acted: bool = False,
    ) -> None:
        """Begin the turn of a node.

        :param ancestors: the nodes it requires, directly or not: only their actions can make something unknown to it
        :param triggers: the required nodes that will change and trigger it
        :param undecided: a trigger of which it can't be known yet whether it will change
        """
        self.node, self.ancestors, self._triggers, self._undecided = node, ancestors, triggers, undecided
        self.acted = acted
        self.changes = Changes()

    @property
    def triggered_by(self) -> Sequence[str]:  # type: ignore[override]
        if not self._triggers and self._undecided is not None:
            raise Unknown(self._undecided, "whether it changes is")
        return self._triggers

    # Reading

    def _cause(self, kind: str, when: int, path: str = "") -> Optional[str]:
        """Return the node that makes `kind` (or the path) unknown to the present node, having acted after `when`."""
        for cause in self.causes:
            if cause.when > when and cause.node in self.ancestors:
                if kind in cause.kinds or "*" in cause.kinds:
                    return cause.node
                if path and any(path == place or path.startswith(place + "/") for place in cause.paths):
                    return cause.node
        return None

    def canonical(self, path: str) -> str:
        """Return the path with the links of its directories followed, planned ones too."""
        path = normal(path)
        if path == "/":
            return path
        above, name = os.path.split(path)
        place = self._directory(above)
        return place.rstrip("/") + "/" + name

    def _directory(self, path: str, depth: int = 0) -> str:
        known = self._directories.get(path)
        if known is not None:
            return known
        if path == "/":
            return path
        if depth > 40:
            raise OSError(40, "Too many levels of symbolic links", path)
        above, name = os.path.split(path)
        place = self._directory(above, depth).rstrip("/") + "/" + name
        entry = self.entries.get(place)
        if entry is None:
            place = self.base.canonical(place + "/.") if not self._hidden(place) else place
        elif entry.stat is not None and entry.stat.kind == "symlink":
            place = self._directory(normal(os.path.join(os.path.dirname(place), entry.stat.target)), depth + 1)
        self._directories[path] = place
        return place

    def _hidden(self, place: str) -> bool:
        """Tell whether the plan has removed, or made anew, a directory above `place`: the base has no say there."""
        while place != "/":
            place = os.path.dirname(place)
            entry = self.entries.get(place)
            if entry is not None and (entry.stat is None or entry.fresh or entry.stat.kind != "directory"):
                return True
        return False

    def apparent(self, path: str) -> Optional[Stat]:
        place = self.canonical(path)
        entry = self.entries.get(place)
        if entry is not None:
            return entry.stat
        if self._hidden(place):
            return None
        found: Optional[Stat] = self.base.stat(place)
        return found

    def _unsettled(self, path: str) -> Optional[str]:
        if not self.causes:
            return None
        place = self.canonical(path)
        entry = self.entries.get(place)
        return self._cause(FILES, entry.when if entry is not None else -1, place)

    def settled(self, path: str) -> bool:
        return self._unsettled(path) is None

    def stat(self, path: str) -> Optional[Stat]:
        cause = self._unsettled(path)
        if cause is not None:
            raise Unknown(cause, path)
        return self.apparent(path)

    def _follow(self, path: str) -> str:
        for _ in range(40):
            found = self.stat(path)
            if found is None or found.kind != "symlink":
                return path
            path = os.path.join(os.path.dirname(normal(path)), found.target)
        raise OSError(40, "Too many levels of symbolic links", path)

    def _content(self, path: str) -> Blob:
        """Return the content as far as the plan has put it there; the base's where it has not."""
        place = self.canonical(path)
        entry = self.entries.get(place)
        if entry is not None and entry.blob is not None:
            return entry.blob
        if (entry is not None and entry.stat is None) or (entry is None and self._hidden(place)):
            raise FileNotFoundError(2, "No such file or directory", path)
        return Blob.of(self.base.read(place))

    def read(self, path: str) -> bytes:
        blob = self._content(self._follow(path))
        return blob.read()

    def digest(self, path: str) -> str:
        path = self._follow(path)
        place = self.canonical(path)
        entry = self.entries.get(place)
        if entry is not None and entry.blob is not None:
            return entry.blob.sha256
        if (entry is not None and entry.stat is None) or (entry is None and self._hidden(place)):
            raise FileNotFoundError(2, "No such file or directory", path)
        found: str = self.base.digest(place)
        return found

    def listdir(self, path: str) -> List[str]:
        path = self._follow(path)
        place = self._directory(normal(path))
        found = self.apparent(place)
        if found is None:
            raise FileNotFoundError(2, "No such file or directory", path)
        entry = self.entries.get(place)
        new = entry is not None and entry.fresh or self._hidden(place)
        names = set() if new else set(self.base.listdir(place))
        below = place.rstrip("/") + "/"
        for known, entry in self.entries.items():
            if known.startswith(below) and "/" not in known[len(below) :]:
                names.discard(known[len(below) :])
                if entry.stat is not None:
                    names.add(known[len(below) :])
        return sorted(names)

    def entry(self, table: str, key: str) -> Optional[Dict[str, Any]]:
        fields, when = self.tables.get(table, {}).get(key, (None, -1))
        cause = self._cause(table, when)
        known = fields if when >= 0 else self.base.entry(table, key)
        # What is there already stays known: an action that brings new things does not take the old ones away.
        if cause is not None and (known is None or self._cause("*", when) is not None):
            raise Unknown(cause, "%s of %s" % (key, table))
        return known

    def table(self, name: str) -> Dict[str, Dict[str, Any]]:
        cause = self._cause(name, -1)
        if cause is not None:
            raise Unknown(cause, name)
        merged = dict(self.base.table(name))
        for key, (fields, _) in self.tables.get(name, {}).items():
            if fields is None:
                merged.pop(key, None)
            else:
                merged[key] = fields
        return merged

    def probe(self, argv: Sequence[str], timeout: float = 60.0, **options: Any) -> Probe:
        # The program would look at the host as it is now: its answer holds only if nothing it may see changes first.
        for node in self.acting:
            if node in self.ancestors:
                raise Unknown(node, "what %s says is" % argv[0])
        answer: Probe = self.base.probe(argv, timeout, **options)
        return answer

    @property
    def acting(self) -> Sequence[str]:
        """The nodes that have taken an action on this machine, in order."""
        return self._acting

    _acting: Sequence[str] = ()

    # Writing

    def _tick(self) -> int:
        self.clock += 1
        if not self._acting or self._acting[-1] != self.node:
            self._acting = [*self._acting, self.node]
        return self.clock

    def _place(self, what: str, path: str) -> Tuple[str, Optional[Result]]:
        """Return where a name is to be made, or why it can't be: what the real machine would meet, met here."""
        try:
            place = self.canonical(path)
            above = os.path.dirname(place)
            holder = self.apparent(above)
        except OSError as problem:
            return path, error("cannot %s %s: %s" % (what, path, problem.strerror))
        if holder is None:
            if self._unsettled(above) is not None:
                return place, None
            return place, error("cannot %s %s: No such file or directory (%s)" % (what, path, above))
        if holder.kind != "directory":
            return place, error("cannot %s %s: Not a directory (%s)" % (what, path, above))
        if not self.root and above not in self.entries and not self._hidden(above) and not self.base.writable(above):
            return place, error("cannot %s %s: Permission denied; is root needed (-b)?" % (what, path))
        return place, None

    def _people(self, what: str, path: str, stat: Stat, owner: Optional[str], group: Optional[str]) -> Optional[Result]:
        """Set owner and group on `stat`; return an error where the host will not have them, or will not let us."""
        for table, name in (("users", owner), ("groups", group)):
            if name is None:
                continue
            current = stat.owner if table == "users" else stat.group
            if name == current:
                continue
            try:
                if self.entry(table, name) is None and not name.isdigit():
                    return error("cannot %s %s: no %s %s on this host" % (what, path, table[:-1], name))
            except Unknown:
                pass  # a required package or command may bring it
            if not self.root and table == "users":
                return error("cannot %s %s: Operation not permitted; is root needed (-b)?" % (what, path))
        stat.owner = owner if owner is not None else stat.owner
        stat.group = group if group is not None else stat.group
        return None

    def _me(self) -> Tuple[str, str]:
        from statecfg.remote import accounts

        return accounts.user_name(os.geteuid()), accounts.group_name(os.getegid())

    def write(
        self,
        path: str,
        content: Union[str, bytes, Blob],
        mode: Optional[int] = None,
        owner: Optional[str] = None,
        group: Optional[str] = None,
        backup: Optional[str] = None,
        validate: Optional[Sequence[str]] = None,
    ) -> Result:
        blob = Blob.of(content)
        place, refused = self._place("write", path)
        if refused is not None:
            return refused
        old = self.apparent(place)
        if old is not None and old.kind not in ("file", "symlink"):
            return error("cannot write %s: a %s stands there" % (path, old.kind))
        keeping = old is not None and old.kind == "file"
        before = self._content(place) if keeping else None
        me = (old.owner, old.group) if keeping and old is not None else self._me()
        new = Stat("file", old.mode if keeping and old is not None else 0o644, me[0], me[1], blob.size)
        if mode is not None:
            new.mode = mode
        refused = self._people("write", path, new, owner, group)
        if refused is not None:
            return refused
        if backup and before is not None and before != blob:
            self._put(place + backup, Stat("file", new.mode, new.owner, new.group, before.size), before)
        self._put(place, new, blob)
        return ok()

    def _put(self, place: str, new: Optional[Stat], blob: Optional[Blob] = None, fresh: bool = False) -> None:
        old = self.apparent(place)
        before = None
        if old is not None and old.kind == "file":
            before = self._content(place)
        self.changes.path(place, old, before, new, blob)
        if new is not None and new.kind == "file" and blob is None:
            blob = before
        self.entries[place] = _Entry(new, self._tick(), blob, fresh)
        kinds = (old.kind if old is not None else "", new.kind if new is not None else "")
        if "symlink" in kinds or "directory" in kinds:
            self._directories.clear()

    def mkdir(
        self,
        path: str,
        mode: Optional[int] = None,
        owner: Optional[str] = None,
        group: Optional[str] = None,
        parents: bool = False,
    ) -> Result:
        above = os.path.dirname(normal(path))
        if parents and above != "/" and self.apparent(above) is None:
            made = self.mkdir(above, parents=True)
            if made["status"] != "ok":
                return made
        place, refused = self._place("make directory", path)
        if refused is not None:
            return refused
        old = self.apparent(place)
        if old is not None and old.kind != "directory":
            return error("cannot make directory %s: a %s stands there" % (path, old.kind))
        me = (old.owner, old.group) if old is not None else self._me()
        new = Stat("directory", old.mode if old is not None else 0o755, me[0], me[1])
        if mode is not None:
            new.mode = mode
        refused = self._people("make directory", path, new, owner, group)
        if refused is not None:
            return refused
        known = self.entries.get(place)
        self._put(place, new, fresh=old is None or (known is not None and known.fresh))
        return ok()

    def symlink(self, path: str, target: str, owner: Optional[str] = None, group: Optional[str] = None) -> Result:
        place, refused = self._place("link", path)
        if refused is not None:
            return refused
        old = self.apparent(place)
        if old is not None and old.kind == "directory":
            return error("cannot link %s: a directory stands there" % path)
        me = self._me()
        new = Stat("symlink", 0o777, me[0], me[1], len(target), target)
        refused = self._people("link", path, new, owner, group)
        if refused is not None:
            return refused
        self._put(place, new)
        return ok()

    def _changed(self, what: str, path: str) -> Tuple[str, Optional[Stat], Optional[Result]]:
        place, refused = self._place(what, path)
        old = self.apparent(place) if refused is None else None
        if refused is None and old is None:
            if self._unsettled(path) is not None:
                return place, None, None
            refused = error("cannot %s %s: No such file or directory" % (what, path))
        if old is not None and not self.root and old.owner != self._me()[0]:
            refused = error("cannot %s %s: Operation not permitted; is root needed (-b)?" % (what, path))
        new = Stat(old.kind, old.mode, old.owner, old.group, old.size, old.target) if old is not None else None
        return place, new, refused

    def chmod(self, path: str, mode: int) -> Result:
        place, new, refused = self._changed("set the mode of", path)
        if refused is not None or new is None:
            return refused or ok()
        new.mode = mode
        self._again(place, new)
        return ok()

    def chown(self, path: str, owner: Optional[str] = None, group: Optional[str] = None) -> Result:
        place, new, refused = self._changed("set the owner of", path)
        if refused is not None or new is None:
            return refused or ok()
        refused = self._people("set the owner of", path, new, owner, group)
        if refused is not None:
            return refused
        self._again(place, new)
        return ok()

    def _again(self, place: str, new: Stat) -> None:
        known = self.entries.get(place)
        old = self.apparent(place)
        self.changes.path(place, old, None, new, None)
        entry = _Entry(new, self._tick(), known.blob if known is not None else None, known is not None and known.fresh)
        self.entries[place] = entry

    def remove(self, path: str, recursive: bool = False) -> Result:
        place, refused = self._place("remove", path)
        old = self.apparent(place) if refused is None else None
        if old is None:
            return ok() if refused is None or "No such file" in refused.get("reason", "") else refused
        if old.kind == "directory" and not recursive and self.listdir(place):
            return error("cannot remove %s: Directory not empty" % path)
        if old.kind == "directory" and recursive:
            for name in self.listdir(place):
                self.remove(place.rstrip("/") + "/" + name, recursive=True)
        self._put(place, None)
        return ok()

    def run(
        self,
        argv: Sequence[str],
        effect: Effect = ANYTHING,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        user: Optional[str] = None,
        input: Optional[bytes] = None,
        timeout: float = 600.0,
        codes: Tuple[int, ...] = (0,),
        interruptible: bool = True,
    ) -> Result:
        self.affect(effect)
        return ok()

    def affect(self, effect: Effect) -> None:
        """Let a declared effect be true from now on, and what it leaves open be unknown."""
        when = self._tick()
        for table, keys in effect.items():
            if table in ("unknown", FILES):
                continue
            for key, fields in keys.items():
                try:
                    before = self.entry(table, key)
                except Unknown:
                    before = None
                after = None if fields is None else dict(before or {}, **fields)
                self.changes.fields(table, key, before, after)
                self.tables.setdefault(table, {})[key] = (after, when)
        kinds = frozenset(effect.get("unknown", ()))
        paths = frozenset(self.canonical(path) for path in effect.get(FILES, ()))
        if kinds or paths:
            # What the action itself declares is known although the rest of its facet is not.
            self.causes.append(_Cause(self.node, when, kinds, paths))
