"""Find hosts that a playbook was applied to and no longer names, and hosts of manually added units."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from statecfg.playbook.inventory import LOCAL
from statecfg.remote.graph.names import Mode, Outcome
from statecfg.store import hosts, runs, services

if TYPE_CHECKING:
    from statecfg.playbook.inventory import Inventory
    from statecfg.store.database import Store

Json = dict[str, Any]
LOOKED_AT = 20  # number of runs to search for a host's resources


def added(store: Store, playbook: str) -> dict[str, list[str]]:
    """Return service → hosts of its manually added units.

    :param playbook: the playbook that declares the services: PROJECT/PATH
    """
    found: dict[str, list[str]] = {}
    with store.reading() as connection:
        for unit in services.units_in(connection, store.project, playbook):
            if unit.added:
                found.setdefault(unit.service, []).append(unit.host)
    return found


def find(
    store: Store, playbook: str, file: str, named: Collection[str], inventory: Inventory | None, path: str
) -> list[Json]:
    """Return the hosts that a playbook was applied to and no longer names, sorted by name, in the format of reports.

    :param playbook: PROJECT/PATH
    :param file: the same playbook, relative to the project
    :param named: the hosts that the playbook names now, including those outside the limit of this run
    :param path: the playbook as written in a command
    :returns: for each host `host`; `address`: whether the inventory contains it; `units`: their names; `resources`:
        their names, if one of the newest runs lists them; `command`: the command that removes these, "" for a host that
        is not in the inventory
    """
    units: dict[str, list[str]] = {}
    with store.reading() as connection:
        for unit in services.units_in(connection, store.project, playbook):
            units.setdefault(unit.host, []).append(unit.name)
    bound = {each.name for each in hosts.every(store) if playbook in each.playbooks}
    found = []
    for name in sorted((bound | units.keys()) - set(named)):
        there = name == LOCAL or (inventory is not None and name in inventory.hosts)
        command = f"statecfg destroy --hosts {shlex.quote(name)} {shlex.quote(path)}" if there else ""
        about: Json = {"host": name, "address": there, "units": units.get(name, [])}
        found.append({**about, "resources": _resources(store, file, name), "command": command})
    return found


def _resources(store: Store, file: str, host: str) -> list[str]:
    """Return the names of the resources on a host after the newest apply of a playbook; [] if unknown."""
    for run in runs.recent(store, LOOKED_AT, host, file):
        report: Mapping[str, Any] = (runs.host_report(store, run.id, host) if run.mode == Mode.APPLY else None) or {}
        nodes = [node for layer in report.get("layers", ()) for node in layer]
        made = sorted(node["name"] for node in nodes if node.get("outcome") in Outcome.SOUND)
        if made:
            return made
    return []
