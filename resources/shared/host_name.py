"""The name of the running host: the op that sets it, and the undo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from statecfg.remote.graph.model import Action, ActionSpec, HostNode
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import drop_ins, files, records

if TYPE_CHECKING:

    class HostNameMemory(files.FileMemory):
        """The memory of a `hostname`. `name` is the name in the running kernel."""

        name: str


FILE = "/etc/hostname"


@facet("hostname")
def running(host: World) -> dict[str, records.Fields]:
    """Load the name in the running kernel: `running` → `name`."""
    return {"running": {"name": host.read("/proc/sys/kernel/hostname").decode("utf-8", "replace").strip()}}


@op
def set_name(machine: Machine, name: str) -> Result:
    """Change the name in the running kernel."""
    return machine.run(["hostname", name], {"hostname": {"running": {"name": name}}})


def _present(world: World) -> str:
    return str((world.entry("hostname", "running") or {}).get("name", ""))


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the file and the running name with the wanted name."""
    name = node.attrs["name"]
    return drop_ins.check(node, nodes, world) + ([] if _present(world) == name else [set_name(name)])


def remember(node: HostNode, world: World) -> HostNameMemory:
    """Record the file and the running name."""
    return {**files.remember(node, world), "name": _present(world)}


def undo(node: HostNode, memory: HostNameMemory, world: World) -> ActionSpec:
    """Restore the file and the running name."""
    spec, present = files.undo(node, memory, world), _present(world)
    if present == node.attrs["name"] != memory["name"]:
        spec.actions.append(set_name(memory["name"]))
    elif present != memory["name"]:
        spec.left.append(f"the host is now named {present}: it keeps this name")
    return spec
