"""Packages before a node was applied: record what is installed and what comes with a package, and restore it."""

from __future__ import annotations

import posixpath
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from statecfg.remote.graph.model import Action, ActionSpec, Blob, CheckError, HostNode, Unknown
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.ledger.records import Orphan
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.packages import package_transaction
from statecfg.resources.packages.package_manager import manager
from statecfg.resources.shared import paths, records, restore, snapshot

if TYPE_CHECKING:
    from typing import NotRequired, TypedDict

    class LearnedPackages(TypedDict, total=False):
        """What a `package` records after it was installed.

        :ivar brought: the packages that came with it
        :ivar upgraded: the packages that were upgraded for it → former and new version
        """

        brought: list[str]
        upgraded: dict[str, list[str]]

    class PackageMemory(snapshot.Memory, LearnedPackages):
        """The memory of a `package`.

        :ivar auto: whether it was installed only because other packages needed it
        :ivar context: the other packages, one line each (see `package_snapshot.context`)
        :ivar gone: name and version of each package that the node removes
        :ivar automatic: those of them that were installed only because other packages needed them
        :ivar files: their configuration files
        :ivar replaced: name, version and mark (`auto`) of each package that the node may replace
        """

        entry: records.Fields | None
        replaced: NotRequired[list[tuple[str, str, bool]]]
        auto: bool
        context: Blob
        gone: NotRequired[list[list[str]]]
        automatic: NotRequired[list[str]]
        files: NotRequired[dict[str, snapshot.PathRecord | None]]

    ManagedPackage = tuple[records.Attrs, PackageMemory]
    """The attributes of a managed `package`, and its memory."""

CONFIGURED = "-"  # instead of a version: only the package's configuration files exist


@op
def put_back(
    machine: Machine, path: str, content: Blob, mode: int | None, owner: str | None, group: str | None
) -> Result:
    """Restore a configuration file that was purged with its package, in a directory that the package may bring."""
    result = machine.mkdir(posixpath.dirname(path), parents=True)
    return result if result["status"] != "ok" else machine.write(path, content, mode, owner, group)


def context(world: World, brought: Container[str]) -> str:
    """Return the installed packages, one line each: name and version.

    :param brought: packages that came with other nodes' packages; they are left out
    """
    lines = []
    for name, entry in sorted(world.facet("packages").items()):
        if "version" not in entry:
            lines.append(f"{name} {CONFIGURED}")
        elif name not in brought:
            lines.append(f"{name} {entry['version']}")
    return "\n".join(lines)


def before(memory: PackageMemory) -> dict[str, str]:
    """Return what was installed before a package: name → version, "" if a ledger of 0.3.0 has only the name."""
    lines = memory["context"].read().decode().split("\n")
    return {name: version for name, _, version in (line.partition(" ") for line in lines)}


def newcomer(node: HostNode) -> bool:
    """Tell whether a removed node brought a package that was not installed before."""
    if node.type != "package" or node.attrs.get("absent") or getattr(node, "successor", None) is not None:
        return False
    entry = remembered(node).get("entry", {})
    return entry is None or "version" not in entry


def remembered(node: HostNode) -> PackageMemory:
    """Return what the ledger remembers of a node that this run removes."""
    memory: Any = node.snapshot if isinstance(node, Orphan) else {}
    remembered: PackageMemory = memory
    return remembered


def needed(needs: Mapping[str, Mapping[str, list[str]]], name: str, soft: bool = True) -> set[str]:
    """Return all installed packages that a package needs, directly or indirectly.

    :param soft: include packages that are only recommended
    """
    names: set[str] = set()
    waiting = [name if name in needs else name.partition(":")[0]]  # a package of a foreign architecture
    while waiting:
        entry = needs.get(waiting.pop(), {})
        more = {*entry.get("hard", ()), *(entry.get("soft", ()) if soft else ())} - names
        names |= more
        waiting.extend(more)
    return names - {name}


