"""Files with settings of the kernel: in which order they are read at boot, and which one wins."""

from __future__ import annotations

from collections.abc import Iterable

from statecfg.remote.graph.model import HostNode
from statecfg.remote.machine.world import World
from statecfg.resources.shared import sources
from statecfg.resources.system import kernel_settings

# systemd-sysctl reads these; `sysctl --system` without systemd prefers /run, and reads MAIN last.
DIRECTORIES = ("/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d")
MAIN = "/etc/sysctl.conf"
SYSTEMD = ("/usr/lib/systemd/systemd-sysctl", "/lib/systemd/systemd-sysctl")


def effect(node: HostNode, world: World) -> str:
    """Return the line that wins over the node's line at boot; "" if none does."""
    attrs = node.attrs
    if attrs.get("absent"):
        return ""
    if "sysctl files" not in world.memo:
        world.memo["sysctl files"] = _settings(world)
    read, settings = world.memo["sysctl files"]
    mine = sources.target(world, attrs["path"])
    if mine not in read.values():
        return f"nothing reads {attrs['path']} at boot: {_unread(attrs['path'], read)}"
    winner = settings.get(_name(attrs["name"]))
    if winner is None:
        return ""
    value = kernel_settings.text(winner.text.partition("=")[2])
    if value == kernel_settings.text(attrs["value"]):
        return ""
    last = "last" if sources.target(world, winner.path) == mine else f"after {attrs['path']}"
    return f"{attrs['name']} is {value} at boot: {winner} is read {last}"


def _unread(path: str, read: Iterable[str]) -> str:
    """Return the reason why a file is not read, and what to do."""
    name = path.rpartition("/")[2]
    for other in read:
        if other.endswith("/" + name) and path.startswith(DIRECTORIES):
            return f"{other} hides it"
    return "use a name that ends in .conf in /etc/sysctl.d"


def _settings(world: World) -> tuple[dict[str, str], dict[str, sources.Place]]:
    """Return the files that are read, each with the file to which it leads, and the last line for each setting."""
    systemd = any(world.stat(path) is not None for path in SYSTEMD)
    directories = DIRECTORIES if systemd else (DIRECTORIES[1], DIRECTORIES[0], *DIRECTORIES[2:])
    read = sources.in_directories(world, directories)
    if not systemd and world.stat(MAIN) is not None:
        read.append(MAIN)
    settings: dict[str, sources.Place] = {}
    for path in read:
        for place in sources.places(world, path):
            name, separator, _ = place.text.strip().partition("=")
            # A pattern never wins over a setting that is named.
            if separator and name[:1] not in ("#", ";") and not any(letter in name for letter in "*?["):
                settings[_name(name.lstrip("-").strip())] = place
    return {path: sources.target(world, path) for path in read}, settings


def _name(text: str) -> str:
    """Return a name with dots. Source: sysctl.d(5): the first separator decides what the others mean."""
    first = next((letter for letter in text if letter in "./"), ".")
    return text.translate(kernel_settings.SWAPPED) if first == "/" else text
