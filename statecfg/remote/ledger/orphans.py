"""Orphans: find them in the ledger, order their removal, and refuse a removal that is not allowed."""

from __future__ import annotations

import posixpath
from typing import Any, Callable, Container, Dict, Iterable, List, Mapping, Set, Tuple, Union

from statecfg.remote.graph.model import HostNode
from statecfg.remote.graph.names import State
from statecfg.remote.ledger.ledger import Ledger
from statecfg.remote.ledger.records import Orphan, Resource, distinct, identities, renamed
from statecfg.remote.ledger.snapshot import Front
from statecfg.remote.machine.paths import normal

PACKAGE = "package"  # the type of the nodes that the undo of other nodes may need
CONFIRM = "pass --yes to confirm"  # ends a refusal that --yes overrides


class Orphans:
    """The orphans of a playbook on a host.

    :ivar to_remove: layers of the orphans that this run removes: dependents first
    :ivar to_keep: layers of the orphans that stay until a prune, in the same order
    :ivar renamed: new name → record of the same object under its earlier name
    :ivar reused: names of this playbook that now belong to other objects
    :ivar managed: the identities of all resources that stay managed, in this playbook and in others
    :ivar elsewhere: identity → playbook and name, for the resources of other playbooks
    :ivar foreign: playbook, name, digest and claims of each of these
    """

    def __init__(self) -> None:
        self.to_remove: List[List[Orphan]] = []
        self.to_keep: List[List[Orphan]] = []
        self.renamed: Dict[str, Resource] = {}
        self.reused: Set[str] = set()
        self.managed: Set[str] = set()
        self.elsewhere: Dict[str, Tuple[str, str]] = {}
        self.foreign: List[Tuple[str, str, str, List[str]]] = []


def find_orphans(
    ledger: Union[Ledger, Front],
    playbook: str,
    resources: Mapping[str, Resource],
    nodes: Mapping[str, HostNode],
    pruning: bool,
    partial: bool = False,
    same: Container[str] = (),
    recorded_identities: Callable[[HostNode], List[str]] = identities,
) -> Orphans:
    """Return the orphans of a playbook.

    A resource whose name changed is renamed. A resource whose type changed is removed and created again. Such a
    removal, and one that an earlier run began, happens even without a prune.

    :param playbook: the owning playbook
    :param resources: the managed resources of the playbook, by name
    :param nodes: the defined nodes, by name
    :param pruning: remove all orphans
    :param partial: the playbook defines more nodes than these, so report only orphans whose object one of them manages
    :param same: the names of nodes whose definition has not changed
    :param recorded_identities: returns the identities of a node as the ledger stores them, without secrets
    """
    result = Orphans()
    result.foreign = ledger.claims_elsewhere(playbook)
    result.elsewhere = {each: (owner, name) for owner, name, _, claims in result.foreign for each in claims}
    undefined = []
    for name, resource in resources.items():
        if name in same:
            continue
        node, definition = nodes.get(name), resource.definition
        if node is None or node.type != definition.type or distinct(recorded_identities(node), definition.identities):
            undefined.append(resource)
            if node is not None:
                result.reused.add(name)
    if not undefined:
        return result
    as_before = set(resources).difference(resource.name for resource in undefined)
    owners = {identity: node for node in nodes.values() for identity in recorded_identities(node)}
    to_remove: Dict[str, Orphan] = {}
    to_keep: Dict[str, Orphan] = {}
    for resource in undefined:
        definition = resource.definition
        node = next((owners[each] for each in definition.identities if each in owners), None)
        successor = next((result.elsewhere[each] for each in definition.identities if each in result.elsewhere), None)
        if node is not None and node.type == definition.type:
            if node.provides not in as_before and node.provides not in result.renamed:
                result.renamed[node.provides] = resource
                continue
            successor = (playbook, node.provides)  # two resources became one
        if partial and node is None:
            continue
        name = resource.name
        orphan = Orphan(resource, renamed(resource) if name in nodes else name, successor)
        orphan.replaced = node is not None
        now = pruning or orphan.replaced or resource.state == State.IN_DELETION
        (to_remove if now else to_keep)[name] = orphan
    result.to_remove, result.to_keep = _dependents_first(to_remove), _dependents_first(to_keep)
    rest = (resource for name, resource in resources.items() if name not in to_remove)
    result.managed = {*owners, *result.elsewhere, *(each for one in rest for each in one.definition.identities)}
    return result


