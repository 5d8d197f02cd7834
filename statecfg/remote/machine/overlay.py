"""The reading side of a simulated machine: the plan's changes on top of the machine below."""

from __future__ import annotations

import errno
import os
from typing import AbstractSet, Any, Dict, FrozenSet, Hashable, List, Mapping, Optional, Sequence, Set, Tuple

from statecfg.remote.graph.model import Blob, Unknown
from statecfg.remote.machine.changes import DIFFED
from statecfg.remote.machine.paths import LINKS, child, normal, within
from statecfg.remote.machine.world import Entries, Fields, Inputs, Machine, Probe, Stat

NOBODY: FrozenSet[str] = frozenset()
FILES = "files"
PLANS_OWN = ("asked", "unit_packages")  # facets about the run or its beginning, which no node changes
ALL = "*"  # every key of a facet, or every facet


class Trace:
    """What one node read and changed on the simulated machine.

    Paths are canonical. A file is also identified by device and inode, because it may have several names.

    :param looked: the paths and inodes that it read
    :param facet_entries: the (facet, key) that it read; (facet, "*") for a whole facet, ("*", "*") for anything
    :param touched: the paths and inodes that its actions change
    :param effects: the (facet, key) that its actions change; (facet, "*") if the keys are unknown
    """

    __slots__ = ("effects", "facet_entries", "looked", "touched")

    def __init__(self) -> None:
        self.looked: Set[Hashable] = set()
        self.facet_entries: Set[Sequence[str]] = set()
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

    :param facets: the facets that it makes unknown
    :param paths: the paths that it makes unknown
    :param declared: the facets for which the action declares what it changes
    """

    __slots__ = ("declared", "facets", "node", "paths", "when")

    def __init__(
        self,
        node: str,
        when: int,
        facets: AbstractSet[str],
        paths: AbstractSet[str],
        declared: AbstractSet[str] = NOBODY,
    ) -> None:
        self.node, self.when, self.facets, self.paths, self.declared = node, when, facets, paths, declared


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
        self.facets: Dict[str, Dict[str, Tuple[Optional[Fields], int]]] = {}
        self.causes: List[Cause] = []
        self.acting: Dict[str, None] = {}  # the nodes that have acted on this machine, in order
        self.ticks: List[str] = [""]  # the node that acted at each moment
        self.memo: Dict[str, Any] = {}
        self.answers: Dict[Tuple[str, ...], Probe] = {}
        self.before = Before()
        self.trace = Trace()
        self._directories: Dict[str, str] = {}
        self._found: Dict[str, Optional[Stat]] = {}  # what the node of this turn has found on the base

    @property
    def triggered_by(self) -> Sequence[str]:  # type: ignore[override]  # a property in place of an attribute
        if not self.before.triggers and self.before.undecided is not None:
            raise Unknown(self.before.undecided, "whether it changes is")
        return self.before.triggers

    # Paths

    def canonical(self, path: str) -> str:
        """Return the path with the links of its directories followed, including planned links.

        :raises OSError: if the links form a loop
        """
        path = normal(path)
        if path == "/":
            return path
        above, name = os.path.split(path)
        return child(self._directory(above), name)

    def _directory(self, path: str) -> str:
        """Return the real path of a directory; for a missing one, the path that it would have."""
        real_path = self._directories.get(path)
        if real_path is None:
            if path == "/":
                return path
            above, name = os.path.split(path)
            real_path = self._directories[path] = self._enter(self._directory(above), name, [])
        return real_path

    def _enter(self, directory: str, name: str, links: List[str]) -> str:
        """Return the directory `name` in `directory`. A link is followed and added to `links`."""
        inside = child(directory, name)
        stat = self._standing(inside)
        if stat is None or stat.file_type != "symlink":
            return inside
        links.append(inside)
        if len(links) > LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), inside)
        return self._walk(directory, self._target(inside, stat), links)

    def _walk(self, directory: str, target: str, links: List[str]) -> str:
        """Return the directory that a link in `directory` points to."""
        here = "/" if target.startswith("/") else directory
        for part in target.split("/"):
            if part == "..":
                stat = self._standing(here)
                # A path that is not a directory has no parent. "..." is a name that does not exist.
                here = os.path.dirname(here) if stat and stat.file_type == "directory" else child(here, "...")
            elif part not in ("", "."):
                here = self._enter(here, part, links)
        return here

    def _target(self, path: str, stat: Stat) -> str:
        if path in self.entries:
            return stat.target
        target: str = self.base.target(path)
        return target

    def _standing(self, path: str) -> Optional[Stat]:
        """Return what is at a path without links, as far as it is known now."""
        entry = self.entries.get(path)
        if entry is not None:
            return entry.stat
        if self._hidden(path):
            return None
        if path not in self._found:
            self._found[path] = self.base.stat(path)
        return self._found[path]

    def _hidden(self, path: str) -> bool:
        """Tell whether the plan removes or recreates a directory above `path`, so that the base no longer applies."""
        while path != "/" and self.entries:
            path = os.path.dirname(path)
            entry = self.entries.get(path)
            if entry is not None and (entry.stat is None or entry.fresh or entry.stat.file_type != "directory"):
                return True
        return False

    def _followed(self, path: str) -> str:
        """Return the canonical path that `path` refers to after all links.

        :raises OSError: if the links form a loop
        :raises Unknown: if a link is not known yet
        """
        real_path = self.canonical(path)
        links: List[str] = []
        while True:
            stat = self.stat(real_path)
            if stat is None or stat.file_type != "symlink":
                return real_path
            links.append(real_path)
            if len(links) > LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            head, name = os.path.split(self._target(real_path, stat).rstrip("/"))
            absolute = self._target(real_path, stat).startswith("/")
            here = self._walk(os.path.dirname(real_path), "/" + head if absolute else head, links)
            real_path = self._walk(here, name, links) if name in ("", ".", "..") else child(here, name)

    # Reading

    def apparent(self, path: str) -> Optional[Stat]:
        return self._standing(self.canonical(path))

    def _cause(self, facet: str, when: int, path: str = "") -> Optional[str]:
        """Return the required node that makes the facet or the path unknown, if it acted after `when`."""
        for cause in self.causes:
            if cause.when > when and cause.node in self.before.ancestors:
                if {facet, facet.partition(" of ")[0], "*"} & cause.facets:
                    return cause.node
                if path and any(path == changed or path.startswith(changed + "/") for changed in cause.paths):
                    return cause.node
        return None

    def _changed_by(self, path: str) -> Optional[str]:
        return self._path_changed_by(self.canonical(path)) if self.causes else None

    def _path_changed_by(self, path: str) -> Optional[str]:
        entry = self.entries.get(path)
        return self._cause(FILES, entry.when if entry is not None else -1, path)

    def is_known(self, path: str) -> bool:
        return self._changed_by(path) is None

    def stat(self, path: str) -> Optional[Stat]:
        real_path = self.canonical(path)
        self.trace.looked.add(real_path)
        cause = self._path_changed_by(real_path) if self.causes else None
        if cause is not None:
            raise Unknown(cause, path)
        stat = self._standing(real_path)
        if stat is not None and stat.file_type == "file" and stat.identity is not None:
            self.trace.looked.add(stat.identity[:2])
        return stat

    def _planned_content(self, path: str, digest: bool = False) -> Tuple[str, Optional[Blob]]:
        """Return the canonical path that `path` refers to, and the content that the plan puts there.

        :param digest: whether the digest is enough
        :raises OSError: if it is not a file
        :raises Unknown: if the content does not exist yet
        """
        real_path = self._followed(path)
        stat = self._standing(real_path)
        if stat is None:
            raise self._missing(real_path, path)
        if stat.file_type != "file":
            raise OSError(errno.EINVAL, "is not a regular file", path)
        entry = self.entries.get(real_path)
        blob = entry.blob if entry is not None else None
        if entry is not None and blob is not None and blob.origin and not (digest and blob.sha256):
            raise Unknown(self.ticks[entry.when], f"the content of {path} is")
        return real_path, blob

    def _missing(self, above: str, path: str) -> OSError:
        """Return the error for reading a missing path: one for a missing file, another for a path below a file."""
        holder = None
        while holder is None:
            above = os.path.dirname(above)
            holder = self._standing(above)
        if holder.file_type == "directory":
            return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)

    def read(self, path: str) -> bytes:
        real_path, blob = self._planned_content(path)
        if blob is not None:
            return blob.read()
        data: bytes = self.base.read(real_path)
        return data

    def digest(self, path: str) -> str:
        real_path, blob = self._planned_content(path, True)
        if blob is not None:
            return blob.sha256
        digest: str = self.base.digest(real_path)
        return digest

    def content(self, path: str, size: int) -> Blob:
        """Return the content of the file at a canonical path; of a large file, only the digest is in memory.

        :raises OSError: if it cannot be read
        """
        entry = self.entries.get(path)
        if entry is not None and entry.blob is not None:
            return entry.blob
        if size > DIFFED:
            return Blob(self.base.digest(path), size, path=path)
        return Blob.of(self.base.read(path))

    def listdir(self, path: str) -> List[str]:
        real_path = self._followed(path)
        stat = self._standing(real_path)
        if stat is None:
            raise self._missing(real_path, path)
        if stat.file_type != "directory":
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        cause = self._names_changed_by(real_path)
        if cause is not None:
            raise Unknown(cause, f"the content of {path}")
        return self._names(real_path)

    def _names_changed_by(self, directory: str) -> Optional[str]:
        """Return the required node that may add or remove names in a directory, even in a directory that is known."""
        entry = self.entries.get(directory)
        fresh = entry.when if entry is not None and entry.fresh else -1
        cause = self._cause(FILES, fresh, directory)
        for one in self.causes:
            inside = (path for path in one.paths if os.path.dirname(path) == directory and path not in self.entries)
            if cause is None and one.node in self.before.ancestors and one.when > fresh and any(inside):
                cause = one.node
        return cause

    def _names(self, directory: str, planned: Optional[Mapping[str, Entry]] = None) -> List[str]:
        """Return the names in a directory.

        :param planned: the plan's entries there, if the caller has them already
        """
        entry = self.entries.get(directory)
        replaced = (entry is not None and entry.fresh) or self._hidden(directory)
        names = set() if replaced else set(self.base.listdir(directory))
        for path, entry in (self.entries if planned is None else planned).items():
            above, name = os.path.split(path)
            if above == directory and name:
                names.discard(name)
                if entry.stat is not None:
                    names.add(name)
        return sorted(names)

    def entry(self, facet: str, key: str) -> Optional[Fields]:
        self.trace.facet_entries.add((facet, key))
        fields, when = self.facets.get(facet, {}).get(key, (None, -1))
        result = fields if when >= 0 else self.base.entry(facet, key)
        if facet in PLANS_OWN:
            return result
        # An existing entry stays known: an action that adds new entries does not remove old ones.
        cause = self._cause("*" if result is not None else facet, when) or self._cause("every " + facet, when)
        if cause is not None:
            raise Unknown(cause, f"{key} of {facet}")
        return result

    def facet(self, name: str) -> Entries:
        self.trace.facet_entries.add((name, ALL))
        cause = self._cause(name, -1)
        if cause is not None:
            raise Unknown(cause, name)
        merged = dict(self.base.facet(name))
        for key, (fields, _) in self.facets.get(name, {}).items():
            if fields is None:
                merged.pop(key, None)
            else:
                merged[key] = fields
        return merged

    def probe(
        self, argv: Sequence[str], timeout: float = 60.0, inputs: Optional[Inputs] = None, **options: Any
    ) -> Probe:
        if inputs is not None:
            self.trace.facet_entries.add((inputs[0], ALL))
            cause = self._changing(*inputs)
            if cause is not None:
                raise Unknown(cause, f"the output of {argv[0]} is")
            command = tuple(argv)
            if command not in self.answers:
                self.answers[command] = self._probed(argv, timeout, options)
            return self.answers[command]
        self.trace.facet_entries.add((ALL, ALL))
        # The program would see the present host. Its answer is valid only if no required node changes the host first.
        ancestors = self.before.ancestors
        for node in self.acting if len(self.acting) < len(ancestors) else sorted(ancestors):
            if node in ancestors and node in self.acting:
                raise Unknown(node, f"the output of {argv[0]} is")
        return self._probed(argv, timeout, options)

    def _probed(self, argv: Sequence[str], timeout: float, options: Mapping[str, Any]) -> Probe:
        self._found = {}  # the program may change files
        return self.base.probe(argv, timeout, **options)  # type: ignore[no-any-return]  # the base is any machine

    def _changing(self, facet: str, paths: Sequence[str]) -> Optional[str]:
        """Return a required node that may change the facet without declaring how, or that changes one of the paths."""
        for cause in self.causes:
            if cause.node in self.before.ancestors and facet not in cause.declared:
                if any(name in cause.facets for name in ("*", facet, FILES)):
                    return cause.node
                if any(within(changed, path) or within(path, changed) for path in paths for changed in cause.paths):
                    return cause.node
        for changed, entry in self.entries.items():
            inside = (within(changed, path) or (entry.stat is None and within(path, changed)) for path in paths)
            if self.ticks[entry.when] in self.before.ancestors and any(inside):
                return self.ticks[entry.when]
        return None
