"""The files of modprobe, and which line wins: of several commands for a module the first, of parameters the last."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator

from statecfg.remote.graph.model import HostNode
from statecfg.remote.machine.world import World
from statecfg.resources.shared import sources
from statecfg.resources.system import kernel_modules

# Source: modprobe.d(5).
DIRECTORIES = tuple(root + "/modprobe.d" for root in ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"))
_NOTHING = ("false", "true", "nologin", "null", ":")  # names of programs that load nothing


def effect(node: HostNode, world: World) -> str:
    """Return the line because of which a module is not loaded, blocked or set as defined; "" if none is."""
    attrs, name = node.attrs, kernel_modules.key(node.attrs["name"])
    if attrs.get("absent"):
        return ""
    if "modprobe lines" not in world.memo:
        world.memo["modprobe lines"] = list(_lines(world))
    lines = [(place, words) for place, words in world.memo["modprobe lines"] if _names(words[1], name)]
    own = kernel_modules.OPTIONS % attrs["name"]
    command = next(((place, words) for place, words in lines if words[0] == "install"), None)
    if command is not None and command[0].path != own:
        prevented = command[1][2].rpartition("/")[2] in _NOTHING if len(command[1]) > 2 else False
        if prevented != bool(attrs.get("blocked")):
            what = "does not load" if prevented else "can still load"
            return f"modprobe {what} {attrs['name']}: {command[0]}{' comes first' if attrs.get('blocked') else ''}"
    if attrs.get("blocked"):
        return ""
    avoided = next((place for place, words in lines if words[0] == "blacklist"), None)
    if avoided is not None and attrs.get("at_boot", True):
        return f"systemd does not load {attrs['name']} at boot: {avoided}"
    wanted = {kernel_modules.key(key): str(value) for key, value in (attrs.get("parameters") or {}).items()}
    for place, words in lines:
        for key, _, value in (word.partition("=") for word in words[2:] if words[0] == "options"):
            mine = wanted.get(kernel_modules.key(key), value)
            if mine != value and place.path.rpartition("/")[2] > own.rpartition("/")[2]:
                return f"{key} of {attrs['name']} is {value}: {place} is read later"
    return ""


def _lines(world: World) -> Iterator[tuple[sources.Place, list[str]]]:
    """Yield the lines with a command and a module, in the order in which modprobe reads them."""
    for path in sources.in_directories(world, DIRECTORIES):
        joined, first = "", None
        for place in sources.places(world, path):
            first = first or place
            joined += place.text
            if joined.endswith("\\"):
                joined = joined[:-1]
                continue
            words = joined.split()
            if len(words) > 1 and not words[0].startswith("#"):
                yield first, words
            joined, first = "", None


def _names(pattern: str, name: str) -> bool:
    """Return whether a line is for a module. The names in it may have `-` in place of `_`."""
    return fnmatch.fnmatchcase(name, kernel_modules.key(pattern))
