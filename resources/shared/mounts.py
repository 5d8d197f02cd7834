"""Mounts: what is mounted, the ops that mount and unmount, the line in fstab, and the undo."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import entries, paths, records, systemd

if TYPE_CHECKING:
    from statecfg.resources.shared import line_edits

    class MountMemory(line_edits.LineMemory):
        """The memory of a `mount`. `mounted` tells whether something was mounted there."""

        mounted: bool


FSTAB = "/etc/fstab"
TIMEOUT = 120.0


@facet("mount")
def mounted(host: World) -> dict[str, records.Fields]:
    """Load the mounts: directory → `source` and `fstype` of the topmost mount. Source: proc_pid_mountinfo(5)."""
    loaded: dict[str, records.Fields] = {}
    for line in host.read("/proc/self/mountinfo").decode("utf-8", "surrogateescape").splitlines():
        before, _, after = line.partition(" - ")
        fstype, source = after.split(" ")[:2]
        loaded[plain(before.split(" ")[4])] = {"source": plain(source), "fstype": fstype}
    return loaded


def plain(text: str) -> str:
    """Return a field with its octal escapes replaced, such as ``\\040`` for a blank."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def escaped(text: str) -> str:
    """Return a string as fstab(5) writes it in a field."""
    return re.sub(r"[\s\\#]", lambda found: f"\\{ord(found[0]):03o}", text)


@op(name="mount", mutex="mounts")
def mount(machine: Machine, path: str, source: str, fstype: str) -> Result:
    """Mount the file system as /etc/fstab says. What is in the directory afterwards is not known in advance."""
    effect = {"mount": {path: {"source": source, "fstype": fstype}}, "files": [path]}
    return machine.run(["mount", "--", path], effect, timeout=TIMEOUT)


@op(mutex="mounts")
def remount(machine: Machine, path: str) -> Result:
    """Give a mounted file system the options of /etc/fstab."""
    return machine.run(["mount", "--options", "remount", "--", path], {}, timeout=TIMEOUT)


@op(mutex="mounts")
def unmount(machine: Machine, path: str) -> Result:
    """Unmount the file system."""
    return machine.run(["umount", "--", path], {"mount": {path: None}, "files": [path]}, timeout=TIMEOUT)


@op(name="daemon_reload", mutex="systemd")
def read_fstab(machine: Machine) -> Result:
    """Make systemd read /etc/fstab again, because it would otherwise keep the former mount units."""
    return machine.run(["systemctl", "daemon-reload"], {}, timeout=systemd.TIMEOUT)


def reading(world: World) -> list[Action]:
    """Return what makes systemd read a changed /etc/fstab, on a host with systemd."""
    return [read_fstab()] if world.apparent(systemd.RUNNING) is not None else []


def _entry(node: HostNode) -> HostNode:
    """Return the line of the directory in fstab."""
    attrs = node.attrs
    options = ",".join(attrs.get("mount_options") or ()) or "defaults"
    fields = [attrs.get("source") or "", attrs["path"], attrs.get("fstype") or "", options]
    line = " ".join([*map(escaped, fields), "0", str(attrs.get("check_order") or 0)])
    return entries.entry(node, FSTAB, line, rf"^\s*[^#\s]\S*\s+{re.escape(escaped(attrs['path']))}/?\s", mode="0644")


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the line in fstab and the mount with the wanted ones.

    :raises CheckError: if the directory does not exist, or a file system of another type is mounted there
    """
    attrs, path = node.attrs, node.attrs["path"]
    present = world.entry("mount", path)
    lines = entries.check(_entry(node), nodes, world)
    lines += reading(world) if lines else []
    if attrs.get("absent"):
        return [*([unmount(path)] if present is not None else []), *lines]
    if not attrs.get("mounted", True):
        return lines
    if present is None:
        paths.require_parent(world, path + "/x", node, nodes)
        return [*lines, mount(path, attrs["source"], attrs["fstype"])]
    if present["fstype"] != attrs["fstype"] and attrs["fstype"] != "auto":
        text = "%s (%s) is mounted on %s, not %s; unmount it first"
        raise CheckError(text % (present["source"], present["fstype"], path, attrs["fstype"]))
    return [*lines, *([remount(path)] if lines else [])]


def remember(node: HostNode, world: World) -> MountMemory:
    """Record the lines of the directory in fstab, and whether something is mounted there."""
    mounted = world.entry("mount", node.attrs["path"]) is not None
    return {**entries.remember(_entry(node), world), "mounted": mounted}


def undo(node: HostNode, memory: MountMemory, world: World) -> ActionSpec:
    """Unmount what the node mounted, or mount what it unmounted, and restore the line in fstab."""
    attrs, path = node.attrs, node.attrs["path"]
    spec = entries.undo(_entry(node), memory, world)
    if spec.actions:
        spec.actions += reading(world)
    present = world.entry("mount", path)
    if attrs.get("absent"):
        if memory["mounted"] and present is None and memory["lines"]:
            source, fstype = memory["lines"][-1]["text"].split()[0:3:2]
            spec.actions.append(mount(path, plain(source), fstype))
        elif memory["mounted"] and present is None:
            spec.left.append(f"{path} was mounted without a line in {FSTAB}: it stays unmounted")
    elif present is not None and not memory["mounted"] and attrs.get("mounted", True):
        spec.actions.insert(0, unmount(path))
    elif present is not None and spec.actions and memory["lines"]:
        spec.actions.append(remount(path))
    return spec
