"""The store and the inventory for the commands of `statecfg hosts`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from statecfg import dialects
from statecfg.cli.project_store import ProjectStore
from statecfg.problems.frozen import dataclass

if TYPE_CHECKING:
    from statecfg.store.hosts import HostRecord


@dataclass(frozen=True)
class HostOptions:
    """The options that say where to look up hosts: the store's address and the inventory file. None is the default."""

    store: str | None
    inventory: str | None


class HostStore(ProjectStore):
    """The current project, its inventory and, while entered, the open store."""

    def __init__(self, options: HostOptions) -> None:
        super().__init__(options.store)
        self.inventory = dialects.inventory(self.project, Path(options.inventory) if options.inventory else None)

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
        raise self.unknown_host(f"neither the inventory nor the store has a host `{name}`", name, self.inventory.hosts)

    def stored(self, name: str) -> HostRecord:
        """Return a host in the store.

        :raises InvalidInput: the store does not have it
        """
        note = ": statecfg never contacted, tagged or bound it" if name in self.inventory.hosts else ""
        return self.host(name, note)
