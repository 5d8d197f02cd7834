"""Files with the limits of sessions: in which order pam_limits reads them, and which one wins."""

from __future__ import annotations

import re
from collections.abc import Iterator

from statecfg.remote.graph.model import HostNode
from statecfg.remote.machine.world import World
from statecfg.resources.shared import sources

MAIN = "/etc/security/limits.conf"
DIRECTORY = "/etc/security/limits.d"


def effect(node: HostNode, world: World) -> str:
    """Return the line that wins over one of the node's file; "" if none does.

    Of several lines for one domain, the last one counts. A `-` means both types. A range of numbers with a user in it
    has the rank of the user's name. Without a type, `-` frees a domain of all limits.
    """
    path = node.attrs["path"]
    if node.attrs.get("absent"):
        return ""
    if "limits" not in world.memo:
        world.memo["limits"] = list(_lines(world))
    lines = world.memo["limits"]
    for at, (place, domain, types, item, value) in enumerate(lines):
        if place.path != path:
            continue
        free = next((other for other in lines if other[1] == domain and not other[2]), None)
        if free is not None and free[0].path != path:
            return f"{domain} has no limits: {free[0]}"
        later = [
            other
            for other in lines[at + 1 :]
            if other[3] == item and types & other[2] and other[0].path != path and _same(world, other[1], domain)
        ]
        if later and later[-1][4] != value:
            return f"{item} of {domain} is {later[-1][4]}: {later[-1][0]} is read later"
    return ""


def _lines(world: World) -> Iterator[tuple[sources.Place, str, frozenset[str], str, str]]:
    """Yield the limits in the order in which pam_limits reads them: place, domain, types, item and value."""
    for path in [MAIN, *sources.in_directories(world, [DIRECTORY])]:
        for place in sources.places(world, path):
            words = place.text.partition("#")[0].split()
            if len(words) == 2 and words[1] == "-":
                yield place, words[0], frozenset(), "", ""
            if len(words) == 4:
                domain, limit_type, item, value = words
                types = frozenset(("soft", "hard") if limit_type == "-" else (limit_type,))
                yield place, domain, types, item, _value(value)


def _same(world: World, other: str, domain: str) -> bool:
    """Return whether two domains have the same rank for those whom the second one names."""
    if other == domain:
        return True
    found = re.match(r"(@?)(\d*):(\d*)\Z", other)
    if found is None or bool(found[1]) != domain.startswith("@") or domain[:1] in ("*", "%"):
        return False
    entry = world.entry("groups", domain[1:]) if found[1] else world.entry("users", domain)
    number = (entry or {}).get("gid" if found[1] else "uid")
    if not isinstance(number, int) or not (found[2] or found[3]):
        return False
    return number == int(found[2]) if not found[3] else int(found[2] or 0) <= number <= int(found[3])


def _value(text: str) -> str:
    """Return a value in a form in which it can be compared."""
    return "unlimited" if text in ("-1", "unlimited", "infinity") else text
