"""systemd: which units exist, their state, and the ops that change it."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from statecfg.remote.graph.model import CheckError, Node, Unknown, error, required
from statecfg.remote.graph.nodetype import TABLES, table
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.values import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import unit_health

Entry = dict[str, Any]

TIMEOUT = 300.0
UP = unit_health.UP
RUNNING = "/run/systemd/system"  # exists if and only if systemd is process 1: sd_booted(3)
PLACES = tuple(place + "/systemd/system" for place in ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"))
KINDS = ("service", "socket", "timer", "path", "target", "mount", "automount", "swap", "slice", "scope", "device")
_ASKED = (
    "--property=Id,Names,LoadState,ActiveState,SubState,UnitFileState,NeedDaemonReload,RefuseManualStop,Triggers,"
    "TriggeredBy"
)


@table("units")
def units(host: World) -> dict[str, Entry]:
    """Load the units: name → `active`, `enabled`, or only `alias`.

    Some units also have `reload` (systemd has not read its changed file), `refuses` (systemd refuses to stop it by
    hand), `starts` (the services of a socket) or `sockets` (the sockets of a service).

    :raises CheckError: if the host does not run systemd, or systemd does not answer
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
        # A service that ends and is restarted again and again is not running.
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
    """Return the enabled instances of templates. systemd lists only those that it has loaded."""
    found: list[str] = []
    for directory in host.listdir(PLACES[0]) if host.stat(PLACES[0]) is not None else ():
        if directory.endswith((".wants", ".requires")):
            found.extend(name for name in host.listdir(posixpath.join(PLACES[0], directory)) if "@" in name)
    return [name for name in found if not name.startswith("@") and "@." not in name]


def unit_name(name: str) -> str:
    """Return the full name of a unit. Without a suffix, it is a service."""
    return name if name.rpartition(".")[2] in KINDS else name + ".service"


def find(world: World, name: str) -> Entry | None:
    """Return the state of a unit with its own `name` (`name` may be an alias), or None if it does not exist.

    The state has `alias` if `name` is an alias that can be masked alone. An alias in /etc cannot, because the mask
    would have the same path: the administrator or `enable` made it.

    :raises Unknown: if a required node may still create the unit
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
    """Return the name of a unit's file. For an instance, this is the file of its template."""
    return name.partition("@")[0] + "@." + name.rpartition(".")[2] if "@" in name else name


@table("unit_packages")
def unit_packages(host: World) -> dict[str, Entry]:
    """Load which packages own the files of units: name of a unit's file → `packages`. Without dpkg, it is empty."""
    patterns = [posixpath.join(place, "*") for place in PLACES if place.startswith(("/usr/lib", "/lib"))]
    found: dict[str, Entry] = {}
    for line in host.probe(["dpkg-query", "--search", "--", *patterns]).text.splitlines():
        owners, _, path = line.partition(": ")
        if posixpath.dirname(path) in PLACES:
            found[posixpath.basename(path)] = {"packages": [name.partition(":")[0] for name in owners.split(", ")]}
    return found


def goes(world: World, unit: str) -> bool:
    """Return whether the plan removes the package that owns a unit's file."""
    if "packages" not in TABLES:  # no node of this run manages packages
        return False
    owners = (world.entry("unit_packages", file_of(unit)) or {}).get("packages", ())
    return any((world.entry("asked", name) or {}).get("gone") for name in owners)


def listening(world: World, state: Entry) -> list[str]:
    """Return the running sockets that start a service when a client connects."""
    return [name for name in state.get("sockets", ()) if (find(world, name) or {}).get("active") in UP]


def served(world: World, state: Entry) -> list[str]:
    """Return the running services of a socket. systemd starts the socket only after they are stopped."""
    if not state["name"].endswith(".socket"):
        return []
    # Of a stopped socket, systemd reports only the name.
    services = state.get("starts") or [state["name"][: -len("socket")] + "service"]
    return [name for name in services if (find(world, name) or {}).get("active") in UP]


