"""Logical volumes of LVM: their check, the ops that create, resize and remove them, the snapshot and the undo."""

from __future__ import annotations

import re

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import records
from statecfg.resources.storage import filesystems, lvm

# Of these, statecfg finds out the size: the program, and the lines with the number of blocks and their size.
SIZES = {
    **dict.fromkeys(
        ("ext2", "ext3", "ext4"), (["dumpe2fs", "-h"], r"^Block count:\s+(\d+)$", r"^Block size:\s+(\d+)$")
    ),
    "xfs": (["xfs_info"], r"^data\s.*\bblocks=(\d+)", r"^data\s.*\bbsize=(\d+)"),
}
UNUSED = 16 << 20  # bytes at the end of a volume that a file system may leave unused


def key(attrs: records.Attrs) -> str:
    """Return the key of a node's volume in the facet."""
    return f"{attrs['volume_group']}/{attrs['name']}"


def _effect(volume: str, fields: records.Fields | None) -> records.Effect:
    return {
        "lvm_volume": {volume: fields},
        "lvm_group": {volume.partition("/")[0]: {"free": None}},
        "files": ["/dev/" + volume],
    }


@op(mutex="lvm")
def create_volume(machine: Machine, group: str, name: str, size: str) -> Result:
    """Create a logical volume.

    :param size: a size in bytes with `b`, or a share such as `100%FREE`
    """
    option = ["--extents", size] if "%" in size else ["--size", size]
    fields = {"present": True, "size": None if "%" in size else int(size[:-1])}  # of a share, the size is not known
    # The space in the group is free. If a former volume left a signature there, LVM would ask before it wipes it.
    argv = ["lvcreate", "--yes", "--wipesignatures", "y", *option, "--name", name, "--", group]
    return machine.run(argv, _effect(f"{group}/{name}", fields), timeout=lvm.TIMEOUT)


@op(mutex="lvm")
def extend_volume(machine: Machine, volume: str, size: int, resize: bool) -> Result:
    """Extend a logical volume, and the file system in it.

    :param size: bytes
    """
    option = ["--resizefs"] if resize else []
    fields = {"size": size}
    return machine.run(
        ["lvextend", *option, "--size", f"{size}b", "--", volume], _effect(volume, fields), timeout=3600.0
    )


@op(mutex="lvm")
def extend_filesystem(machine: Machine, volume: str, size: int) -> Result:
    """Extend the file system in a logical volume to the size of the volume.

    :param size: bytes
    """
    argv = ["fsadm", "resize", "/dev/" + volume]
    return machine.run(argv, _effect(volume, {"filesystem": size}), timeout=3600.0)


@op(mutex="lvm")
def shrink_volume(machine: Machine, volume: str, size: int) -> Result:
    """Shrink the file system in a logical volume, and then the volume.

    :param size: bytes
    """
    argv = ["lvreduce", "--yes", "--resizefs", "--size", f"{size}b", "--", volume]
    return machine.run(argv, _effect(volume, {"size": size}), timeout=3600.0)


@op(mutex="lvm")
def remove_volume(machine: Machine, volume: str) -> Result:
    """Remove a logical volume with its data."""
    return machine.run(["lvremove", "--yes", "--", volume], _effect(volume, None), timeout=lvm.TIMEOUT)


