"""Groups of packages of dnf: install and remove them, with a plan of their packages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from statecfg.remote.graph.model import ActionSpec, Blob, HostNode, Unknown
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.packages import package_manager, package_snapshot, package_steps, package_transaction
from statecfg.resources.shared import records

if TYPE_CHECKING:
    from typing import TypedDict

    class DnfGroupMemory(TypedDict):
        """The memory of a `dnf_group`. `context` lists all packages, one a line."""

        installed: bool
        context: Blob


@facet("dnf_groups")
def dnf_groups(host: Any) -> dict[str, records.Fields]:
    """Load the groups that dnf has installed: id → `name`."""
    from statecfg.resources.packages.managers.dnf import dnf_program

    return {group: {"name": name} for group, name in dnf_program.ask(host, "groups").items()}


def solve(world: World, group: str, remove: bool, optional: bool) -> tuple[str, str, records.Steps]:
    """Return the id and the name of a group, and what its installation or removal would do.

    :param group: its id or its name
    :raises CheckError: if dnf refuses
    """
    from statecfg.resources.packages.managers.dnf import dnf_program

    question = {"group": group, "gone": remove, "optional": optional, "erase": remove}
    found, name, steps = dnf_program.planned(world, "group", **question)
    return found, name, steps


def effect(steps: records.Steps | None) -> records.Effect:
    """Return the effect of a transaction.

    :param steps: which packages it changes; None if that is not known
    """
    changed = package_steps.changes(steps)
    if steps is None:
        return changed
    asked = {name: {"version": version} if version else package_steps.GONE for name, version in steps.items()}
    return {**changed, "asked": asked}


@op(mutex="dnf")
def change_group(
    machine: Machine,
    group: str,
    name: str,
    remove: bool,
    optional: bool,
    steps: records.Steps | None,
    update: int | None = None,
) -> Result:
    """Install or remove a group. If dnf would change other packages than planned, fail and change nothing.

    :param group: its id
    :param steps: what it changes; None if that was not known
    :param update: the maximum age of dnf's lists in seconds; None: any age
    """
    from statecfg.resources.packages.managers.dnf import dnf, dnf_program

    if update is not None:
        updated = dnf.update_lists(machine, update)
        if updated["status"] != "ok":
            return updated
    changed = {**effect(steps), "dnf_groups": {group: None if remove else {"name": name}}}
    argv = ["dnf", "-y", dnf_program.NEVER, "group", "remove" if remove else "install", group]
    if optional and not remove:
        argv.insert(5, "--with-optional")

    def simulate() -> records.Steps:
        return solve(machine, group, remove, optional)[2]

    foreseen = set(steps) if steps is not None else None
    return package_steps.Guard(machine, dnf.NAME).run(argv, changed, simulate, foreseen=foreseen)


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> ActionSpec:
    """Ask dnf what the installation or removal of a group would do.

    :raises CheckError: if dnf refuses, or if a removal would take a package that another node installs
    """
    package_manager.require(world, node, "dnf")
    attrs, remove = node.attrs, bool(node.attrs.get("absent"))
    if (installed(world, attrs["name"]) is not None) is not remove:
        return ActionSpec()
    group, name, steps, known_after = attrs["name"], attrs["name"], None, None
    stale = package_steps.stale(world, "dnf", attrs.get("update_cache"))
    if stale is False:
        try:
            group, name, steps = solve(world, attrs["name"], remove, bool(attrs.get("optional")))
        except Unknown as unknown:
            known_after = unknown.cause
    if steps is not None:
        gone = sorted(name for name, version in steps.items() if version is None)
        package_transaction.refuse_wanted(world, nodes, gone, f"the removal of the group {attrs['name']}")
    age = attrs.get("update_cache") if stale else None
    return ActionSpec(
        [change_group(group, name, remove, bool(attrs.get("optional")), steps, age)], known_after=known_after
    )


def installed(world: World, name: str) -> str | None:
    """Return the id of an installed group; None if it is not installed.

    :param name: its id or its name
    """
    groups = world.facet("dnf_groups")
    return next((group for group in sorted(groups) if name in (group, groups[group]["name"])), None)


def remember(node: HostNode, world: World) -> DnfGroupMemory:
    """Record whether the group is installed, and all packages."""
    there = installed(world, node.attrs["name"])
    return {"installed": there is not None, "context": Blob.of(package_snapshot.context(world, ()))}


def undo(node: HostNode, memory: DnfGroupMemory, world: World) -> ActionSpec:
    """Remove a group that was not installed before, or install it again."""
    attrs, group = node.attrs, installed(world, node.attrs["name"])
    if (group is not None) is memory["installed"] or memory["installed"] is not bool(attrs.get("absent")):
        return ActionSpec()
    remove = group is not None
    found, name, steps = solve(world, group or attrs["name"], remove, bool(attrs.get("optional")))
    before = memory["context"].read().decode().split("\n")
    there = {line.partition(" ")[0] for line in before}
    wanted = sorted(name for name, version in steps.items() if version is None and name in there)
    if remove and wanted:
        text = "the group %s stays: its removal would take %s, which was there before"
        return ActionSpec(left=[text % (attrs["name"], ", ".join(wanted))])
    return ActionSpec([change_group(found, name, remove, bool(attrs.get("optional")), steps)])
