"""Files of sudo's configuration: their check, and the op that lets visudo check the whole configuration."""

from __future__ import annotations

from collections.abc import Mapping

from statecfg.remote.graph.model import Action, Blob, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import drop_ins, whole


@op(name="write", mutex="sudo")
def write(
    machine: Machine,
    path: str,
    content: Blob,
    mode: int | None = None,
    owner: str | None = None,
    group: str | None = None,
    backup: str | None = None,
    validate: list[str] | None = None,
) -> Result:
    """Write a file of sudo's configuration. If visudo refuses the whole configuration then, restore the former file."""
    return whole.write(machine, path, content, mode, owner, group, validate, refusal, "visudo")


def refusal(machine: RealMachine) -> list[str]:
    """Return why visudo refuses the whole configuration."""
    return whole.complaints(machine, "visudo", "-c")


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the file with the node's content, mode, owner and group."""
    return drop_ins.compare(node, nodes, world, write)
