"""The repositories of zypper: write the file of one, and fetch its lists."""

from __future__ import annotations

from collections.abc import Mapping

from statecfg.remote.graph.model import Action, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.packages.managers.zypper import zypper_program
from statecfg.resources.packages.package_steps import TIMEOUT
from statecfg.resources.packages.repositories import repository_sections, rpm_repositories
from statecfg.resources.shared import sources, whole

DIRECTORY = "/etc/zypp/repos.d"
BROKEN = (1, 4)  # the status of zypper if it can't read its configuration
_ADVICE = ("Please file a bug report", "See http", "Unexpected exception")


def refusal(machine: RealMachine) -> list[str]:
    """Return why zypper can't read its whole configuration. zypper uses no network for this."""
    argv = [*zypper_program.CALL, "repos"]
    lines = whole.errors(machine, *argv, env=zypper_program.PLAIN, failed=BROKEN)
    return [line for line in lines if not line.startswith(_ADVICE)]


write = whole.writer("zypper", "zypper", refusal)


def refuse_conflicts(node: HostNode, world: World) -> None:
    """Check that no other file defines the node's repository differently.

    :raises CheckError: if one does
    """
    files = [f"{DIRECTORY}/{name}" for name in sources.names(world, DIRECTORY) if name.endswith(".repo")]
    repository_sections.refuse_conflicts(node, world, files, "zypper uses only one of them")


@op(mutex="zypper")
def fetch_lists(machine: Machine, name: str) -> Result:
    """Fetch the lists of one repository."""
    argv = ["zypper", "--non-interactive", "refresh", "--", name]
    return machine.run(argv, {"files": [zypper_program.CACHE]}, env=zypper_program.PLAIN, timeout=TIMEOUT)


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the files of a repository, and whether zypper has its lists. See `rpm_repositories.check`."""
    return rpm_repositories.check(node, nodes, world, ZYPPER)


ZYPPER = rpm_repositories.RpmManager("zypper", write, fetch_lists, zypper_program.listed, refuse_conflicts)
