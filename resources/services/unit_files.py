"""Unit files of systemd and drop-ins: validate and install them, and make systemd read them."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import TYPE_CHECKING

from statecfg.remote.graph.model import Action, ActionSpec, Blob, CheckError, HostNode, Unknown
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result, error
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.services import systemd, unit_managers
from statecfg.resources.shared import drop_ins, files, paths, records, restore

if TYPE_CHECKING:
    from typing import NotRequired

    class UnitFileMemory(files.FileMemory):
        """The memory of a `systemd_unit`.

        :ivar made: whether the directory of the file was missing
        :ivar above: in a home directory: the directories that were missing, the nearest first
        """

        made: bool
        above: NotRequired[list[str]]


# Lets systemd check a unit with the new file before the file is installed. systemd finds the copy first and all other
# units in their usual directories. A masked unit is checked as if it were not masked: it uses the file when it is
# unmasked. Before version 250, systemd-analyze did not report unknown settings as errors. For a unit of a user,
# systemd-analyze runs as this user: it reads the user's other units, and resolves `%h`.
VERIFY = """\
set -e
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
mkdir -p "$directory/$(dirname "$2")"
cp "$1" "$directory/$2"
kind=system own=
if test -n "$4"; then
    kind=user home=$(getent passwd "$4" | cut -d: -f6)
    own=$home/.config
fi
for place in "$own" /etc /run; do
    test "$(readlink "$place/systemd/$kind/$3")" = /dev/null || continue
    for vendor in /usr/local/lib /usr/lib /lib; do
        file=$vendor/systemd/$kind/$3
        test -e "$directory/$3" || ! test -e "$file" || cp "$file" "$directory/$3"
    done
done
strict=
if systemd-analyze --help | grep -q recursive-errors; then strict=--recursive-errors=no; fi
if test -z "$4"; then
    SYSTEMD_UNIT_PATH="$directory:" systemd-analyze verify --man=no $strict "$3"
    exit
fi
chmod -R a+rX "$directory"
mkdir "$directory/runtime"
as=
if test "$(id -u)" = 0; then
    chown "$4" "$directory/runtime"
    as="setpriv --reuid=$(id -u "$4") --regid=$(id -g "$4") --init-groups"
fi
$as env -i PATH="$PATH" HOME="$home" USER="$4" LOGNAME="$4" XDG_RUNTIME_DIR="$directory/runtime" \\
    SYSTEMD_UNIT_PATH="$directory:" systemd-analyze --user verify --man=no $strict "$3"
"""


@op(name="write", mutex="systemd")
def install(machine: Machine, path: str, content: Blob, mode: int, unit: str, verify: bool) -> Result:
    """Install a unit file or a drop-in after systemd has checked it.

    :param unit: the unit to check with the new file
    :param verify: False: install it without a check
    """
    user, name = unit_managers.split(unit)
    relative = posixpath.relpath(path, unit_managers.directories(machine, user)[0])
    owner = "root" if user in ("", unit_managers.ALL) else user
    argv = ["sh", "-c", VERIFY, "sh", "{}", relative, name, user and owner] if verify else None
    group = paths.primary_group(machine, owner) if owner != "root" else "root"
    result = machine.write(path, content, mode, owner, group, validate=argv)
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
    return systemd.tell(machine, systemd.RELOAD, unit, {unit: fields} if fields is not None or not exists else {})


def path_of(attrs: records.Attrs) -> str:
    """Return the path of a unit's file, or of a drop-in: in /etc, or in the usual home directory of its user."""
    user, unit = unit_managers.split(systemd.full_name(attrs))
    drop_in = attrs.get("drop_in")
    place = unit_managers.usual_place(user) if user else systemd.DIRECTORIES[0]
    return posixpath.join(place, f"{unit}.d/{drop_in}.conf" if drop_in else unit)


def placed(node: HostNode, world: World) -> HostNode:
    """Return a node with the path and the owner of its file, which are those of the user whose unit it is, if any.

    :raises CheckError: if the user has no home directory
    """
    attrs = node.attrs
    entry = world.entry("users", attrs["user"]) if attrs.get("user") else None
    if entry is None:
        return node
    home = entry.get("home")
    if not home:
        raise CheckError(f"the user {attrs['user']} has no home directory")
    more = {"path": posixpath.join(home, attrs["home_path"]), "owner": attrs["user"]}
    more["group"] = paths.primary_group(world, attrs["user"])
    return HostNode(node.provides, node.type, node.requires, {**attrs, **more})


