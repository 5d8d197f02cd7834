"""The reading side of a simulated machine: the plan's changes on top of the machine below."""

from __future__ import annotations

import errno
import os

from statecfg.remote.graph.model import Blob, Unknown
from statecfg.remote.machine.changes import DIFFED
from statecfg.remote.machine.paths import LINKS, normal
from statecfg.remote.machine.world import Machine, Probe, Stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import AbstractSet, Any, Dict, FrozenSet, Hashable, List, Mapping, Optional, Sequence, Set, Tuple

    from statecfg.remote.machine.world import Facet, Fields, Inputs

NOBODY: FrozenSet[str] = frozenset()
FILES = "files"
PLANS_OWN = ("asked", "unit_packages")  # facets about the run or its beginning, which no node changes
ALL = "*"  # every key of a facet, or every facet


class Trace:
    """What one node read and changed on the simulated machine.

    Paths are canonical. A file is also identified by device and inode, because it may have several names.

    :param looked: the paths and inodes that it read
    :param asked: the (facet, key) that it read; (facet, "*") for a whole facet, ("*", "*") for anything
    :param touched: the paths and inodes that its actions change
    :param effects: the (facet, key) that its actions change; (facet, "*") if the keys are unknown
    """

    __slots__ = ("asked", "effects", "looked", "touched")

    def __init__(self) -> None:
        self.looked: Set[Hashable] = set()
        self.asked: Set[Sequence[str]] = set()
        self.touched: Set[Hashable] = set()
        self.effects: Set[Sequence[str]] = set()


class Entry:
    """What the plan puts at a path.

    :param stat: None if the plan removes the path
    :param when: the moment of the action
    :param fresh: True for a directory that contains only what the plan puts there
    """

    __slots__ = ("blob", "fresh", "stat", "when")

    def __init__(self, stat: Optional[Stat], when: int, blob: Optional[Blob] = None, fresh: bool = False) -> None:
        self.stat, self.when, self.blob, self.fresh = stat, when, blob, fresh


class Cause:
    """A planned action with an unknown outcome: its node, when it acts, and what it makes unknown.

    :param tables: the facets for which the action declares what it changes
    """

    __slots__ = ("kinds", "node", "paths", "tables", "when")

    def __init__(
        self, node: str, when: int, kinds: AbstractSet[str], paths: AbstractSet[str], tables: AbstractSet[str] = NOBODY
    ) -> None:
        self.node, self.when, self.kinds, self.paths, self.tables = node, when, kinds, paths, tables


class Before:
    """What happens before the current node acts.

    :param ancestors: the nodes that it requires, directly or indirectly; only their actions can make something unknown
    :param triggers: the required nodes that will change and trigger it
    :param undecided: a trigger that may change, which is not known yet
    """

    __slots__ = ("ancestors", "triggers", "undecided")

    def __init__(
        self, ancestors: AbstractSet[str] = NOBODY, triggers: Sequence[str] = (), undecided: Optional[str] = None
    ) -> None:
        self.ancestors, self.triggers, self.undecided = ancestors, triggers, undecided


