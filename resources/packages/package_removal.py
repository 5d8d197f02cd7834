"""Undo packages that a node installed: what can be removed together, which dependencies go with them, what stays."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.machine.world import World
from statecfg.resources.packages import package_snapshot, package_transaction, package_units
from statecfg.resources.packages.package_manager import manager
from statecfg.resources.shared import records


def package_removal(world: World, to_remove: Mapping[str, HostNode], kept_identities: Container[str]) -> PackageRemoval:
    """Return the removal of the layer's packages. It is computed once and shared by all of them."""
    if "package_removal" not in world.memo:
        world.memo["package_removal"] = PackageRemoval(world, to_remove, kept_identities)
    found: PackageRemoval = world.memo["package_removal"]
    return found


class Newcomers:
    """The packages that this run removes, and what came with them.

    :param to_remove: all nodes that this run removes, by name, with their records in the ledger
    :ivar memories: package → the memory of its node
    :ivar came_with: package → the packages that came with it
    :ivar back: package of this layer → packages that it had replaced and that are installed again: name → version
    """

    def __init__(self, world: World, to_remove: Mapping[str, HostNode]) -> None:
        self.memories: dict[str, package_snapshot.PackageMemory] = {
            node.attrs["name"]: package_snapshot.remembered(node)
            for node in to_remove.values()
            if package_snapshot.newcomer(node)
        }
        self.came_with = {name: package_snapshot.along(world, name, memory) for name, memory in self.memories.items()}
        self.back: dict[str, dict[str, str]] = {}

    def before(self, name: str) -> set[str]:
        """Return the packages that existed before the packages with which this one was installed."""
        bringers = [other for other, came in self.came_with.items() if name in came]
        return set().union(*(package_snapshot.before(self.memories[other]) for other in bringers))


