"""Files of logrotate's configuration: their check, and the op that lets logrotate check the whole configuration."""

from __future__ import annotations

from collections.abc import Mapping

from statecfg.remote.graph.model import Action, HostNode
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.machine.world import World
from statecfg.resources.shared import drop_ins, whole

READER = ("logrotate", "--debug", "/etc/logrotate.conf")
MARK = "error:"


def refusal(machine: RealMachine) -> list[str]:
    """Return the errors that logrotate finds in the whole configuration, such as a log file with two rules."""
    return whole.complaints(machine, *READER, mark=MARK)


write = whole.writer("logrotate", "logrotate", refusal, READER, MARK)


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the file with the node's content, mode, owner and group."""
    return drop_ins.compare(node, nodes, world, write)
