"""systemd: which units exist, their state, and the ops that change it. Hosts without systemd: see `init_scripts`."""

from __future__ import annotations

import posixpath
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from statecfg.remote.graph.model import CheckError, HostNode, Unknown, required
from statecfg.remote.graph.nodetype import FACETS
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result, error
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.services import lingering, unit_health, unit_list, unit_managers
from statecfg.resources.services.unit_list import scripts as scripts
from statecfg.resources.services.unit_managers import DIRECTORIES as DIRECTORIES
from statecfg.resources.services.unit_managers import RUNNING as RUNNING
from statecfg.resources.services.unit_states import OPENRC as OPENRC
from statecfg.resources.services.unit_states import TIMEOUT as TIMEOUT
from statecfg.resources.services.unit_states import ServiceState as ServiceState
from statecfg.resources.shared import records

UP = unit_health.UP
SUFFIXES = ("service", "socket", "timer", "path", "target", "mount", "automount", "swap", "slice", "scope", "device")
RELOAD = "daemon-reload"


def full_name(attrs: records.Attrs) -> str:
    """Return the full name of the unit of a node, with its user."""
    user = unit_managers.ALL if attrs.get("all_users") else attrs.get("user")
    return unit_managers.joined(user, unit_name(attrs["name"]))


def unit_name(name: str) -> str:
    """Return the full name of a unit. Without a suffix, it is a service."""
    return name if name.rpartition(".")[2] in SUFFIXES else name + ".service"


def entry_of(world: World, name: str) -> records.Fields | None:
    """Return the entry of a unit in its facet.

    :raises Unknown: if a required node may still create the unit
    """
    user, unit = unit_managers.split(name)
    return world.entry(unit_list.facet_of(user), unit)


def find(world: World, name: str) -> ServiceState | None:
    """Return the state of a unit, or None if it does not exist.

    :param name: its name or an alias, with its user (see `unit_managers`)

    :raises Unknown: if a required node may still create the unit
    """
    user, unit = unit_managers.split(name)
    if scripts(world) and not user:
        service: ServiceState | None = scripts(world).find(world, name)
        return service
    facet = unit_list.facet_of(user)
    asked, entry = unit, world.entry(facet, unit)
    for _ in range(8):
        if entry is None or entry.get("alias") is None:
            break
        unit = entry["alias"]
        entry = world.entry(facet, unit)
    name = unit_managers.joined(user, unit)
    if entry is not None:
        own_file = posixpath.join(unit_managers.directories(world, user)[0], asked)
        alone = unit != asked and unit_managers.look(world, own_file) is None
        lists = {
            field: [unit_managers.joined(user, each) for each in entry.get(field) or ()]
            for field in ("starts", "sockets")
        }
        alias = unit_managers.joined(user, asked) if alone else entry.get("alias")
        return ServiceState(name, entry.get("active"), entry.get("enabled"), alias, bool(entry.get("reload")), **lists)
    if "@" in unit:
        template = world.entry(facet, file_of(unit))
        if template is not None:
            return ServiceState(name, "inactive", "static" if template.get("enabled") == "static" else "disabled")
    if unit_list.has_file(world, file_of(name)) or (not user and unit_list.has_script(world, name)):
        return ServiceState(name, "inactive", "disabled", reload=unit_managers.will_run(world, user))
    other = _with_alias(world, name)
    return find(world, other) if other else None


def _with_alias(world: World, alias: str) -> str:
    """Return the unit whose file gives it this alias, which does not exist while the unit is disabled; "" if none."""
    user, alias = unit_managers.split(alias)
    suffix = alias[alias.rfind(".") :]
    for directory in unit_managers.directories(world, user)[: None if user else -1]:  # /lib is a link to /usr/lib
        for name in unit_managers.names(world, directory):
            path = posixpath.join(directory, name)
            file = unit_managers.look(world, path) if name.endswith(suffix) else None
            if file is None or file.file_type != "file" or world.entry(unit_list.facet_of(user), name) is None:
                continue
            for line in unit_managers.text(world, path).splitlines():
                if line.startswith("Alias=") and alias in line[len("Alias=") :].split():
                    return unit_managers.joined(user, name)
    return ""


