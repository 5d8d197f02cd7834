"""Settings of the running kernel: their values, the op that sets one, and the undo."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from statecfg.remote.graph import undoing
from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import entries, paths, records

if TYPE_CHECKING:
    from statecfg.resources.shared import line_edits

    class SysctlMemory(line_edits.LineMemory):
        """The memory of a `sysctl`. `value` is the running value."""

        value: str | None


SWAPPED = str.maketrans("./", "/.")  # a name with slashes has dots where one with dots has slashes
INTERFACE = re.compile(r"(net\.[a-z0-9]+\.(?:conf|neigh)\.)")  # an interface's name and a setting follow


@facet("sysctl")
def values(host: World) -> dict[str, records.Fields]:
    """Load the settings of the running kernel: name → `value`. Of a setting with several lines, the first one counts.

    :raises CheckError: if sysctl can't list them
    """
    probe = host.probe(["sysctl", "--all", "--ignore"])
    lines = [line.partition(" = ") for line in probe.text.splitlines()]
    loaded: dict[str, records.Fields] = {}
    for name, separator, value in lines:
        if separator:
            loaded.setdefault(name, {"value": " ".join(value.split())})
    if not loaded:
        errors = probe.errors.decode("utf-8", "replace").strip()
        raise CheckError("`sysctl` failed: %s" % (errors or "no output"))
    return loaded


@op
def set_value(machine: Machine, name: str, value: str) -> Result:
    """Change a setting of the running kernel."""
    return machine.run(["sysctl", "--write", f"{name}={value}"], {"sysctl": {name: {"value": value}}})


def text(value: object) -> str:
    """Return a value as the kernel shows it: with single blanks between its parts."""
    return " ".join(str(value).split())


def _entry(node: HostNode) -> HostNode:
    """Return the line of a setting. sysctl.d(5) also allows `/` in place of `.` and a `-` before the name."""
    attrs = node.attrs
    name = "[./]".join(map(_escaped, attrs["name"].split(".")))
    other = _escaped(attrs["name"].translate(SWAPPED))
    line = f"{attrs['name']} = {text(attrs.get('value'))}"
    return entries.entry(node, attrs["path"], line, rf"^\s*-?({name}|{other})\s*=", mode="0644")


def _escaped(part: str) -> str:
    return "".join(letter if letter.isalnum() or letter == "_" else "\\" + letter for letter in part)


def _missing(world: World, name: str) -> str:
    """Return the reason why the kernel has no such setting, and what to do."""
    known = world.facet("sysctl")
    found = INTERFACE.match(name)
    if found and any(other.startswith(found[1]) for other in known):
        rest = name[len(found[1]) :].split(".")
        same = [other for other in known if other.startswith(found[1]) and other.endswith("." + rest[-1])]
        joined = found[1] + "/".join(rest[:-1]) + "." + rest[-1]
        if same and joined in known:
            return f"; write `/` for a dot in the name of an interface: {joined}"
        if same:
            interface = "/".join(rest[:-1]).replace("/", ".")
            return f", because it has no interface {interface}; require what creates it, or write running: false"
    return f"{paths.nearest(name, known)}; require the kernel_module that brings it, or write running: false"


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the line of the file and the running value with the wanted value.

    :raises CheckError: if the kernel has no such setting
    """
    attrs = node.attrs
    actions = entries.check(_entry(node), nodes, world)
    if attrs.get("absent") or attrs.get("running") is False:
        return actions
    present = world.entry("sysctl", attrs["name"])
    if present is None:
        raise CheckError(f"the kernel of this host has no setting {attrs['name']}{_missing(world, attrs['name'])}")
    if present["value"] != text(attrs["value"]):
        actions.append(set_value(attrs["name"], text(attrs["value"])))
    return actions


def remember(node: HostNode, world: World) -> SysctlMemory:
    """Record the lines of the setting and its running value."""
    running = node.attrs.get("running") is not False and not node.attrs.get("absent")
    present = world.entry("sysctl", node.attrs["name"]) if running else None
    return {**entries.remember(_entry(node), world), "value": present["value"] if present is not None else None}


def undo(node: HostNode, memory: SysctlMemory, world: World) -> ActionSpec:
    """Restore the former line and the former running value. A running value that others have changed stays."""
    attrs, was = node.attrs, memory["value"]
    spec = entries.undo(_entry(node), memory, world)
    if was is None or attrs.get("absent") or attrs.get("running") is False:
        return spec
    present = world.entry("sysctl", attrs["name"])
    if present is not None:
        made = {"value": text(attrs["value"])}
        back, left = undoing.reverted(memory, made, present, lambda field: f"the running {field} of {attrs['name']}")
        spec.actions += [set_value(attrs["name"], was)] if back else []
        spec.left += left
    return spec
