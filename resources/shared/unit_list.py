"""The units of a host: which exist, and their state."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Any

from statecfg.remote.graph.model import CheckError
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.machine.world import World
from statecfg.resources.shared import records, unit_managers

_PROPERTIES = (
    "--property=Id,Names,LoadState,ActiveState,SubState,UnitFileState,NeedDaemonReload,RefuseManualStop,Triggers"
)


@facet("units")
def units(host: World) -> dict[str, records.Fields]:
    """Load the units: name → `active`, `enabled`, or only `alias`.

    Some units also have `reload` (systemd has not read its changed file), `refuses` (systemd refuses to stop it by
    hand), `starts` (the services of a socket) or `sockets` (the sockets, timers and paths that start it). For an init
    script of System V, `enabled` tells whether it has links, as for other units.

    :raises CheckError: if no known program starts the host's services, or systemd does not answer
    """
    if unit_managers.scripts(host):
        found: dict[str, records.Fields] = unit_managers.scripts(host).units(host)
        return found
    if host.stat(unit_managers.RUNNING) is None:
        raise CheckError("this host runs neither systemd nor OpenRC, and has no init scripts")
    loaded: dict[str, records.Fields] = {}
    starters: dict[str, list[str]] = {}
    for line in _ask(host, ["systemctl", "list-unit-files", "--no-legend", "--no-pager", "--plain"]).splitlines():
        name, state = [*line.split(), "", ""][:2]
        loaded[name] = {"active": "inactive", "enabled": state}
    for block in _ask(host, ["systemctl", "show", "--no-pager", _PROPERTIES, "*"]).split("\n\n"):
        properties = dict(line.partition("=")[::2] for line in block.splitlines())
        if properties.get("LoadState", "not-found") == "not-found" or properties["Id"].endswith((".device", ".scope")):
            continue
        for started in properties.get("Triggers", "").split():  # it is not listed itself if it has never run
            starters.setdefault(started, []).append(properties["Id"])
        loaded[properties["Id"]] = _entry(properties)
        for alias in properties.get("Names", "").split():
            if alias != properties["Id"]:
                loaded[alias] = {"alias": properties["Id"]}
    _follow_links(host, loaded)
    for name, units in starters.items():
        if name in loaded and "alias" not in loaded[name]:
            loaded[name] = {**loaded[name], "sockets": sorted(units)}
    for name in _instances(host):
        loaded.setdefault(name, {"active": "inactive", "enabled": "enabled"})
    _add_init_scripts(host, loaded)
    return loaded


def _entry(properties: dict[str, str]) -> records.Fields:
    """Return the fields of a unit from its properties."""
    # A service that ends and is restarted again and again is not running.
    active = "failed" if properties["SubState"] == "auto-restart" else properties["ActiveState"]
    entry: dict[str, Any] = {"active": active, "enabled": properties.get("UnitFileState", "")}
    if properties.get("NeedDaemonReload") == "yes":
        entry["reload"] = True
    if properties.get("RefuseManualStop") == "yes":
        entry["refuses"] = True
    if properties["Id"].endswith(".socket") and properties.get("Triggers"):
        entry["starts"] = properties["Triggers"].split()
    return entry


def _follow_links(host: World, loaded: dict[str, records.Fields]) -> None:
    """Replace names that are links by aliases of their units, and drop links whose unit is gone."""
    for name in [name for name, entry in loaded.items() if entry.get("enabled") in ("alias", "bad")]:
        target = _target(host, name)
        if loaded[name]["enabled"] == "bad" and target and not has_file(host, target):
            del loaded[name]  # a link whose unit is gone
        elif target and loaded[name]["enabled"] == "alias":
            loaded[name] = {"alias": target}


def _add_init_scripts(host: World, loaded: dict[str, records.Fields]) -> None:
    """Replace the state of units that systemd has generated from init scripts: their links decide."""
    generated = [name for name, entry in loaded.items() if entry.get("enabled") == "generated"]
    names = [name for name in generated if host.stat(f"/run/systemd/generator.late/{name}") and has_script(host, name)]
    if names:
        from statecfg.resources.shared import init_scripts

        levels = init_scripts.linked(host)
        for name in names:
            word = "enabled" if name[: -len(".service")] in levels else "disabled"
            loaded[name] = {**loaded[name], "enabled": word}


def has_script(world: World, unit: str) -> bool:
    """Return whether an init script of System V has the name of the unit."""
    return unit.endswith(".service") and world.apparent("/etc/init.d/" + unit[: -len(".service")]) is not None


def _ask(host: World, argv: Sequence[str]) -> str:
    probe = host.probe(argv)
    if probe.status != 0:
        errors = probe.errors.decode("utf-8", "replace").strip()
        raise CheckError(f"systemd does not answer: {' '.join(argv[:2])}: {errors}")
    return probe.text


def _target(host: World, name: str) -> str:
    for directory in unit_managers.DIRECTORIES:
        stat = host.stat(posixpath.join(directory, name))
        if stat is not None:
            return posixpath.basename(stat.target)
    return ""


def _instances(host: World) -> list[str]:
    """Return the enabled instances of templates. systemd itself lists only the loaded instances."""
    names: list[str] = []
    for directory in (
        host.listdir(unit_managers.DIRECTORIES[0]) if host.stat(unit_managers.DIRECTORIES[0]) is not None else ()
    ):
        if directory.endswith((".wants", ".requires")):
            names.extend(
                name for name in host.listdir(posixpath.join(unit_managers.DIRECTORIES[0], directory)) if "@" in name
            )
    return [name for name in names if not name.startswith("@") and "@." not in name]


def has_file(world: World, name: str) -> bool:
    """Return whether there is a file of this name that systemd reads. A link to a missing file is none."""
    stats = [world.apparent(posixpath.join(directory, name)) for directory in unit_managers.DIRECTORIES]
    targets = (stat.target for stat in stats if stat is not None)
    return any(not target.startswith("/") or world.apparent(target) is not None for target in targets)
