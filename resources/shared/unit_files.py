"""Unit files of systemd and drop-ins: validate and install them, and make systemd read them."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import TYPE_CHECKING

from statecfg.remote.graph.model import Action, ActionSpec, Blob, CheckError, HostNode, Unknown
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result, error
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import drop_ins, files, paths, records, restore, systemd

if TYPE_CHECKING:

    class UnitFileMemory(files.FileMemory):
        """The memory of a `systemd_unit`. `made` tells whether the directory of the file was missing."""

        made: bool


# Lets systemd check a unit with the new file before the file is installed. systemd finds the copy first and all other
# units in their usual directories. A masked unit is checked as if it were not masked: it uses the file when it is
# unmasked. Before version 250, systemd-analyze did not report unknown settings as errors.
VERIFY = """\
set -e
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
mkdir -p "$directory/$(dirname "$2")"
cp "$1" "$directory/$2"
for place in /etc /run; do
    test "$(readlink "$place/systemd/system/$3")" = /dev/null || continue
    for vendor in /usr/local/lib /usr/lib /lib; do
        file=$vendor/systemd/system/$3
        test -e "$directory/$3" || ! test -e "$file" || cp "$file" "$directory/$3"
    done
done
strict=
if systemd-analyze --help | grep -q recursive-errors; then strict=--recursive-errors=no; fi
SYSTEMD_UNIT_PATH="$directory:" systemd-analyze verify --man=no $strict "$3"
"""


@op(name="write", mutex="systemd")
def install(machine: Machine, path: str, content: Blob, mode: int, unit: str, verify: bool) -> Result:
    """Install a unit file or a drop-in after systemd has checked it.

    :param unit: the unit to check with the new file
    :param verify: False: install it without a check
    """
    relative = posixpath.relpath(path, systemd.DIRECTORIES[0])
    argv = ["sh", "-c", VERIFY, "sh", "{}", relative, unit] if verify else None
    result = machine.write(path, content, mode, "root", "root", validate=argv)
    if result["status"] == "error" and result["reason"].startswith("sh rejects"):
        reason = result["reason"].replace("sh rejects", "systemd-analyze rejects", 1)
        return error(reason + "; verify: false installs it anyway", result.get("log"))
    return result


@op(name="daemon_reload", mutex="systemd")
def read_units(machine: Machine, unit: str, after: records.Fields | None = None, exists: bool = True) -> Result:
    """Make systemd read the unit files again.

    :param after: the fields of the unit that differ after it, for the plan
    :param exists: False: the unit is gone then
    """
    fields = after if exists else None
    effect = {"units": {unit: fields}} if fields is not None or not exists else {}
    return machine.run(["systemctl", "daemon-reload"], effect, timeout=systemd.TIMEOUT)


def path_of(unit: str, drop_in: str | None) -> str:
    """Return the path of a unit's file in /etc, or of one of its drop-ins."""
    name = f"{unit}.d/{drop_in}.conf" if drop_in else unit
    return posixpath.join(systemd.DIRECTORIES[0], name)


