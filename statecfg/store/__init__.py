"""The controller's database: hosts, services, entities, hook objects, reconciled objects and the history of runs.

Imports `unit_rules`, `playbook`, `facts`, `problems` and `remote`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statecfg.store.errors import Busy, StoreError

if TYPE_CHECKING:
    from statecfg.playbook.project import Project
    from statecfg.store.database import Store

__all__ = ["Busy", "StoreError", "opened"]


def opened(project: Project | None = None, url: str | None = None) -> Store:
    """Open the store. Create it if it does not exist. Close it with `with` or `.close()`.

    :param project: the project whose hosts and runs are visible. Its `store` setting is used if neither `url` nor
        STATECFG_STORE is set
    :param url: `sqlite:///PATH`, a path, or `postgresql://USER@HOST:PORT/DATABASE`
    :raises InvalidInput: the address is invalid
    :raises StoreError: the store can't be reached, is damaged, or has a newer schema
    """
    from statecfg.store import address
    from statecfg.store.database import Store

    return Store(address.chosen(project, url), project=project.name if project is not None else "")