def along(world: World, name: str, memory: PackageMemory) -> set[str]:
    """Return the packages that came with this one and are installed only because others need them."""
    there = before(memory)
    close = {
        package for package in needed(world.facet("dependencies"), name) if there.get(package, CONFIGURED) == CONFIGURED
    }
    names = close.union(memory.get("brought") or ())
    return {package for package in names if world.entry("automatic", package) and world.entry("packages", package)}


def brought_by(world: World, others: Iterable[ManagedPackage]) -> set[str]:
    """Return the packages that managed nodes installed, and the dependencies that were installed along with them."""
    names: set[str] = set()
    needs = world.facet("dependencies")
    for attrs, memory in others:
        name, entry = attrs["name"], memory.get("entry", {})
        if name in needs and not attrs.get("absent") and (entry is None or "version" not in entry):
            names.add(name)
            names |= along(world, name, memory)
    return names


def learned(world: World, name: str, memory: PackageMemory) -> LearnedPackages:
    """Return which packages came with an installed package, and which were upgraded for it."""
    brought = along(world, name, memory)
    if "upgraded" in memory:  # a version that changed after its first run has another reason
        return {"brought": sorted(brought)}
    there, packages, needs = before(memory), world.facet("packages"), world.facet("dependencies")
    other = {
        package: [version, packages[package]["version"]]
        for package, version in there.items()
        if version not in ("", CONFIGURED, packages.get(package, {}).get("version", version))
    }
    close = needed(needs, name) & set(other)
    # Packages that must be upgraded together with a needed one.
    close |= {package for package in other if close.intersection(needs.get(package, {}).get("hard", ()))}
    upgraded = {package: versions for package, versions in sorted(other.items()) if package in close - {name}}
    return {"brought": sorted(brought), "upgraded": upgraded}


def brought_back(world: World, name: str, memory: PackageMemory) -> ActionSpec:
    """Return what installs again the packages that a node removed, with the configuration that it purged.

    Configuration files are restored before their package is installed, so that its service starts with them, if the
    package manager keeps files that were there before.
    """
    was = memory["entry"] or {}
    removed = memory.get("gone") or ([[name, was["version"]]] if "version" in was else [])
    automatic = memory.get("automatic") or ([name] if memory["auto"] else [])
    spec = installed_again(world, removed, automatic)
    first: list[Action] = []
    shipped, saved = manager(world).SHIPPED, manager(world).SAVED
    for path, entry in sorted((memory.get("files") or {}).items()):
        if entry is None or "content" not in entry:
            continue
        now, content = world.stat(path), entry["content"]
        if now is None or now.file_type == "file":
            restoring = restore.Restore(world, {})
            if now is None or now.size != content.size or world.digest(path) != content.sha256:
                put = put_back(path, content, entry["mode"], entry["owner"], entry["group"])
                there = world.entry("users", entry["owner"]) and world.entry("groups", entry["group"])
                if there and shipped and world.stat(path + shipped) is None:
                    first.append(put)
                    spec.actions.append(paths.remove(path + shipped))  # the package's own file is written beside it
                else:
                    spec.actions.append(put)
            else:
                restoring.attributes(path, now, entry, ("mode", "owner", "group"))
                spec.actions.extend(restoring.actions)
            copy = world.stat(path + saved) if saved else None
            if copy is not None and copy.size == content.size and world.digest(path + (saved or "")) == content.sha256:
                spec.actions.append(paths.remove(path + (saved or "")))
    spec.actions[:0] = first
    spec.left.extend(memory.get("lost") or ())
    return spec


def installed_again(world: World, wanted: Sequence[Sequence[str]], automatic: Sequence[str]) -> ActionSpec:
    """Return what restores packages in their former versions.

    If apt no longer has the version of a missing package, the newest version is installed.

    :param wanted: pairs of name and version
    :param automatic: the packages that were installed only because others need them
    """
    items: list[records.InstallItem] = []
    left: list[str] = []
    for name, version in wanted:
        now = world.entry("packages", name) or {}
        there = now.get("version") if not now.get("state") else None
        if there == version:
            continue
        if version in now.get("older", ()):
            left.append(f"{name} {there} stays beside version {version}")
            continue
        item, why = _item(world, name, version, there)
        if why:
            left.append(why)
        if item is not None:
            items.append(item)
    actions: list[Action] = [*manager(world).first(world), manager(world).install(items)] if items else []
    changing = {item["name"] for item in items}
    for name in automatic:
        there = (world.entry("packages", name) or {}).get("version") is not None
        if name in changing or (there and world.entry("automatic", name) is None):
            actions.append(manager(world).mark_automatic(name))
    return ActionSpec(actions, left=left)


