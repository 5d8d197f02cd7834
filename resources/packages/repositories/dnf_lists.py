"""The repositories of dnf: write the file of one, and fetch its lists."""

from __future__ import annotations

from collections.abc import Mapping

from statecfg.remote.graph.model import Action, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.packages.package_steps import TIMEOUT
from statecfg.resources.packages.repositories import repository_sections, rpm_repositories
from statecfg.resources.shared import sources, whole

CACHE = "/var/cache/dnf"
INDEX = "repodata/repomd.xml"
MAIN, DIRECTORY = "/etc/dnf/dnf.conf", "/etc/yum.repos.d"
# What dnf says about a file that it reads. It then leaves out the value, or the file, and its status is 0.
REFUSES = ("Invalid configuration value", "failed loading", "parsing file", "is not valid")


def refusal(machine: RealMachine) -> list[str]:
    """Return the complaints of dnf about its whole configuration. dnf uses no network for this."""
    lines = whole.errors(machine, "dnf", "--cacheonly", "--quiet", "repolist", "--all")
    return [line for line in lines if any(sign in line for sign in REFUSES)]


write = whole.writer("dnf", "dnf", refusal)


def refuse_conflicts(node: HostNode, world: World) -> None:
    """Check that no file that dnf reads before the node's file defines the repository differently.

    :raises CheckError: if one does
    """
    own = node.attrs["path"].rpartition("/")[2]
    names = [name for name in sources.names(world, DIRECTORY) if name.endswith(".repo") and name < own]
    files = [MAIN, *(f"{DIRECTORY}/{name}" for name in names)]
    repository_sections.refuse_conflicts(node, world, files, "dnf uses that one and ignores this node's")


@op(mutex="dnf")
def fetch_lists(machine: Machine, name: str) -> Result:
    """Fetch the lists of one repository."""
    argv = ["dnf", "-q", "-y", "--repo=" + name, "--refresh", "--setopt=*.skip_if_unavailable=0", "makecache"]
    return machine.run(argv, {"files": [CACHE]}, timeout=TIMEOUT)


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the files of a repository, and whether dnf has its lists. See `rpm_repositories.check`."""
    return rpm_repositories.check(node, nodes, world, DNF)


def listed(world: World, name: str) -> bool:
    """Return whether dnf has the lists of a repository. Their directory has its name and a digest."""
    names = world.listdir(CACHE) if world.stat(CACHE) is not None else []
    mine = [each for each in names if each.rpartition("-")[0] == name]
    return any(world.stat(f"{CACHE}/{each}/{INDEX}") for each in mine)


DNF = rpm_repositories.RpmManager("dnf", write, fetch_lists, listed, refuse_conflicts)
