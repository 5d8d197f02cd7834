"""The time zone: the link to its data, the file with its name, and the undo."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from statecfg.remote.graph.model import Action, ActionSpec, Blob, CheckError, HostNode
from statecfg.remote.machine.world import World
from statecfg.resources.files import links
from statecfg.resources.shared import files, paths, restore, snapshot, sources

if TYPE_CHECKING:

    class ZoneMemory(snapshot.Memory):
        """The memory of a `timezone`: the link /etc/localtime, and the file /etc/timezone."""

        link: snapshot.PathRecord | None
        name: snapshot.PathRecord | None


DATA = "/usr/share/zoneinfo"
LINK = "/etc/localtime"
NAME = "/etc/timezone"  # only Debian and systems made from it have this file
ENVIRONMENT = "/etc/environment"  # pam_env reads it in each session
DEBIAN = "/etc/debian_version"


def check(node: HostNode, world: World) -> list[Action]:
    """Compare the link and the file with the wanted zone.

    :raises CheckError: if the host has no data of the zone, or a directory is in the way
    """
    name = node.attrs["name"]
    data = posixpath.join(DATA, name)
    zone = paths.look(world, data)
    if (zone is None and world.is_known(data)) or (zone is not None and zone.file_type == "directory"):
        near = _nearest(world, name)
        raise CheckError(f"this host has no time zone {name}{near}; the package tzdata brings the zones")
    actions: list[Action] = []
    link = paths.look(world, LINK)
    if link is not None and link.file_type not in ("symlink", "file"):
        paths.refuse(LINK, link, "a link")
    if link is None or link.file_type != "symlink" or posixpath.normpath(posixpath.join("/etc", link.target)) != data:
        actions.append(links.link(LINK, data, None, None, (link is not None and link.file_type == "file") or None))
    file = paths.look(world, NAME)
    files.check_type(NAME, file, False)
    if file is not None or paths.look(world, DEBIAN) is not None:
        content = Blob.of(name + "\n")
        if file is None or paths.needs_write(world, NAME, file, content, (), None):
            actions.append(files.write(NAME, content, 0o644))
    return actions


def effect(node: HostNode, world: World) -> str:
    """Return the line that gives all sessions another zone; "" if there is none."""
    for place in sources.places(world, ENVIRONMENT):
        found = re.match(r"\s*(?:export\s+)?TZ\s*=\s*[\"']?:?([^\"'\s#]+)", place.text)
        if found and posixpath.relpath(found[1], DATA if found[1].startswith("/") else ".") != node.attrs["name"]:
            return f"sessions use the zone {found[1]}: {place} wins"
    return ""


def _nearest(world: World, name: str) -> str:
    """Return a suggestion: zones of the same area with a similar name."""
    area = posixpath.dirname(name)
    try:
        names = world.listdir(posixpath.join(DATA, area))
    except OSError:
        return ""
    return paths.nearest(name, [posixpath.join(area, entry) for entry in names])


def remember(node: HostNode, world: World) -> ZoneMemory:
    """Record the link and the file."""
    snap = snapshot.Snapshot(world)
    memory: ZoneMemory = {"link": snap.entry(LINK), "name": snap.entry(NAME)}
    return snap.with_lost(memory)


def undo(node: HostNode, memory: ZoneMemory, world: World) -> ActionSpec:
    """Restore the link and the file."""
    restoring = restore.Restore(world, memory)
    name = node.attrs["name"]
    target = world.apparent(LINK)
    shown = target.target if target is not None else ""
    ours = posixpath.normpath(posixpath.join("/etc", shown)) == posixpath.join(DATA, name)
    restoring.back(LINK, memory["link"], ("symlink",), {"target": shown if ours else posixpath.join(DATA, name)})
    restoring.back(NAME, memory["name"], ("file",), {"content": name + "\n", "mode": 0o644})
    return restoring.spec()
