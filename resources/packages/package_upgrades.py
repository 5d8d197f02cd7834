"""Upgrade all packages: what it would change, and its undo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from statecfg.remote.graph.model import ActionSpec, Blob, HostNode, Unknown
from statecfg.remote.ledger.records import SAID
from statecfg.remote.machine.world import World
from statecfg.resources.packages import package_changes, package_snapshot, package_steps, package_transaction
from statecfg.resources.packages.package_manager import manager
from statecfg.resources.shared import records

if TYPE_CHECKING:
    from typing import NotRequired, TypedDict

    class UpgradeMemory(TypedDict):
        """The memory of a `package_upgrade`: the installed packages, one line each (see `package_snapshot.context`).

        :ivar own: what the node changed: package → former version ("" for none) and new version ("" for none)
        :ivar changed: the same with changes of others, in ledgers of earlier versions
        """

        before: Blob
        own: NotRequired[dict[str, list[str]]]
        changed: NotRequired[dict[str, list[str]]]


def upgrader(world: World) -> Any:
    """Return the module that upgrades the packages of this host."""
    from statecfg.resources.packages.managers.apt import apt_upgrade
    from statecfg.resources.packages.managers.dnf import dnf_upgrade
    from statecfg.resources.packages.managers.pacman import pacman_upgrade
    from statecfg.resources.packages.managers.zypper import zypper_upgrade

    known = {"apt": apt_upgrade, "dnf": dnf_upgrade, "pacman": pacman_upgrade, "zypper": zypper_upgrade}
    return known[manager(world).NAME]


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> ActionSpec:
    """Ask the package manager what an upgrade would change.

    :raises CheckError: if it refuses, or would remove a package that another node installs
    """
    attrs, used = node.attrs, manager(world)
    full, clean, age = attrs["mode"] == "full", bool(attrs.get("autoremove")), attrs.get("update_cache")
    first, stale = used.first(world), package_steps.stale(world, used.NAME, age)
    keep = kept(nodes, world)
    known_after = None
    steps: records.Steps | None = None
    if stale is False:
        try:
            before = package_transaction.asked(world)
            found = upgrader(world).solve(world, full, clean, keep, before)
            steps = {name: version for name, version in found.items() if name not in before and name not in keep}
        except Unknown as unknown:
            known_after = unknown.cause
    if steps is not None:
        if not steps:
            return ActionSpec(first)
        removed = sorted(name for name, version in steps.items() if version is None)
        package_transaction.refuse_wanted(world, nodes, removed, "the upgrade")
    action = upgrader(world).upgrade(steps, full, clean, keep, age if stale else None)
    return ActionSpec([*first, action], known_after=known_after)


def kept(nodes: Mapping[str, HostNode], world: World) -> list[str]:
    """Return the packages whose versions other nodes set."""
    fixed = [node for node in nodes.values() if node.type == "package" and node.attrs.get("version")]
    return sorted(node.attrs["name"] for node in fixed if world.entry("packages", node.attrs["name"]))


def remember(node: HostNode, world: World) -> UpgradeMemory:
    """Record the versions of all packages."""
    return {"before": Blob.of(package_snapshot.context(world, ()))}


def _versions(text: str) -> dict[str, str]:
    lines = (line.partition(" ") for line in text.splitlines())
    return {name: version for name, _, version in lines if version != package_snapshot.CONFIGURED}


def learn(
    node: HostNode, memory: UpgradeMemory, world: World, said: Mapping[str, str]
) -> dict[str, dict[str, list[str]]]:
    """Record which packages the node itself changed. Others may have changed packages between its runs."""
    return {"own": package_changes.merged(_own(memory), said)}


def _own(memory: UpgradeMemory) -> package_changes.Changes:
    """Return what the node changed. A failed run is not learned, so what it said is added."""
    plain: Any = memory
    return package_changes.merged(memory.get("own") or {}, plain.get(SAID) or {})


def undo(node: HostNode, memory: UpgradeMemory, world: World) -> ActionSpec:
    """Install the former versions again. A package that others changed stays as it is.

    Ledgers of earlier versions have `changed` instead of `own`. It also lists what others upgraded between two runs of
    the node, so it does not justify a downgrade.
    """
    own, before = _own(memory), _versions(memory["before"].read().decode())
    kept = package_changes.kept(world, before, own)
    now = package_changes.versions(world)
    wanted = [(name, was) for name, (was, new) in sorted(own.items()) if was and now.get(name, "") == new]
    spec = package_snapshot.installed_again(world, wanted, [])
    spec.left.extend(kept)
    return spec