def file_of(name: str) -> str:
    """Return the name of a unit's file. For an instance, this is the file of its template."""
    user, unit = unit_managers.split(name)
    return unit_managers.joined(user, f"{unit.partition('@')[0]}@.{unit.rpartition('.')[2]}") if "@" in unit else name


def is_removed(world: World, unit: str) -> bool:
    """Return whether the plan removes the package that owns a unit's file."""
    if "packages" not in FACETS or "/" in unit:  # no node of this run manages packages, or it is a unit of a user
        return False
    owners = (world.entry("unit_packages", file_of(unit)) or {}).get("packages", ())
    return any((world.entry("asked", name) or {}).get("gone") for name in owners)


def listening(world: World, state: ServiceState) -> list[str]:
    """Return the running units that start this one, such as a socket when a client connects."""
    return [name for name in state.sockets if _up(world, name)]


def served(world: World, state: ServiceState) -> list[str]:
    """Return the running services of a socket. systemd starts the socket only after they are stopped."""
    if not state.name.endswith(".socket"):
        return []
    # Of a stopped socket, systemd reports only the name.
    services = state.starts or [state.name[: -len("socket")] + "service"]
    return [name for name in services if _up(world, name)]


def _up(world: World, name: str) -> bool:
    state = find(world, name)
    return state is not None and state.up


def file_is_removed(world: World, unit: str, removed: Iterable[HostNode]) -> bool:
    """Return whether one of these removed nodes managed the unit's file or one of its drop-ins."""
    return any(_of_unit(world, unit, node.attrs.get("path")) for node in removed)


def _of_unit(world: World, name: str, path: Any) -> bool:
    user, unit = unit_managers.split(name)
    files = {posixpath.join(directory, file_of(unit)) for directory in unit_managers.directories(world, user)}
    if not user:
        files.add("/etc/init.d/" + unit.rpartition(".")[0])
    return isinstance(path, str) and (path in files or path.startswith(tuple(one + ".d/" for one in files)))


def file_changes(
    world: World, unit: str, node: HostNode, nodes: Mapping[str, HostNode], actions: Sequence[Mapping[str, Any]]
) -> bool:
    """Return whether a required or removed node changes the unit's file or one of its drop-ins in this run."""
    user = unit_managers.split(unit)[0]
    if not unit_managers.will_run(world, user) if user else scripts(world):
        return False
    # Nodes of the type systemd_unit make systemd read their files themselves.
    others = (name for name in required(node, nodes) if nodes[name].type != "systemd_unit")
    own = (name for name in others if _of_unit(world, unit, nodes[name].attrs.get("path")))
    if any(layer.get(name) for name in own for layer in actions):
        return True
    try:
        removed = set(world.triggered_by).difference(node.triggers).intersection(world.removed)
    except Unknown:
        return False
    return file_is_removed(world, unit, (world.removed[name] for name in removed))


def require_file(world: World, name: str, node: HostNode, nodes: Mapping[str, HostNode]) -> None:
    """Check that the node requires the node that creates the unit's file. Otherwise their order would be accidental.

    :raises CheckError: if it does not
    """
    user, unit = unit_managers.split(name)
    file, shared = file_of(unit), [unit_managers.ALL] if user else []
    makers = ["file:" + posixpath.join(directory, file) for directory in unit_managers.directories(world, user)]
    makers += [] if user else ["file:/etc/init.d/" + file.rpartition(".")[0]]
    makers += ["systemd_unit:" + each for each in (file, file[: -len(".service")]) if unit_name(each) == file]
    for each in makers:
        maker = nodes.get(each)
        if maker is None or maker.attrs.get("absent") or maker.attrs.get("drop_in"):
            continue
        if maker.type == "systemd_unit" and unit_managers.split(full_name(maker.attrs))[0] not in (user, *shared):
            continue
        if each not in required(node, nodes):
            what = unit_managers.called(name)
            raise CheckError(f"{each} creates the unit {what}: add it to requires, or to restart_on")


def own_name(world: World, unit: str) -> str:
    """Return the name of a unit that may be an alias; the alias itself if the unit is not there yet."""
    try:
        state = find(world, unit)
    except Unknown:
        return unit
    return unit if state is None else state.name