def check(node: HostNode, world: World) -> list[Action]:
    """Compare the logical volume with the wanted one.

    :raises CheckError: if there is no such group or not enough room in it, or data would be lost without permission
    """
    lvm.require_program(world)
    attrs, volume = node.attrs, key(node.attrs)
    now = world.entry("lvm_volume", volume)
    if attrs.get("absent"):
        return [_removal(attrs, volume, now)] if now is not None else []
    group, size = lvm.require_group(world, attrs["volume_group"]), attrs["size"]
    if "%" in size:  # a share says how large a new volume is
        return [create_volume(attrs["volume_group"], attrs["name"], size)] if now is None else []
    wanted = _rounded(lvm.bytes_of(size), group["extent"])
    more = wanted - (now["size"] or 0) if now is not None else wanted
    if more > 0 and group["free"] is not None and more > group["free"]:
        text = "%s needs %d MiB more, and the volume group %s has %d MiB left; add a device to the group"
        raise CheckError(text % (volume, more >> 20, attrs["volume_group"], group["free"] >> 20))
    if now is None:
        return [create_volume(attrs["volume_group"], attrs["name"], f"{wanted}b")]
    resize = bool(attrs.get("resize_filesystem", True))
    if now["size"] is None:
        return []
    if not more:
        small = resize and now.get("filesystem") is None and _left_behind(world, volume, wanted)
        return [extend_filesystem(volume, wanted)] if small else []
    if more > 0:
        return [extend_volume(volume, wanted, resize)]
    if not attrs.get("shrink"):
        text = "%s has %d MiB, more than %s; shrink: true shrinks it, which can destroy data: make a backup first"
        raise CheckError(text % (volume, now["size"] >> 20, size))
    return [shrink_volume(volume, wanted)]


def _left_behind(world: World, volume: str, size: int) -> bool:
    """Return whether the file system in a volume is smaller than the volume, as after an extension that failed.

    :param size: the bytes of the volume
    :raises CheckError: if the volume or its file system can't be read
    """
    path = "/dev/" + volume
    if world.stat(path) is None:  # the volume is not active
        return False
    argv, blocks, block = SIZES.get(filesystems.content(world, path)[0], ([], "", ""))
    if not argv:
        return False
    probe = world.probe([*argv, path], inputs=("filesystem", [path]))
    found = [re.search(pattern, probe.text, re.M) for pattern in (blocks, block)]
    numbers = [int(match[1]) for match in found if match is not None]
    if probe.status or len(numbers) != 2:
        message = probe.errors.decode("utf-8", "replace").strip() or "no size"
        raise CheckError(f"{argv[0]} can't read the file system on {path}: {message}")
    return numbers[0] * numbers[1] + UNUSED < size


def _rounded(size: int, extent: int) -> int:
    """Return a size as LVM rounds it up: to whole extents."""
    return -(-size // extent) * extent


def _removal(attrs: records.Attrs, volume: str, now: records.Fields) -> Action:
    if now.get("open"):
        raise CheckError(f"{volume} is in use; unmount it first")
    if now.get("carries"):
        raise CheckError(f"LVM would also remove {', '.join(now['carries'])} with {volume}; remove them first")
    if not attrs.get("remove_content"):
        raise CheckError(f"{volume} may contain data; remove_content: true removes it with its data")
    return remove_volume(volume)


def remember(node: HostNode, world: World) -> records.Fields:
    """Record the size of the volume; None without one."""
    lvm.require_program(world)
    entry = world.entry("lvm_volume", key(node.attrs))
    return {"size": entry["size"] if entry is not None else None}


def undo(node: HostNode, memory: records.Fields, world: World) -> ActionSpec:
    """Remove a new volume only with permission, because it may contain data by then. The size of others stays."""
    attrs, volume, was = node.attrs, key(node.attrs), memory["size"]
    now = world.entry("lvm_volume", volume)
    if attrs.get("absent"):
        return ActionSpec(left=[f"{volume} stays removed: its data is gone"] if was is not None and now is None else [])
    if now is None:
        return ActionSpec()
    if was is not None:
        changed = now["size"] != was
        return ActionSpec(left=[f"{volume} keeps its new size: another one could destroy data"] if changed else [])
    if now.get("open"):
        return ActionSpec(left=[f"{volume} stays, because it is in use"])
    if now.get("carries"):
        return ActionSpec(left=[f"{volume} stays, because {', '.join(now['carries'])} need it"])
    if not attrs.get("remove_content"):
        return ActionSpec(left=[f"{volume} stays, because it may contain data; lvremove removes it"])
    return ActionSpec([remove_volume(volume)])
