"""Files of sudo's configuration: their check, and the op that lets visudo check the whole configuration."""

from __future__ import annotations

from collections.abc import Mapping

from statecfg.remote.graph.model import Action, HostNode
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.machine.world import World
from statecfg.resources.shared import drop_ins, whole

READER = ("sh", "-c", "exec visudo -c >/dev/null")  # stdout names the files that are right


def refusal(machine: RealMachine) -> list[str]:
    """Return the errors that visudo finds in the whole configuration."""
    return whole.complaints(machine, "visudo", "-c")


write = whole.writer("visudo", "sudo", refusal, READER)


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the file with the node's content, mode, owner and group."""
    return drop_ins.compare(node, nodes, world, write)
