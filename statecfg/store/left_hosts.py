"""Find hosts that a playbook was applied to and no longer names, and hosts of manually added units."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from typing import TypedDict

from statecfg.playbook.inventory import LOCAL, Inventory
from statecfg.remote.graph.names import Mode, Outcome
from statecfg.store import hosts, projects, runs
from statecfg.store.database import Store

LOOKED_AT = 20  # number of runs that changed a host, to search for its resources


class LeftHost(TypedDict):
    """A host that a playbook was applied to and no longer names, as in reports.

    `address`: whether the inventory contains it. `units`: their names. `resources`: their names, if one of the newest
    runs lists them. `command`: the command that removes these, "" for a host that is not in the inventory.
    """

    host: str
    address: bool
    units: list[str]
    resources: list[str]
    command: str


def added(store: Store, playbook: str) -> dict[str, list[str]]:
    """Return service → hosts of its manually added units.

    :param playbook: the playbook that declares the services: PROJECT/PATH
    """
    from statecfg.store import services

    added: dict[str, list[str]] = {}
    with store.reading() as connection:
        for unit in services.units_in(connection, store.project, playbook):
            if unit.origin.added:
                added.setdefault(unit.service, []).append(unit.host)
    return added


def find(
    store: Store, playbook: str, file: str, named: Collection[str], inventory: Inventory | None, path: str
) -> list[LeftHost]:
    """Return the hosts that a playbook was applied to and no longer names, sorted by name.

    :param playbook: PROJECT/PATH
    :param file: the same playbook, relative to the project
    :param named: the hosts that the playbook names now, including those outside the limit of this run
    :param path: the playbook as written in a command
    """
    units: dict[str, list[str]] = {}
    with store.reading() as connection:
        if projects.has_units(connection, store.project, playbook):
            from statecfg.store import services

            for unit in services.units_in(connection, store.project, playbook):
                units.setdefault(unit.host, []).append(unit.name)
    bound = {host.name for host in hosts.every(store) if playbook in host.playbooks}
    left: list[LeftHost] = []
    for name in sorted((bound | units.keys()) - set(named)):
        has_address = name == LOCAL or (inventory is not None and name in inventory.hosts)
        left.append(
            {
                "host": name,
                "address": has_address,
                "units": units.get(name, []),
                "resources": _resources(store, file, name),
                "command": f"statecfg destroy --hosts {shlex.quote(name)} {shlex.quote(path)}" if has_address else "",
            }
        )
    return left


def _resources(store: Store, file: str, host: str) -> list[str]:
    """Return the names of the resources of a playbook on a host, according to the newest runs; [] if unknown."""
    there: dict[str, bool] = {}  # the newest run that mentions a resource decides
    for run in runs.recent(store, LOOKED_AT, host, file, Mode.ACTING):
        report = runs.host_report(store, run.id, host) or {}
        for part in ("layers", "removals"):
            for node in (node for layer in report.get(part, ()) for node in layer):
                if node.get("outcome") in Outcome.SOUND:
                    there.setdefault(node["name"], part == "layers")
    return sorted(name for name in there if there[name])
