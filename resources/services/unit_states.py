"""The states of units and services, with or without systemd."""

from __future__ import annotations

from collections.abc import Sequence

TIMEOUT = 300.0  # seconds for an action
UP = ("active", "reloading", "activating", "refreshing")
OPENRC = "/run/openrc"  # OpenRC creates it at boot


class ServiceState:
    """The state of a unit.

    :param name: its own name, never an alias
    :param active: its state: "active", "inactive", "failed" …; None if a required node may still change it
    :param enabled: its unit file state: "enabled", "disabled", "masked" …; None if a required node may still change it
    :param alias: the alias by which a node names it, if it can be masked alone. An alias in /etc cannot, because the
        mask would have the same path: the administrator or `enable` made it
    :param reload: whether systemd has not read its changed file
    :param starts: for a socket: its services
    :param sockets: for a service: its sockets
    :ivar served: for a socket: those of its services that run
    """

    __slots__ = ("active", "alias", "enabled", "name", "reload", "served", "sockets", "starts")

    def __init__(
        self,
        name: str,
        active: str | None = None,
        enabled: str | None = None,
        alias: str | None = None,
        reload: bool = False,
        starts: Sequence[str] = (),
        sockets: Sequence[str] = (),
    ) -> None:
        self.name, self.active, self.enabled, self.alias = name, active, enabled, alias
        self.reload, self.starts, self.sockets = reload, starts, sockets
        self.served: Sequence[str] = ()

    @property
    def up(self) -> bool:
        """Whether the unit runs."""
        return self.active in UP
