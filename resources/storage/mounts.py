"""Mounts: what is mounted, the ops that mount and unmount, the line in fstab, and the undo."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode, Unknown
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.services import systemd
from statecfg.resources.shared import entries, paths, records, text_files
from statecfg.resources.storage import mount_options

if TYPE_CHECKING:
    from typing import NotRequired

    from statecfg.resources.shared import line_edits

    class MountMemory(line_edits.LineMemory):
        """The memory of a `mount`: whether something was mounted there, and with which options."""

        mounted: bool
        options: NotRequired[list[str]]


FSTAB = "/etc/fstab"
TIMEOUT = 120.0


@facet("mount")
def mounted(host: World) -> dict[str, records.Fields]:
    """Load the mounts: directory → `source`, `fstype` and `options` of the topmost mount.

    Source: proc_pid_mountinfo(5).
    """
    loaded: dict[str, records.Fields] = {}
    for line in host.read("/proc/self/mountinfo").decode("utf-8", "surrogateescape").rstrip("\n").split("\n"):
        before, _, after = line.partition(" - ")
        fields, (fstype, source, *more) = before.split(" "), after.split(" ")
        of_all = [option for text in more for option in plain(text).split(",") if option != "rw"]
        options = [*fields[5].split(","), *of_all]  # the first ones are those of the place
        loaded[plain(fields[4])] = {"source": plain(source), "fstype": fstype, "options": options}
    return loaded


def plain(text: str) -> str:
    """Return a field with its octal escapes replaced, such as ``\\040`` for a blank."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def escaped(text: str) -> str:
    """Return a string as fstab(5) writes it in a field."""
    return re.sub(r"[\s\\#]", lambda found: f"\\{ord(found[0]):03o}", text)


@op(name="mount", mutex="mounts")
def mount(machine: Machine, path: str, source: str, fstype: str, options: list[str] | None = None) -> Result:
    """Mount the file system. What is in the directory afterwards is not known in advance.

    :param options: the options; None for those in /etc/fstab
    """
    effect = {"mount": {path: {"source": source, "fstype": fstype}}, "files": [path]}
    argv = ["mount", "--", path]
    if options is not None:
        argv = ["mount", "--types", fstype, "--options", ",".join(options) or "defaults", "--", source, path]
    return machine.run(argv, effect, timeout=TIMEOUT)


