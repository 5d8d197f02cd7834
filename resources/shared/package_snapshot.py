"""Packages before a node was applied: what was installed, what came with a package, and what is restored."""

from __future__ import annotations

import posixpath
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from statecfg.remote.graph.model import Action, ActionSpec, Blob, CheckError, Node, Unknown
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.values import Result
from statecfg.remote.ledger.orphans import Orphan
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import package_transaction, paths, restore, snapshot
from statecfg.resources.shared.package_manager import manager

Known = tuple[Mapping[str, Any], Mapping[str, Any]]  # the attributes of a node, and its memory

SHIPPED = ".dpkg-dist"
CONFIGURED = "-"  # in place of a version: only configuration files of the package are there


@op
def put_back(
    machine: Machine, path: str, content: Blob, mode: int | None, owner: str | None, group: str | None
) -> Result:
    """Put a configuration file back that went with its package; the package brings the directory."""
    made = machine.mkdir(posixpath.dirname(path), parents=True)
    return made if made["status"] != "ok" else machine.write(path, content, mode, owner, group)


def context(world: World, brought: Container[str]) -> str:
    """Return what stands beside a package, a line each: name and version.

    :param brought: what came with packages of other nodes: as if it were not there
    """
    lines = []
    for name, entry in sorted(world.table("packages").items()):
        if "version" not in entry:
            lines.append("%s %s" % (name, CONFIGURED))
        elif name not in brought:
            lines.append("%s %s" % (name, entry["version"]))
    return "\n".join(lines)


def before(memory: Mapping[str, Any]) -> dict[str, str]:
    """Return what was there before a package: name → version, "" if a ledger of 0.3.0 knows only the name."""
    lines = memory["context"].read().decode().split("\n")
    return {name: version for name, _, version in (line.partition(" ") for line in lines)}


def newcomer(node: Node) -> bool:
    """Tell whether a node that goes brought a package that was not there before."""
    if node.type != "package" or node.attrs.get("absent") or getattr(node, "heir", None) is not None:
        return False
    entry = remembered(node).get("entry", {})
    return entry is None or "version" not in entry


def remembered(node: Node) -> Mapping[str, Any]:
    """Return what the ledger remembers of a node that goes."""
    found: Mapping[str, Any] = node.row["memory"] if isinstance(node, Orphan) else {}
    return found


def needed(needs: Mapping[str, Mapping[str, list[str]]], name: str, soft: bool = True) -> set[str]:
    """Return all installed packages that a package needs, directly or not.

    :param soft: those that are only recommended, too
    """
    found: set[str] = set()
    waiting = [name if name in needs else name.partition(":")[0]]  # of a foreign architecture
    while waiting:
        entry = needs.get(waiting.pop(), {})
        more = {*entry.get("hard", ()), *(entry.get("soft", ()) if soft else ())} - found
        found |= more
        waiting.extend(more)
    return found - {name}


def along(world: World, name: str, memory: Mapping[str, Any]) -> set[str]:
    """Return the packages that came with one and are only there because others need them."""
    there = before(memory)
    close = {each for each in needed(world.table("dependencies"), name) if there.get(each, CONFIGURED) == CONFIGURED}
    found = close.union(memory.get("brought") or ())
    return {each for each in found if world.entry("automatic", each) and world.entry("packages", each)}


def brought_by(world: World, others: Iterable[Known]) -> set[str]:
    """Return all packages that nodes under management have brought, with what came along."""
    found: set[str] = set()
    needs = world.table("dependencies")
    for attrs, memory in others:
        name, entry = attrs["name"], memory.get("entry", {})
        if name in needs and not attrs.get("absent") and (entry is None or "version" not in entry):
            found.add(name)
            found |= along(world, name, memory)
    return found


def learned(world: World, name: str, memory: Mapping[str, Any]) -> dict[str, Any]:
    """Return what came along for a package and what was upgraded for it, now that it is installed."""
    brought = along(world, name, memory)
    if "upgraded" in memory:  # what has another version since its first run has it from elsewhere
        return {"brought": sorted(brought)}
    there, table, needs = before(memory), world.table("packages"), world.table("dependencies")
    other = {
        each: [version, table[each]["version"]]
        for each, version in there.items()
        if version not in ("", CONFIGURED, table.get(each, {}).get("version", version))
    }
    close = needed(needs, name) & set(other)
    # Packages that are upgraded in step with one that is needed.
    close |= {each for each in other if close.intersection(needs.get(each, {}).get("hard", ()))}
    upgraded = {each: versions for each, versions in sorted(other.items()) if each in close - {name}}
    return {"brought": sorted(brought), "upgraded": upgraded}


