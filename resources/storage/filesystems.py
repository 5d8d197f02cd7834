"""File systems: what a device contains, the op that creates a file system, and the messages of the undo."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import TYPE_CHECKING

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, Stat, World
from statecfg.resources.shared import paths, places, records

if TYPE_CHECKING:
    from typing import TypedDict

    class FilesystemMemory(TypedDict):
        """The memory of a `filesystem`: the device, with links followed, and what it contained ("": nothing)."""

        path: str
        fstype: str


TIMEOUT = 3600.0
BEGINNING = 65536  # bytes; all known signatures are among the first ones


@facet("filesystem")
def planned(host: World) -> dict[str, records.Fields]:
    """Return no file systems: only plans add theirs (path → `fstype`, `label`). See `content` for those of the host."""
    return {}


def content(world: World, path: str) -> tuple[str, str]:
    """Return the type of the content of an existing file or device, and what to call it; "" if it is empty.

    Of a device, only content that blkid(8) knows counts, because a wiped device still contains former data. A file is
    empty if it begins with zeros.

    :raises CheckError: if the path can't be read
    """
    made = world.entry("filesystem", path)
    if made is not None:
        return made["fstype"], made["fstype"]
    # Without a known content, blkid(8) prints nothing and ends with status 2, also if it can't read the device.
    probe = world.probe(["blkid", "--probe", "--output", "export", "--", path], inputs=("filesystem", [path]))
    message = probe.errors.decode("utf-8", "replace").strip()
    if probe.status not in (0, 2) or (probe.status and message):
        raise CheckError("blkid can't read %s: %s" % (path, message or "status %d" % probe.status))
    tags = dict(line.partition("=")[::2] for line in probe.text.splitlines())
    if "TYPE" in tags:
        return tags["TYPE"], tags["TYPE"]
    if "PTTYPE" in tags:
        return tags["PTTYPE"], f"a partition table ({tags['PTTYPE']})"
    stat = world.stat(path)
    begin = min(stat.size, BEGINNING) if stat is not None and stat.file_type == "file" else 0
    zeros = ["cmp", "--silent", f"--bytes={begin}", "--", path, "/dev/zero"]
    if begin and world.probe(zeros, inputs=("filesystem", [path])).status != 0:
        return "data", "data"
    if stat is not None and stat.file_type == "other":
        _require_readable(world, path)
    return "", ""


def _require_readable(world: World, path: str) -> None:
    """Check that the beginning and the end of a device can be read, where all known signatures are.

    :raises CheckError: if they can't
    """
    probe = world.probe(["blockdev", "--getsize64", path], inputs=("filesystem", [path]))
    try:
        size = int(probe.text) if probe.status == 0 else 0
    except ValueError:
        size = 0
    for skip in sorted({0, max(0, size - BEGINNING)}) if size else ():
        argv = [
            "cmp",
            "--silent",
            f"--ignore-initial={skip}:0",
            f"--bytes={BEGINNING}",
            "--",
            path,
            "/dev/zero",
        ]
        size = size if world.probe(argv, inputs=("filesystem", [path])).status in (0, 1) else 0
    if not size:
        raise CheckError(f"{path} can't be read, so statecfg can't tell whether it is empty; check the device")


@op(mutex="filesystems")
def make_filesystem(machine: Machine, path: str, fstype: str, label: str | None, options: list[str]) -> Result:
    """Create a file system."""
    named = [{"vfat": "-n"}.get(fstype, "-L"), label] if label is not None else []
    effect = {"filesystem": {path: {"fstype": fstype, "label": label}}, "files": [path]}
    return machine.run(["mkfs." + fstype, *options, *named, path], effect, timeout=TIMEOUT)


def require_place(world: World, path: str, stat: Stat | None, program: str) -> None:
    """Check that no other user can put a link to another file in the place of what a program overwrites.

    :raises CheckError: if one can
    """
    device = stat is not None and stat.file_type != "file"  # the group of a device may write it
    places.require_root(world, [posixpath.dirname(path) if device else path], program)


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the content of the device with the wanted file system.

    :raises CheckError: if there is no device, or it contains something else
    """
    attrs = node.attrs
    path = paths.followed(world, attrs["path"])
    stat = world.stat(path)
    if stat is None:
        raise CheckError(f"{path} does not exist; attach the device, or require the node that creates the file")
    if stat.file_type not in ("file", "other"):
        paths.refuse(path, stat, "a device or file")
    found, called = content(world, path)
    if found == attrs["fstype"]:
        return []
    require_place(world, path, stat, "mkfs")
    if found:
        text = "%s contains %s, which a new file system would destroy; remove it with wipefs first"
        raise CheckError(text % (path, called))
    return [make_filesystem(path, attrs["fstype"], attrs.get("label"), list(attrs.get("format_options") or ()))]


def remember(node: HostNode, world: World) -> FilesystemMemory:
    """Record the type of the content."""
    path = paths.followed(world, node.attrs["path"])
    return {"path": path, "fstype": content(world, path)[0] if world.stat(path) is not None else ""}


def undo(node: HostNode, memory: FilesystemMemory, world: World) -> ActionSpec:
    """Change nothing, and report that a new file system stays."""
    path = memory["path"]
    if memory["fstype"] or world.stat(path) is None:
        return ActionSpec()
    text = "the file system on %s stays, because it may contain data; wipefs removes it"
    return ActionSpec(left=[text % path])