def file_goes(unit: str, going: Iterable[Node]) -> bool:
    """Return whether one of these removed nodes managed the unit's file or one of its drop-ins."""
    return any(_of_unit(unit, node.attrs.get("path")) for node in going)


def _of_unit(unit: str, path: Any) -> bool:
    files = {posixpath.join(place, file_of(unit)) for place in PLACES}
    return isinstance(path, str) and (path in files or path.startswith(tuple(one + ".d/" for one in files)))


def file_changes(unit: str, node: Node, nodes: Mapping[str, Node], actions: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a required node changes the unit's file or one of its drop-ins."""
    changing = (name for name in required(node, nodes) if _of_unit(unit, nodes[name].attrs.get("path")))
    return any(layer.get(name) for name in changing for layer in actions)


def require_file(unit: str, node: Node, nodes: Mapping[str, Node]) -> None:
    """Check that the node requires the node that creates the unit's file. Otherwise their order would be accidental.

    :raises CheckError: if it does not
    """
    for place in PLACES:
        name = "file:" + posixpath.join(place, file_of(unit))
        if name in nodes and not nodes[name].attrs.get("absent") and name not in required(node, nodes):
            raise CheckError("%s makes the unit %s: add it to requires, or to restart_on" % (name, unit))


def _change(machine: Machine, verb: str, unit: str, **fields: Any) -> Result:
    return machine.run(["systemctl", verb, "--", unit], {"units": {unit: fields}}, timeout=TIMEOUT)


def _up(machine: Machine, verb: str, unit: str) -> Result:
    """Start a unit; if that fails, add what systemd knows about it to the error."""
    result = _change(machine, verb, unit, active="active")
    if result["status"] == "error":
        result = error("%s\n%s" % (result["reason"], unit_health.account(machine, unit)), result.get("log"))
    return result


@op(turn="systemd")
def daemon_reload(machine: Machine, unit: str) -> Result:
    """Make systemd read the unit files again."""
    return machine.run(["systemctl", "daemon-reload"], {"units": {unit: {"reload": None}}}, timeout=TIMEOUT)


@op
def enable(machine: Machine, unit: str) -> Result:
    """Make the unit start at boot."""
    return _change(machine, "enable", unit, enabled="enabled")


@op
def disable(machine: Machine, unit: str) -> Result:
    """Prevent the unit from starting at boot."""
    return _change(machine, "disable", unit, enabled="disabled")


@op
def mask(machine: Machine, unit: str) -> Result:
    """Prevent every start of the unit."""
    return _change(machine, "mask", unit, enabled="masked", alias=None)


@op
def unmask(machine: Machine, unit: str, enabled: str = "disabled") -> Result:
    """Allow starts of the unit again.

    :param enabled: the unit file state under the mask, for the plan
    """
    return _change(machine, "unmask", unit, enabled=enabled)


@op(name="unmask")
def unmask_alias(machine: Machine, unit: str, target: str) -> Result:
    """Unmask a name that is an alias of the unit `target`."""
    effect = {"units": {unit: {"alias": target, "enabled": None, "active": None}}}
    return machine.run(["systemctl", "unmask", "--", unit], effect, timeout=TIMEOUT)


@op(name="unmask")
def unmask_nothing(machine: Machine, unit: str) -> Result:
    """Unmask a name that has no unit."""
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
    """Restart the unit; start it if it is stopped."""
    return _up(machine, "restart", unit)


@op
def reload(machine: Machine, unit: str) -> Result:
    """Reload the configuration of the unit; restart a unit that cannot reload."""
    return _up(machine, "reload-or-restart", unit)


def known_names(world: World) -> list[str]:
    """Return the names of the existing units, or an empty list if they are unknown."""
    try:
        return list(world.table("units"))
    except Unknown:
        return []
