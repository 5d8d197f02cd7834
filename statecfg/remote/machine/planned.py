"""The planned machine: an overlay on top of a host (or of an empty base) that simulates actions."""

from __future__ import annotations

import os
from typing import IO, AbstractSet, Any, Callable, List, Mapping, Optional, Sequence, Tuple, Union

from statecfg.remote.graph.model import Blob, Unknown
from statecfg.remote.graph.names import ActionStatus
from statecfg.remote.graph.results import Result, error, ok
from statecfg.remote.machine import access, accounts, mount_points
from statecfg.remote.machine.changes import Changes
from statecfg.remote.machine.overlay import ALL, FILES, NOBODY, Before, Cause, Entry, Overlay, Trace
from statecfg.remote.machine.paths import normal
from statecfg.remote.machine.world import ANYTHING, Effect, Inputs, Probe, Stat, called


class Planned(Overlay):
    """A simulated machine. It does, and refuses, the same as the real one, but only in the overlay.

    :param base: the machine below, which is only read
    :param root: whether the simulated run has root's rights; None: as this process
    """

    def __init__(self, base: Any, root: Optional[bool] = None) -> None:
        Overlay.__init__(self, base)
        self.root = os.geteuid() == 0 if root is None else root
        self.clock = 0
        # Number of calls of writing methods. If an op calls none, it changes the host without using the machine.
        self.calls = 0
        self.node = ""
        self.changes = Changes()
        self.mounts: Optional[Mapping[str, bool]] = None  # those of the base, loaded at the first use
        self.notes: List[str] = []  # what the plan can't tell about the actions of this turn
        self.acted = False
        self.complete = False

    def turn(
        self,
        node: str,
        ancestors: AbstractSet[str] = NOBODY,
        triggers: Sequence[str] = (),
        undecided: Optional[str] = None,
        acted: bool = False,
        due: bool = False,
    ) -> None:
        """Begin the turn of a node.

        :param ancestors: see `Before`, as for the next two
        :param acted: whether this run has already taken the node's actions
        :param due: whether its turn has come in an apply
        """
        self.node, self.acted, self.due = node, acted, due
        self.before = Before(ancestors, triggers, undecided)
        self.changes, self.trace, self.notes = Changes(), Trace(), []
        self._found = {}

    def probe(
        self, argv: Sequence[str], timeout: float = 60.0, inputs: Optional[Inputs] = None, **options: Any
    ) -> Probe:
        before = self.before
        if self.complete:  # all nodes have acted: each of them may change the answer
            self.before = Before(frozenset(self.acting))
        try:
            return Overlay.probe(self, argv, timeout, inputs, **options)
        finally:
            self.before = before

    def open(self, path: str) -> IO[bytes]:
        real_path, blob = self._planned_content(path)
        return Overlay.open(self, path) if blob is not None else self.base.open(real_path)

    def _tick(self) -> int:
        self.clock += 1
        self.ticks.append(self.node)
        self.acting[self.node] = None
        return self.clock

    # What the real machine would refuse

    def _resolve(self, what: str, path: str) -> Tuple[str, Optional[Result]]:
        """Return the canonical path of a new name, and an error if the real machine would refuse it."""
        self.calls += 1
        try:
            real_path = self.canonical(path)
            why = self._obstacle(real_path)
        except OSError as problem:
            return path, error(f"cannot {what} {path}: {problem.strerror}")
        return real_path, error(f"cannot {what} {path}: {why}") if why else None

    def _obstacle(self, path: str) -> str:
        """Return why nothing can be created at a path, "" if it can. Assume that uncertain directories will exist."""
        above, missing = os.path.dirname(path), ""
        holder = self.apparent(above)
        while holder is None:
            if self._changed_by(above) is not None:
                return ""
            above, missing = os.path.dirname(above), above
            holder = self.apparent(above)
        if holder.file_type != "directory":
            return f"Not a directory ({above})"
        return f"No such file or directory ({missing})" if missing else ""

    def mount_points(self) -> Mapping[str, bool]:
        """Return mount point → whether it is mounted read-only."""
        return mount_points.of(self)

    def _forbidden(self, what: str, path: str, real_path: str, write: bool = False) -> Optional[Result]:
        """Return an error if this user may not create or remove names in the directory of `real_path`, or if a mount
        prevents that.

        :param write: new content is written, which a mounted file takes
        """
        why = mount_points.refusal(self, real_path, write)
        if why:
            return error(f"cannot {what} {path}: {why}")
        above = os.path.dirname(real_path)
        if self.root or above in self.entries or self._hidden(above) or self.base.writable(above):
            return None
        return error(f"cannot {what} {path}: Permission denied; is root needed (-b)?")

    def _own(self, what: str, path: str, stat: Stat, owner: Optional[str], group: Optional[str]) -> Optional[Result]:
        """Set owner and group of `stat`; return an error if the host does not know them or would refuse the change."""
        for facet, field, name in (("users", "owner", owner), ("groups", "group", group)):
            if name is None:
                continue
            try:
                known_name = accounts.known_name(self, facet, name)
            except Unknown:
                known_name = name  # a required package or command may create it
            if known_name is None:
                return error(f"cannot {what} {path}: no {facet[:-1]} {name} on this host")
            if known_name == getattr(stat, field):
                continue
            if not self.root and (facet == "users" or not self.base.member(known_name)):
                return error(f"cannot {what} {path}: Operation not permitted; is root needed (-b)?")
            setattr(stat, field, known_name)
        return None

    def _me(self) -> Tuple[str, str]:
        """Return the names of the user and the group that own what is created."""
        return accounts.own_names()

    def _newcomer(self, file_type: str, path: str, mode: int, target: str = "") -> Stat:
        """Return the Stat of something new at `path`: this user owns it, and its directory may set its group."""
        owner, group = self._me()
        holder = self.apparent(os.path.dirname(path))
        if holder is not None and holder.mode & 0o2000:
            group = holder.group
        return Stat(file_type, mode, owner, group, len(os.fsencode(target)), target)

    def _permit(self, old: Stat, new: Stat, mode: Optional[int]) -> None:
        """Set mode and access list of `new`, which already has its new owner, like the real machine."""
        trusted = old.owner in ("root", self._me()[0])
        new.acl, new.mode = access.outcome(old.acl, old.mode, mode, trusted or old.owner == new.owner)
        if mode is None:
            new.mode = access.after_chown(old, new, trusted)

    # Writing

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
        real_path, refused = self._resolve("write", path)
        if refused is not None:
            return refused
        old = self.apparent(real_path)
        if old is not None and old.file_type not in ("file", "symlink"):
            return error(f"cannot write {path}: {called(old.file_type)} is in the way")
        before = None
        if old is not None and old.file_type == "file":
            try:
                before = self.content(real_path, old.size)
            except PermissionError:  # it cannot be compared, so replace it
                before = None
            new = old.copy()
        else:
            new, old = self._newcomer("file", real_path, 0o600 if blob.hides() else 0o644), None
        new.size = blob.size
        refused = self._own("write", path, new, owner, group)
        if refused is None and before != blob:
            refused = self._forbidden("write", path, real_path, True)
            if real_path in self.mount_points():
                self.notes.append(f"{path} is a mount point: the apply writes into it, so the change is not atomic")
        if refused is not None:
            return refused
        if old is not None:
            self._permit(old, new, mode)
        elif mode is not None:
            new.mode = mode
        if backup and old is not None and before != blob:
            kept = self.apparent(real_path + backup)
            if kept is not None and kept.file_type == "directory":
                return error(f"cannot write {path}: Is a directory ({real_path + backup})")
            self._put(real_path + backup, Stat("file", old.mode, old.owner, old.group, old.size), before)
        if validate is not None and before != blob:
            from statecfg.remote.machine.trial import content_refusal

            refused = content_refusal(self, validate, real_path, blob, new)
            if refused is not None:
                return refused
        self._put(real_path, new, blob)
        return ok()

    def _touch(self, path: str, old: Optional[Stat]) -> None:
        """Record that the node changes `path`."""
        self.trace.touched.add(path)
        if old is not None and old.file_type == "file" and old.identity is not None:
            self.trace.touched.add(old.identity[:2])

    def _put(self, path: str, new: Optional[Stat], blob: Optional[Blob] = None, fresh: bool = False) -> None:
        """Put `new` at `path` and record the change."""
        old = self.apparent(path)
        before = None
        if old is not None and old.file_type == "file":
            try:
                before = self.content(path, old.size)
            except PermissionError:  # unreadable content cannot be shown
                before = None
        self._touch(path, old)
        self.changes.path(path, old, before, new, blob)
        self.entries[path] = Entry(new, self._tick(), blob, fresh)
        if any(stat is not None and stat.file_type == "symlink" for stat in (old, new)):
            self._directories.clear()

    def mkdir(
        self,
        path: str,
        mode: Optional[int] = None,
        owner: Optional[str] = None,
        group: Optional[str] = None,
        parents: bool = False,
    ) -> Result:
        refused = self._own("make directory", path, Stat("directory", 0, *self._me()), owner, group)
        above = os.path.dirname(normal(path))
        try:
            if refused is None and parents and above != "/" and self.apparent(above) is None:
                result = self.mkdir(above, parents=True)
                refused = result if result["status"] != ActionStatus.OK else None
        except OSError as problem:
            refused = error(f"cannot make directory {path}: {problem.strerror}")
        real_path, missing = self._resolve("make directory", path)
        refused = refused or missing
        if refused is not None:
            return refused
        old = self.apparent(real_path)
        if old is not None and old.file_type != "directory":
            return error(f"cannot make directory {path}: {called(old.file_type)} is in the way")
        new = self._newcomer("directory", real_path, 0o755 if mode is None else mode) if old is None else old.copy()
        refused = self._own("make directory", path, new, owner, group)
        if old is None:
            refused = refused or self._forbidden("make directory", path, real_path)
        else:
            self._permit(old, new, mode)
            refused = refused or self._foreign(path, old, new)
        if refused is not None:
            return refused
        entry = self.entries.get(real_path)
        self._put(real_path, new, fresh=old is None or (entry is not None and entry.fresh))
        return ok()

    def _foreign(self, path: str, old: Stat, new: Stat, what: str = "make directory") -> Optional[Result]:
        """Return an error if this user may not change mode, owner or group of an existing path."""
        same = (old.mode, old.owner, old.group, old.acl) == (new.mode, new.owner, new.group, new.acl)
        if self.root or same or old.owner == self._me()[0]:
            return None
        return error(f"cannot {what} {path}: Operation not permitted; is root needed (-b)?")

    def symlink(self, path: str, target: str, owner: Optional[str] = None, group: Optional[str] = None) -> Result:
        real_path, refused = self._resolve("link", path)
        if refused is not None:
            return refused
        old = self.apparent(real_path)
        if old is not None and old.file_type == "directory":
            return error(f"cannot link {path}: a directory is in the way")
        if not target:
            return error(f"cannot link {path}: No such file or directory")
        new = self._newcomer("symlink", real_path, 0o777, target)
        refused = self._own("link", path, new, owner, group) or self._forbidden("link", path, real_path)
        if refused is not None:
            return refused
        self._put(real_path, new)
        return ok()

    def chmod(self, path: str, mode: int) -> Result:
        return self._change("set the mode of", path, mode, None, None)

    def chown(self, path: str, owner: Optional[str] = None, group: Optional[str] = None) -> Result:
        return self._change("set the owner of", path, None, owner, group)

    def _change(self, what: str, path: str, mode: Optional[int], owner: Optional[str], group: Optional[str]) -> Result:
        real_path, refused = self._resolve(what, path)
        old = self.apparent(real_path) if refused is None else None
        if old is None:
            if refused is None and self._changed_by(path) is None:
                refused = error(f"cannot {what} {path}: No such file or directory")
            return refused or ok()
        if old.file_type == "symlink" and mode is not None:
            return error(f"cannot {what} {path}: it is a link")
        new = old.copy()
        refused = self._own(what, path, new, owner, group)
        self._permit(old, new, mode)
        refused = refused or self._foreign(path, old, new, what)
        if refused is not None:
            return refused
        entry = self.entries.get(real_path)
        self._touch(real_path, old)
        self.changes.path(real_path, old, None, new, None)
        blob, fresh = (entry.blob, entry.fresh) if entry is not None else (None, False)
        self.entries[real_path] = Entry(new, self._tick(), blob, fresh)
        return ok()

    def remove(self, path: str, recursive: bool = False) -> Result:
        if normal(path) == "/":
            return error("cannot remove /: it contains the whole system")
        real_path, refused = self._resolve("remove", path)
        if refused is not None:
            missing = any(word in refused["reason"] for word in ("No such file or directory", "Not a directory"))
            return ok() if missing else refused
        stat = self.apparent(real_path)
        if stat is None:
            return ok()
        refused = self._forbidden("remove", path, real_path)
        if refused is not None:
            return refused
        if stat.file_type == "directory":
            if not recursive and self._names(real_path):
                return error(f"cannot remove {path}: Directory not empty")
            why = mount_points.refusal(self, real_path, recursive=recursive)
            if why:
                return error(f"cannot remove {path}: {why}")
            from statecfg.remote.machine.emptying import emptied

            refused = emptied(self, real_path)
            if refused is not None:
                return refused
        self._put(real_path, None)
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
        first: Optional[Callable[[], Optional[Result]]] = None,
        reads: bool = False,
    ) -> Result:
        if reads:
            from statecfg.remote.machine.trial import refusal

            said = refusal(self, argv, {})
            if said is not None:
                return error(f"{argv[0]}: {said}", said)
        self.affect(effect)
        return ok()

    def shows(self, thing: str, field: str, before: Any, after: Any) -> None:
        self.changes.note(thing, field, before, after)

    def outside(self, function: Callable[[], Any]) -> Any:
        self.affect(ANYTHING)
        return ok()

    def affect(self, effect: Effect) -> None:
        """Apply a declared effect to the overlay, and make unknown what it leaves open."""
        self.calls += 1
        when = self._tick()
        for facet, keys in effect.items():
            if facet in ("unknown", FILES):
                continue
            for key, fields in keys.items():
                try:
                    before = self.entry(facet, key)
                except Unknown:
                    before = None
                after = None if fields is None else dict(before or {}, **fields)
                self.changes.fields(facet, key, before, after)
                self.facets.setdefault(facet, {})[key] = (after, when)
                self.trace.effects.add((facet, key))
        unknown = frozenset(effect.get("unknown", ()))
        paths = frozenset(self.canonical(path) for path in effect.get(FILES, ()))
        self.trace.touched |= paths
        self.trace.effects.update((facet, ALL) for facet in unknown)
        if unknown or paths:
            # The action's own declarations are known, although the rest of the facet is not.
            self.causes.append(Cause(self.node, when, unknown, paths, frozenset(effect)))
