"""Quadlets: the unit that podman makes of a file, their check and the undo. The file is like that of a unit."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.machine.world import World
from statecfg.resources.shared import unit_files

DIRECTORY = "/etc/containers/systemd"
GENERATOR = "systemd/system-generators/podman-system-generator"  # the program of podman that makes the units
# Suffix → the end of the unit's name. Source: podman-systemd.unit(5).
UNITS = {
    "container": "", "volume": "-volume", "network": "-network", "pod": "-pod", "image": "-image", "build": "-build",
    "kube": "",
}  # fmt: skip


def path_of(name: str) -> str:
    """Return the path of a quadlet."""
    return posixpath.join(DIRECTORY, name)


def unit_of(name: str) -> str:
    """Return the unit that podman makes of a quadlet. A template, such as `shop@.container`, makes a template."""
    stem, _, suffix = name.rpartition(".")
    end = UNITS[suffix]
    return (stem[:-1] + end + "@" if stem.endswith("@") else stem + end) + ".service"


def _as_unit(node: HostNode) -> HostNode:
    """Return the node of the `systemd_unit` whose file is the quadlet."""
    more = {"name": unit_of(node.attrs["name"]), "verify": False, "boot": "generated"}
    return HostNode(node.provides, node.type, node.requires, {**node.attrs, **more})


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the file, and make systemd read it if it changes or there is no unit.

    :raises CheckError: if the host has no podman that knows quadlets, podman makes no unit, or the unit still runs
    """
    attrs, unit = node.attrs, unit_of(node.attrs["name"])
    generators = [posixpath.join(above, GENERATOR) for above in ("/usr/lib", "/lib", "/usr/local/lib")]
    if not attrs.get("absent") and all(world.apparent(path) is None and world.is_known(path) for path in generators):
        text = "this host has no podman that knows quadlets; require its package, in version 4.4 or later"
        raise CheckError(text)
    actions = unit_files.check(_as_unit(node), nodes, world)
    if actions or attrs.get("absent") or "@" in unit or world.entry("units", unit) is not None:
        return actions
    if world.acted:
        text = "podman makes no unit %s of %s; `%s --dryrun` shows why"
        raise CheckError(text % (unit, attrs["path"], generators[0]))
    return [unit_files.read_units(unit, {"active": "inactive", "enabled": "generated", "reload": None})]


def remember(node: HostNode, world: World) -> unit_files.UnitFileMemory:
    """Record the file, and whether its directory exists."""
    return unit_files.remember(_as_unit(node), world)


def undo(
    node: HostNode, memory: unit_files.UnitFileMemory, world: World, to_remove: Mapping[str, HostNode]
) -> ActionSpec:
    """Restore the former file or remove the node's file, and make systemd read the units."""
    return unit_files.undo(_as_unit(node), memory, world, to_remove)