def brought_back(world: World, name: str, memory: Mapping[str, Any]) -> ActionSpec:
    """Return what installs again what a node removed, with the configuration that it purged.

    Configuration comes back before its package: then the package's service starts with it.
    """
    was = memory["entry"] or {}
    gone = memory.get("gone") or ([(name, was["version"])] if "version" in was else [])
    automatic = memory.get("automatic") or ([name] if memory["auto"] else [])
    spec = installed_again(world, gone, automatic)
    first: list[Action] = []
    for path, entry in sorted((memory.get("files") or {}).items()):
        if entry is None or "content" not in entry:
            continue
        now, content = world.stat(path), entry["content"]
        if now is None or now.kind == "file":
            restoring = restore.Restore(world, {})
            if now is None or now.size != content.size or world.digest(path) != content.sha256:
                put = put_back(path, content, entry["mode"], entry["owner"], entry["group"])
                there = world.entry("users", entry["owner"]) and world.entry("groups", entry["group"])
                if there and world.stat(path + SHIPPED) is None:
                    first.append(put)
                    spec.actions.append(paths.remove(path + SHIPPED))  # dpkg puts the package's own beside it
                else:
                    spec.actions.append(put)
            else:
                restoring.attributes(path, now, entry, ("mode", "owner", "group"))
                spec.actions.extend(restoring.actions)
    spec.actions[:0] = first
    spec.left.extend(memory.get("lost") or ())
    return spec


def installed_again(world: World, wanted: Sequence[Sequence[str]], automatic: Sequence[str]) -> ActionSpec:
    """Return what brings packages back to versions; where apt has one no more, a missing package gets the newest.

    :param wanted: pairs of name and version
    :param automatic: those that were there only for others
    """
    items: list[dict[str, Any]] = []
    left: list[str] = []
    for name, version in wanted:
        now = world.entry("packages", name) or {}
        there = now.get("version") if not now.get("state") else None
        if there == version:
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


def _item(world: World, name: str, version: str, there: str | None) -> tuple[dict[str, Any] | None, str]:
    """Return what to install, and what to say about it where it is not the version that was."""
    try:
        return _chosen(world, name, version), ""
    except Unknown:
        return {"name": name, "version": version, "others": {}}, ""
    except CheckError as problem:
        why = "%s was at version %s, which can't be had any more" % (name, version)
        if there is not None:
            return None, "%s: it stays at %s" % (why, there)
        try:
            return _chosen(world, name, None), "%s: it gets the newest" % why
        except CheckError:
            return None, "%s: it does not come back: %s" % (why, problem)


def _chosen(world: World, name: str, version: str | None) -> dict[str, Any]:
    asked = {each: entry for each, entry in package_transaction.asked(world).items() if each != name}
    steps = manager(world).choice(world, name, version, None, asked)
    others = {each: found for each, found in steps.items() if found is not None and each != name and each not in asked}
    return {"name": name, "version": steps.get(name), "others": others}


def remember(node: Node, world: World, others: Sequence[Known] = ()) -> dict[str, Any]:
    """Remember the package, what is installed beside it, and what goes with it if it is to be absent."""
    attrs = node.attrs
    name = attrs["name"]
    apt = manager(world)
    snap = snapshot.Snapshot(world)
    entry = world.entry("packages", name)
    brought = brought_by(world, others)
    known: dict[str, Any] = {"entry": entry, "auto": world.entry("automatic", name) is not None}
    if name in brought:  # it came with another node's package: once nothing needs it, it goes
        known["entry"] = None
    # Only what is around it: of the package itself it says nothing.
    known["context"] = Blob.of(context(world, brought))
    if attrs.get("absent") and entry is not None:
        gone = [name]
        if attrs.get("dependents"):
            gone += [each for each in sorted(apt.transaction(world, {name: apt.GONE})) if each != name]
        table = world.table("packages")
        known["gone"] = [[each, table[each]["version"]] for each in gone if "version" in table.get(each, {})]
        known["automatic"] = [each for each in gone if world.entry("automatic", each) is not None]
        if attrs.get("purge"):
            known["files"] = {path: snap.entry(path) for each in gone for path in apt.conffiles(world, each)}
    return snap.memory(**known)


def learn(node: Node, memory: Mapping[str, Any], world: World) -> dict[str, Any]:
    """Record which packages came along for this one, and which were upgraded for it."""
    return {} if node.attrs.get("absent") else learned(world, node.attrs["name"], memory)
