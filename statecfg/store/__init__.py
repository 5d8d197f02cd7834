"""The controller's database: hosts, hook objects and their settings, events, reconciled objects, history of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statecfg.remote.graph.errors import StatecfgError

if TYPE_CHECKING:
    from statecfg.playbook.project import Project
    from statecfg.store.database import Store

__all__ = ["Busy", "StoreError", "opened"]


class StoreError(StatecfgError):
    """The store can't be used, so nothing that needs it may go on (exit 8).

    :param detail: what is wrong, with the store's place; never with a password
    :param help: what to do; "" where there is nothing to say
    """

    def __init__(self, detail: str, help: str = "") -> None:
        self.detail, self.help = detail, help
        super().__init__(detail)


class Busy(StoreError):
    """Another process holds the lock, or is writing."""


def opened(project: Project | None = None, url: str | None = None) -> Store:
    """Open the store, made on first use; close it by `with` or `.close()`.

    :param project: whose hosts and runs it shows, and whose `store` setting counts where neither `url` nor
        STATECFG_STORE says otherwise
    :param url: `sqlite:///PATH`, a path, or `postgresql://USER@HOST:PORT/DATABASE`
    :raises InvalidInput: the address is none
    :raises StoreError: it can't be reached, is damaged, or has a newer schema
    """
    from statecfg.store import address
    from statecfg.store.database import Store

    return Store(address.chosen(project, url), project=project.name if project is not None else "")
