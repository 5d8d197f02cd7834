"""Files of logrotate's configuration: their check, and the op that lets logrotate check the whole configuration."""

from __future__ import annotations

from collections.abc import Mapping

from statecfg.remote.graph.model import Action, Blob, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import drop_ins, whole

MAIN = "/etc/logrotate.conf"


@op(name="write", mutex="logrotate")
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
    """Write a file of logrotate's configuration. If logrotate refuses the whole then, restore the former file."""
    return whole.write(machine, path, content, mode, owner, group, validate, refusal, "logrotate")


def refusal(machine: RealMachine) -> list[str]:
    """Return the errors that logrotate finds in the whole configuration, such as a log file with two rules."""
    return whole.complaints(machine, "logrotate", "--debug", MAIN, mark="error:")


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the file with the node's content, mode, owner and group."""
    return drop_ins.compare(node, nodes, world, write)
