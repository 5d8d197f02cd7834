"""How a unit starts at boot: what the section Install of its file says, and why a unit can't be enabled or disabled."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping

from statecfg.remote.graph.model import Action, CheckError, HostNode, Unknown
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.services import systemd, unit_managers
from statecfg.resources.services.unit_states import ServiceState

ON = ("enabled", "enabled-runtime")
STARTERS = ("socket", "timer", "path")  # units of these kinds start the service of the same name
RULES = ("WantedBy", "RequiredBy", "UpheldBy", "Alias")


class Install:
    """The section Install of a unit's file and its drop-ins.

    :ivar rules: whether it defines what starts the unit at boot
    :ivar also: the units that are enabled and disabled together with this one
    """

    def __init__(self, world: World, unit: str) -> None:
        self.rules = False
        self.also: list[str] = []
        user, own = unit_managers.split(unit)
        prefix, _, instance = own.rpartition(".")[0].partition("@")
        for key, value in _settings(world, unit):
            if key in RULES:
                self.rules = bool(value) or self.rules
            elif key == "Also":
                names = value.replace("%p", prefix).replace("%i", instance).split()
                plain = (name for name in names if "@." not in name and "%" not in name)
                self.also += [unit_managers.joined(user, name) for name in plain]


def _files(world: World, unit: str) -> Iterator[str]:
    """Yield the unit's file and its drop-ins, like systemd: the first file of a name wins."""
    user, own = unit_managers.split(unit)
    names = dict.fromkeys((own, systemd.file_of(own)))
    places = [f"{directory}/{name}" for name in names for directory in unit_managers.directories(world, user)]
    yield from [path for path in places if _has_text(world, path)][:1]
    found: dict[str, str] = {}
    for place in places:
        for name in unit_managers.names(world, place + ".d"):
            if name.endswith(".conf"):
                found.setdefault(name, f"{place}.d/{name}")
    yield from (found[name] for name in sorted(found))


def _has_text(world: World, path: str) -> bool:
    """Return whether there is a file, and it is not a mask."""
    stat = unit_managers.look(world, path)
    return stat is not None and stat.target != "/dev/null"


def _settings(world: World, unit: str) -> Iterator[tuple[str, str]]:
    """Yield the settings of the section Install.

    :raises OSError: if a file can't be read
    :raises Unknown: if a required node may still change one
    """
    for path in _files(world, unit):
        section = ""
        for line in unit_managers.text(world, path).replace("\\\n", " ").splitlines():
            text = line.strip()
            if text.startswith("["):
                section = text
            elif section == "[Install]" and text[:1] not in ("", "#", ";"):
                key, _, value = text.partition("=")
                yield key.strip(), value.strip()


def read(world: World, unit: str) -> Install | None:
    """Return the section Install of a unit; None if its file is not there or not known."""
    try:
        if not any(True for _ in _files(world, unit)):
            return None
        return Install(world, unit)
    except (OSError, Unknown):
        return None


def also(world: World, state: ServiceState, wanted: bool) -> list[str]:
    """Return those units that are enabled or disabled together with a unit and are not yet as wanted."""
    found = read(world, state.name)
    return [name for name in found.also if _is_on(world, name) is not wanted] if found is not None else []


def _is_on(world: World, name: str) -> bool | None:
    """Return whether a unit starts at boot; None if it does not exist or this is not known."""
    try:
        state = systemd.find(world, name)
    except Unknown:
        return None
    return None if state is None else state.enabled in ON


def companions(world: World, state: ServiceState) -> dict[str, bool]:
    """Return the units that are enabled and disabled together with a unit, and whether each starts at boot."""
    found = read(world, state.name)
    pairs = {name: _is_on(world, name) for name in (found.also if found is not None else ())}
    return {name: on for name, on in pairs.items() if on is not None}


def require(world: World, state: ServiceState, wanted: bool) -> str | None:
    """Return whether a unit starts at boot, from the word of systemd and the unit's file.

    :param wanted: whether it must start at boot
    :returns: the state; `indirect` if only the units that its file names start at boot
    :raises CheckError: if the unit can't be enabled or disabled
    """
    boot = state.enabled
    if boot == "enabled-runtime" and not wanted and _generated_link(world, state.name):
        called = unit_managers.called(state.name)
        raise CheckError(f"a generator of systemd starts {called} at boot; masked: true prevents it")
    if boot in (None, *ON) or (boot in ("disabled", "linked", "linked-runtime") and not wanted):
        return boot
    found = read(world, state.name) if boot in ("disabled", "static", "indirect", "linked", "linked-runtime") else None
    if found is not None:
        boot = "disabled" if found.rules else "indirect" if found.also else "static"
    if boot in ("disabled", "indirect", "linked", "linked-runtime"):
        return boot
    raise CheckError(_refusal(state, str(boot), wanted))


