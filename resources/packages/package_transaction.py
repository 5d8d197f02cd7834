"""Plan the packages of one run together: each layer is one transaction on top of the earlier layers."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from typing import Any

from statecfg.remote.graph.model import ActionSpec, CheckError, Conflict, HostNode, Unknown
from statecfg.remote.machine.world import World
from statecfg.resources.packages import package_units
from statecfg.resources.packages.package_manager import manager
from statecfg.resources.shared import records

SHOWN = 8  # packages that a message names


def version(node: HostNode, world: World) -> str:
    """Return the installed version.

    :raises Unknown: if the run installs a version that only the package manager knows
    :raises CheckError: if the package is not installed
    """
    entry = world.entry("packages", node.attrs["name"])
    if entry is None or entry.get("state"):
        raise CheckError(f"the package {node.attrs['name']} is not installed")
    present: str = entry["version"]
    if present == "newest" or any(letter in present for letter in "*?["):
        raise Unknown(node.provides, "the version")
    return present


def satisfied(world: World, node: HostNode) -> bool:
    """Return whether the node's package is installed, in a wanted version; kernels can have several at once."""
    entry = world.entry("packages", node.attrs["name"])
    if entry is None or entry.get("state"):
        return False
    version = wanted_version(world, node.attrs)
    there = [entry["version"], *entry.get("older", ())]
    return version is None or any(fnmatch.fnmatchcase(each, version) for each in there)


def wanted_version(world: World, attrs: records.Attrs) -> str | None:
    """Return the version or the pattern that a node wants; None: any.

    :raises Unknown: if an earlier node brings the file of the package
    :raises CheckError: if the file is not one with this package
    """
    if not attrs.get("file"):
        version: str | None = attrs.get("version")
        return version
    from statecfg.resources.packages.managers.apt import apt  # a part of the bundle

    return apt.file_version(world, attrs["file"], attrs["name"])


