"""A machine in memory for trying node types: an overlay on top of an empty base."""

from __future__ import annotations

from typing import IO, Any, Dict, List, Mapping, Optional, Sequence, Union

from statecfg.remote.graph.above import above
from statecfg.remote.graph.model import Blob
from statecfg.remote.machine.paths import normal
from statecfg.remote.machine.planned import Planned
from statecfg.remote.machine.world import Entries, Fields, Probe, Stat


class Nothing:
    """An empty base: a root directory, the user and group root, and the given facets and probes."""

    def __init__(
        self,
        facets: Optional[Mapping[str, Entries]] = None,
        probes: Optional[Mapping[str, Probe]] = None,
    ) -> None:
        self.facets: Dict[str, Entries] = {
            "users": {"root": {"uid": 0, "gid": 0, "home": "/root", "shell": "/bin/sh", "comment": "", "groups": []}},
            "groups": {"root": {"gid": 0, "members": []}},
        }
        for name, keys in (facets or {}).items():
            self.facets[name] = dict(self.facets.get(name, {}), **keys)
        self.probes = dict(probes or {})

    def stat(self, path: str) -> Optional[Stat]:
        return Stat("directory", 0o755, "root", "root") if normal(path) == "/" else None

    def read(self, path: str) -> bytes:
        raise FileNotFoundError(2, "No such file or directory", path)

    def open(self, path: str) -> IO[bytes]:
        raise FileNotFoundError(2, "No such file or directory", path)

    def digest(self, path: str) -> str:
        raise FileNotFoundError(2, "No such file or directory", path)

    def listdir(self, path: str) -> List[str]:
        return []

    def writable(self, path: str) -> bool:
        return True

    def mount_points(self) -> Dict[str, bool]:
        return dict.fromkeys(self.facet("mount"), False)

    def member(self, group: str) -> bool:
        return True

    def facet(self, name: str) -> Entries:
        return self.facets.get(name, {})

    def entry(self, facet: str, key: str) -> Optional[Fields]:
        return self.facet(facet).get(key)

    def probe(self, argv: Sequence[str], timeout: float = 60.0, **options: Any) -> Probe:
        return self.probes.get(" ".join(argv), Probe(127, b"", b"no such program in memory"))


class MemoryMachine(Planned):
    """A machine in memory, for tests of node types.

    :param files: path → content, or None for a directory; parent directories are created
    :param facets: facet → key → fields
    :param probes: command line → result of a read-only program
    :param tables: the name of `facets` until 0.3
    """

    def __init__(
        self,
        files: Optional[Mapping[str, Union[str, bytes, None]]] = None,
        facets: Optional[Mapping[str, Entries]] = None,
        probes: Optional[Mapping[str, Probe]] = None,
        tables: Optional[Mapping[str, Entries]] = None,
    ) -> None:
        if tables is not None:
            above.renamed("MemoryMachine(tables=…)", "MemoryMachine(facets=…)")
        Planned.__init__(self, Nothing(facets or tables, probes), root=True)
        for path, content in (files or {}).items():
            parent = normal(path).rsplit("/", 1)[0]
            if content is None:
                self.mkdir(path, parents=True)
            else:
                if parent:
                    self.mkdir(parent, parents=True)
                self.write(path, Blob.of(content))

    def target(self, path: str) -> str:
        """Return the target of a link, for a machine on top of this one."""
        stat = self._standing(path)
        return stat.target if stat is not None else ""

    def _me(self) -> Any:
        return "root", "root"
