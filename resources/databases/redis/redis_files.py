"""The configuration file of Redis with the files that it includes: the last line of a setting counts at a start."""

from __future__ import annotations

import re
from collections.abc import Iterator

from statecfg.remote.graph.model import HostNode
from statecfg.remote.machine.world import World
from statecfg.resources.databases.redis import redis_settings
from statecfg.resources.shared import sources

DEEPEST = 16  # levels of included files that are read
ADDING = ("client-output-buffer-limit", "loadmodule", "rename-command", "save", "user")  # several lines add up


def effect(node: HostNode, world: World) -> str:
    """Return the later line that wins over the node's line when the server starts; "" if none does."""
    attrs, name = node.attrs, str(node.attrs["name"]).lower()
    if attrs.get("absent") or name in ADDING:
        return ""
    found = [(place, value) for place, keyword, value in _lines(world, attrs["path"], 0) if keyword == name]
    if not found:
        return ""
    place, value = found[-1]
    if sources.target(world, place.path) == sources.target(world, attrs["path"]):
        return ""
    if name in redis_settings.PASSWORDS:
        return f"the server starts with another {name}: line {place.number} of {place.path} comes later"
    if redis_settings.same(name, value, redis_settings.text(attrs["value"])):
        return ""
    return f"the server starts with {name} {value}: {place} comes later"


def _lines(world: World, path: str, depth: int) -> Iterator[tuple[sources.Place, str, str]]:
    for place in sources.places(world, path):
        found = re.match(r"\s*([A-Za-z-]+)\s+(.*?)\s*$", place.text)
        if not found:
            continue
        keyword, value = found[1].lower(), re.sub(r"^([\"'])(.*)\1$", r"\2", found[2])
        if keyword == "include" and depth < DEEPEST and value.startswith("/"):
            for included in sources.expanded(world, value):
                yield from _lines(world, included, depth + 1)
        else:
            yield place, keyword, value
