"""Swap space: which is in use, the ops that create, format, use and stop it, its line in fstab, and the undo."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from statecfg.remote.graph import undoing
from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, Stat, World
from statecfg.resources.shared import entries, paths, records
from statecfg.resources.storage import filesystems, mounts

if TYPE_CHECKING:
    from typing import TypedDict

    from statecfg.resources.shared import line_edits

    class SwapMemory(TypedDict):
        """The memory of a `swap`. `megabytes` is the size of its file in MiB; None for a device, or without a file."""

        path: str
        megabytes: int | None
        exists: bool
        used: records.Fields | None
        line: line_edits.LineMemory


IN_USE = "/proc/swaps"
UNITS = {"M": 1, "G": 1 << 10, "T": 1 << 20}
MIB = 1 << 20
LONG = 3600.0  # seconds to write a large file, or to move the content of swap space into memory


@facet("swap")
def swaps(host: World) -> dict[str, records.Fields]:
    """Load the swap space in use: path → `used`, and `priority` if it was set. Source: proc_swaps(5)."""
    found: dict[str, records.Fields] = {}
    rows = host.read(IN_USE).decode("utf-8", "surrogateescape").splitlines() if host.stat(IN_USE) is not None else []
    for row in rows[1:]:
        fields = row.split()
        # The kernel gives negative priorities itself.
        priority = {"priority": int(fields[4])} if int(fields[4]) >= 0 else {}
        found[mounts.plain(fields[0])] = {"used": True, **priority}
    return found


def megabytes(size: str) -> int:
    """Return a size in MiB."""
    return int(size[:-1]) * UNITS[size[-1]]


@op(mutex="swaps")
def make_file(machine: Machine, path: str, megabytes: int) -> Result:
    """Create the file. It is private from the start, because it will contain the memory of programs."""
    result = machine.write(path, b"", 0o600, "root", "root")
    if result["status"] != "ok":
        return result
    # The kernel accepts no file with holes, and fallocate(1) leaves some on XFS and other file systems.
    argv = ["dd", "if=/dev/zero", "of=" + path, "bs=1M", f"count={megabytes}", "conv=notrunc,fsync", "status=none"]
    return machine.run(argv, {"files": [path]}, timeout=LONG)


@op(mutex="swaps")
def make_swap(machine: Machine, path: str) -> Result:
    """Format a file or device as swap space."""
    return machine.run(["mkswap", "--", path], {"files": [path]})


@op(mutex="swaps")
def use(machine: Machine, path: str, priority: int | None = None) -> Result:
    """Start to use swap space."""
    fields = {"used": True, "priority": priority}
    option = ["--priority", str(priority)] if priority is not None else []
    return machine.run(["swapon", *option, "--", path], {"swap": {path: fields}})


@op(mutex="swaps")
def stop(machine: Machine, path: str) -> Result:
    """Stop to use swap space. Its content moves into memory."""
    return machine.run(["swapoff", "--", path], {"swap": {path: None}}, timeout=LONG)


def _line(node: HostNode) -> HostNode:
    """Return the line of the swap space in fstab."""
    path, priority = mounts.escaped(node.attrs["path"]), node.attrs.get("priority")
    options = "sw" if priority is None else f"sw,pri={priority}"
    line = f"{path} none swap {options} 0 0"
    return entries.entry(node, mounts.FSTAB, line, rf"^\s*{re.escape(path)}\s+\S+\s+swap\s", mode="0644")


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the file, the line in fstab and the swap space in use with what is wanted.

    :raises CheckError: if the file or device contains something else, or others can exchange it
    """
    attrs = node.attrs
    path = paths.followed(world, attrs["path"])
    stat, used = world.stat(path), world.entry("swap", path)
    lines = entries.check(_line(node), nodes, world)
    lines += mounts.reading(world) if lines else []
    stopped = [stop(path)] if used is not None else []
    if attrs.get("absent"):
        if stat is None or stat.file_type != "file":  # a device stays, regardless of its content
            return [*stopped, *lines]
        _require_swap(world, path, stat, used)
        return [*stopped, *lines, paths.remove(path)]
    filesystems.require_place(world, path, stat, "mkswap")
    swap = stat is not None and _require_swap(world, path, stat, used)
    if _wants_file(attrs, path, stat):
        paths.require_parent(world, path, node, nodes)
        made = [make_file(path, megabytes(attrs["size"])), make_swap(path)]
        # First the kernel: a swap space that it refuses does not get into fstab.
        return [*stopped, *made, use(path, attrs.get("priority")), *lines]
    if used is None:
        formatted = [] if swap else [make_swap(path)]
        return [*formatted, use(path, attrs.get("priority")), *lines]
    if attrs.get("priority") is not None and used.get("priority") != attrs["priority"]:
        return [stop(path), use(path, attrs["priority"]), *lines]
    return lines


