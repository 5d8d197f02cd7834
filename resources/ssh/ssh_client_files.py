"""The configuration of SSH clients as ssh reads it: of each setting, the first line that is for the server counts."""

from __future__ import annotations

import posixpath
import re

from statecfg.remote.graph.model import HostNode
from statecfg.remote.machine.world import World
from statecfg.resources.shared import sources
from statecfg.resources.ssh import ssh_files

MAIN = "/etc/ssh/ssh_config"
# Several lines of these add up. Source: ssh_config(5).
ADDING = frozenset((
    "certificatefile", "dynamicforward", "identityfile", "localforward", "permitremoteopen", "remoteforward", "sendenv",
    "setenv",
))  # fmt: skip


def effect(node: HostNode, world: World) -> str:
    """Return the line that wins over a line of the node's file; "" if none does. Files of users don't count."""
    path = node.attrs["path"]
    if node.attrs.get("absent") or world.stat(MAIN) is None:
        return ""
    if "ssh lines" not in world.memo:
        world.memo["ssh lines"] = list(ssh_files.lines_of(world, MAIN, _block))
    lines: list[ssh_files.Directive] = world.memo["ssh lines"]
    mine = [line for line in lines if line.place.path == path]
    include = next((line for line in lines if line.keyword == "include" and _names(world, line, path)), None)
    if include is None:
        empty = not any(re.match(r"\s*[^#\s]", place.text) for place in sources.places(world, path))
        return "" if empty else f"ssh does not read {path}: no Include of {MAIN} names it"
    if include.blocks and not include.always:
        return f"ssh reads {path} only for some servers: {include.place} is in the block {include.blocks[-1]}"
    for at, line in enumerate(lines):
        if line.place.path != path or line.keyword in ADDING or line.keyword in ("host", "match", "include"):
            continue
        first = next((other for other in lines[:at] if other.keyword == line.keyword and _covers(other, line)), line)
        if first.place.path != path and first.value != line.value:
            return f"ssh uses {first.keyword} {first.text}: {first.place} comes first"
    return _asked(world, mine) if world.due else ""


def _names(world: World, include: ssh_files.Directive, path: str) -> bool:
    """Return whether an Include names a file."""
    patterns = [posixpath.join(ssh_files.DIRECTORY, each.strip('"')) for each in include.text.split()]
    return any(path in sources.expanded(world, pattern) for pattern in patterns)


def _block(keyword: str, text: str) -> str:
    """Return the criteria of the block that a line begins; "" if it begins none."""
    if keyword == "host":
        return "all" if text.split() == ["*"] else f"Host {text}"
    if keyword == "match":
        return "all" if text.lower() == "all" else f"Match {text}"
    return ""


def _covers(other: ssh_files.Directive, mine: ssh_files.Directive) -> bool:
    """Return whether a line is for all servers that another line is for."""
    return {*other.blocks} - {"all"} <= {*mine.blocks}


def _asked(world: World, mine: list[ssh_files.Directive]) -> str:
    """Ask ssh which settings it uses for a server. Options win: if they change its answer, it did not use the lines."""
    lines = [line for line in mine if not line.blocks or line.always]
    lines = [line for line in lines if line.keyword not in ADDING and line.keyword not in ("host", "match", "include")]
    text = "\n".join(line.text for line in world.memo["ssh lines"])
    if not lines or re.search(r"(?i)\bexec\b|%", text):  # ssh -G would run the programs of Match
        return ""
    argv = ["ssh", "-G", "-F", MAIN]
    options = [part for line in lines for part in ("-o", f"{line.keyword} {line.text}")]
    plain = sources.answer(world, [*argv, "server.invalid"], [ssh_files.DIRECTORY], "hostname ")
    wanted = sources.answer(world, [*argv, *options, "server.invalid"], [ssh_files.DIRECTORY], "hostname ")
    if plain is None or wanted is None:
        return ""
    present, names = set(plain.splitlines()), {line.keyword for line in lines}
    for answer in wanted.splitlines():
        name = answer.partition(" ")[0]
        if answer not in present and name in names:
            used = next((line for line in plain.splitlines() if line.partition(" ")[0] == name), "nothing")
            return f"ssh does not use {name} of {mine[0].place.path}: `ssh -G` answers {used}"
    return ""
