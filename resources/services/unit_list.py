"""The units of a host: which exist, and their state."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Any

from statecfg.remote.graph.model import CheckError
from statecfg.remote.graph.nodetype import FACETS, facet
from statecfg.remote.machine.world import World
from statecfg.resources.services import unit_managers
from statecfg.resources.services.unit_states import OPENRC
from statecfg.resources.shared import records

_PROPERTIES = (
    "--property=Id,Names,LoadState,ActiveState,SubState,UnitFileState,NeedDaemonReload,RefuseManualStop,Triggers"
)


def scripts(world: World) -> Any:
    """Return the module for services without systemd: `init_scripts`. On a host with systemd, return None."""
    if world.apparent(unit_managers.RUNNING) is not None or not any(map(world.apparent, (OPENRC, "/etc/init.d"))):
        return None
    from statecfg.resources.services import init_scripts

    return init_scripts


def facet_of(user: str) -> str:
    """Return the name of the facet with the units of a user, or of the host. That of a user exists once it is used."""
    name = unit_managers.facet_of(user)
    if name not in FACETS:
        facet(name, volatile=True)(lambda host: load(host, user))
    return name


@facet("units")
def units(host: World) -> dict[str, records.Fields]:
    """Load the units of the host (see `load`).

    :raises CheckError: if no known program starts the host's services, or systemd does not answer
    """
    return load(host, "")


def load(host: World, user: str) -> dict[str, records.Fields]:
    """Load the units of a user, or of the host: name → `active`, `enabled`, or only `alias`.

    Some units also have `reload` (systemd has not read its changed file), `refuses` (systemd refuses to stop it by
    hand), `starts` (the services of a socket) or `sockets` (the sockets, timers and paths that start it). For an init
    script of System V, `enabled` tells whether it has links, as for other units.

    :raises CheckError: if no known program starts the host's services, or systemd does not answer
    """
    if scripts(host) and not user:
        found: dict[str, records.Fields] = scripts(host).units(host)
        return found
    if host.stat(unit_managers.RUNNING) is None:
        raise CheckError(
            f"this host does not run systemd, so it has no units of the user {user}"
            if user
            else "this host runs neither systemd nor OpenRC, and has no init scripts"
        )
    loaded: dict[str, records.Fields] = {}
    starters: dict[str, list[str]] = {}
    for line in _ask(host, user, ["list-unit-files", "--no-legend", "--no-pager", "--plain"]).splitlines():
        name, state = [*line.split(), "", ""][:2]
        loaded[name] = {"active": "inactive", "enabled": state}
    runs = not user or unit_managers.runs(host, user)
    shown = _ask(host, user, ["show", "--no-pager", _PROPERTIES, "*"]) if runs else ""
    for block in shown.split("\n\n") if shown else ():
        properties = dict(line.partition("=")[::2] for line in block.splitlines())
        if properties.get("LoadState", "not-found") == "not-found" or properties["Id"].endswith((".device", ".scope")):
            continue
        for started in properties.get("Triggers", "").split():  # it is not listed itself if it has never run
            starters.setdefault(started, []).append(properties["Id"])
        loaded[properties["Id"]] = _entry(properties)
        for alias in properties.get("Names", "").split():
            if alias != properties["Id"]:
                loaded[alias] = {"alias": properties["Id"]}
    _follow_links(host, user, loaded)
    for name, units in starters.items():
        if name in loaded and "alias" not in loaded[name]:
            loaded[name] = {**loaded[name], "sockets": sorted(units)}
    for name in _instances(host, user):
        loaded.setdefault(name, {"active": "inactive", "enabled": "enabled"})
    if not user:
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


def _follow_links(host: World, user: str, loaded: dict[str, records.Fields]) -> None:
    """Replace names that are links by aliases of their units, and drop links whose unit is gone."""
    for name in [name for name, entry in loaded.items() if entry.get("enabled") in ("alias", "bad")]:
        target = _target(host, user, name)
        if loaded[name]["enabled"] == "bad" and target and not has_file(host, unit_managers.joined(user, target)):
            del loaded[name]  # a link whose unit is gone
        elif target and loaded[name]["enabled"] == "alias":
            loaded[name] = {"alias": target}


def _add_init_scripts(host: World, loaded: dict[str, records.Fields]) -> None:
    """Replace the state of units that systemd has generated from init scripts: their links decide."""
    generated = [name for name, entry in loaded.items() if entry.get("enabled") == "generated"]
    names = [name for name in generated if host.stat(f"/run/systemd/generator.late/{name}") and has_script(host, name)]
    if names:
        from statecfg.resources.services import init_scripts

        levels = init_scripts.linked(host)
        for name in names:
            word = "enabled" if name[: -len(".service")] in levels else "disabled"
            loaded[name] = {**loaded[name], "enabled": word}


def has_script(world: World, unit: str) -> bool:
    """Return whether an init script of System V has the name of the unit."""
    return unit.endswith(".service") and world.apparent("/etc/init.d/" + unit[: -len(".service")]) is not None


def _ask(host: World, user: str, words: Sequence[str]) -> str:
    argv, options = unit_managers.call(host, user, words)
    if user and host.entry("users", user) is None:  # a user who is created first has only the units of all users
        argv, options = ["systemctl", "--global", *words], {}
    probe = host.probe(argv, **options)
    if probe.status != 0:
        errors = probe.errors.decode("utf-8", "replace").strip()
        whose = f"systemd of the user {user}" if user else "systemd"
        raise CheckError(f"{whose} does not answer: systemctl {words[0]}: {errors}")
    return probe.text


def _target(host: World, user: str, name: str) -> str:
    for directory in unit_managers.directories(host, user):
        stat = unit_managers.look(host, posixpath.join(directory, name))
        if stat is not None:
            return posixpath.basename(stat.target)
    return ""


def _instances(host: World, user: str) -> list[str]:
    """Return the enabled instances of templates. systemd itself lists only the loaded instances."""
    names: list[str] = []
    place = unit_managers.directories(host, user)[0]
    for directory in unit_managers.names(host, place):
        if directory.endswith((".wants", ".requires")):
            inside = unit_managers.names(host, posixpath.join(place, directory))
            names.extend(name for name in inside if "@" in name)
    return [name for name in names if not name.startswith("@") and "@." not in name]


def has_file(world: World, name: str) -> bool:
    """Return whether there is a file of this name that systemd reads. A link to a missing file is none."""
    user, unit = unit_managers.split(name)
    places = unit_managers.directories(world, user)
    stats = [unit_managers.look(world, posixpath.join(directory, unit)) for directory in places]
    targets = (stat.target for stat in stats if stat is not None)
    return any(not target.startswith("/") or unit_managers.look(world, target) is not None for target in targets)
