"""Quadlets: the unit that podman makes of a file, their check and the undo. The file is like that of a unit."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Any

from statecfg.remote.graph.model import Action, ActionSpec, Blob, CheckError, HostNode
from statecfg.remote.machine.world import World
from statecfg.resources.services import systemd, unit_files, unit_managers
from statecfg.resources.shared import paths

DIRECTORY = "/etc/containers/systemd"
HOME_DIRECTORY = ".config/containers/systemd"
GENERATOR = "systemd/%s-generators/podman-%s-generator"  # the program of podman that makes the units
# Suffix → the end of the unit's name. Source: podman-systemd.unit(5).
UNITS = {
    "container": "", "volume": "-volume", "network": "-network", "pod": "-pod", "image": "-image", "build": "-build",
    "kube": "",
}  # fmt: skip


def path_of(attrs: Mapping[str, Any]) -> str:
    """Return the path of a quadlet: in /etc, or in the usual home directory of a user."""
    user = attrs.get("user")
    place = unit_managers.usual_place(user, HOME_DIRECTORY) if user else DIRECTORY
    return posixpath.join(place, attrs["name"])


def unit_of(name: str, text: str = "") -> str:
    """Return the unit that podman makes of a quadlet. A template, such as `shop@.container`, makes a template.

    :param text: the content of the file, which can give the unit another name
    """
    stem, _, suffix = name.rpartition(".")
    section = ""
    named = None
    for line in text.splitlines():
        section = line.strip() if line.startswith("[") else section
        setting = re.match(r"ServiceName\s*=\s*(\S+)", line)
        named = setting[1] if setting and section == f"[{suffix.capitalize()}]" else named
    end = UNITS[suffix]
    return (named or (stem[:-1] + end + "@" if stem.endswith("@") else stem + end)) + ".service"


def _as_unit(node: HostNode, world: World, installed: bool = False) -> HostNode:
    """Return the node of the `systemd_unit` whose file is the quadlet.

    :param installed: the content is that of the file on the host
    """
    node, content = unit_files.placed(node, world), b""
    path = node.attrs.get("path") or ""  # the user of an absent node may not exist
    stat = paths.look(world, path) if path else None
    if not installed and not node.attrs.get("absent"):
        content = Blob.of(node.attrs["content"]).read()
    elif stat is not None and stat.file_type == "file":
        content = world.read(path)
    unit = unit_of(node.attrs["name"], content.decode("utf-8", "replace"))
    more = {"name": unit, "verify": False, "boot": "generated"}
    return HostNode(node.provides, node.type, node.requires, {**node.attrs, **more})


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the file. If it changes, or has no unit yet, systemd reads it again.

    :raises CheckError: if the host has no podman that knows quadlets, podman makes no unit, or the unit still runs
    """
    attrs, user = node.attrs, node.attrs.get("user") or ""
    kind = "user" if user else "system"
    generators = [posixpath.join(above, GENERATOR % (kind, kind)) for above in ("/usr/lib", "/lib", "/usr/local/lib")]
    if not attrs.get("absent") and all(world.apparent(path) is None and world.is_known(path) for path in generators):
        text = "this host has no podman that knows quadlets; require its package, in version 4.4 or later"
        raise CheckError(text)
    as_unit = _as_unit(node, world)
    unit, actions = systemd.full_name(as_unit.attrs), unit_files.check(as_unit, nodes, world)
    if actions or attrs.get("absent") or "@" in as_unit.attrs["name"] or not unit_managers.will_run(world, user):
        return actions
    if systemd.entry_of(world, unit) is not None:
        return actions
    if world.acted:
        text = "podman makes no unit %s of %s; `%s --dryrun` shows why"
        raise CheckError(text % (unit_managers.called(unit), attrs.get("path") or attrs["name"], generators[0]))
    return [unit_files.read_units(unit, {"active": "inactive", "enabled": "generated", "reload": None})]


def remember(node: HostNode, world: World) -> unit_files.UnitFileMemory:
    """Record the file, and whether its directory exists."""
    return unit_files.remember(_as_unit(node, world), world)


def undo(
    node: HostNode, memory: unit_files.UnitFileMemory, world: World, to_remove: Mapping[str, HostNode]
) -> ActionSpec:
    """Restore the former file or remove the node's file, and make systemd read the units."""
    return unit_files.undo(_as_unit(node, world, installed=True), memory, world, to_remove)