class PackageRemoval:
    """The removal of one layer's packages, after the removals of earlier layers.

    :param to_remove: all nodes that this run removes, by name, with their records in the ledger
    :param kept_identities: the identities of all nodes that stay managed
    :ivar removed: the packages that this layer removes
    :ivar gone: the packages that earlier layers remove
    :ivar later: the packages that later layers remove
    :ivar kept: package of this layer that must stay → the packages that need it
    :ivar instead: packages that are installed as a replacement: name → version
    :ivar with_them: packages that are removed with those of this layer
    """

    def __init__(self, world: World, to_remove: Mapping[str, HostNode], kept_identities: Container[str]) -> None:
        self.world, self.kept_identities, self.manager = world, kept_identities, manager(world)
        self.needs = world.facet("dependencies")
        self.asked = package_transaction.asked(world)
        self.gone = {name for name, entry in self.asked.items() if entry.get("gone")}
        self.newcomers = Newcomers(world, to_remove)
        memories = self.newcomers.memories
        layer = [node for node in world.beside if package_snapshot.newcomer(node)] or to_remove.values()
        names: set[str] = {node.attrs["name"] for node in layer}
        self.removed = (names & set(memories)) - self.gone
        # Packages that stayed at their turn only because packages of this layer need them.
        needed = {other for name in self.removed for other in package_snapshot.needed(self.needs, name)}
        self.removed |= {name for name in needed & set(memories) - self.gone if world.entry("automatic", name)}
        self.later = set(memories) - self.removed - self.gone
        self.newcomers.back = {name: self._replaced(name) for name in sorted(self.removed)}
        self.kept: dict[str, list[str]] = {}
        self.instead: dict[str, str] = {}
        taken = self._find_removable()
        self.with_them = self._with_them(taken) if self.removed else set()

    def _find_removable(self) -> set[str]:
        """Find which packages of the layer can be removed without a package that stays.

        :returns: the other packages that are removed with them
        """
        while self.removed:
            steps = self._steps(self.removed)
            others = {name for name, version in steps.items() if version is None} - self.removed - self.gone
            stay = {name for name in others if not self._ours(name)}
            if not stay:
                new = {name: version for name, version in steps.items() if version is not None}
                back = {other for name in self.removed for other in self.newcomers.back.get(name, {})}
                self.instead = {name: version for name, version in new.items() if name not in {*self.asked, *back}}
                return others
            needs = {other: package_snapshot.needed(self.needs, other, soft=False) for other in sorted(stay)}
            needers = {name: [other for other in needs if name in needs[other]] for name in sorted(self.removed)}
            blocked = {name: needing for name, needing in needers.items() if needing}
            self.kept.update(blocked or dict.fromkeys(self.removed, sorted(stay)))
            self.removed -= set(self.kept)
        return set()

    def _steps(self, names: Iterable[str]) -> records.Steps:
        """Return what the manager does if these packages are removed after all earlier removals."""
        back = {other: version for name in names for other, version in self.newcomers.back.get(name, {}).items()}
        again: records.WantedPackages = {other: {"version": version} for other, version in back.items()}
        wanted = {**self.asked, **again, **dict.fromkeys(names, self.manager.GONE)}
        try:
            return self.manager.transaction(self.world, wanted, purge=True)
        except CheckError:  # the present lists lack a package that this run installs
            gone = {name: entry for name, entry in wanted.items() if entry.get("gone") or name in again}
            return self.manager.transaction(self.world, gone, purge=True)

    def _replaced(self, name: str) -> dict[str, str]:
        """Return the packages that a package had replaced and that can be installed again: name → version."""
        found: dict[str, str] = {}
        for other, version, _ in self.newcomers.memories[name].get("replaced") or ():
            if "version" in (self.world.entry("packages", other) or {}):
                continue
            for wanted in (version, None):  # the former version may no longer be available
                try:
                    asks: records.WantedPackages = {other: {"version": wanted}, name: self.manager.GONE}
                    found[other] = self.manager.transaction(self.world, asks).get(other) or version
                    break
                except CheckError:
                    continue
        return found

    def _ours(self, name: str) -> bool:
        """Tell whether a package came with packages that are now removed, and no node manages it."""
        if "package:" + name in self.kept_identities or name in self.later or not self.world.entry("automatic", name):
            return False
        came_with = self.newcomers.came_with
        return any(name in came_with[other] for other in (self.removed | self.gone) & set(came_with))

    def _with_them(self, taken: set[str]) -> set[str]:
        """Return `taken` and the packages that were installed along with removed ones and that nothing else needs."""
        removing, came_with = self.removed | self.gone, self.newcomers.came_with
        unneeded = self.manager.unneeded(self.world, removing) - removing
        found = taken | {name for name in unneeded if self._ours(name)}
        came = {name for other in removing & set(came_with) for name in came_with[other]}
        more = {name for name in came - found - removing if self._ours(name)}
        while more:
            removing = self.removed | self.gone | found | more
            later = {
                name for name in more if not self._needers(name).difference(removing) <= self.newcomers.before(name)
            }
            if not later:
                steps = self._steps(self.removed | found | more)
                if set(steps) <= removing | set(self.asked) | set(self.instead):
                    return found | more
                stay = set(steps) - removing
                later = {
                    name
                    for name in more
                    for other in stay
                    if name in package_snapshot.needed(self.needs, other, soft=False)
                }
            more -= later or more
        return found

    def _needers(self, name: str) -> set[str]:
        return {other for other, entry in self.needs.items() if name in entry["hard"] or name in entry["soft"]}

    def of(self, node: HostNode) -> ActionSpec:
        """Return the actions and messages for one of the layer's packages and for what came with it."""
        name = node.attrs["name"]
        if name in self.gone:
            return ActionSpec()
        if name not in self.removed:
            return self._stays(name)
        mine = sorted(other for other in self.with_them if self._last(other, self.newcomers.came_with) == name)
        memory = self.newcomers.memories[name]
        before = package_snapshot.before(memory)
        items: list[records.RemoveItem] = [
            {"name": other, "purge": before.get(other) != package_snapshot.CONFIGURED, "others": []} for other in mine
        ]
        item: records.RemoveItem = {"name": name, "purge": memory["entry"] is None, "others": []}
        left = [*self._kept(name), *self._upgraded(name)]
        if self.instead and name == max(self.removed):
            item["instead"] = self.instead
            shown = ", ".join(sorted(self.instead))
            left.append(f"{shown} is installed as a replacement: remaining packages need one")
        marks = self._add_replaced(name, item, left)
        left += package_units.add_units(self.world, [*items, item])
        for each in (*items, item):
            package_transaction.release(self.world, each)
        action = self.manager.remove([*items, item])
        return ActionSpec([*self.manager.first(self.world), action, *marks], left=left)

    def _add_replaced(self, name: str, item: records.RemoveItem, left: list[str]) -> list[Action]:
        """Add what a package had replaced to the item that removes it, and messages about other versions.

        :returns: the actions that mark these packages as automatically installed again
        """
        back = self.newcomers.back[name]
        if back:
            item["back"] = back
        marks: list[Action] = []
        for other, version, auto in self.newcomers.memories[name].get("replaced") or ():
            if other in back and auto:
                marks.append(self.manager.mark_automatic(other))
            if other in back and back[other] != version:
                left.append(f"{other} had version {version}: version {back[other]} is installed again")
            elif other not in back and "version" not in (self.world.entry("packages", other) or {}):
                left.append(f"{other}, which {name} replaced, is no longer available: it stays removed")
        return marks

    def _last(self, name: str, lists: Mapping[str, Container[str]]) -> str:
        """Return the package of the layer that removes a dependency: the last of those with which it was installed."""
        bringers = sorted(other for other in self.removed if name in lists.get(other, ()))
        return (bringers or sorted(self.removed))[-1]

    def _stays(self, name: str) -> ActionSpec:
        needers = self.kept.get(name, [])
        actions: list[Action] = []
        if not self.world.entry("automatic", name):
            actions.append(self.manager.mark_automatic(name))  # then it is removed with the last package that needs it
        if needers and all(other in self.later for other in needers):
            return ActionSpec(actions, left=[f"{name} is removed with {_all(needers)}, which needs it"])
        return ActionSpec(actions, left=[f"{name} stays: {_needed_by(needers)}"])

    def _kept(self, name: str) -> Iterable[str]:
        """Yield a message for each package that came with this one and stays, with the reason."""
        removing = self.removed | self.gone | self.with_them
        later = {other for one in self.later for other in (one, *package_snapshot.needed(self.needs, one))}
        memories, came_with = self.newcomers.memories, self.newcomers.came_with
        recorded = memories[name].get("brought") or ()
        for other in sorted(came_with[name].union(recorded) - removing - later - set(memories)):
            entry = self.world.entry("packages", other)
            if entry is None or "version" not in entry or self._last(other, came_with) != name:
                continue
            needers = sorted(self._needers(other) - removing)
            why = _needed_by(needers)
            if "package:" + other in self.kept_identities:
                why = "another node manages it"
            elif not needers:
                why = "it is marked as manually installed"
                if self.world.entry("automatic", other):
                    why = "the package manager still counts it as needed"
            yield f"{other}, which came with {name}, stays: {why}"

    def _upgraded(self, name: str) -> Iterable[str]:
        """Yield a message for each package that was upgraded for this one and keeps its new version."""
        memories = self.newcomers.memories
        lists = {other: memories[other].get("upgraded") or {} for other in self.removed if other in memories}
        for other, (was, _) in sorted(lists.get(name, {}).items()):
            now = (self.world.entry("packages", other) or {}).get("version")
            reported = self._last(other, lists) == name and "package:" + other not in self.kept_identities
            if reported and now not in (None, was) and other not in memories:
                yield f"{other}, which was upgraded for {name}, stays at {now} (it was {was})"


