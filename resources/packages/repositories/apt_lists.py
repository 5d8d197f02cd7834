"""The lists of apt's repositories: fetch those of one repository."""

from __future__ import annotations

from collections.abc import Mapping

from statecfg.remote.graph.model import Action, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.packages.managers.apt import apt_settings
from statecfg.resources.packages.repositories import apt_sources
from statecfg.resources.shared import drop_ins


@op(mutex="apt")
def fetch_lists(machine: Machine, path: str) -> Result:
    """Fetch the lists of the repositories in one file."""
    only = ["-o", "Dir::Etc::sourcelist=" + path, "-o", "Dir::Etc::sourceparts=-", "-o", "APT::Get::List-Cleanup=false"]
    argv = ["apt-get", "-q", *apt_settings.LOCK, *only, "-o", "APT::Update::Error-Mode=any", "update"]
    return machine.run(argv, {"files": [apt_settings.LISTS]}, env=apt_settings.QUIET, timeout=apt_settings.TIMEOUT)


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the file of a repository, and whether apt has its lists.

    :raises CheckError: if another file defines the repository differently; see also `drop_ins.compare`
    """
    actions = drop_ins.compare(node, nodes, world, apt_sources.write)
    if not node.attrs.get("absent"):
        apt_sources.refuse_conflicts(node, world)
    lists = node.attrs.get("lists")
    if not node.attrs.get("absent") and lists and (actions or missing(world, lists)):
        actions.append(fetch_lists(node.attrs["path"]))
    return actions


def missing(world: World, beginnings: list[str]) -> bool:
    """Return whether apt lacks the lists of a suite.

    :param beginnings: how the names of the files begin, one for each suite
    """
    names = world.listdir(apt_settings.LISTS) if world.stat(apt_settings.LISTS) is not None else []
    return not all(any(name.startswith(beginning) for name in names) for beginning in beginnings)


def check_pin(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the file with preferences.

    :raises CheckError: see `drop_ins.compare`
    """
    return drop_ins.compare(node, nodes, world, apt_sources.write)
