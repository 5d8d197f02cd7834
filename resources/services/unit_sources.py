"""The files from which systemd reads a unit, in its order, and which of them wins for a setting."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from statecfg.remote.graph.model import HostNode
from statecfg.remote.machine.paths import UnsafePath
from statecfg.remote.machine.world import World
from statecfg.resources.services import systemd, unit_files, unit_health, unit_managers
from statecfg.resources.shared import sources

# Source: systemd.unit(5). The first directory that has a file hides files of that name in the others.
FOLDERS = (
    "/etc/systemd/system.control",
    "/run/systemd/system.control",
    "/run/systemd/transient",
    "/run/systemd/generator.early",
    "/etc/systemd/system",
    "/etc/systemd/system.attached",
    "/run/systemd/system",
    "/run/systemd/system.attached",
    "/run/systemd/generator",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/run/systemd/generator.late",
)
# Several lines of these add up, until an empty one removes the former ones. Of all others, the last line counts.
_ADDING = frozenset((
    "Documentation", "Wants", "Requires", "Requisite", "BindsTo", "PartOf", "Upholds", "Conflicts", "Before",
    "After", "OnFailure", "OnSuccess", "PropagatesReloadTo", "ReloadPropagatedFrom", "PropagatesStopTo",
    "StopPropagatedFrom", "JoinsNamespaceOf", "RequiresMountsFor", "WantsMountsFor", "SuccessExitStatus",
    "RestartPreventExitStatus", "RestartForceExitStatus", "Sockets", "OpenFile", "Environment", "EnvironmentFile",
    "PassEnvironment", "UnsetEnvironment", "SupplementaryGroups", "ReadWritePaths", "ReadOnlyPaths",
    "InaccessiblePaths", "ExecPaths", "NoExecPaths", "TemporaryFileSystem", "BindPaths", "BindReadOnlyPaths",
    "SystemCallFilter", "SystemCallArchitectures", "SystemCallLog", "RestrictAddressFamilies",
    "RestrictFileSystems", "RestrictNamespaces", "CapabilityBoundingSet", "AmbientCapabilities", "LoadCredential",
    "LoadCredentialEncrypted", "SetCredential", "SetCredentialEncrypted", "ImportCredential", "RuntimeDirectory",
    "StateDirectory", "CacheDirectory", "LogsDirectory", "ConfigurationDirectory", "LogExtraFields",
    "LogFilterPatterns", "MountImages", "ExtensionImages", "ExtensionDirectories", "RootImageOptions",
    "CPUAffinity", "NUMAMask", "AllowedCPUs", "DeviceAllow", "IPAddressAllow", "IPAddressDeny", "SocketBindAllow",
    "SocketBindDeny", "RestrictNetworkInterfaces", "BPFProgram", "IPIngressFilterPath", "IPEgressFilterPath",
    "NFTSet", "IODeviceWeight", "IOReadBandwidthMax", "IOWriteBandwidthMax", "IOReadIOPSMax", "IOWriteIOPSMax",
    "IODeviceLatencyTargetSec", "DisableControllers", "Delegate", "Symlinks", "OnActiveSec", "OnBootSec",
    "OnStartupSec", "OnUnitActiveSec", "OnUnitInactiveSec", "OnCalendar", "PathExists", "PathExistsGlob",
    "PathChanged", "PathModified", "DirectoryNotEmpty",
))  # fmt: skip
_ADDING_KINDS = ("Condition", "Assert", "Exec", "Listen", "BlockIO")
# LXC and Incus adapt each service to an unprivileged container with it: what it switches off is not possible there.
CONTAINER = "zzz-lxc-service.conf"
_SAME = {"yes": "1", "true": "1", "on": "1", "no": "0", "false": "0", "off": "0"}


_XDG = "/etc/xdg/systemd/user"
# The same for a user: in the home directory, below /run/user, or for all users.
_USER_FOLDERS = (
    "~/.config/systemd/user.control",
    "$/systemd/user.control",
    "$/systemd/transient",
    "$/systemd/generator.early",
    "~/.config/systemd/user",
    _XDG,
    "/etc/systemd/user",
    "$/systemd/user",
    "/run/systemd/user",
    "$/systemd/generator",
    "~/.local/share/systemd/user",
    "/usr/local/share/systemd/user",
    "/usr/share/systemd/user",
    "/usr/local/lib/systemd/user",
    "/usr/lib/systemd/user",
    "$/systemd/generator.late",
)


class UnitLine:
    """A setting of a file.

    :ivar value: its value, with the lines that continue it
    """

    def __init__(self, place: sources.Place, section: str, name: str, value: str) -> None:
        self.place, self.section, self.name, self.value = place, section, name, value


def effect(node: HostNode, world: World, nodes: Mapping[str, HostNode]) -> str:
    """Return the file that wins over a setting of the node's file; "" if none does.

    :param nodes: a drop-in that another node manages may change the node's unit
    """
    if node.attrs.get("absent"):
        return ""
    node = unit_files.placed(node, world)
    path, unit = node.attrs["path"], systemd.full_name(node.attrs)
    user = unit_managers.split(unit)[0]
    try:
        why = _overridden(node, world, nodes, folders(world, user))
    except UnsafePath:  # a link of the user is on the way, which root does not follow: only systemd knows
        why = ""
    asks = world.due and unit_managers.will_run(world, user)
    return why or (_unread(world, unit, path) if asks else "")


def folders(world: World, user: str) -> list[str]:
    """Return the directories from which the systemd of a user, or that of the host, reads units, in its order."""
    if not user:
        return list(FOLDERS)
    places = {"~": unit_managers.fields(world, user).get("home"), "$": unit_managers.runtime(world, user)}
    wanted = [folder for folder in _USER_FOLDERS if folder[0] == "/" or places[folder[0]]]
    if world.canonical(f"{_XDG}/x") == f"{unit_managers.SHARED[0]}/x":  # Debian has a link
        wanted.remove(_XDG)
    return [f"{places.get(folder[0]) or ''}{folder.lstrip('~$')}" for folder in wanted]


def _overridden(node: HostNode, world: World, nodes: Mapping[str, HostNode], within: Sequence[str]) -> str:
    attrs, path, name = node.attrs, node.attrs["path"], systemd.unit_name(node.attrs["name"])
    files = read(world, name, within)
    if path not in files:
        last = path[path.rindex("/" + name) :]
        winner = next((folder + last for folder in within if world.stat(folder + last) is not None), path)
        return f"systemd does not read {path}: {winner} hides it" if winner != path else ""
    lines = [line for each in files for line in lines_of(world, each)]
    managed = {str(other.attrs.get("path")) for other in nodes.values()} if not attrs.get("drop_in") else set()
    for at, line in enumerate(lines):
        winner_line = _winner(line, lines[at + 1 :]) if line.place.path == path else None
        if winner_line is not None and winner_line.place.path not in {path, *managed}:
            what = f"{winner_line.name}={winner_line.value}" if winner_line.value else f"no former {line.name}"
            called = unit_managers.called(systemd.full_name(attrs))
            return f"systemd uses {what} for {called}: {winner_line.place} comes later"
    return ""


def _unread(world: World, unit: str, path: str) -> str:
    """Ask systemd for the files of a unit; return the files that it reads if the file is not one of them."""
    text = unit_health.shown(world, unit, "LoadState,FragmentPath,DropInPaths")
    shown = dict(line.partition("=")[::2] for line in text.splitlines())
    if shown.get("LoadState") != "loaded" or "@." in unit_managers.split(unit)[1]:
        return ""  # it is masked, or a template
    found = [shown.get("FragmentPath", ""), *shown.get("DropInPaths", "").split()]
    same = {sources.target(world, each) for each in found if each}
    return "" if sources.target(world, path) in same else f"systemd reads {', '.join(filter(None, found))}, not {path}"


def read(world: World, unit: str, within: Sequence[str] = FOLDERS) -> list[str]:
    """Return the files of a unit in the order in which systemd reads them: its own file, and its drop-ins.

    :param unit: its name without a user
    :param within: the directories with units
    """
    main = [f"{folder}/{name}" for name in _names(unit) for folder in within]
    found = next((path for path in main if world.stat(path) is not None), "")
    own = [found] if found and sources.target(world, found) != "/dev/null" else []
    drop_ins = [f"{folder}/{name}.d" for folder in within for name in _drop_in_names(unit)]
    kinds = [f"{folder}/{unit.rpartition('.')[2]}.d" for folder in within]
    found_drop_ins = sources.in_directories(world, [*drop_ins, *kinds])
    return [*own, *(path for path in found_drop_ins if not path.endswith("/" + CONTAINER))]


def _names(unit: str) -> list[str]:
    """Return the name of a unit, and that of its template."""
    prefix, at, rest = unit.partition("@")
    return [unit, f"{prefix}@.{rest.rpartition('.')[2]}"] if at and not rest.startswith(".") else [unit]


def _drop_in_names(unit: str) -> Iterator[str]:
    """Yield the names whose drop-ins count for a unit, the strongest first, such as `a-b.service` and `a-.service`."""
    for name in _names(unit):
        yield name
        prefix, _, suffix = name.rpartition(".")
        parts = prefix.split("-")
        for count in range(len(parts) - 1, 0, -1):
            shorter = "-".join(parts[:count]) + "-"
            if shorter not in ("-", prefix):
                yield f"{shorter}.{suffix}"


def lines_of(world: World, path: str) -> Iterator[UnitLine]:
    section, first, joined = "", None, ""
    for place in sources.places(world, path):
        text = place.text.strip()
        if text[:1] in ("#", ";"):  # also between lines that continue each other
            continue
        first = first or place
        joined += text
        if joined.endswith("\\"):
            joined = joined[:-1].rstrip() + " "
            continue
        name, separator, value = joined.partition("=")
        if joined.startswith("[") and joined.endswith("]"):
            section = joined[1:-1]
        elif separator and section != "Install":
            yield UnitLine(first, section, name.strip(), value.strip())
        first, joined = None, ""


def _winner(mine: UnitLine, later: list[UnitLine]) -> UnitLine | None:
    """Return the later line because of which a line has no effect; None if it has one."""
    same = [line for line in later if (line.section, line.name) == (mine.section, mine.name)]
    if not same or not mine.value:
        return None
    if mine.name == "Environment":
        return _variable(mine, same)
    if mine.name in _ADDING or mine.name.startswith(_ADDING_KINDS):
        at = next((at for at, line in enumerate(same) if not line.value), None)
        again = at is not None and any(_plain(line.value) == _plain(mine.value) for line in same[at:])
        return None if at is None or again else same[at]
    return None if _plain(same[-1].value) == _plain(mine.value) else same[-1]


def _variable(mine: UnitLine, later: list[UnitLine]) -> UnitLine | None:
    """Return the later line that sets a variable of a line to something else, or that removes all variables."""
    found: dict[str, tuple[str, UnitLine]] = {}
    for line in later:
        if not line.value:
            found = dict.fromkeys(_variables(mine), ("", line))
        found.update({name: (value, line) for name, value in _variables(line).items()})
    lost = [found[name][1] for name, value in _variables(mine).items() if found.get(name, (value,))[0] != value]
    return lost[0] if lost else None


def _variables(line: UnitLine) -> dict[str, str]:
    try:
        words = shlex.split(line.value)
    except ValueError:
        return {}
    return {word.partition("=")[0]: word.partition("=")[2] for word in words}


def _plain(value: str) -> str:
    text = " ".join(value.split())
    return _SAME.get(text.lower(), text)
