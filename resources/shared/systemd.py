"""systemd: which units exist, their state, and the ops that change it."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from statecfg.remote.graph.model import CheckError, Node, Unknown, error
from statecfg.remote.graph.nodetype import TABLES, table
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.values import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import unit_health
from statecfg.resources.shared.paths import required

Entry = dict[str, Any]

TIMEOUT = 300.0
UP = unit_health.UP
RUNNING = "/run/systemd/system"  # exists exactly where systemd is process 1: sd_booted(3)
PLACES = tuple(place + "/systemd/system" for place in ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"))
KINDS = ("service", "socket", "timer", "path", "target", "mount", "automount", "swap", "slice", "scope", "device")
_ASKED = (
    "--property=Id,Names,LoadState,ActiveState,SubState,UnitFileState,NeedDaemonReload,RefuseManualStop,Triggers,"
    "TriggeredBy"
)


@table("units")
def units(host: World) -> dict[str, Entry]:
    """Load the units: name → `active`, `enabled`.

    `reload` where systemd has not read its changed file; `refuses` where it is not to be stopped by hand; `starts`: the
    services of a socket; `sockets`: those of a service.
    """
    if host.stat(RUNNING) is None:
        raise CheckError("this host does not run systemd, and services are managed through it")
    found: dict[str, Entry] = {}
    for line in _ask(host, ["systemctl", "list-unit-files", "--no-legend", "--no-pager", "--plain"]).splitlines():
        name, state = [*line.split(), "", ""][:2]
        found[name] = {"active": "inactive", "enabled": state}
    for block in _ask(host, ["systemctl", "show", "--no-pager", _ASKED, "*"]).split("\n\n"):
        shown = dict(line.partition("=")[::2] for line in block.splitlines())
        if shown.get("LoadState", "not-found") == "not-found" or shown["Id"].endswith((".device", ".scope")):
            continue
        # A service that ends and is started over and over is not running.
        active = "failed" if shown["SubState"] == "auto-restart" else shown["ActiveState"]
        entry: Entry = {"active": active, "enabled": shown.get("UnitFileState", "")}
        if shown.get("NeedDaemonReload") == "yes":
            entry["reload"] = True
        if shown.get("RefuseManualStop") == "yes":
            entry["refuses"] = True
        for field, kind, others in (("starts", ".socket", "Triggers"), ("sockets", ".service", "TriggeredBy")):
            named = [name for name in shown.get(others, "").split() if kind == ".socket" or name.endswith(".socket")]
            if named and shown["Id"].endswith(kind):
                entry[field] = named
        found[shown["Id"]] = entry
        for alias in shown.get("Names", "").split():
            if alias != shown["Id"]:
                found[alias] = {"alias": shown["Id"]}
    for name in [name for name, entry in found.items() if entry.get("enabled") == "alias"]:
        target = _target(host, name)
        if target:
            found[name] = {"alias": target}
    for name in _instances(host):
        found.setdefault(name, {"active": "inactive", "enabled": "enabled"})
    return found


def _ask(host: World, argv: Sequence[str]) -> str:
    probe = host.probe(argv)
    if probe.status != 0:
        said = probe.errors.decode("utf-8", "replace").strip()
        raise CheckError("systemd does not answer: %s: %s" % (" ".join(argv[:2]), said))
    return probe.text


def _target(host: World, name: str) -> str:
    for place in PLACES:
        stat = host.stat(posixpath.join(place, name))
        if stat is not None:
            return posixpath.basename(stat.target)
    return ""


def _instances(host: World) -> list[str]:
    """Return the enabled instances of templates; systemd does not list those that it has not loaded."""
    found: list[str] = []
    for directory in host.listdir(PLACES[0]) if host.stat(PLACES[0]) is not None else ():
        if directory.endswith((".wants", ".requires")):
            found.extend(name for name in host.listdir(posixpath.join(PLACES[0], directory)) if "@" in name)
    return [name for name in found if not name.startswith("@") and "@." not in name]


def unit_name(name: str) -> str:
    """Return the whole name of a unit; one without a kind is a service."""
    return name if name.rpartition(".")[2] in KINDS else name + ".service"


def find(world: World, name: str) -> Entry | None:
    """Return how a unit stands, with its own `name` where the one asked for is an alias; None where there is none.

    `alias` is the name asked for if that alias can be masked alone: an alias of the administrator's or of `enable`,
    in /etc, stands where the mask would be. Raises Unknown where a required node may still bring it.
    """
    asked, entry = name, world.entry("units", name)
    for _ in range(8):
        if entry is None or "alias" not in entry:
            break
        name = entry["alias"]
        entry = world.entry("units", name)
    if entry is not None:
        alone = name != asked and world.apparent(posixpath.join(PLACES[0], asked)) is None
        return dict(entry, name=name, **({"alias": asked} if alone else {}))
    if "@" in name:
        template = world.entry("units", name.partition("@")[0] + "@." + name.rpartition(".")[2])
        if template is not None:
            return {"active": "inactive", "enabled": "disabled", "name": name}
    if any(world.apparent(posixpath.join(place, file_of(name))) is not None for place in PLACES):
        return {"active": "inactive", "enabled": "disabled", "name": name, "reload": True}
    return None


def file_of(name: str) -> str:
    """Return the name of a unit's file: its template's where it is an instance."""
    return name.partition("@")[0] + "@." + name.rpartition(".")[2] if "@" in name else name


@table("unit_packages")
def unit_packages(host: World) -> dict[str, Entry]:
    """Load which packages the files of units belong to: name of a unit → `packages`; empty without dpkg."""
    patterns = [posixpath.join(place, "*") for place in PLACES if place.startswith(("/usr/lib", "/lib"))]
    found: dict[str, Entry] = {}
    for line in host.probe(["dpkg-query", "--search", "--", *patterns]).text.splitlines():
        owners, _, path = line.partition(": ")
        if posixpath.dirname(path) in PLACES:
            found[posixpath.basename(path)] = {"packages": [name.partition(":")[0] for name in owners.split(", ")]}
    return found


def goes(world: World, unit: str) -> bool:
    """Return whether the plan removes the package that brought a unit."""
    if "packages" not in TABLES:  # no node of this run is about packages
        return False
    owners = (world.entry("unit_packages", file_of(unit)) or {}).get("packages", ())
    return any((world.entry("asked", name) or {}).get("gone") for name in owners)


def listening(world: World, state: Entry) -> list[str]:
    """Return the sockets that are up and start a service when somebody connects."""
    return [name for name in state.get("sockets", ()) if (find(world, name) or {}).get("active") in UP]


def served(world: World, state: Entry) -> list[str]:
    """Return the services of a socket that are up: systemd doesn't start the socket before they are stopped."""
    if not state["name"].endswith(".socket"):
        return []
    # Of a socket that is down, systemd tells nothing but its name.
    services = state.get("starts") or [state["name"][: -len("socket")] + "service"]
    return [name for name in services if (find(world, name) or {}).get("active") in UP]


