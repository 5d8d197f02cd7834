"""From what a playbook says about services to services that can be deployed: hosts, charm, options and settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from statecfg.problems import going_on

if TYPE_CHECKING:
    from statecfg.inventory import Inventory
    from statecfg.plays import Play
    from statecfg.services import Service


@dataclass(frozen=True)
class ServiceWork:
    """A service that is to be deployed.

    :param service: as it is declared, with the charm's options in its schema and its settings settled
    :param hosts: names of all hosts of its pattern, in the inventory's order; a limit leaves none out
    """

    service: Service
    hosts: tuple[str, ...]


def services(plays: Iterable[Play], inventory: Inventory, extra: Mapping[str, Any]) -> list[ServiceWork]:
    """Return the services among plays; report what is wrong with them."""
    found = []
    for play in plays:
        if play.service is not None:
            with going_on():
                hosts = inventory.select(play.hosts, None, play.position)
                found.append(ServiceWork(play.service, tuple(host.name for host in hosts)))
    return found
