"""Volume groups of LVM: their check, the ops that create, extend and remove them, the snapshot and the undo."""

from __future__ import annotations

from collections.abc import Iterable

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result, error
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import paths, records
from statecfg.resources.storage import filesystems, lvm

EXTENT = 4 << 20  # bytes; LVM's default


@op(mutex="lvm")
def create_group(machine: Machine, name: str, devices: list[str], extent: int | None = None) -> Result:
    """Create a volume group on empty devices. LVM refuses a device with other content."""
    option = ["--physicalextentsize", f"{extent}b"] if extent is not None else []
    effect = {
        "lvm_group": {name: {"extent": extent or EXTENT, "free": None}},
        "lvm_device": {device: {"group": name} for device in devices},
    }
    return machine.run(["vgcreate", *option, "--", name, *devices], effect, timeout=lvm.TIMEOUT)


@op(mutex="lvm")
def extend_group(machine: Machine, name: str, devices: list[str]) -> Result:
    """Add empty devices to a volume group."""
    effect = {"lvm_device": {device: {"group": name} for device in devices}, "lvm_group": {name: {"free": None}}}
    return machine.run(["vgextend", "--", name, *devices], effect, timeout=lvm.TIMEOUT)


@op(mutex="lvm")
def remove_group(machine: Machine, name: str, volumes: list[str], devices: list[str]) -> Result:
    """Remove a volume group, and the logical volumes in it if they are named. The devices stay physical volumes.

    If the group now contains other volumes than planned, fail and remove nothing.
    """
    option = ["--yes"] if volumes else []
    effect: records.Effect = {
        "lvm_group": {name: None},
        "lvm_volume": dict.fromkeys(volumes),
        "lvm_device": {device: {"group": ""} for device in devices},
    }

    def unplanned() -> Result | None:
        try:
            others = [each for each in _inside(lvm.volumes.load(machine), name) if each not in volumes]
        except CheckError as problem:
            return error(str(problem))
        text = "nothing was removed: the volume group %s also contains %s, which was not planned; plan again"
        return error(text % (name, ", ".join(others))) if others else None

    return machine.run(["vgremove", *option, "--", name], effect, timeout=lvm.TIMEOUT, first=unplanned)


@op(mutex="lvm")
def reduce_group(machine: Machine, name: str, devices: list[str]) -> Result:
    """Take unused devices out of a volume group. LVM refuses a device that contains a part of a volume."""
    effect = {"lvm_device": {device: {"group": ""} for device in devices}, "lvm_group": {name: {"free": None}}}
    return machine.run(["vgreduce", "--", name, *devices], effect, timeout=lvm.TIMEOUT)


@op(mutex="lvm")
def free_devices(machine: Machine, devices: list[str]) -> Result:
    """Remove LVM's label from devices that belong to no group."""
    effect = {"lvm_device": dict.fromkeys(devices), "files": devices}
    return machine.run(["pvremove", "--", *devices], effect, timeout=lvm.TIMEOUT)


def _inside(volumes: Iterable[str], name: str) -> list[str]:
    """Return the logical volumes in a group.

    :param volumes: those of all groups
    """
    return sorted(volume for volume in volumes if volume.startswith(name + "/"))


def _devices(world: World, name: str) -> list[str]:
    """Return the devices of a group."""
    return sorted(path for path, entry in world.facet("lvm_device").items() if entry["group"] == name)


def check(node: HostNode, world: World) -> list[Action]:
    """Compare the volume group with the wanted one. Devices that the node does not name stay in the group.

    :raises CheckError: if a device does not exist, belongs to another group or contains something, or the group to
        remove contains logical volumes
    """
    lvm.require_program(world)
    attrs, name = node.attrs, node.attrs["name"]
    present = world.entry("lvm_group", name)
    if attrs.get("absent"):
        return [_removal(attrs, world)] if present is not None else []
    missing = [
        path for path in (paths.followed(world, each) for each in attrs["devices"]) if _is_free(world, path, name)
    ]
    if present is None:
        if not missing:
            raise CheckError(f"LVM does not list the volume group {name}, but its devices belong to it")
        extent = attrs.get("extent_size")
        return [create_group(name, missing, lvm.bytes_of(extent) if extent is not None else None)]
    return [extend_group(name, missing)] if missing else []


