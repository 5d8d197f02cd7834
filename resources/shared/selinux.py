"""SELinux: facets with booleans, labels of files and ports, the ops that change them, their checks and the undo.

All values come from semanage(8), which shows the policy and the local changes. Source: its manual pages of version 3.4.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from statecfg.remote.graph import undoing
from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import paths, records

PROGRAM = ("/usr/sbin/semanage", "/sbin/semanage")
TIMEOUT = 300.0  # each change compiles the policy
# Names in the output of semanage → its options.
FILE_TYPES = {
    "all files": "a", "regular file": "f", "directory": "d", "character device": "c", "block device": "b",
    "socket": "s", "symbolic link": "l", "named pipe": "p",
}  # fmt: skip
WORDS = {True: "on", False: "off"}


def _listed(host: World, *arguments: str) -> list[str]:
    """Return the lines that semanage prints; none if it is not installed.

    :raises CheckError: if it fails: an empty list would mean that there is nothing
    """
    if all(host.stat(path) is None for path in PROGRAM):
        return []
    probe = host.probe(["semanage", *arguments], timeout=TIMEOUT)
    if probe.status:
        lines = (probe.errors or probe.output).decode("utf-8", "replace").strip().splitlines()
        raise CheckError(f"semanage {' '.join(arguments)} fails: {lines[-1] if lines else 'no output'}")
    return probe.text.splitlines()


def _require_program(world: World) -> None:
    """Check that semanage is installed.

    :raises Unknown: if a required node may install it
    :raises CheckError: if it is not
    """
    if all(world.stat(path) is None for path in PROGRAM):
        raise CheckError("semanage is not installed; declare the package policycoreutils-python-utils and require it")


# Booleans


@facet("selinux_boolean", volatile=True)
def booleans(host: World) -> dict[str, records.Fields]:
    """Load the booleans: name → `running` and `persistent`, both on or off."""
    lines = _listed(host, "boolean", "--list", "--noheading")
    found = (re.match(r"(\S+)\s+\((on|off)\s*,\s*(on|off)\s*\)", line) for line in lines)
    return {match[1]: {"running": match[2], "persistent": match[3]} for match in found if match}


@op(mutex="selinux")
def set_boolean(machine: Machine, name: str, value: str, persistent: bool) -> Result:
    """Set a boolean in the running policy, and for the next boot if it is persistent."""
    fields = {"running": value, **({"persistent": value} if persistent else {})}
    option = ["-P"] if persistent else []
    return machine.run(["setsebool", *option, name, value], {"selinux_boolean": {name: fields}}, timeout=TIMEOUT)


def _boolean(name: str, world: World) -> records.Fields:
    entry = world.entry("selinux_boolean", name)
    if entry is None:
        near = paths.nearest(name, world.facet("selinux_boolean"))
        raise CheckError(f"the policy of this host has no boolean {name}{near}")
    return entry


def _compared(node: HostNode) -> list[str]:
    return ["running", "persistent"] if node.attrs.get("persistent", True) else ["running"]


def check_boolean(node: HostNode, world: World) -> list[Action]:
    """Compare the running and the persistent value with the wanted one.

    :raises CheckError: if the policy has no such boolean
    """
    _require_program(world)
    name, value = node.attrs["name"], WORDS[node.attrs["value"]]
    now = _boolean(name, world)
    if all(now[field] == value for field in _compared(node)):
        return []
    return [set_boolean(name, value, bool(node.attrs.get("persistent", True)))]


def remember_boolean(node: HostNode, world: World) -> records.Fields:
    """Record both values."""
    _require_program(world)
    return {"was": dict(_boolean(node.attrs["name"], world))}


def undo_boolean(node: HostNode, memory: records.Fields, world: World) -> ActionSpec:
    """Restore both values. Those that others have changed since then stay."""
    name, was, spec = node.attrs["name"], memory["was"], ActionSpec()
    now = world.entry("selinux_boolean", name)
    if now is None or all(now[field] == was[field] for field in _compared(node)):
        return spec
    made = dict.fromkeys(_compared(node), WORDS[node.attrs["value"]])
    spec.left = undoing.reverted(was, made, now, lambda field: f"the {field} value of {name}")[1]
    if spec.left:
        return spec
    if "persistent" in _compared(node) and now["persistent"] != was["persistent"]:
        spec.actions.append(set_boolean(name, was["persistent"], True))
    running = was["persistent"] if spec.actions else now["running"]
    if running != was["running"]:
        spec.actions.append(set_boolean(name, was["running"], False))
    return spec


# Labels of files


@facet("selinux_fcontext", volatile=True)
def contexts(host: World) -> dict[str, records.Fields]:
    """Load the local rules for labels: pattern and file type → `setype`."""
    loaded: dict[str, records.Fields] = {}
    for line in _listed(host, "fcontext", "--list", "--locallist", "--noheading"):
        found = re.match(rf"(\S+)\s+({'|'.join(FILE_TYPES)})\s+(?:\S+?:\S+?:(\S+?)(?::\S*)?|<<None>>)\s*\Z", line)
        if found:
            loaded[f"{found[1]} ({found[2]})"] = {"setype": found[3] or "<<none>>"}
        elif line.strip() and " = " not in line and not line.startswith("SELinux "):
            raise CheckError(f"semanage prints a rule that statecfg can't read: {line}")
    return loaded


@op(mutex="selinux")
def set_context(machine: Machine, path: str, file_type: str, setype: str, exists: bool) -> Result:
    """Add or change the rule for the labels of files."""
    how = ["--modify" if exists else "--add", "--ftype", FILE_TYPES[file_type], "--type", setype]
    effect = {"selinux_fcontext": {f"{path} ({file_type})": {"setype": setype}}}
    return machine.run(["semanage", "fcontext", *how, path], effect, timeout=TIMEOUT)


@op(mutex="selinux")
def delete_context(machine: Machine, path: str, file_type: str) -> Result:
    """Delete the rule for the labels of files."""
    effect = {"selinux_fcontext": {f"{path} ({file_type})": None}}
    argv = ["semanage", "fcontext", "--delete", "--ftype", FILE_TYPES[file_type], path]
    return machine.run(argv, effect, timeout=TIMEOUT)


@op(mutex="selinux")
def relabel(machine: Machine, path: str) -> Result:
    """Give existing files the labels of the policy."""
    return machine.run(["restorecon", "-R", path], {}, timeout=3600.0)


def _key(attrs: records.Attrs) -> str:
    return f"{attrs['path']} ({attrs['file_type']})"


def _missing(world: World, path: str) -> bool:
    """Return whether it is known that there is nothing at a path, so that restorecon would fail."""
    return world.is_known(path) and world.stat(path) is None


def _mislabelled(world: World, path: str) -> bool:
    """Return whether files have other labels than those of the policy.

    :raises CheckError: if restorecon can't tell
    """
    if world.stat(path) is None:
        return False
    probe = world.probe(["restorecon", "-n", "-v", "-R", path], timeout=3600.0)
    if probe.status:
        raise CheckError(f"restorecon can't compare the labels of {path}: {probe.errors.decode('utf-8', 'replace')}")
    return "relabel" in probe.text


def check_context(node: HostNode, world: World) -> list[Action]:
    """Compare the rule, and the labels of existing files if the node names them.

    :raises CheckError: if semanage or restorecon fails
    """
    _require_program(world)
    attrs, now = node.attrs, world.entry("selinux_fcontext", _key(node.attrs))
    actions: list[Action] = []
    if attrs.get("absent"):
        actions += [delete_context(attrs["path"], attrs["file_type"])] if now is not None else []
    elif now is None or now["setype"] != attrs["setype"]:
        actions.append(set_context(attrs["path"], attrs["file_type"], attrs["setype"], now is not None))
    below = attrs.get("restore")
    if below is not None and not _missing(world, below) and (actions or _mislabelled(world, below)):
        actions.append(relabel(below))
    return actions


def remember_context(node: HostNode, world: World) -> records.Fields:
    """Record the rule."""
    _require_program(world)
    return {"was": world.entry("selinux_fcontext", _key(node.attrs))}


def undo_context(node: HostNode, memory: records.Fields, world: World) -> ActionSpec:
    """Restore the former rule, or delete the rule, and relabel the files again."""
    attrs, was, now = node.attrs, memory["was"], world.entry("selinux_fcontext", _key(node.attrs))
    ours = None if attrs.get("absent") else attrs["setype"]
    if (now["setype"] if now is not None else None) != ours:
        changed = now is not None and now != was
        return ActionSpec(left=[f"the rule for {_key(attrs)} was changed by others: it stays"] if changed else [])
    if now == was:
        return ActionSpec()
    if was is None:
        actions = [delete_context(attrs["path"], attrs["file_type"])]
    else:
        actions = [set_context(attrs["path"], attrs["file_type"], was["setype"], now is not None)]
    below = attrs.get("restore")
    return ActionSpec([*actions, *([relabel(below)] if below is not None and not _missing(world, below) else [])])


# Ports


@facet("selinux_port", volatile=True)
def ports(host: World) -> dict[str, records.Fields]:
    """Load the labels of ports: port or range, and protocol → `setype`, and `local` for a local label."""
    loaded: dict[str, records.Fields] = {}
    for local in (False, True):
        for line in _listed(host, "port", "--list", "--noheading", *(["--locallist"] if local else [])):
            found = re.match(r"(\S+)\s+(tcp|udp|sctp|dccp)\s+([0-9, -]+)\Z", line)
            if found is None:
                continue
            for port in found[3].split(","):
                # A local rule overrides the policy, and semanage lists both.
                loaded[f"{port.strip()}/{found[2]}"] = {"setype": found[1], **({"local": True} if local else {})}
    return loaded


@op(mutex="selinux")
def set_port(machine: Machine, port: str, setype: str, exists: bool) -> Result:
    """Give a port a label."""
    number, _, protocol = port.partition("/")
    argv = ["semanage", "port", "--modify" if exists else "--add", "--type", setype, "--proto", protocol, number]
    return machine.run(argv, {"selinux_port": {port: {"setype": setype, "local": True}}}, timeout=TIMEOUT)


@op(mutex="selinux")
def delete_port(machine: Machine, port: str) -> Result:
    """Delete the local label of a port. Afterwards it has that of the policy, if there is one."""
    number, _, protocol = port.partition("/")
    argv = ["semanage", "port", "--delete", "--proto", protocol, number]
    return machine.run(argv, {"selinux_port": {port: None}}, timeout=TIMEOUT)


def check_port(node: HostNode, world: World) -> list[Action]:
    """Compare the label of the port with the wanted one.

    :raises CheckError: if the port must have no label, and the policy gives it one
    """
    _require_program(world)
    attrs, port = node.attrs, node.attrs["port"]
    now = world.entry("selinux_port", port)
    if not attrs.get("absent"):
        return [] if now is not None and now["setype"] == attrs["setype"] else [_labelled(port, attrs["setype"], now)]
    return [delete_port(port)] if now is not None and now.get("local") else []


def _labelled(port: str, setype: str, now: records.Fields | None) -> Action:
    return set_port(port, setype, now is not None)


def remember_port(node: HostNode, world: World) -> records.Fields:
    """Record the label of the port."""
    _require_program(world)
    return {"was": world.entry("selinux_port", node.attrs["port"])}


def undo_port(node: HostNode, memory: records.Fields, world: World) -> ActionSpec:
    """Restore the former label. One that others have changed since then stays."""
    attrs, port, was = node.attrs, node.attrs["port"], memory["was"]
    now = world.entry("selinux_port", port)
    if now == was or (now is None and was is None):
        return ActionSpec()
    if attrs.get("absent"):
        gone = now is None or not now.get("local")
        return ActionSpec(
            [_labelled(port, was["setype"], now)] if gone and was is not None and was.get("local") else []
        )
    if now is None or now["setype"] != attrs["setype"]:
        return ActionSpec(left=[f"the label of {port} was changed by others: it stays"])
    local: Sequence[Action] = [_labelled(port, was["setype"], now)] if was is not None and was.get("local") else []
    return ActionSpec([*(local or [delete_port(port)])] if now.get("local") else [])
