"""The lists of dnf's repositories: fetch those of one repository."""

from __future__ import annotations

from collections.abc import Mapping

from statecfg.remote.graph.model import Action, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import rpm_repositories
from statecfg.resources.shared.package_steps import TIMEOUT

CACHE = "/var/cache/dnf"
INDEX = "repodata/repomd.xml"


@op(mutex="dnf")
def fetch_lists(machine: Machine, name: str) -> Result:
    """Fetch the lists of one repository."""
    argv = ["dnf", "-q", "-y", "--repo=" + name, "--refresh", "--setopt=*.skip_if_unavailable=0", "makecache"]
    return machine.run(argv, {"files": [CACHE]}, timeout=TIMEOUT)


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the files of a repository, and whether dnf has its lists. See `rpm_repositories.check`."""
    return rpm_repositories.check(node, nodes, world, "dnf", listed, fetch_lists)


def listed(world: World, name: str) -> bool:
    """Return whether dnf has the lists of a repository. Their directory has its name and a digest."""
    names = world.listdir(CACHE) if world.stat(CACHE) is not None else []
    mine = [each for each in names if each.rpartition("-")[0] == name]
    return any(world.stat(f"{CACHE}/{each}/{INDEX}") for each in mine)
