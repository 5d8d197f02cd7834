"""The lists of zypper's repositories: fetch those of one repository."""

from __future__ import annotations

from collections.abc import Mapping

from statecfg.remote.graph.model import Action, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import rpm_repositories, zypper_program
from statecfg.resources.shared.package_steps import TIMEOUT


@op(mutex="zypper")
def fetch_lists(machine: Machine, name: str) -> Result:
    """Fetch the lists of one repository."""
    argv = ["zypper", "--non-interactive", "refresh", "--", name]
    return machine.run(argv, {"files": [zypper_program.CACHE]}, env=zypper_program.PLAIN, timeout=TIMEOUT)


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the files of a repository, and whether zypper has its lists. See `rpm_repositories.check`."""
    return rpm_repositories.check(node, nodes, world, "zypper", zypper_program.listed, fetch_lists)
