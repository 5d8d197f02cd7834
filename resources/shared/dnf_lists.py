"""The lists of dnf's repositories: fetch those of one repository."""

from __future__ import annotations

from collections.abc import Mapping

from statecfg.remote.graph.model import Action, Node
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.values import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import rpm_repositories

CACHE = "/var/cache/dnf"
INDEX = "repodata/repomd.xml"


@op(turn="dnf")
def fetch_lists(machine: Machine, name: str) -> Result:
    """Fetch the lists of one repository."""
    argv = ["dnf", "-q", "-y", "--repo=" + name, "--refresh", "--setopt=*.skip_if_unavailable=0", "makecache"]
    return machine.run(argv, {"files": [CACHE]}, timeout=1800.0)


def check(node: Node, nodes: Mapping[str, Node], world: World) -> list[Action]:
    """Compare the files of a repository, and whether dnf has its lists.

    :raises CheckError: if the host has another package manager; see also `drop_ins.compare`
    """
    rpm_repositories.require(world, node, "dnf")
    actions = rpm_repositories.check(node, nodes, world)
    if not node.attrs.get("absent") and node.attrs.get("fetch") and (actions or missing(world, node.attrs["name"])):
        actions.append(fetch_lists(node.attrs["name"]))
    return actions


def missing(world: World, name: str) -> bool:
    """Return whether dnf lacks the lists of a repository. Their directory has its name and a digest."""
    names = world.listdir(CACHE) if world.stat(CACHE) is not None else []
    mine = [each for each in names if each.rpartition("-")[0] == name]
    return not any(world.stat("%s/%s/%s" % (CACHE, each, INDEX)) for each in mine)