def _item(world: World, name: str, version: str, there: str | None) -> tuple[records.InstallItem | None, str]:
    """Return the item to install (None: nothing), and a message if that is not the former version."""
    try:
        return _chosen(world, name, version), ""
    except Unknown:
        return {"name": name, "version": version, "others": {}}, ""
    except CheckError as problem:
        why = f"{name} had version {version}, which is no longer available"
        if there is not None:
            return None, f"{why}: it stays at {there}"
        try:
            return _chosen(world, name, None), f"{why}: the newest version is installed"
        except CheckError:
            return None, f"{why}: it is not installed again: {problem}"


def _chosen(world: World, name: str, version: str | None) -> records.InstallItem:
    planned = {package: entry for package, entry in package_transaction.asked(world).items() if package != name}
    steps = package_transaction.choice(world, name, {"version": version}, None, planned)
    others: records.Steps = {
        package: new_version
        for package, new_version in steps.items()
        if new_version is not None and package != name and package not in planned
    }
    item: records.InstallItem = {"name": name, "version": steps.get(name), "others": others}
    if (world.entry("packages", name) or {}).get("held"):
        item["held"] = True
    return item


def held_again(
    node: HostNode, was: records.Fields | None, now: records.Fields | None, world: World, spec: ActionSpec
) -> ActionSpec:
    """Add the action that puts a package on hold again, or releases it, if the node manages this.

    :param was: the package before the first apply
    :param now: the package as it is
    :param spec: what restores its version
    """
    wanted = bool((was or {}).get("held"))
    held = bool((now or {}).get("held")) and not spec.actions  # an installation releases it
    installs = bool(spec.actions) or "version" in (now or {})
    if node.attrs.get("hold") is not None and installs and wanted is not held:
        spec.actions.append(manager(world).hold(node.attrs["name"], wanted))
    return spec


def remember(node: HostNode, world: World, others: Sequence[ManagedPackage] = ()) -> PackageMemory:
    """Record the package, the other installed packages and, for `absent`, everything that is removed with it."""
    attrs = node.attrs
    name = attrs["name"]
    apt = manager(world)
    snap = snapshot.Snapshot(world)
    entry = world.entry("packages", name)
    brought = brought_by(world, others)
    memory: PackageMemory = {
        # A package that came with another node's package counts as new: remove it once nothing needs it.
        "entry": None if name in brought else entry,
        "auto": world.entry("automatic", name) is not None,
        # The context lists the other packages, not the package itself.
        "context": Blob.of(context(world, brought)),
    }
    if attrs.get("replaces"):
        packages = world.facet("packages")
        memory["replaced"] = [
            (other, packages[other]["version"], world.entry("automatic", other) is not None)
            for other in sorted(attrs["replaces"])
            if "version" in packages.get(other, {})
        ]
    if attrs.get("absent") and entry is not None:
        removed = [name]
        if attrs.get("dependents"):
            removed += [package for package in sorted(apt.transaction(world, {name: apt.GONE})) if package != name]
        packages = world.facet("packages")
        memory["gone"] = [
            [package, packages[package]["version"]] for package in removed if "version" in packages.get(package, {})
        ]
        memory["automatic"] = [package for package in removed if world.entry("automatic", package) is not None]
        if attrs.get("purge") or apt.SAVED:
            memory["files"] = {path: snap.entry(path) for package in removed for path in apt.conffiles(world, package)}
    return snap.with_lost(memory)


def learn(node: HostNode, memory: PackageMemory, world: World) -> LearnedPackages:
    """Record which packages came with this one, and which were upgraded for it."""
    return {} if node.attrs.get("absent") else learned(world, node.attrs["name"], memory)
