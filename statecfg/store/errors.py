"""Why the store can't be used."""

from __future__ import annotations

from statecfg.remote.graph.errors import StatecfgError


class StoreError(StatecfgError):
    """The store can't be used. Stop everything that needs it (exit code 8).

    :param detail: what is wrong and where the store is; never contains a password
    :param help: what to do; "" for no advice
    """

    def __init__(self, detail: str, help: str = "") -> None:
        self.detail, self.help = detail, help
        super().__init__(detail)


class Busy(StoreError):
    """Another process or thread holds the lock or writes to the store."""


class Lost(StoreError):
    """The connection to a PostgreSQL server was lost. Whether the last change was stored is unknown."""


class Again(StoreError):
    """The transaction conflicted with another one. A retry may succeed."""


class Unmade(StoreError):
    """The PostgreSQL database does not contain statecfg's schema."""