def _dependents_first(orphans: Mapping[str, Orphan]) -> List[List[Orphan]]:
    """Arrange orphans in layers: dependents before the nodes that they require, and cycles last.

    Packages are removed as late as possible, because the undo of other nodes may need them.
    """
    waits: Dict[str, Set[str]] = {name: set() for name in orphans}
    for name, orphan in orphans.items():
        for needed in orphan.resource.definition.requires:
            if needed in waits and needed != name:
                waits[needed].add(name)
    for inner, outer in _inside(orphans):
        waits[outer].add(inner)
        waits[inner].discard(outer)
    for name, dependents in waits.items():
        before = [orphans[dependent] for dependent in sorted(dependents)]
        orphans[name].requires = tuple(orphan.provides for orphan in before)
        orphans[name].sees = orphans[name].requires
        if orphans[name].type == PACKAGE:  # only other packages affect what the package manager does
            orphans[name].sees = tuple(orphan.provides for orphan in before if orphan.type == PACKAGE)
    layers: List[List[Orphan]] = []
    earlier: List[str] = []
    while waits:
        free = sorted(name for name, dependents in waits.items() if not dependents) or sorted(waits)
        free = _without_packages(free, waits, orphans)
        layers.append(_newest_first([orphans[name] for name in free]))
        before_layer = tuple(earlier)
        for orphan in layers[-1]:
            orphan.earlier = before_layer
            orphan.waits = before_layer if orphan.type == PACKAGE else ()
        earlier += [orphan.provides for orphan in layers[-1] if orphan.type != PACKAGE]
        for name in free:
            del waits[name]
        for dependents in waits.values():
            dependents.difference_update(free)
    return layers


def _newest_first(layer: List[Orphan]) -> List[Orphan]:
    """Sort the nodes of a layer that share a path, newest first; leave the others in place."""
    positions: Dict[Any, List[int]] = {}
    for at, orphan in enumerate(layer):
        path = orphan.attrs.get("path")
        positions.setdefault(normal(path) if isinstance(path, str) else at, []).append(at)
    result = list(layer)
    for slots in positions.values():
        newest_first = sorted((layer[at] for at in slots), key=lambda orphan: -orphan.resource.since)
        for slot, orphan in zip(slots, newest_first):
            result[slot] = orphan
    return result


def _without_packages(free: List[str], waits: Mapping[str, Set[str]], orphans: Mapping[str, Orphan]) -> List[str]:
    """Select the nodes to remove now: packages only if no other node is free, and installed ones before absent ones.

    :param free: the names of the nodes that can be removed now
    """
    others = [name for name in free if orphans[name].type != PACKAGE]
    if others:
        return others
    # Remove the packages that other nodes wait for first. The rest waits until only packages are left.
    needed: Set[str] = set()
    waiting = [name for name in waits if orphans[name].type != PACKAGE]
    while waiting:
        more = waits[waiting.pop()] - needed
        needed |= more
        waiting.extend(more)
    free = [name for name in free if name in needed] or free
    return [name for name in free if not orphans[name].attrs.get("absent")] or free


def _inside(orphans: Mapping[str, Orphan]) -> Iterable[Tuple[str, str]]:
    """Yield pairs of names: an entry of a directory, and that directory, which must be empty before its removal."""
    present = {name: orphan for name, orphan in orphans.items() if not orphan.attrs.get("absent")}
    pairs = ((name, each) for name, orphan in present.items() for each in orphan.resource.definition.identities)
    by_path = {each[5:]: name for name, each in pairs if each[:5] == "path:"}
    for name, orphan in present.items():
        path = orphan.attrs.get("path")
        above = posixpath.dirname(normal(path)) if isinstance(path, str) and path[:1] == "/" else "/"
        while above != "/":
            if above in by_path:
                yield name, by_path[above]
            above = posixpath.dirname(above)


def unrecorded(before: str, lineage: str) -> str:
    """Return the reason why nothing can be pruned: the ledger is not the one of the controller's last run; "" if it is.

    :param before: the lineage of that ledger; "" if unknown
    """
    if not before or before == lineage:
        return ""
    now = f"now {lineage[:12]}, before {before[:12]}" if lineage else "it has none now"
    text = f"the ledger was lost or replaced since this controller's last run ({now}): statecfg prunes nothing"
    return (
        f"{text}. Check that this is the right machine. After an apply, its present ledger counts" if lineage else text
    )


def refusal(orphans_found: Orphans, total: int, agreed: bool) -> str:
    """Return why the removals are not allowed, "" if they are.

    :param total: the number of managed resources on the host
    :param agreed: the user explicitly allowed the removal of more than half of them
    """
    orphans = [orphan for layer in orphans_found.to_remove for orphan in layer]
    kept = [orphan.provides for orphan in orphans if orphan.resource.definition.protect]
    if kept:
        return "%s %s protected: define %s with `protect: false` and apply that first" % (
            ", ".join(kept), "is" if len(kept) == 1 else "are", "it" if len(kept) == 1 else "them",
        )  # fmt: skip
    counted = [orphan for orphan in orphans if orphan.successor is None and not orphan.replaced]
    removed = sum(orphan.resource.state != State.IN_DELETION for orphan in counted)
    if removed * 2 > total and not agreed:
        return "this would remove %d of the %d resources that statecfg manages on this host; %s" % (
            removed, total, CONFIRM,
        )  # fmt: skip
    return ""
