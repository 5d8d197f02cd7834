"""Lines of /etc/hosts: which lines are for an address, and which line counts for a name."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping

from statecfg.remote.graph.model import HostNode
from statecfg.remote.machine.world import World
from statecfg.resources.shared import entries, sources

HOSTS = "/etc/hosts"
SWITCH = "/etc/nsswitch.conf"
READERS = ("files", "resolve")  # services of nsswitch.conf(5) that read the file


def canonical(address: str) -> str:
    """Return the usual notation of an IPv6 address; other texts as they are."""
    if ":" not in address:
        return address
    try:
        return socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, address))
    except OSError:  # it has a zone, such as fe80::1%eth0
        return address.lower()


def wanted(node: HostNode, world: World) -> HostNode:
    """Return the line of the node. It replaces a line for the address in any notation."""
    attrs = node.attrs
    line = f"{attrs['address']} {' '.join(attrs.get('names') or ())}"
    notations = {attrs["address"]}
    if ":" in attrs["address"]:
        address = canonical(attrs["address"])
        notations.update(words[0] for _, words in _lines(world, attrs["path"]) if canonical(words[0]) == address)
    pattern = "|".join(re.escape(notation) for notation in sorted(notations))
    return entries.entry(node, attrs["path"], line, rf"^\s*(?:{pattern})\s", mode="0644")


def _lines(world: World, path: str) -> list[tuple[sources.Place, list[str]]]:
    """Return the lines with an address, each with its words."""
    found = []
    for place in sources.places(world, sources.target(world, path)):
        words = place.text.partition("#")[0].split()
        if words:
            found.append((place, words))
    return found


def effect(node: HostNode, world: World, nodes: Mapping[str, HostNode]) -> str:
    """Return the line that wins for a name of the node; "" if none does.

    :param nodes: other nodes may give the name further addresses
    """
    attrs = node.attrs
    if attrs.get("absent") or sources.target(world, attrs["path"]) != sources.target(world, HOSTS):
        return ""
    for place in sources.places(world, SWITCH):
        database, _, services = place.text.partition("#")[0].partition(":")
        if database.strip() == "hosts" and not any(service in READERS for service in services.split()):
            return f"the host does not look names up in {HOSTS}: {place} names neither of {', '.join(READERS)}"
    mine = canonical(attrs["address"])
    shared = {canonical(str(other.attrs.get("address"))) for other in nodes.values() if other.type == node.type}
    if "host lines" not in world.memo:
        world.memo["host lines"] = _lines(world, HOSTS)
    for name in attrs["names"]:
        for place, words in world.memo["host lines"]:
            if name.lower() not in map(str.lower, words[1:]) or (":" in words[0]) != (":" in mine):
                continue
            if canonical(words[0]) == mine:
                break
            if canonical(words[0]) not in shared:
                return f"{name} is {words[0]} on this host: {place} comes first"
    return _resolved(world, attrs["names"][0], mine) if world.due else ""


def _resolved(world: World, name: str, address: str) -> str:
    """Ask the host for the addresses of a name; return what differs, "" if the address is one of them."""
    said = sources.answer(world, ["getent", "ahosts", name], [HOSTS, SWITCH], ".") if ":" not in address else None
    if said is None:
        return ""
    found = [line.split()[0] for line in said.splitlines() if line.strip()]
    return "" if address in map(canonical, found) else f"`getent ahosts {name}` answers {found[0]}, not {address}"