def _removal(attrs: records.Attrs, world: World) -> Action:
    inside = _inside(world.facet("lvm_volume"), attrs["name"])
    used = [volume for volume in inside if (world.entry("lvm_volume", volume) or {}).get("open")]
    if used:
        raise CheckError(f"{used[0]} is in use; unmount it first")
    if inside and not attrs.get("remove_content"):
        text = "the volume group %s contains %s; remove_content: true removes the volumes with their data"
        raise CheckError(text % (attrs["name"], ", ".join(inside)))
    return remove_group(attrs["name"], inside, _devices(world, attrs["name"]))


def _is_free(world: World, path: str, name: str) -> bool:
    """Return whether a device is still to be added to a group.

    :raises CheckError: if it can't be
    """
    entry = world.entry("lvm_device", path)
    if entry is not None:
        if entry["group"] not in ("", name):
            raise CheckError(f"{path} belongs to the volume group {entry['group']}")
        return not entry["group"]
    stat = world.stat(path)
    if stat is None:
        raise CheckError(f"{path} does not exist; attach the device")
    if stat.file_type != "other":
        paths.refuse(path, stat, "a device")
    found, called = filesystems.content(world, path)
    if found:
        text = "%s contains %s, which a volume group would destroy; remove it with wipefs first"
        raise CheckError(text % (path, called))
    return True


def remember(node: HostNode, world: World) -> records.Fields:
    """Record whether the group exists, and which of the devices are physical volumes, with their groups."""
    lvm.require_program(world)
    devices = [paths.followed(world, path) for path in node.attrs.get("devices") or ()]
    entries = {path: world.entry("lvm_device", path) for path in devices}
    return {
        "exists": world.entry("lvm_group", node.attrs["name"]) is not None,
        "devices": {path: entry["group"] if entry is not None else None for path, entry in entries.items()},
    }


def undo(node: HostNode, memory: records.Fields, world: World) -> ActionSpec:
    """Remove the new group if it contains no volumes, or take the new devices out of it. Volumes always stay."""
    attrs, name = node.attrs, node.attrs["name"]
    if attrs.get("absent"):
        return ActionSpec(left=[f"the volume group {name} stays removed"] if memory["exists"] else [])
    if world.entry("lvm_group", name) is None:
        return ActionSpec(_labels(memory, world, ""))
    ours = [path for path, group in memory["devices"].items() if group != name and _group(world, path) == name]
    inside = _inside(world.facet("lvm_volume"), name)
    if memory["exists"]:
        if not ours:
            return ActionSpec()
        if inside:
            text = "%s stays in the volume group %s, because volumes may use it; pvmove and vgreduce remove it"
            return ActionSpec(left=[text % (path, name) for path in ours])
        return ActionSpec([reduce_group(name, ours), *_labels(memory, world, name)])
    if inside:
        return ActionSpec(left=[f"the volume group {name} stays, because it contains {', '.join(inside)}"])
    # A later definition may have added devices. Their former state is not known, so they stay physical volumes.
    added = [paths.followed(world, path) for path in attrs.get("devices") or ()]
    devices = _devices(world, name)
    foreign = [path for path in devices if path not in ours and path not in added]
    if foreign:
        return ActionSpec(left=[f"the volume group {name} stays, because others added {', '.join(foreign)}"])
    return ActionSpec([remove_group(name, [], devices), *_labels(memory, world, name)])


def _group(world: World, path: str) -> str | None:
    entry = world.entry("lvm_device", path)
    return entry["group"] if entry is not None else None


def _labels(memory: records.Fields, world: World, name: str) -> list[Action]:
    """Return what removes LVM's label from the devices that had none before."""
    new = [path for path, group in memory["devices"].items() if group is None and _group(world, path) in (name, "")]
    return [free_devices(new)] if new else []