def file_goes(unit: str, going: Iterable[Node]) -> bool:
    """Return whether one of these nodes was about the unit's file or one of its drop-ins."""
    return any(_of_unit(unit, node.attrs.get("path")) for node in going)


def _of_unit(unit: str, path: Any) -> bool:
    files = {posixpath.join(place, file_of(unit)) for place in PLACES}
    return isinstance(path, str) and (path in files or path.startswith(tuple(one + ".d/" for one in files)))


def file_changes(unit: str, node: Node, nodes: Mapping[str, Node], actions: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a required node changes the unit's file or one of its drop-ins."""
    changing = (name for name in required(node, nodes) if _of_unit(unit, nodes[name].attrs.get("path")))
    return any(layer.get(name) for name in changing for layer in actions)


def require_file(unit: str, node: Node, nodes: Mapping[str, Node]) -> None:
    """Raise CheckError where a node makes the unit's file and is not required: it might come before or after."""
    for place in PLACES:
        name = "file:" + posixpath.join(place, file_of(unit))
        if name in nodes and not nodes[name].attrs.get("absent") and name not in required(node, nodes):
            raise CheckError("%s makes the unit %s: add it to requires, or to restart_on" % (name, unit))


def _change(machine: Machine, verb: str, unit: str, **fields: Any) -> Result:
    return machine.run(["systemctl", verb, "--", unit], {"units": {unit: fields}}, timeout=TIMEOUT)


def _up(machine: Machine, verb: str, unit: str) -> Result:
    """Let a unit come up; where it does not, say what systemd knows of it."""
    result = _change(machine, verb, unit, active="active")
    if result["status"] == "error":
        result = error("%s\n%s" % (result["reason"], unit_health.account(machine, unit)), result.get("log"))
    return result


@op(turn="systemd")
def daemon_reload(machine: Machine, unit: str) -> Result:
    """Let systemd read the units' files again."""
    return machine.run(["systemctl", "daemon-reload"], {"units": {unit: {"reload": None}}}, timeout=TIMEOUT)


@op
def enable(machine: Machine, unit: str) -> Result:
    """Have the unit started at boot."""
    return _change(machine, "enable", unit, enabled="enabled")


@op
def disable(machine: Machine, unit: str) -> Result:
    """Have the unit not started at boot."""
    return _change(machine, "disable", unit, enabled="disabled")


@op
def mask(machine: Machine, unit: str) -> Result:
    """Have the unit not started by anything."""
    return _change(machine, "mask", unit, enabled="masked", alias=None)


@op
def unmask(machine: Machine, unit: str, enabled: str = "disabled") -> Result:
    """Let the unit be started again; `enabled`: how it is to be started at boot under the mask."""
    return _change(machine, "unmask", unit, enabled=enabled)


@op(name="unmask")
def unmask_alias(machine: Machine, unit: str, target: str) -> Result:
    """Take the mask from a name that is an alias of the unit `target`."""
    effect = {"units": {unit: {"alias": target, "enabled": None, "active": None}}}
    return machine.run(["systemctl", "unmask", "--", unit], effect, timeout=TIMEOUT)


@op(name="unmask")
def unmask_nothing(machine: Machine, unit: str) -> Result:
    """Take a mask away that no unit stands under."""
    return machine.run(["systemctl", "unmask", "--", unit], {"units": {unit: None}}, timeout=TIMEOUT)


@op
def start(machine: Machine, unit: str) -> Result:
    """Start the unit."""
    return _up(machine, "start", unit)


@op
def stop(machine: Machine, unit: str) -> Result:
    """Stop the unit."""
    return _change(machine, "stop", unit, active="inactive")


@op
def restart(machine: Machine, unit: str) -> Result:
    """Restart the unit, or start it."""
    return _up(machine, "restart", unit)


@op
def reload(machine: Machine, unit: str) -> Result:
    """Let the unit read its configuration again; restart it where it can't."""
    return _up(machine, "reload-or-restart", unit)


def known_names(world: World) -> list[str]:
    """Return the names of the units there are, as far as they are known."""
    try:
        return list(world.table("units"))
    except Unknown:
        return []
