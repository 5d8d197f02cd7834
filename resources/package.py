"""Packages of the system: apt."""

from __future__ import annotations

import fnmatch
import time

from statecfg.remote.model import ActionSpec, Blob, CheckError, Unknown
from statecfg.remote.nodetype import node_type
from statecfg.resources import _apt, _before, _former

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional

    from typing_extensions import Unpack

    from statecfg.remote.model import Action, Node
    from statecfg.remote.nodetype import NodeOptions
    from statecfg.remote.values import PackageName, Text
    from statecfg.remote.world import World


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
    """A package of a Debian system, installed by apt.

    The packages of a layer are installed in one transaction. An installation never removes another package, and
    leaves configuration files alone that were changed on the host. Without `version` an installed package stays at
    the version it has.

    Undone: a package that was not there is purged, with the packages that came along for it and that nothing else
    needs; where others that stay depend on it by then, it stays. One that was there goes back to the version it had,
    where the node asked for a version or removed it and apt still has that version; with `purge`, its configuration
    files come back as well.

    :param name: the package's name, with ``:architecture`` where it is a foreign one
    :param version: the version it is to have, exactly or as a pattern such as ``"1.22.*"``; a newer one is replaced
    :param update_cache: fetch apt's lists first, where the package is to be installed and they are older than this
        many seconds
    :param absent: the package is not to be installed
    :param purge: with absent, its configuration goes as well
    :param dependents: with absent, the packages that depend on it may go as well; without, the node fails where
        there are any

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
def check(node: Node, nodes: Mapping[str, Node], world: World) -> List[Action]:
    """Compare what dpkg says with what is wanted, and ask apt what it would do about it."""
    attrs = node.attrs
    entry = world.entry("packages", attrs["name"])
    if attrs.get("absent"):
        return removal(node, nodes, world, entry)
    version = attrs.get("version")
    found = entry["version"] if entry is not None and not entry.get("state") else None
    if found is not None and (version is None or fnmatch.fnmatchcase(found, version)):
        return []
    actions = _apt.first(world)
    age = attrs.get("update_cache")
    moment = (world.entry("apt", "lists") or {}).get("updated", 0)
    stale = age is not None and (moment == _apt.UPDATED or time.time() - moment > age)
    item = {"name": attrs["name"], "version": version, "others": {}}
    if not stale and moment != _apt.UPDATED:
        try:
            item = _apt.choice(world, attrs["name"], version, (entry or {}).get("version"))
            # A package that comes along and has a node of its own is that node's to tell of: it may ask for a version.
            own = wanted(nodes)
            item["others"] = {name: known for name, known in item["others"].items() if name not in own}
        except Unknown:  # that it is to be installed is known all the same; what comes along is not
            pass
    return [*actions, _apt.install([dict(item, update=age) if stale else item])]


def removal(node: Node, nodes: Mapping[str, Node], world: World, entry: Optional[Dict[str, Any]]) -> List[Action]:
    """Return what removes the package. Raises CheckError where others would go that are not to."""
    name, purge = node.attrs["name"], bool(node.attrs.get("purge"))
    if entry is None or (entry.get("state") == "config-files" and not purge):
        return []
    try:
        others = sorted(other for other in _apt.simulate(world, ["purge" if purge else "remove", "--", name]))
    except Unknown:
        others = []
    others = [other for other in others if other != name]
    own = wanted(nodes)
    for other in others:
        if other in own:
            raise CheckError("without %s, %s has to go, but %s wants it" % (name, other, own[other]))
    if others and not node.attrs.get("dependents"):
        shown = ", ".join(others)
        raise CheckError("other packages depend on %s: %s; dependents: true removes them too" % (name, shown))
    actions = _apt.first(world)
    return [*actions, _apt.remove([{"name": name, "purge": purge, "others": others}])]


def wanted(nodes: Mapping[str, Node]) -> Dict[str, str]:
    """Return the packages that nodes want to be there, each with the name of its node."""
    kept = [node for node in nodes.values() if node.type == "package" and not node.attrs.get("absent")]
    return {node.attrs["name"]: node.provides for node in kept}


@package.remember
def remember(node: Node, world: World) -> Dict[str, Any]:
    """Take down the package, what is installed beside it, and what goes with it where it is to be absent."""
    attrs = node.attrs
    name = attrs["name"]
    looking = _before.Looking(world)
    entry = world.entry("packages", name)
    known: Dict[str, Any] = {"entry": entry, "auto": world.entry("automatic", name) is not None}
    # Only what is around it: of the package itself it says nothing.
    known["context"] = Blob.of("\n".join(sorted(_apt.installed_now(world))))
    if attrs.get("absent") and entry is not None:
        gone = [name]
        if attrs.get("dependents"):
            gone += [other for other in sorted(_apt.simulate(world, ["remove", "--", name])) if other != name]
        table = world.table("packages")
        known["gone"] = [[each, table[each]["version"]] for each in gone if "version" in table.get(each, {})]
        known["automatic"] = [each for each in gone if world.entry("automatic", each) is not None]
        if attrs.get("purge"):
            known["files"] = {path: looking.entry(path) for each in gone for path in _apt.conffiles(world, each)}
    return looking.memory(**known)


@package.undo
def undo(
    node: Node, memory: Mapping[str, Any], world: World, leaving: Optional[Mapping[str, Node]] = None
) -> ActionSpec:
    """Take a new package away, with what came along; bring back an old one, or the version it had."""
    attrs, was = node.attrs, memory["entry"]
    name, now = attrs["name"], world.entry("packages", attrs["name"])
    if attrs.get("absent"):
        return _former.brought_back(world, name, memory)
    if was is None or "version" not in was:
        gone = now is None or now == was
        return ActionSpec() if gone else _former.newcomer_undone(world, name, memory, wanted(leaving or {}))
    installed = now is not None and not now.get("state")
    if installed and not attrs.get("version"):
        return ActionSpec()
    return _former.installed_again(world, [(name, was["version"])], [name] if memory["auto"] else [])