class Overlay(Machine):
    """A machine on which a plan acts. Where the plan changed nothing, reads go to `base`.

    :param base: the machine below, which is only read
    """

    def __init__(self, base: Any) -> None:
        self.base = base
        self.entries: Dict[str, Entry] = {}
        self.tables: Dict[str, Dict[str, Tuple[Optional[Fields], int]]] = {}
        self.causes: List[Cause] = []
        # The nodes that have acted on this machine, in order.
        self.acting: Dict[str, None] = {}
        self.ticks: List[str] = [""]  # the node that acted at each moment
        self.memo: Dict[str, Any] = {}
        self.answers: Dict[Tuple[str, ...], Probe] = {}
        self.before = Before()
        self.trace = Trace()
        self._directories: Dict[str, str] = {}

    @property
    def triggered_by(self) -> Sequence[str]:  # type: ignore[override]  # a property in place of an attribute
        if not self.before.triggers and self.before.undecided is not None:
            raise Unknown(self.before.undecided, "whether it changes is")
        return self.before.triggers

    # Where things are

    def canonical(self, path: str) -> str:
        """Return the path with the links of its directories followed, including planned links.

        :raises OSError: if the links form a loop
        """
        path = normal(path)
        if path == "/":
            return path
        above, name = os.path.split(path)
        return _inside(self._directory(above), name)

    def _directory(self, path: str) -> str:
        """Return the real path of a directory; for a missing one, the path that it would have."""
        known = self._directories.get(path)
        if known is None:
            if path == "/":
                return path
            above, name = os.path.split(path)
            known = self._directories[path] = self._enter(self._directory(above), name, [])
        return known

    def _enter(self, place: str, name: str, links: List[str]) -> str:
        """Return the directory `name` in the directory `place`. A link is followed and added to `links`."""
        inside = _inside(place, name)
        found = self._standing(inside)
        if found is None or found.kind != "symlink":
            return inside
        links.append(inside)
        if len(links) > LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), inside)
        return self._walk(place, self._target(inside, found), links)

    def _walk(self, place: str, target: str, links: List[str]) -> str:
        """Return the directory that a link in the directory `place` points to."""
        here = "/" if target.startswith("/") else place
        for part in target.split("/"):
            if part == "..":
                holder = self._standing(here)
                # A path that is not a directory has no parent. "..." stands for a name that does not exist.
                here = os.path.dirname(here) if holder and holder.kind == "directory" else _inside(here, "...")
            elif part not in ("", "."):
                here = self._enter(here, part, links)
        return here

    def _target(self, place: str, found: Stat) -> str:
        if place in self.entries:
            return found.target
        target: str = self.base.target(place)
        return target

    def _standing(self, place: str) -> Optional[Stat]:
        """Return what is at a path without links, as far as it is known now."""
        entry = self.entries.get(place)
        if entry is not None:
            return entry.stat
        if self._hidden(place):
            return None
        found: Optional[Stat] = self.base.stat(place)
        return found

    def _hidden(self, place: str) -> bool:
        """Tell whether the plan removes or recreates a directory above `place`, so that the base no longer applies."""
        while place != "/":
            place = os.path.dirname(place)
            entry = self.entries.get(place)
            if entry is not None and (entry.stat is None or entry.fresh or entry.stat.kind != "directory"):
                return True
        return False

    def _followed(self, path: str) -> str:
        """Return the place that `path` refers to after all links.

        :raises OSError: if the links form a loop
        :raises Unknown: if a link is not known yet
        """
        place = self.canonical(path)
        links: List[str] = []
        while True:
            found = self.stat(place)
            if found is None or found.kind != "symlink":
                return place
            links.append(place)
            if len(links) > LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            head, name = os.path.split(self._target(place, found).rstrip("/"))
            absolute = self._target(place, found).startswith("/")
            here = self._walk(os.path.dirname(place), "/" + head if absolute else head, links)
            place = self._walk(here, name, links) if name in ("", ".", "..") else _inside(here, name)

    # Looking

    def apparent(self, path: str) -> Optional[Stat]:
        return self._standing(self.canonical(path))

    def _cause(self, kind: str, when: int, path: str = "") -> Optional[str]:
        """Return the required node that makes `kind` or the path unknown, if it acted after `when`."""
        for cause in self.causes:
            if cause.when > when and cause.node in self.before.ancestors:
                if kind in cause.kinds or "*" in cause.kinds:
                    return cause.node
                if path and any(path == place or path.startswith(place + "/") for place in cause.paths):
                    return cause.node
        return None

    def _unsettled(self, path: str) -> Optional[str]:
        return self._unsettled_place(self.canonical(path)) if self.causes else None

    def _unsettled_place(self, place: str) -> Optional[str]:
        entry = self.entries.get(place)
        return self._cause(FILES, entry.when if entry is not None else -1, place)

    def settled(self, path: str) -> bool:
        return self._unsettled(path) is None

    def stat(self, path: str) -> Optional[Stat]:
        place = self.canonical(path)
        self.trace.looked.add(place)
        cause = self._unsettled_place(place) if self.causes else None
        if cause is not None:
            raise Unknown(cause, path)
        found = self._standing(place)
        if found is not None and found.kind == "file" and found.identity is not None:
            self.trace.looked.add(found.identity[:2])
        return found

    def _planned_content(self, path: str) -> Tuple[str, Optional[Blob]]:
        """Return the place that `path` refers to, and the content that the plan puts there.

        :raises OSError: if it is not a file
        """
        place = self._followed(path)
        found = self._standing(place)
        if found is None:
            raise self._missing(place, path)
        if found.kind != "file":
            raise OSError(errno.EINVAL, "is not a regular file", path)
        entry = self.entries.get(place)
        return place, entry.blob if entry is not None else None

    def _missing(self, place: str, path: str) -> OSError:
        """Return the error for reading a missing path: one for a missing file, another for a path below a file."""
        holder = None
        while holder is None:
            place = os.path.dirname(place)
            holder = self._standing(place)
        if holder.kind == "directory":
            return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)

    def read(self, path: str) -> bytes:
        place, blob = self._planned_content(path)
        if blob is not None:
            return blob.read()
        data: bytes = self.base.read(place)
        return data

    def digest(self, path: str) -> str:
        place, blob = self._planned_content(path)
        if blob is not None:
            return blob.sha256
        found: str = self.base.digest(place)
        return found

    def content(self, place: str, size: int) -> Blob:
        """Return the content of the file at a place; of a large file, only the digest is in memory.

        :raises OSError: if it cannot be read
        """
        entry = self.entries.get(place)
        if entry is not None and entry.blob is not None:
            return entry.blob
        if size > DIFFED:
            return Blob(self.base.digest(place), size, path=place)
        return Blob.of(self.base.read(place))

    def listdir(self, path: str) -> List[str]:
        place = self._followed(path)
        found = self._standing(place)
        if found is None:
            raise self._missing(place, path)
        if found.kind != "directory":
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        cause = self._names_unsettled(place)
        if cause is not None:
            raise Unknown(cause, "the content of %s" % path)
        return self._names(place)

    def _names_unsettled(self, place: str) -> Optional[str]:
        """Return the required node that may add or remove names in a directory, even in a directory that is known."""
        entry = self.entries.get(place)
        fresh = entry.when if entry is not None and entry.fresh else -1
        cause = self._cause(FILES, fresh, place)
        for one in self.causes:
            inside = (path for path in one.paths if os.path.dirname(path) == place and path not in self.entries)
            if cause is None and one.node in self.before.ancestors and one.when > fresh and any(inside):
                cause = one.node
        return cause

    def _names(self, place: str, planned: Optional[Mapping[str, Entry]] = None) -> List[str]:
        """Return the names in a directory.

        :param planned: the plan's entries there, if the caller has them already
        """
        entry = self.entries.get(place)
        new = (entry is not None and entry.fresh) or self._hidden(place)
        names = set() if new else set(self.base.listdir(place))
        for known, entry in (self.entries if planned is None else planned).items():
            above, name = os.path.split(known)
            if above == place and name:
                names.discard(name)
                if entry.stat is not None:
                    names.add(name)
        return sorted(names)

    def entry(self, table: str, key: str) -> Optional[Fields]:
        self.trace.asked.add((table, key))
        fields, when = self.tables.get(table, {}).get(key, (None, -1))
        known = fields if when >= 0 else self.base.entry(table, key)
        if table in PLANS_OWN:
            return known
        # An existing entry stays known: an action that adds new entries does not remove old ones.
        cause = self._cause("*" if known is not None else table, when)
        if cause is not None:
            raise Unknown(cause, "%s of %s" % (key, table))
        return known

    def table(self, name: str) -> Facet:
        self.trace.asked.add((name, ALL))
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

    def probe(
        self, argv: Sequence[str], timeout: float = 60.0, inputs: Optional[Inputs] = None, **options: Any
    ) -> Probe:
        if inputs is not None:
            self.trace.asked.add((inputs[0], ALL))
            cause = self._changing(*inputs)
            if cause is not None:
                raise Unknown(cause, "the output of %s is" % argv[0])
            asked = tuple(argv)
            if asked not in self.answers:
                self.answers[asked] = self.base.probe(argv, timeout, **options)
            return self.answers[asked]
        self.trace.asked.add((ALL, ALL))
        # The program would see the present host. Its answer is valid only if no required node changes the host first.
        ancestors = self.before.ancestors
        for node in self.acting if len(self.acting) < len(ancestors) else sorted(ancestors):
            if node in ancestors and node in self.acting:
                raise Unknown(node, "the output of %s is" % argv[0])
        answer: Probe = self.base.probe(argv, timeout, **options)
        return answer

    def _changing(self, facet: str, paths: Sequence[str]) -> Optional[str]:
        """Return a required node that may change the facet without declaring how, or that changes one of the paths."""
        for cause in self.causes:
            if cause.node in self.before.ancestors and facet not in cause.tables:
                if any(kind in cause.kinds for kind in ("*", facet, FILES)):
                    return cause.node
                if any(_within(place, path) or _within(path, place) for path in paths for place in cause.paths):
                    return cause.node
        for place, entry in self.entries.items():
            node = self.ticks[entry.when]
            if node in self.before.ancestors and any(_within(place, path) for path in paths):
                return node
        return None


def _within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory + "/")


def _inside(place: str, name: str) -> str:
    return place.rstrip("/") + "/" + name