def _wants_file(attrs: records.Attrs, path: str, stat: Stat | None) -> bool:
    """Return whether a new file is needed.

    :raises CheckError: if there is something else at the path, or nothing and no size
    """
    size = attrs.get("size")
    if stat is None:
        if size is None:
            raise CheckError(f"{path} does not exist; with size, statecfg creates a file")
        return True
    if size is not None and stat.file_type != "file":
        paths.refuse(path, stat, "a file", "remove size for a device")
    return size is not None and stat.size != megabytes(size) * MIB


def _require_swap(world: World, path: str, stat: Stat, used: records.Fields | None) -> bool:
    """Return whether a file or device contains swap space; False if it is empty.

    :param used: the entry of the swap space, if it is in use
    :raises CheckError: if it is something else, or contains something else
    """
    if used is not None:
        return True
    if stat.file_type not in ("file", "other"):
        paths.refuse(path, stat, "a file or device")
    found, called = filesystems.content(world, path)
    if found not in ("", "swap"):
        raise CheckError(f"{path} contains {called} and not swap space; statecfg does not replace it")
    return found == "swap"


def remember(node: HostNode, world: World) -> SwapMemory:
    """Record the size of the file, the line in fstab, and whether the swap space is in use."""
    path = paths.followed(world, node.attrs["path"])
    stat = world.stat(path)
    return {
        "path": path,
        "megabytes": stat.size // MIB if stat is not None and stat.file_type == "file" else None,
        "exists": stat is not None,
        "used": world.entry("swap", path),
        "line": entries.remember(_line(node), world),
    }


def undo(node: HostNode, memory: SwapMemory, world: World) -> ActionSpec:
    """Restore the line in fstab, and whether the file exists and is in use."""
    path, was = memory["path"], memory["used"]
    stat, used = world.stat(path), world.entry("swap", path)
    spec = entries.undo(_line(node), memory["line"], world)
    if spec.actions:
        spec.actions += mounts.reading(world)
    if not node.attrs.get("absent"):
        if memory["megabytes"] and stat is not None and stat.size // MIB != memory["megabytes"]:
            made = megabytes(node.attrs["size"]) * MIB if node.attrs.get("size") else None
            if used is not None and stat.size != made:  # a file of an interrupted run is not in use
                spec.left.append(undoing.stays(f"the size of {path}", f"{stat.size // MIB} MiB"))
                return spec
            spec.actions += [*([stop(path)] if used is not None else []), *_again(path, memory)]
            return spec
        if used is not None and was is None:
            spec.actions.append(stop(path))
        elif used is not None and was is not None and used.get("priority") != was.get("priority"):
            if used.get("priority") != node.attrs.get("priority"):
                spec.left.append(undoing.stays(f"the priority of {path}", used.get("priority")))
                return spec
            spec.actions += [stop(path), use(path, was.get("priority"))]
        if stat is not None and stat.file_type == "file" and not memory["exists"]:
            spec.actions.append(paths.remove(path))
    elif memory["megabytes"] and stat is None:
        spec.actions += _again(path, memory)
    elif was is not None and used is None and stat is not None:
        spec.actions.append(use(path, was.get("priority")))
    return spec


def _again(path: str, memory: SwapMemory) -> list[Action]:
    """Return what creates a former swap file again. Its former content no longer has a meaning."""
    was = memory["used"]
    used = [use(path, was.get("priority"))] if was is not None else []
    return [make_file(path, memory["megabytes"] or 0), make_swap(path), *used]