def change(machine: Machine, verb: str, unit: str, also: Sequence[str] = (), **fields: Any) -> Result:
    """Run a command of systemctl.

    :param also: units that start at boot, or don't, together with this one
    :param fields: what differs after it, for the plan
    """
    if scripts(machine) and "/" not in unit:
        result: Result = scripts(machine).change(machine, verb, unit, fields)
        return result
    after = {"enabled": "enabled" if verb == "enable" else "disabled"}
    return tell(machine, verb, unit, {unit: fields, **dict.fromkeys(also, after)})


def tell(machine: Machine, verb: str, unit: str, after: Mapping[str, Any]) -> Result:
    """Run a command of systemctl about a unit.

    :param verb: with its options
    :param after: unit → the fields that differ after it, None for a unit that is gone then
    """
    user, name = unit_managers.split(unit)
    if user and verb.split()[0] not in unit_managers.OFFLINE and not unit_managers.runs(machine, user):
        # It starts at boot, or when the user logs in, but something has ended it.
        started = lingering.start(machine, user)
        if started["status"] != "ok":
            return started
    argv, options = unit_managers.call(machine, user, [*verb.split(), *([] if verb == RELOAD else ["--", name])])
    fields = {unit_managers.split(each)[1]: value for each, value in after.items()}
    return machine.run(argv, {unit_list.facet_of(user): fields} if fields else {}, timeout=TIMEOUT, **options)


def _start(machine: Machine, verb: str, unit: str) -> Result:
    """Start a unit; if that fails, add what systemd knows about it to the error."""
    began = time.monotonic()
    result = change(machine, verb, unit, active="active")
    if result["status"] == "error" and not (scripts(machine) and "/" not in unit):
        needs = unit_health.failed_needs(machine, unit) if "dependency job" in result["reason"] else []
        accounts = [unit_health.account(machine, name, began) for name in (unit, *needs)]
        result = error("\n".join([result["reason"], *accounts]), result.get("log"))
    return result


@op(mutex="systemd")
def daemon_reload(machine: Machine, unit: str) -> Result:
    """Make systemd read the unit files again."""
    return tell(machine, RELOAD, unit, {unit: {"reload": None}})


@op
def enable(machine: Machine, unit: str, alias: bool = False) -> Result:
    """Make the unit start at boot.

    :param alias: the name may be an alias of a unit that did not exist when this was planned
    """
    return change(machine, "enable", own_name(machine, unit) if alias else unit, enabled="enabled")


@op
def disable(machine: Machine, unit: str, alias: bool = False) -> Result:
    """Prevent the unit from starting at boot.

    :param alias: see `enable`
    """
    return change(machine, "disable", own_name(machine, unit) if alias else unit, enabled="disabled")


@op
def mask(machine: Machine, unit: str) -> Result:
    """Prevent every start of the unit."""
    return change(machine, "mask", unit, enabled="masked", alias=None)


@op
def unmask(machine: Machine, unit: str, enabled: str = "disabled") -> Result:
    """Allow starts of the unit again.

    :param enabled: the unit file state under the mask, for the plan
    """
    return change(machine, "unmask", unit, enabled=enabled)


@op(name="unmask")
def unmask_alias(machine: Machine, unit: str, target: str) -> Result:
    """Unmask a name that is an alias of the unit `target`."""
    after = {"alias": unit_managers.split(target)[1], "enabled": None, "active": None}
    return tell(machine, "unmask", unit, {unit: after})


@op(name="unmask")
def unmask_nothing(machine: Machine, unit: str) -> Result:
    """Unmask a name that has no unit."""
    return tell(machine, "unmask", unit, {unit: None})


@op
def start(machine: Machine, unit: str) -> Result:
    """Start the unit."""
    return _start(machine, "start", unit)


@op
def stop(machine: Machine, unit: str) -> Result:
    """Stop the unit."""
    return change(machine, "stop", unit, active="inactive")


@op
def restart(machine: Machine, unit: str) -> Result:
    """Restart the unit; start it if it is stopped."""
    return _start(machine, "restart", unit)


@op
def reload(machine: Machine, unit: str) -> Result:
    """Reload the configuration of the unit; restart a unit that cannot reload."""
    return _start(machine, "reload-or-restart", unit)


def known_names(world: World, user: str) -> list[str]:
    """Return the names of the existing units of a user, or of the host, or an empty list if they are unknown."""
    try:
        return list(world.facet(unit_list.facet_of(user)))
    except Unknown:
        return []
