"""The store and the inventory for the commands of `statecfg hosts`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from statecfg import dialects

if TYPE_CHECKING:
    from statecfg.playbook.project import Project
    from statecfg.store.database import Store
    from statecfg.store.hosts import HostRecord


@dataclass(frozen=True)
class Place:
    """The options that say where to look up hosts: the store's address and the inventory file. None is the default."""

    store: str | None
    inventory: str | None


class HostStore:
    """The inventory and, while entered, the open store."""

    def __init__(self, place: Place) -> None:
        from statecfg.playbook import project

        self.project: Project = project.find(Path.cwd())
        self.inventory = dialects.inventory(self.project, Path(place.inventory) if place.inventory else None)
        self._url = place.store

    def __enter__(self) -> HostStore:
        from statecfg.store import opened

        self.store: Store = opened(self.project, self._url)
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()

    def groups(self, name: str) -> Sequence[str]:
        """Return the groups of a host in the inventory."""
        host = self.inventory.hosts.get(name)
        return host.groups if host is not None else ()

    def name(self, name: str) -> str:
        """Return the name of a host.

        :raises InvalidInput: neither the store nor the inventory has it
        """
        from statecfg.playbook.inventory import LOCAL
        from statecfg.store import hosts

        if name == LOCAL or name in self.inventory.hosts or hosts.get(self.store, name) is not None:
            return name
        raise self._unknown(f"neither the inventory nor the store has a host `{name}`", name, self.inventory.hosts)

    def stored(self, name: str) -> HostRecord:
        """Return a host in the store.

        :raises InvalidInput: the store does not have it
        """
        from statecfg.store import hosts

        record = hosts.get(self.store, name)
        if record is None:
            met = ": it was never met, tagged or bound" if name in self.inventory.hosts else ""
            raise self._unknown(f"the store has no host `{name}`{met}", name, ())
        return record

    def _unknown(self, detail: str, name: str, others: Iterable[str]) -> Exception:
        from statecfg.problems import InvalidInput, problem, suggest
        from statecfg.store import hosts

        names = sorted({record.name for record in hosts.every(self.store)} | set(others))
        return InvalidInput([problem("SC0404", detail, suggest(name, names, "there are"))])