@op(name="mkdir")
def make_directory(machine: Machine, path: str) -> Result:
    """Create the directory of a unit's drop-ins."""
    return machine.mkdir(path, 0o755)


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the file, and make systemd read the units if the file changes or systemd has not read it.

    :raises CheckError: if the host does not run systemd, something else is at the path, or the unit to remove still
        runs or starts at boot
    """
    attrs = node.attrs
    unit = systemd.unit_name(attrs["name"])
    if systemd.scripts(world):
        raise CheckError(f"this host runs {systemd.scripts(world).system(world)}, and not systemd")
    if attrs.get("absent"):
        actions = drop_ins.check(node, nodes, world)
        if actions and not attrs.get("drop_in"):
            require_stopped(world, unit)
    else:
        actions = _installation(node, nodes, world, unit)
    if actions or _outdated(world, unit):
        actions.append(_reading(world, unit, attrs))
    return actions


def _installation(node: HostNode, nodes: Mapping[str, HostNode], world: World, unit: str) -> list[Action]:
    """Return what installs the file, and the directory of a drop-in."""
    attrs, path = node.attrs, node.attrs["path"]
    stat = paths.look(world, path)
    files.check_type(path, stat, False)
    above = posixpath.dirname(path)
    own = attrs.get("drop_in") or attrs.get("boot")
    actions = [make_directory(above)] if own and paths.look(world, above) is None else []
    content, mode = Blob.of(attrs["content"]), paths.mode_bits(attrs["mode"])
    attributes = paths.attribute_actions(world, path, stat, mode, node, nodes) if stat is not None else []
    if paths.needs_write(world, path, stat, content, attributes, attrs.get("owner")):
        sample = unit.replace("@.", "@check.") if "@." in unit else unit  # systemd checks no template, but an instance
        return [*actions, install(path, content, mode, sample, attrs.get("verify", True))]
    return [*actions, *attributes]


def _outdated(world: World, unit: str) -> bool:
    """Return whether systemd has not read the changed file of a unit. Of an unknown unit, this is not known."""
    try:
        return bool((world.entry("units", unit) or {}).get("reload"))
    except Unknown:
        return False


def _reading(world: World, unit: str, attrs: records.Attrs) -> Action:
    """Return the action that makes systemd read a new, changed or removed file."""
    try:
        known = world.entry("units", unit) is not None
    except Unknown:  # a required package may bring the unit
        return read_units(unit)
    if attrs.get("drop_in"):
        return read_units(unit, {"reload": None} if known else None)
    if attrs.get("absent"):
        return _without_file(world, unit)
    boot = attrs.get("boot") or ("disabled" if attrs.get("installable") else "static")
    return read_units(unit, {"reload": None} if known else {"active": "inactive", "enabled": boot, "reload": None})


def _without_file(world: World, unit: str) -> Action:
    """Return the action for a removed file. The unit stays if there is a file of the same name in another directory."""
    stays = any(world.apparent(posixpath.join(above, unit)) is not None for above in systemd.DIRECTORIES[1:])
    return read_units(unit, {"reload": None}, stays)


def require_stopped(world: World, unit: str) -> None:
    """Check that a unit neither runs nor starts at boot, so that its file can be removed.

    :raises CheckError: if it does
    """
    state = systemd.find(world, unit)
    if state is not None and (state.up or state.enabled == "enabled"):
        stopped = {"running: false": state.up, "enabled: false": state.enabled == "enabled"}
        wanted = " and ".join(attribute for attribute, needed in stopped.items() if needed)
        how = "runs" if state.up else "starts at boot"
        raise CheckError(f"{unit} {how}; require a service node for it with {wanted}")


def remember(node: HostNode, world: World) -> UnitFileMemory:
    """Record the file, and whether the directory of the drop-in exists."""
    above = posixpath.dirname(node.attrs["path"])
    return {**files.remember(node, world), "made": world.stat(above) is None}


def undo(node: HostNode, memory: UnitFileMemory, world: World, to_remove: Mapping[str, HostNode]) -> ActionSpec:
    """Restore the former file or remove the node's file, and make systemd read the units."""
    attrs, path = node.attrs, memory["path"]
    unit = systemd.unit_name(attrs["name"])
    spec = files.undo(node, memory, world)
    if memory["made"]:
        restoring = restore.Restore(world, {}, to_remove)
        restoring.removed.update(action.args["path"] for action in spec.actions if action.op == "remove")
        restoring.remove_above(path, [posixpath.dirname(path)])
        spec.actions += restoring.actions
        spec.left += restoring.left
    if not spec.actions:
        return spec
    gone = memory["was"] is None and not attrs.get("drop_in")
    spec.actions.append(_without_file(world, unit) if gone else _reading(world, unit, {**attrs, "absent": False}))
    return spec
