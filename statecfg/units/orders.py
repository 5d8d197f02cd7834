"""The orders that hosts receive for their units at the start of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from statecfg.remote.graph.model import Blob
    from statecfg.run.deployment import Deployment
    from statecfg.run.report_model import Unit
    from statecfg.store.database import Store
    from statecfg.units.ahead import Ahead

Json = Mapping[str, Any]


class HostOrders:
    """The orders of one run.

    :param ahead: the units of the hosts, and their due hooks
    """

    def __init__(self, store: Store, deployment: Deployment, ahead: Ahead) -> None:
        self.store, self.deployment, self.ahead = store, deployment, ahead
        self.mark = ""  # the project's mark in the store
        self._charms: dict[str, tuple[Json, dict[str, Blob]]] = {}  # with their large files; read once for all hosts

    def of_host(self, host: str, contents: dict[str, Blob]) -> Json:
        """Return the order for a host's units; {} if it has none.

        :param contents: receives the charms' large files: digest → content
        """
        units = self.ahead.names.get(host, [])
        if not units:
            return {}
        charms: dict[str, Any] = {}
        for name in sorted({service for _, service in units} & set(self.deployment.charms)):
            if name not in self._charms:
                large: dict[str, Blob] = {}
                self._charms[name] = self.deployment.files(name, large), large
            charms[name], large = self._charms[name]
            contents.update(large)
        longest = max((service.timeout for service in self.deployment.services), default=0.0)
        names = [name for name, _ in units]
        early = [name for name in names if name in self.ahead.early]
        about = {"units": names, "early": early, "charms": charms, "due": self.ahead.due[host], "longest": longest}
        return {**self.owner(host), **about}

    def owner(self, host: str) -> Json:
        """Return the owner of a host's units; {} if it has none. A host refuses units of another store."""
        if not self.ahead.names.get(host):
            return {}
        return {"project": self.deployment.project, "mark": self.mark, "store": self.store.global_label}

    def due(self, host: str) -> list[Unit]:
        """Return the units of a host with their due hooks, in the format of reports.

        `made_of` is the digest of charm and settings: a saved plan is valid only for these.
        """
        units: list[Unit] = []
        for unit, service in self.ahead.names.get(host, ()):
            hooks = [hook.copy() for hook in self.ahead.due[host] if hook["unit"] == unit]
            for hook in hooks:
                del hook["unit"]
            planned: Unit = {"unit": unit, "service": service, "made_of": self.deployment.digest(service), "due": hooks}
            if unit in self.ahead.changes:
                planned["change"] = self.ahead.changes[unit]
            units.append(planned)
        return units