def _refusal(state: ServiceState, boot: str, wanted: bool) -> str:
    name, verb = unit_managers.called(state.name), "enabled" if wanted else "disabled"
    help = "omit enabled" if wanted else "omit enabled; masked: true prevents its start"
    by = f" (such as {unit_managers.split(state.sockets[0])[1]})" if state.sockets else ""
    if boot == "static":
        return f"{name} can't be {verb}: its file has no section Install, and other units start it{by}; {help}"
    if boot == "generated":
        what = "the file from which a generator of systemd makes it decides whether it starts at boot"
        return f"{name} can't be {verb}: {what}, such as Install of a quadlet or noauto in /etc/fstab; {help}"
    if boot == "transient":
        return f"{name} can't be {verb}: a program has created it, and it does not survive a restart; {help}"
    why = "systemd can't read its file" if boot == "bad" else "it has no file"
    return f"{name} can't be {verb}: {why}; {help}"


def masked(world: World, name: str) -> Action:
    """Return the action that masks a unit.

    :raises CheckError: if its own file is where the mask would be
    """
    user, unit = unit_managers.split(name)
    path = posixpath.join(unit_managers.directories(world, user)[0], unit)
    stat = unit_managers.look(world, path)
    if stat is not None and stat.target != "/dev/null":
        text = "%s can't be masked, because its file is %s, where systemd would put the mask; %s"
        help = "use running: false and enabled: false, or remove the file"
        raise CheckError(text % (unit_managers.called(name), path, help))
    return systemd.mask(name)


def _generated_link(world: World, name: str) -> bool:
    """Return whether a generator has linked a unit to another one that starts it."""
    user, unit = unit_managers.split(name)
    for generator in unit_managers.GENERATORS:
        place = posixpath.join(unit_managers.runtime(world, user), generator)
        for folder in unit_managers.names(world, place):
            found = posixpath.join(place, folder, unit)
            if folder.endswith((".wants", ".requires")) and unit_managers.look(world, found) is not None:
                return True
    return False


def refuse_started(world: World, state: ServiceState, nodes: Mapping[str, HostNode]) -> None:
    """Check that no running unit would start this one again, such as its socket or timer.

    :raises CheckError: if one does and no node stops it
    """
    left = [name for name in systemd.listening(world, state) if not _wanted(name, nodes, False)]
    stem = state.name.rpartition(".")[0]
    left += [
        name for name in (f"{stem}.{kind}" for kind in STARTERS) if name not in left and _wanted(name, nodes, True)
    ]
    if left:
        names, name = ", ".join(map(unit_managers.called, left)), unit_managers.called(state.name)
        text = "%s %s: declare %s with running: false, too; masked: true prevents every start of %s"
        how = "started it again" if world.acted and state.up else f"runs and starts {name} again"
        raise CheckError(text % (names, how, names, name))


def _wanted(name: str, nodes: Mapping[str, HostNode], running: bool) -> bool:
    """Return whether a node wants a unit to run, or not to run."""
    services = (node for node in nodes.values() if node.type == "service")
    return any(systemd.full_name(node.attrs) == name and node.attrs.get("running") is running for node in services)


@op(name="enable")
def enable_also(machine: Machine, unit: str, also: list[str], indirect: bool) -> Result:
    """Make a unit and those start at boot that its file names in `Also`.

    :param indirect: whether only these start, and not the unit itself
    """
    return systemd.change(machine, "enable", unit, also, enabled="indirect" if indirect else "enabled")


@op(name="disable")
def disable_also(machine: Machine, unit: str, also: list[str], indirect: bool) -> Result:
    """Prevent a unit and those from starting at boot that its file names in `Also`.

    :param indirect: whether only these would start, and not the unit itself
    """
    return systemd.change(machine, "disable", unit, also, enabled="indirect" if indirect else "disabled")


@op(name="enable")
def enable_runtime(machine: Machine, unit: str, runtime: bool) -> Result:
    """Make the unit start until the next boot.

    :param runtime: for reports
    """
    return systemd.change(machine, "enable --runtime", unit, enabled="enabled-runtime")


@op(name="disable")
def disable_runtime(machine: Machine, unit: str, runtime: bool) -> Result:
    """Remove the links that start the unit until the next boot.

    :param runtime: for reports
    """
    return systemd.change(machine, "disable --runtime", unit, enabled="disabled")


@op(name="mask")
def mask_runtime(machine: Machine, unit: str, runtime: bool) -> Result:
    """Prevent every start of the unit until the next boot.

    :param runtime: for reports
    """
    return systemd.change(machine, "mask --runtime", unit, enabled="masked-runtime")


@op(name="unmask")
def unmask_runtime(machine: Machine, unit: str, runtime: bool) -> Result:
    """Allow starts of a unit that is masked until the next boot.

    :param runtime: for reports
    """
    return systemd.change(machine, "unmask --runtime", unit, enabled="disabled")
