"""Packages of the system, installed by apt."""

from __future__ import annotations

import fnmatch

from statecfg.remote.graph.model import ActionSpec, Blob, CheckError, Unknown
from statecfg.remote.graph.nodetype import node_type
from statecfg.resources import _before, _former, _leftover, _together
from statecfg.resources._departure import departure
from statecfg.resources._manager import manager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Container, Dict, List, Mapping, Optional, Sequence

    from typing_extensions import Unpack

    from statecfg.remote.graph.model import Node
    from statecfg.remote.graph.values import NodeOptions, PackageName, Text
    from statecfg.remote.machine.world import World


@node_type
def package(
    name: PackageName,
    *,
    version: Optional[Text] = None,
    update_cache: Optional[int] = None,
    absent: bool = False,
    purge: bool = False,
    dependents: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Install or remove a package of a Debian system, using apt.

    statecfg installs the packages of a layer in one transaction. A plan simulates this transaction together with
    everything that the earlier layers install and remove, so it finds packages that exclude each other before anything
    changes. If a required node changes what apt reads, such as its sources, the dependencies are `known after` that
    node. An installation never removes another package, and it keeps configuration files that were changed on the host.
    Without `version`, an installed package keeps its version. Before statecfg removes a package, it stops the running
    units of the package, because not every package does that itself. The plan lists these units, and it names those
    that systemd refuses to stop manually.

    Undo: statecfg purges a package that was not installed before. It does so after all other nodes of the run except
    those that the package requires, because undoing them may need the package. A dependency is removed together with
    the last package that needs it. A package that something else needs by then stays, and so does a package that
    another node manages, also in another playbook. Plan and report list what stays: dependencies with the packages that
    need them, and packages that were upgraded. If the package was installed before and the node set a version or
    removed it, its former version is installed again, provided that apt still has it; with `purge`, its configuration
    files are restored as well.

    :param name: the name of the package, with ``:architecture`` for a foreign architecture
    :param version: the required version, exact or as a pattern such as ``"1.22.*"``; a newer version is replaced
    :param update_cache: before installing the package, update apt's package lists if they are older than this many
        seconds
    :param absent: the package must not be installed
    :param purge: with `absent`: also remove the configuration of the package
    :param dependents: with `absent`: also remove the packages that depend on this one; without `dependents`, the node
        fails if there are any

    In YAML::

        - package: nginx
          version: "1.22.*"
          update_cache: 86400

    In Python::

        package("telnetd", absent=True, purge=True)
    """


@package.validate
def contradictions(attrs: Dict[str, Any]) -> None:
    """Refuse attributes that contradict each other."""
    if attrs.get("absent") and (attrs.get("version") or attrs.get("update_cache") is not None):
        raise ValueError("absent can't go together with version or update_cache")
    for name in ("purge", "dependents"):
        if attrs.get(name) and not attrs.get("absent"):
            raise ValueError("%s goes with absent" % name)
    if (attrs.get("update_cache") or 0) < 0:
        raise ValueError("update_cache is a number of seconds, 0 or more")


@package.check
def check(node: Node, nodes: Mapping[str, Node], world: World) -> ActionSpec:
    """Compare what is installed with what is wanted, and ask the package manager what it would do about it."""
    attrs = node.attrs
    apt = manager(world)
    entry = world.entry("packages", attrs["name"])
    if attrs.get("absent"):
        return removal(node, nodes, world, entry)
    if satisfied(world, node):
        return ActionSpec()
    actions = apt.first(world)
    stale = apt.stale(world, attrs.get("update_cache"))
    item = {"name": attrs["name"], "version": attrs.get("version"), "others": {}}
    known_after = None
    try:
        if stale is False:
            item = _together.coming(world, node, nodes, (entry or {}).get("version"), satisfied)
        else:  # newer lists may have newer versions
            _together.refuse_excluded(world, node, nodes, satisfied)
    except Unknown as unknown:  # that it is to be installed is known all the same; what comes along is not
        known_after = unknown.cause
    if stale:
        item["update"] = attrs["update_cache"]
    return ActionSpec([*actions, apt.install([item])], known_after=known_after)


def satisfied(world: World, node: Node) -> bool:
    """Tell whether a package that is to be there is installed, at a version that is wanted."""
    entry, version = world.entry("packages", node.attrs["name"]), node.attrs.get("version")
    found = entry["version"] if entry is not None and not entry.get("state") else None
    return found is not None and (version is None or fnmatch.fnmatchcase(found, version))


def removal(node: Node, nodes: Mapping[str, Node], world: World, entry: Optional[Dict[str, Any]]) -> ActionSpec:
    """Return what removes the package. Raises CheckError if others would go that should stay."""
    name, purge = node.attrs["name"], bool(node.attrs.get("purge"))
    if entry is None or (entry.get("state") == "config-files" and not purge):
        return ActionSpec()
    apt = manager(world)
    others: List[str] = []
    known_after = None
    try:
        others = sorted(_together.taken(world, node, purge))
    except Unknown as unknown:
        known_after = unknown.cause
    own = _together.wanted(nodes)
    for other in others:
        if other in own:
            raise CheckError("without %s, %s has to go, but %s wants it" % (name, other, own[other]))
        if "package:" + other in world.claimed:
            playbook, wanting = world.claimed["package:" + other]
            raise CheckError("without %s, %s has to go, but %s of %s wants it" % (name, other, wanting, playbook))
    if others and not node.attrs.get("dependents"):
        shown = ", ".join(others)
        raise CheckError("other packages depend on %s: %s; dependents: true removes them too" % (name, shown))
    item = {"name": name, "purge": purge, "others": others}
    try:
        left = _leftover.add_units(world, [item])
    except Unknown as unknown:
        left, known_after = [], known_after or unknown.cause
    return ActionSpec([*apt.first(world), apt.remove([item])], left=left, known_after=known_after)


@package.remember
def remember(node: Node, world: World, others: Sequence[_former.Known] = ()) -> Dict[str, Any]:
    """Remember the package, what is installed beside it, and what goes with it if it is to be absent."""
    attrs = node.attrs
    name = attrs["name"]
    apt = manager(world)
    looking = _before.Looking(world)
    entry = world.entry("packages", name)
    brought = _former.brought_by(world, others)
    known: Dict[str, Any] = {"entry": entry, "auto": world.entry("automatic", name) is not None}
    if name in brought:  # it came with another node's package: once nothing needs it, it goes
        known["entry"] = None
    # Only what is around it: of the package itself it says nothing.
    known["context"] = Blob.of(_former.context(world, brought))
    if attrs.get("absent") and entry is not None:
        gone = [name]
        if attrs.get("dependents"):
            gone += [each for each in sorted(apt.transaction(world, {name: apt.GONE})) if each != name]
        table = world.table("packages")
        known["gone"] = [[each, table[each]["version"]] for each in gone if "version" in table.get(each, {})]
        known["automatic"] = [each for each in gone if world.entry("automatic", each) is not None]
        if attrs.get("purge"):
            known["files"] = {path: looking.entry(path) for each in gone for path in apt.conffiles(world, each)}
    return looking.memory(**known)


@package.learn
def learn(node: Node, memory: Mapping[str, Any], world: World) -> Dict[str, Any]:
    """Record which packages came along for this one, and which were upgraded for it."""
    return {} if node.attrs.get("absent") else _former.learned(world, node.attrs["name"], memory)


@package.undo
def undo(
    node: Node,
    memory: Mapping[str, Any],
    world: World,
    leaving: Optional[Mapping[str, Node]] = None,
    staying: Container[str] = (),
) -> ActionSpec:
    """Take a new package away, with what came along; bring back an old one, or the version it had."""
    attrs, was = node.attrs, memory["entry"]
    name, now = attrs["name"], world.entry("packages", attrs["name"])
    if attrs.get("absent"):
        return _former.brought_back(world, name, memory)
    if was is None or "version" not in was:
        gone = now is None or now == was
        return ActionSpec() if gone else departure(world, leaving or {node.provides: node}, staying).of(node)
    installed = now is not None and not now.get("state")
    if installed and not attrs.get("version"):
        return ActionSpec()
    return _former.installed_again(world, [(name, was["version"])], [name] if memory["auto"] else [])