@op(mutex="mounts")
def remount(machine: Machine, path: str, options: list[str] | None = None, flags: list[str] | None = None) -> Result:
    """Give a mounted file system the options of /etc/fstab.

    :param options: the options that it has then, for the plan
    :param flags: options to use in place of those in fstab, such as `bind` and the options of a second place
    """
    effect = {"mount": {path: {"options": options}}} if options else {}
    argv = ["mount", "--options", "remount", "--", path]
    if flags is not None:
        argv = ["mount", "--options", ",".join(["remount", *flags]), "--", "none", path]
    return machine.run(argv, effect, timeout=TIMEOUT)


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

    It mounts before it writes the line: a line that can't be mounted could keep the host from booting.

    :raises CheckError: if the directory does not exist, if something else is mounted there, or if fstab has two lines
        for it
    """
    attrs = node.attrs
    path = _place(world, attrs["path"])
    present = world.entry("mount", path)
    _require_one_line(_entry(node), world)
    lines = entries.check(_entry(node), nodes, world)
    lines += reading(world) if lines else []
    if attrs.get("absent"):
        return [*([unmount(path)] if present is not None else []), *lines]
    if not attrs.get("mounted", True):
        return lines
    options = attrs.get("mount_options") or []
    if present is None:
        found = world.apparent(path)
        if found is None or found.file_type != "file" or not mount_options.is_bind(options):
            paths.require_parent(world, path + "/x", node, nodes)
        return [mount(path, attrs["source"], attrs["fstype"], list(options)), *lines]
    _require_same(world, attrs, path, present)
    different = mount_options.differences(options, present["options"], present["fstype"]) if _shown(present) else []
    if not different and not lines:
        return []
    after = mount_options.changed(present["options"], different) if different else None
    flags = mount_options.place_flags(options)
    return [remount(path, after, list(options) or ["defaults"] if flags is None else flags), *lines]


def _place(world: World, path: str) -> str:
    """Return the path at which the kernel shows a mount: the links above it are followed."""
    canonical: Callable[[str], str] = getattr(world, "canonical", posixpath.normpath)
    try:
        return canonical(path)
    except OSError:
        return path


def _shown(present: records.Fields) -> bool:
    """Return whether the options of a mount are known: those of automatic and of planned mounts are not."""
    return present.get("options") is not None and present["fstype"] != "autofs"


def _require_one_line(wanted: HostNode, world: World) -> None:
    """Check that fstab has at most one line for the directory.

    :raises CheckError: if it has more: systemd uses the first one, and `mount` another one
    """
    try:
        text = text_files.content(world, FSTAB) if world.apparent(FSTAB) is not None else ""
    except Unknown:
        return
    numbers = [str(at) for at, line in enumerate(text.splitlines(), 1) if re.search(wanted.attrs["match"], line)]
    if len(numbers) > 1 and not wanted.attrs["absent"]:
        text = "%s has the lines %s for %s, and systemd uses only the first; remove all but one"
        raise CheckError(text % (FSTAB, " and ".join(numbers), wanted.provides.partition(":")[2]))


def _require_same(world: World, attrs: records.Attrs, path: str, present: records.Fields) -> None:
    """Check that what is mounted is of the declared type, and comes from the declared source, as far as this is known.

    :raises CheckError: if it does not
    """
    options, source = attrs.get("mount_options") or (), attrs["source"]
    text = "%s (%s) is mounted on %s, not %s; unmount it first"
    if not mount_options.same_type(attrs["fstype"], present["fstype"], options):
        raise CheckError(text % (present["source"], present["fstype"], path, attrs["fstype"]))
    bind = mount_options.is_bind(options)
    if not _shown(present) or not source.startswith("/") or not (bind or present["source"].startswith("/dev/")):
        return
    try:
        names = (source, path) if bind else (source, present["source"])
        found = [world.apparent(paths.followed(world, name)) for name in names]
    except (Unknown, OSError):
        return
    if any(stat is None or stat.identity is None or (not bind and stat.file_type != "other") for stat in found):
        return
    if not bind and any("/dev/mapper/" in name or "/dm-" in name for name in names):  # one device, two files
        return
    if found[0].identity[:2] != found[1].identity[:2]:  # type: ignore[union-attr]  # none of them is None here
        raise CheckError(text % (present["source"], present["fstype"], path, source))


def remember(node: HostNode, world: World) -> MountMemory:
    """Record the lines of the directory in fstab, and whether something is mounted there."""
    present = world.entry("mount", _place(world, node.attrs["path"]))
    memory: Any = {**entries.remember(_entry(node), world), "mounted": present is not None}
    if present is not None and _shown(present):
        memory["options"] = present["options"]
    found: MountMemory = memory
    return found


def undo(node: HostNode, memory: MountMemory, world: World) -> ActionSpec:
    """Unmount what the node mounted, or mount what it unmounted, and restore the line in fstab."""
    attrs, path = node.attrs, _place(world, node.attrs["path"])
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
    elif present is not None and memory.get("options") and _shown(present):
        _restore_options(spec, attrs, path, present, memory["options"])
    elif present is not None and spec.actions and memory["lines"]:
        former = plain(memory["lines"][-1]["text"]).split()[3:4]
        spec.actions.append(remount(path, None, mount_options.place_flags("".join(former).split(","))))
    return spec


def _restore_options(
    spec: ActionSpec, attrs: records.Attrs, path: str, present: records.Fields, former: list[str]
) -> None:
    """Add what restores the former options of a mount, unless others have changed them since."""
    options, fstype, shown = attrs.get("mount_options") or (), present["fstype"], present["options"]
    different = mount_options.differences(former, shown, fstype)
    if not different:
        return
    if mount_options.differences(options, shown, fstype) or mount_options.added(shown, [*former, *options]):
        spec.left.append(f"{path} is now mounted with {','.join(shown)}: it stays")
        return
    flags = mount_options.settable(former, fstype)
    known = {*former, *options, *mount_options.FLAGS.values()}
    after = [*former, *(option for option in mount_options.changed(shown, different) if option not in known)]
    spec.actions.append(remount(path, after, ["bind", *flags] if mount_options.is_bind(options) else flags))