def _all(names: list[str]) -> str:
    shown = names[: package_transaction.SHOWN]
    more = len(names) - len(shown)
    return " and ".join([", ".join(shown)] + ([f"{more} more"] if more else []))


def _needed_by(names: list[str]) -> str:
    return f"{_all(names)} {'needs' if len(names) == 1 else 'need'} it"


def undo(
    node: HostNode,
    memory: package_snapshot.PackageMemory,
    world: World,
    to_remove: Mapping[str, HostNode] | None = None,
    kept_identities: Container[str] = (),
) -> ActionSpec:
    """Remove a new package and its dependencies, or restore a former package or its former version."""
    attrs, was = node.attrs, memory["entry"]
    name, now = attrs["name"], world.entry("packages", attrs["name"])
    if attrs.get("absent"):
        spec = package_snapshot.brought_back(world, name, memory)
    elif was is None or "version" not in was:
        if now is not None and now != was:
            return package_removal(world, to_remove or {node.provides: node}, kept_identities).of(node)
        replaced = [(other, version) for other, version, _ in memory.get("replaced") or ()]
        return package_snapshot.installed_again(world, replaced, [])
    else:
        spec = ActionSpec()
        if now is None or now.get("state") or attrs.get("version") or attrs.get("file"):
            replaced = [(other, version) for other, version, _ in memory.get("replaced") or ()]
            former = [(name, was["version"]), *replaced]
            spec = package_snapshot.installed_again(world, former, [name] if memory["auto"] else [])
        elif memory["auto"] and world.entry("automatic", name) is None:
            spec.actions.append(manager(world).mark_automatic(name))
    return package_snapshot.held_again(node, was, now, world, spec)
