"""A machine in memory for trying node types: an overlay on top of an empty base."""

from __future__ import annotations

import warnings
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from statecfg.remote.graph.model import Blob
from statecfg.remote.machine.paths import normal
from statecfg.remote.machine.planned import Planned
from statecfg.remote.machine.world import Facet, Fields, Probe, Stat


def _former_name(stat: Stat) -> str:
    warnings.warn("Stat.kind is now Stat.file_type", FutureWarning, stacklevel=2)
    return stat.file_type


# Tests of node types load this module, and hosts don't: no user would see a warning there.
setattr(Stat, "kind", property(_former_name))  # noqa: B010  # mypy refuses to assign to a property


class Nothing:
    """An empty base: a root directory, the user and group root, and the given tables and probes."""

    def __init__(
        self,
        tables: Optional[Mapping[str, Facet]] = None,
        probes: Optional[Mapping[str, Probe]] = None,
    ) -> None:
        self.tables: Dict[str, Facet] = {
            "users": {"root": {"uid": 0, "gid": 0, "home": "/root", "shell": "/bin/sh", "comment": "", "groups": []}},
            "groups": {"root": {"gid": 0, "members": []}},
        }
        for name, keys in (tables or {}).items():
            self.tables[name] = dict(self.tables.get(name, {}), **keys)
        self.probes = dict(probes or {})

    def stat(self, path: str) -> Optional[Stat]:
        return Stat("directory", 0o755, "root", "root") if normal(path) == "/" else None

    def read(self, path: str) -> bytes:
        raise FileNotFoundError(2, "No such file or directory", path)

    def digest(self, path: str) -> str:
        raise FileNotFoundError(2, "No such file or directory", path)

    def listdir(self, path: str) -> List[str]:
        return []

    def writable(self, path: str) -> bool:
        return True

    def member(self, group: str) -> bool:
        return True

    def table(self, name: str) -> Facet:
        return self.tables.get(name, {})

    def entry(self, table: str, key: str) -> Optional[Fields]:
        return self.table(table).get(key)

    def probe(self, argv: Sequence[str], timeout: float = 60.0, **options: Any) -> Probe:
        return self.probes.get(" ".join(argv), Probe(127, b"", b"no such program in memory"))


class MemoryMachine(Planned):
    """A machine in memory.

    :param files: path → content, or None for a directory; parent directories are created
    :param tables: facet → key → fields
    :param probes: command line → result of a read-only program
    """

    def __init__(
        self,
        files: Optional[Mapping[str, Union[str, bytes, None]]] = None,
        tables: Optional[Mapping[str, Facet]] = None,
        probes: Optional[Mapping[str, Probe]] = None,
    ) -> None:
        Planned.__init__(self, Nothing(tables, probes), root=True)
        for path, content in (files or {}).items():
            above = normal(path).rsplit("/", 1)[0]
            if content is None:
                self.mkdir(path, parents=True)
            else:
                if above:
                    self.mkdir(above, parents=True)
                self.write(path, Blob.of(content))

    def _me(self) -> Any:
        return "root", "root"
