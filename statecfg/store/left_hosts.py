"""Find hosts that a playbook was applied to and no longer names, and hosts of manually added units."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypedDict

from statecfg.playbook.inventory import LOCAL, Inventory
from statecfg.remote.graph.names import Mode, Outcome
from statecfg.store import hosts, machines, projects, runs
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
    store: Store,
    playbook: str,
    file: str,
    named: Collection[str],
    inventory: Inventory | None,
    path: str,
    reports: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[LeftHost]:
    """Return the hosts that a playbook was applied to and no longer names, sorted by name.

    A machine that the playbook names by another name is not one of them.

    :param playbook: PROJECT/PATH
    :param file: the same playbook, relative to the project
    :param named: the hosts that the playbook names now, including those outside the limit of this run
    :param path: the playbook as written in a command
    :param reports: the hosts' parts of the report of this run
    """
    units: dict[str, list[str]] = {}
    with store.reading() as connection:
        if projects.has_units(connection, store.project, playbook):
            from statecfg.store import services

            for unit in services.units_in(connection, store.project, playbook):
                units.setdefault(unit.host, []).append(unit.name)
    bound = {host.name for host in hosts.every(store) if playbook in host.playbooks}
    names = sorted((bound | units.keys()) - set(named))
    if names:
        found = machines.Machines()
        found.met = machines.known(store, names, file, inventory)
        found.named = machines.known(store, named, file, inventory, reports)
        names = [name for name in names if not found.refusal(name)]
    resources = _resources(store, file, names)
    left: list[LeftHost] = []
    for name in names:
        has_address = name == LOCAL or (inventory is not None and name in inventory.hosts)
        left.append(
            {
                "host": name,
                "address": has_address,
                "units": units.get(name, []),
                "resources": resources[name],
                "command": f"statecfg destroy --hosts {shlex.quote(name)} {shlex.quote(path)}" if has_address else "",
            }
        )
    return left


def _resources(store: Store, file: str, names: Iterable[str]) -> dict[str, list[str]]:
    """Return host → the names of the resources of a playbook on it, according to the newest runs; [] if unknown."""
    with store.reading() as connection:
        return {
            name: _present(runs.newest_reports(connection, store.project, name, file, Mode.ACTING, LOOKED_AT))
            for name in names
        }


def _present(reports: Iterable[runs.HostData]) -> list[str]:
    """Return the names of the resources that are on a host.

    :param reports: newest first; the newest report that mentions a resource decides
    """
    there: dict[str, bool] = {}
    for report in reports:
        for part in ("layers", "removals"):
            for node in (node for layer in report.get(part, ()) for node in layer):
                if node.get("outcome") in Outcome.SOUND:
                    there.setdefault(node["name"], part == "layers")
    return sorted(name for name in there if there[name])
