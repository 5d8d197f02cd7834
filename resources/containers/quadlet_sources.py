"""The files from which podman makes the unit of a quadlet, in its order, and which of them wins for a setting."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from statecfg.remote.graph.model import HostNode
from statecfg.remote.machine.world import World
from statecfg.resources.services import unit_sources

# Source: podman-systemd.unit(5). The first directory that has a file hides files of that name in the others.
FOLDERS = ("/run/containers/systemd", "/etc/containers/systemd", "/usr/share/containers/systemd")
# Of several lines of these, podman uses the last one. Lines of other settings add up, or podman gives both to systemd.
SINGLE = frozenset((
    "AutoUpdate", "ContainerName", "Driver", "Entrypoint", "Exec", "Group", "HostName", "Image", "NetworkName", "Pod",
    "PodName", "Pull", "ReadOnly", "Rootfs", "ServiceName", "User", "VolumeName", "WorkingDir", "Yaml",
))  # fmt: skip


def effect(node: HostNode, world: World, nodes: Mapping[str, HostNode]) -> str:
    """Return the file that wins over a setting of the node's file; "" if none does.

    :param nodes: a drop-in that another node manages may change the node's quadlet
    """
    if node.attrs.get("absent") or node.attrs.get("user"):
        return ""
    path, name = node.attrs["path"], node.attrs["name"]
    above = next((folder for folder in FOLDERS if world.stat(posixpath.join(folder, name)) is not None), None)
    if above is not None and posixpath.join(above, name) != path:
        return f"podman does not read {path}: {posixpath.join(above, name)} hides it"
    files = unit_sources.read(world, name, FOLDERS)
    lines = [line for each in files for line in unit_sources.lines_of(world, each) if line.name in SINGLE]
    managed = {path, *(str(other.attrs.get("path")) for other in nodes.values())}
    for at, line in enumerate(lines):
        last = [later for later in lines[at:] if (later.section, later.name) == (line.section, line.name)][-1]
        if line.place.path == path and last.place.path not in managed and last.value != line.value:
            return f"podman uses {last.name}={last.value} for {name}: {last.place} comes later"
    return ""