def installation(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> ActionSpec:
    """Return what installs the node's package.

    :raises CheckError: if it cannot be installed together with the other packages of this run
    """
    from statecfg.resources.packages import package_steps  # a part of the bundle

    attrs, apt = node.attrs, manager(world)
    name, age = attrs["name"], attrs.get("update_cache")
    entry = world.entry("packages", name) or {}
    if entry.get("held") and attrs.get("hold") is None:
        raise CheckError(f"{name} is on hold; hold: false releases it, and hold: true keeps it on hold afterwards")
    first, stale = apt.first(world), package_steps.stale(world, apt.NAME, age)
    item: records.InstallItem = {"name": name, "version": attrs.get("version"), "others": {}}
    left: list[str] = []
    known_after = None
    try:
        item["version"] = wanted_version(world, attrs)
        if stale is False:
            item = coming(world, node, nodes, entry.get("version"))
            if item.get("replaced"):
                left = replacing(world, node, nodes, item)
        else:  # newer lists may have newer versions
            refuse_excluded(world, node, nodes)
    except Unknown as unknown:  # the installation is certain; only the packages that come with it are unknown
        known_after = unknown.cause
    if stale:
        item["update"] = attrs["update_cache"]
    if attrs.get("replaces"):
        item["replaces"] = sorted(attrs["replaces"])
    if attrs.get("file"):
        item["file"] = attrs["file"]
    if entry.get("held"):
        item["held"] = True
    actions = [*first, apt.install([item], apt.options(attrs))]
    if attrs.get("hold"):
        actions.append(apt.hold(name, True))
    return ActionSpec(actions, left=left, known_after=known_after)


def replacing(world: World, node: HostNode, nodes: Mapping[str, HostNode], item: records.InstallItem) -> list[str]:
    """Add the running units of the packages that a package replaces to its item.

    :returns: messages about units that stay up
    :raises CheckError: if another node needs one of the packages
    """
    replaced = item["replaced"]
    refuse_wanted(world, nodes, replaced, f"the installation of {item['name']}")
    removed: records.RemoveItem = {"name": replaced[0], "purge": False, "others": replaced[1:]}
    left = package_units.add_units(world, [removed])
    if removed.get("units"):
        item["units"] = removed["units"]
    return left


def refuse_wanted(world: World, nodes: Mapping[str, HostNode], others: Iterable[str], what: str) -> None:
    """Check that no node wants packages that are removed together with another one.

    :param what: what removes them, for messages
    :raises CheckError: if a node wants one, also in another playbook
    """
    own = wanted(nodes)
    for other in others:
        if other in own:
            raise CheckError(f"{what} would also remove {other}, which {own[other]} installs")
        if "package:" + other in world.elsewhere:
            playbook, wanting = world.elsewhere["package:" + other]
            raise CheckError(f"{what} would also remove {other}, which {wanting} of {playbook} installs")


def marked(node: HostNode, world: World) -> ActionSpec:
    """Compare the marks of an installed package: it must stay if nothing needs it, and be on hold or not."""
    wanted, name = node.attrs.get("hold"), node.attrs["name"]
    entry = world.entry("packages", name) or {}
    actions = [manager(world).mark_manual(name)] if world.entry("automatic", name) is not None else []
    if wanted is not None and wanted is not bool(entry.get("held")):
        actions.append(manager(world).hold(name, wanted))
    return ActionSpec(actions)


def wanted(nodes: Mapping[str, HostNode]) -> dict[str, str]:
    """Return the packages that nodes want installed on each host: name → name of the node."""
    packages = [node for node in nodes.values() if node.type == "package" and not node.options.get("when_host")]
    kept = [node for node in packages if not node.attrs.get("absent")]
    return {node.attrs["name"]: node.provides for node in kept}


def asked(world: World) -> dict[str, records.WantedPackage]:
    """Return the packages that earlier layers install and remove: name → entry."""
    try:
        entries: Any = world.facet("asked")
        return dict(entries)
    except Unknown:  # a required command may change anything: decide after it has run
        return {}


def beside(world: World, node: HostNode, absent: bool) -> list[HostNode]:
    """Return the layer's package nodes, including this one, that have this value of `absent`."""
    others = [other for other in world.beside if other.type == "package" and other.provides != node.provides]
    same = [other for other in (node, *others) if bool(other.attrs.get("absent")) is absent]
    return sorted(same, key=lambda other: str(other.attrs["name"]))


def coming(world: World, node: HostNode, nodes: Mapping[str, HostNode], unpacked: str | None) -> records.InstallItem:
    """Return the item that installs a node's package, with the packages that come with it.

    :param unpacked: the version of the package if it is already unpacked
    :raises CheckError: if the package cannot be installed together with the others of this run
    """
    apt = manager(world)
    name, before = node.attrs["name"], asked(world)
    before.pop(name, None)
    asks = _asks(world, node)
    options = asks[name].get("options")
    if options:
        before = {package: {**entry, "options": options} for package, entry in before.items()}
    try:
        alone = _alone(world, name, asks[name], unpacked, before)
    except CheckError:
        whole = _quietly(world, asks, before) if len(asks) > 1 else {}
        if name not in whole:
            raise
        # Exact versions can need each other: apart, each of them would get the newest version of the other one.
        alone = {name: whole[name]}
    steps = alone if len(asks) == 1 else _joint(world, asks, before, name)
    base = apt.transaction(world, before) if before else {}
    mine = dict(alone)
    if len(asks) > 1 and name == min(asks):  # the first node reports what comes only because of the combination
        apart = [_quietly(world, {package: entry}, before) for package, entry in asks.items()]
        mine.update((package, steps[package]) for package in steps if not any(package in one for one in apart))
    own = wanted(nodes)
    others = {
        package: steps[package]
        for package in mine
        if package not in own
        and package not in asks
        and steps.get(package) is not None
        and base.get(package) != steps[package]
    }
    item: records.InstallItem = {"name": name, "version": steps.get(name, unpacked), "others": others}
    replaced = [package for package in sorted(asks[name].get("replaces", ())) if steps.get(package, "") is None]
    if replaced:
        item["replaced"] = replaced
    return item


def _asks(world: World, node: HostNode) -> dict[str, records.WantedPackage]:
    """Return the packages that the layer installs in one transaction with the node's: name → what is wanted."""
    mine = manager(world).options(node.attrs)
    alike = [peer for peer in beside(world, node, absent=False) if _options(world, peer) == mine]
    peers = [peer for peer in alike if peer is node or not satisfied(world, peer)]
    return {peer.attrs["name"]: _ask(peer.attrs, mine) for peer in peers}


def _options(world: World, node: HostNode) -> list[str] | None:
    """Return the options of the package manager for a node; None if it can't have them: its own check reports that."""
    try:
        return manager(world).options(node.attrs)
    except CheckError:
        return None


def _ask(attrs: records.Attrs, options: list[str]) -> records.WantedPackage:
    """Return what a node wants."""
    entry: records.WantedPackage = {"version": attrs.get("version")}
    if options:
        entry["options"] = options
    if attrs.get("replaces"):
        entry["replaces"] = list(attrs["replaces"])
    if attrs.get("file"):
        entry["file"] = attrs["file"]
    return entry


def refuse_excluded(world: World, node: HostNode, nodes: Mapping[str, HostNode]) -> None:
    """Check that the package and others of this run do not exclude each other, according to the present lists.

    :raises CheckError: if they do
    """
    exclusion = manager(world).EXCLUDED
    try:
        together(world, {**asked(world), **_asks(world, node)})
    except CheckError as problem:
        if not exclusion.search(str(problem)):
            return
    else:
        return
    try:
        coming(world, node, nodes, None)
    except CheckError as problem:
        if exclusion.search(str(problem)):
            raise


def _alone(
    world: World, name: str, entry: records.WantedPackage, unpacked: str | None, before: records.WantedPackages
) -> records.Steps:
    """Return what the installation of one package does after the earlier layers.

    :raises CheckError: if it is not possible; if an earlier package prevents it, the error names that package
    """
    try:
        return choice(world, name, entry, unpacked, before)
    except CheckError as problem:
        if not before or not _works(world, {name: entry}):
            raise
        raise _in_the_way(name, before, problem) from None


def together(world: World, wanted: records.WantedPackages) -> records.Steps:
    """Return what one transaction would do that removes only packages marked as `gone` or in `replaces`.

    :raises CheckError: if the package manager refuses, or would remove another package
    """
    from statecfg.resources.packages import package_steps  # a part of the bundle

    used = manager(world)
    return package_steps.refuse_removals(used.transaction(world, wanted), wanted, used.NAME)


def choice(
    world: World, name: str, entry: records.WantedPackage, unpacked: str | None, before: records.WantedPackages
) -> records.Steps:
    """Return what the installation of one package would do after `before`.

    :raises CheckError: if it is not possible; an unknown name comes with a suggestion
    """
    used = manager(world)
    try:
        steps = together(world, {**before, name: entry})
    except CheckError as problem:
        known = entry.get("file")
        why = None if known else used.unknown_package(world, name, entry.get("version"), str(problem))
        if why is None:
            raise
        raise why from None
    if name not in steps and unpacked is None:
        alone = ", ".join(sorted(together(world, {name: entry})))
        provided = f"provided by {alone}; use that name"
        if not alone:
            provided = "provided by an installed package; use that package's name"
        raise CheckError(f"{name} is {used.VIRTUAL}, {provided}")
    return steps


def _joint(world: World, asks: records.WantedPackages, before: records.WantedPackages, name: str) -> records.Steps:
    """Return what the installation of a layer's packages does. Leave out packages that conflict with those before them.

    :param name: the package of the node being checked
    :raises CheckError: if this package conflicts with those before it
    """
    try:
        return together(world, {**before, **asks})
    except CheckError:
        accepted = dict(before)
    for package, entry in asks.items():
        try:
            together(world, {**accepted, package: entry})
            accepted[package] = entry
        except CheckError as problem:
            if package == name:
                raise _in_the_way(name, accepted, problem) from None
    return together(world, accepted)


def _in_the_way(name: str, accepted: records.WantedPackages, problem: CheckError) -> CheckError:
    others = [package for package, entry in accepted.items() if not entry.get("gone")]
    more = ", …" if len(others) > SHOWN else ""
    text = "%s can't be installed together with %s, which this run installs, too: %s"
    if not others:
        return CheckError(str(problem))
    return Conflict(text % (name, ", ".join(others[:SHOWN]) + more, problem))


def _works(world: World, asks: records.WantedPackages) -> bool:
    try:
        together(world, asks)
    except CheckError:
        return False
    return True


def _quietly(world: World, asks: records.WantedPackages, before: records.WantedPackages) -> records.Steps:
    """Return what the installation of these packages does; nothing if it is not possible."""
    try:
        return together(world, {**before, **asks})
    except CheckError:
        return {}


def taken(world: World, node: HostNode, purge: bool) -> set[str]:
    """Return the other packages that are removed with the package of a node with `absent`.

    :raises CheckError: if apt refuses
    """
    apt = manager(world)
    before = asked(world)
    removed = {peer.attrs["name"]: apt.GONE for peer in beside(world, node, absent=True)}
    planned = {*removed, *(package for package, entry in before.items() if entry.get("gone"))}
    steps = apt.transaction(world, {**before, **removed}, purge)
    others = {package for package, version in steps.items() if version is None} - planned
    if others and len(removed) > 1:
        alone = apt.transaction(world, {**before, node.attrs["name"]: apt.GONE}, purge)
        others = {package for package in others if package in alone and alone[package] is None}
    return others


def release(world: World, item: records.RemoveItem) -> None:
    """Add to an item which of its packages are on hold."""
    held = [name for name in (item["name"], *item["others"]) if (world.entry("packages", name) or {}).get("held")]
    if held:
        item["held"] = held


def removal(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> ActionSpec:
    """Return what removes the package.

    :raises CheckError: if this would also remove a package that must stay
    """
    name, purge = node.attrs["name"], bool(node.attrs.get("purge"))
    entry = world.entry("packages", name)
    state = "not-installed" if entry is None else entry.get("state")
    if state == "not-installed" or (state == "config-files" and not purge):
        return ActionSpec()
    apt = manager(world)
    others: list[str] = []
    known_after = None
    try:
        others = sorted(taken(world, node, purge))
    except Unknown as unknown:
        known_after = unknown.cause
    refuse_wanted(world, nodes, others, f"the removal of {name}")
    if others and not node.attrs.get("dependents"):
        listed = ", ".join(others)
        raise CheckError(f"other packages depend on {name}: {listed}; dependents: true removes them too")
    item: records.RemoveItem = {"name": name, "purge": purge, "others": others}
    release(world, item)
    if item.get("held") and node.attrs.get("hold") is None:
        raise CheckError(f"{', '.join(item['held'])} is on hold; hold: false releases it before the removal")
    try:
        left = package_units.add_units(world, [item])
    except Unknown as unknown:
        left, known_after = [], known_after or unknown.cause
    return ActionSpec([*apt.first(world), apt.remove([item])], left=left, known_after=known_after)