def missing_above(world: World, node: HostNode) -> list[str]:
    """Return the missing directories between the home directory of a user and the file, the nearest first."""
    found, above = [], posixpath.dirname(node.attrs["path"])
    home = node.attrs["path"][: -len(node.attrs["home_path"])].rstrip("/")
    while above != home and paths.look(world, above) is None:
        found.append(above)
        above = posixpath.dirname(above)
    return found


@op(name="mkdir")
def make_directory(machine: Machine, path: str) -> Result:
    """Create the directory of a unit's drop-ins."""
    return machine.mkdir(path, 0o755)


@op(name="mkdir")
def make_in_home(machine: Machine, path: str, owner: str, group: str | None) -> Result:
    """Create a directory for a user's units."""
    return machine.mkdir(path, 0o755, owner, group)


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the file, and make systemd read the units if the file changes or systemd has not read it.

    :raises CheckError: if the host does not run systemd, something else is at the path, or the unit to remove still
        runs or starts at boot
    """
    user = node.attrs.get("user") or ""
    if user and node.attrs.get("absent") and world.entry("users", user) is None:
        return []
    paths.account(world, "users", user or None, node, nodes)
    node = placed(node, world)
    attrs, unit = node.attrs, systemd.full_name(node.attrs)
    if systemd.scripts(world):
        raise CheckError(f"this host runs {systemd.scripts(world).system(world)}, and not systemd")
    if attrs.get("absent"):
        actions = drop_ins.check(node, nodes, world)
        if actions and not attrs.get("drop_in"):
            require_stopped(world, unit)
    else:
        actions = _installation(node, nodes, world, unit)
    if (actions or _outdated(world, unit)) and unit_managers.will_run(world, unit_managers.split(unit)[0]):
        actions.append(_reading(world, unit, attrs))
    return actions


def _installation(node: HostNode, nodes: Mapping[str, HostNode], world: World, unit: str) -> list[Action]:
    """Return what installs the file, and the directory of a drop-in."""
    attrs, path = node.attrs, node.attrs["path"]
    stat = paths.look(world, path)
    files.check_type(path, stat, False)
    above = posixpath.dirname(path)
    if attrs.get("user"):
        missing = missing_above(world, node)
        paths.require_parent(world, [path, *missing][-1], node, nodes)
        actions = [make_in_home(each, attrs["user"], attrs["group"]) for each in reversed(missing)]
    else:
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
        return bool((systemd.entry_of(world, unit) or {}).get("reload"))
    except Unknown:
        return False


def _reading(world: World, unit: str, attrs: records.Attrs) -> Action:
    """Return the action that makes systemd read a new, changed or removed file."""
    try:
        known = systemd.entry_of(world, unit) is not None
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
    user, name = unit_managers.split(unit)
    others = unit_managers.directories(world, user)[1:]
    stays = any(unit_managers.look(world, posixpath.join(above, name)) is not None for above in others)
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
        raise CheckError(f"{unit_managers.called(unit)} {how}; require a service node for it with {wanted}")


def remember(node: HostNode, world: World) -> UnitFileMemory:
    """Record the file, and whether the directory of the drop-in exists."""
    user = node.attrs.get("user")
    if user and world.entry("users", user) is None:  # the node is absent, and so is the user
        nothing: UnitFileMemory = {"path": "", "was": None, "written": False, "made": False}
        return nothing
    node = placed(node, world)
    above = posixpath.dirname(node.attrs["path"])
    memory, made = files.remember(node, world), world.stat(above) is None
    return {**memory, "made": made, "above": missing_above(world, node) if user else []}


def undo(node: HostNode, memory: UnitFileMemory, world: World, to_remove: Mapping[str, HostNode]) -> ActionSpec:
    """Restore the former file or remove the node's file, and make systemd read the units."""
    path = memory["path"]
    if not path:
        return ActionSpec()
    node = placed(node, world)
    attrs, unit = node.attrs, systemd.full_name(node.attrs)
    spec = files.undo(node, memory, world)
    if memory["made"]:
        restoring = restore.Restore(world, {}, to_remove)
        restoring.removed.update(action.args["path"] for action in spec.actions if action.op == "remove")
        restoring.remove_above(path, memory.get("above") or [posixpath.dirname(path)])
        spec.actions += restoring.actions
        spec.left += restoring.left
    if not spec.actions or not unit_managers.will_run(world, unit_managers.split(unit)[0]):
        return spec
    gone = memory["was"] is None and not attrs.get("drop_in")
    spec.actions.append(_without_file(world, unit) if gone else _reading(world, unit, {**attrs, "absent": False}))
    return spec
