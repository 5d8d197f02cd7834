"""Find and stop the running units of packages before their removal. Not every package stops its units."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from statecfg.remote.graph.model import Unknown
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.services import systemd
from statecfg.resources.shared import records

NOT_LOADED = 5  # exit status of systemctl: a unit no longer exists


def add_units(world: World, items: Iterable[records.RemoveItem]) -> list[str]:
    """Add the running units of the packages to items that remove packages.

    On a host without systemd, add nothing.

    :param items: items of the op `remove`; those whose packages have running units get `units`
    :returns: messages about units that stay up because systemd refuses to stop them by hand
    """
    if world.apparent(systemd.RUNNING) is None:
        return []
    left: list[str] = []
    for item in items:
        units, refusing = _up(world, (item["name"], *item["others"]))
        if units:
            item["units"] = units
        text = "%s keeps running unless the scripts of %s stop it: systemd refuses to stop it manually"
        left += [text % (unit, item["name"]) for unit in refusing]
    return left


def _up(world: World, packages: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the running units of packages: those that systemd stops on request, and those that it doesn't."""
    owners = world.facet("unit_packages")
    mine = {file for file, entry in owners.items() if set(entry["packages"]).issubset(packages)}
    names = {file for file in mine if "@." not in file}
    if len(names) < len(mine):
        names.update(name for name in _all_units(world) if systemd.file_of(name) in mine)
    units = {name: world.entry("units", name) or {} for name in sorted(names)}
    up = [name for name, entry in units.items() if entry.get("active") in systemd.UP]
    return [name for name in up if not units[name].get("refuses")], [name for name in up if units[name].get("refuses")]


def _all_units(world: World) -> Iterable[str]:
    """Return the names of all units; none if they are unknown because an earlier removal may have ended instances."""
    try:
        return world.facet("units")
    except Unknown:
        return ()


def effect(packages: Iterable[records.RemoveItem]) -> records.Effect:
    """Return the effect on the units of these items once the packages are removed."""
    after: dict[str, records.Fields | None] = {}
    for package in packages:
        after.update(dict.fromkeys(package.get("units", ()), None if package["purge"] else {"active": "inactive"}))
    return after


def stop(machine: Machine, units: Sequence[str]) -> Result:
    """Stop units before their packages are removed. So a purge also removes what a unit writes when it ends."""
    ended = {"units": {unit: {"active": "inactive"} for unit in units}}
    argv = ["systemctl", "stop", "--", *units]
    return machine.run(argv, ended, timeout=systemd.TIMEOUT, codes=(0, NOT_LOADED))


def start_again(machine: Machine, units: Sequence[str]) -> Result:
    """Start units whose packages could not be removed."""
    begun = {"units": {unit: {"active": "active"} for unit in units}}
    return machine.run(["systemctl", "start", "--", *units], begun, timeout=systemd.TIMEOUT)
