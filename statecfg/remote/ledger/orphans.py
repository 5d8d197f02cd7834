"""Orphans: find them in the ledger, order their removal, and refuse a removal that is not allowed."""

from __future__ import annotations

import posixpath

from statecfg.remote.graph.model import Blob, Node
from statecfg.remote.graph.names import State
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.ledger.ledger import displaced, distinct
from statecfg.remote.machine.changes import content, secretive
from statecfg.remote.machine.paths import normal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Container, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

    from statecfg.remote.ledger.ledger import Ledger


PACKAGE = "package"  # the type of the nodes that the undo of other nodes may need


class Orphan(Node):
    """A managed resource that its playbook no longer declares, as the ledger recorded it.

    :param row: its record
    :param name: its name in this run
    :param heir: (playbook, name) of another node that manages the same object; then only the record is deleted
    :ivar given: attributes with secrets, with the values from the playbook; `attrs` contains masks instead
    :ivar waits: the names of nodes that are removed earlier because their undo may need this one
    :ivar sees: the names of earlier nodes whose actions can affect this node
    """

    __slots__ = ("given", "heir", "row", "sees", "waits")

    def __init__(self, row: Dict[str, Any], name: str, heir: Optional[Tuple[str, str]] = None) -> None:
        Node.__init__(self, name, row["type"], (), row["attrs"], position=row["position"])
        self.options = {"tags": row["tags"]} if row["tags"] else {}
        self.row, self.heir = row, heir
        self.given: Dict[str, Any] = {}
        self.sees: Sequence[str] = ()
        self.waits: Sequence[str] = ()

    def supply(self, attrs: Mapping[str, Any], mask: Callable[[Any], Any]) -> None:
        """Take secrets from the playbook's node of this name, for each attribute that is equal after masking.

        :param attrs: the attributes of the playbook's node
        :param mask: replaces secrets
        """
        for name, value in self.attrs.items():
            if name in attrs and secretive(value) and mask(kept(attrs[name])) == value:
                self.given[name] = attrs[name]

    @property
    def note(self) -> str:
        """Why the object stays and only the record is deleted; "" if the node is undone."""
        if self.heir is not None:
            return "it stays: %s of %s is about the same thing" % (self.heir[1], self.heir[0])
        kind = REGISTRY.get(self.type)
        return "it stays: its type has no undo" if kind is not None and "undo" not in kind.methods else ""


class Leaving:
    """The orphans of a playbook on a host.

    :ivar layers: the orphans that this run removes, in order: dependents first
    :ivar left: the orphans that stay until a prune, in the same order
    :ivar renamed: new name → record of the same object under its former name
    :ivar displaced: names that now belong to other objects
    :ivar staying: the claims of all resources that stay managed, in this playbook and in others
    :ivar others: claim → playbook and name, for the resources of other playbooks
    """

    def __init__(self) -> None:
        self.layers: List[List[Orphan]] = []
        self.left: List[List[Orphan]] = []
        self.renamed: Dict[str, Dict[str, Any]] = {}
        self.displaced: Set[str] = set()
        self.staying: Set[str] = set()
        self.others: Dict[str, Tuple[str, str]] = {}

    def __len__(self) -> int:
        return sum(map(len, self.layers))


def claims(node: Node) -> List[str]:
    """Return the identities of a node according to its type's `claims`; without that, its type and first argument."""
    kind = REGISTRY.get(node.type)
    if kind is None:
        return []
    found = kind.run_claims(node)
    if found is not None:
        return [_plain(claim) for claim in found]
    if kind.function is not None:
        arguments: Sequence[str] = kind.function.__code__.co_varnames[: kind.function.__code__.co_argcount]
    else:
        arguments = kind.given_schema.arguments if kind.given_schema is not None else ()
    first = node.attrs.get(arguments[0]) if arguments else None
    return ["%s:%s" % (node.type, first)] if isinstance(first, str) else []


def _plain(claim: str) -> str:
    what, _, identity = claim.partition(":")
    return "%s:%s" % (what, normal(identity)) if identity[:1] == "/" else claim


def leaving(
    ledger: Ledger,
    playbook: str,
    rows: Mapping[str, Dict[str, Any]],
    nodes: Mapping[str, Node],
    pruning: bool,
    partial: bool = False,
    same: Container[str] = (),
    claimed: Callable[[Node], List[str]] = claims,
) -> Leaving:
    """Return the orphans of a playbook.

    A resource whose name changed is renamed. A resource whose type changed is removed and created again. Such a
    removal, and one that an earlier run began, happens even without a prune.

    :param playbook: the owning playbook
    :param rows: the managed resources of the playbook, by name
    :param nodes: the defined nodes, by name
    :param pruning: remove all orphans
    :param partial: the playbook defines more nodes than these, so report only orphans whose object one of them manages
    :param same: the names of nodes whose definition has not changed
    :param claimed: returns the claims of a node as the ledger stores them, without secrets
    """
    found = Leaving()
    found.others = {
        claim: (other["playbook"], other["name"]) for other in ledger.others(playbook) for claim in other["claims"]
    }
    gone = []
    for name, row in rows.items():
        if name in same:
            continue
        node = nodes.get(name)
        if node is None or node.type != row["type"] or distinct(claimed(node), row["claims"]):
            gone.append(row)
            if node is not None:
                found.displaced.add(name)
    if not gone:
        return found
    kept = set(rows).difference(row["name"] for row in gone)
    defined = {claim: node for node in nodes.values() for claim in claimed(node)}
    others = found.others
    formers: Dict[str, Orphan] = {}
    left: Dict[str, Orphan] = {}
    for row in gone:
        successor = next((defined[claim] for claim in row["claims"] if claim in defined), None)
        heir = next((others[claim] for claim in row["claims"] if claim in others), None)
        if successor is not None and successor.type == row["type"]:
            if successor.provides not in kept and successor.provides not in found.renamed:
                found.renamed[successor.provides] = row
                continue
            heir = (playbook, successor.provides)  # two resources became one
        row["replaced"] = successor is not None
        if partial and successor is None:
            continue
        former = Orphan(row, displaced(row) if row["name"] in nodes else row["name"], heir)
        goes = pruning or row["replaced"] or row["state"] == State.IN_DELETION
        (formers if goes else left)[row["name"]] = former
    found.layers, found.left = _dependents_first(formers), _dependents_first(left)
    stays = (claim for name, row in rows.items() if name not in formers for claim in row["claims"])
    found.staying = {*defined, *others, *stays}
    return found


def _dependents_first(formers: Mapping[str, Orphan]) -> List[List[Orphan]]:
    """Arrange orphans in layers: dependents before the nodes that they require, and cycles last.

    Packages are removed as late as possible, because the undo of other nodes may need them.
    """
    waits: Dict[str, Set[str]] = {name: set() for name in formers}
    for name, former in formers.items():
        for needed in former.row["requires"]:
            if needed in waits and needed != name:
                waits[needed].add(name)
    for inner, outer in _inside(formers):
        waits[outer].add(inner)
        waits[inner].discard(outer)
    for name, dependents in waits.items():
        before = [formers[each] for each in sorted(dependents)]
        formers[name].requires = tuple(each.provides for each in before)
        formers[name].sees = formers[name].requires
        if formers[name].type == PACKAGE:  # only other packages affect what the package manager does
            formers[name].sees = tuple(each.provides for each in before if each.type == PACKAGE)
    layers: List[List[Orphan]] = []
    gone: List[str] = []
    while waits:
        free = sorted(name for name, dependents in waits.items() if not dependents) or sorted(waits)
        free = _without_packages(free, waits, formers)
        layers.append(_newest_first([formers[name] for name in free]))
        for former in layers[-1]:
            former.waits = tuple(gone) if former.type == PACKAGE else ()
        gone += [former.provides for former in layers[-1] if former.type != PACKAGE]
        for name in free:
            del waits[name]
        for dependents in waits.values():
            dependents.difference_update(free)
    return layers


def _newest_first(layer: List[Orphan]) -> List[Orphan]:
    """Sort the nodes of a layer that share a path, newest first; leave the others in place."""
    places: Dict[Any, List[int]] = {}
    for at, former in enumerate(layer):
        path = former.attrs.get("path")
        places.setdefault(normal(path) if isinstance(path, str) else at, []).append(at)
    found = list(layer)
    for slots in places.values():
        for slot, former in zip(slots, sorted((layer[at] for at in slots), key=lambda each: -each.row["since"])):
            found[slot] = former
    return found


def _without_packages(free: List[str], waits: Mapping[str, Set[str]], formers: Mapping[str, Orphan]) -> List[str]:
    """Select the nodes to remove now: packages only if no other node is free, and installed ones before absent ones.

    :param free: the names of the nodes that can be removed now
    """
    others = [name for name in free if formers[name].type != PACKAGE]
    if others:
        return others
    # Remove the packages that other nodes wait for first. The rest waits until only packages are left.
    needed: Set[str] = set()
    waiting = [name for name in waits if formers[name].type != PACKAGE]
    while waiting:
        more = waits[waiting.pop()] - needed
        needed |= more
        waiting.extend(more)
    free = [name for name in free if name in needed] or free
    return [name for name in free if not formers[name].attrs.get("absent")] or free


def _inside(formers: Mapping[str, Orphan]) -> Iterable[Tuple[str, str]]:
    """Yield pairs of names: an entry of a directory, and that directory, which must be empty before its removal."""
    present = {name: former for name, former in formers.items() if not former.attrs.get("absent")}
    places = {claim[5:]: name for name, each in present.items() for claim in each.row["claims"] if claim[:5] == "path:"}
    for name, former in present.items():
        path = former.attrs.get("path")
        above = posixpath.dirname(normal(path)) if isinstance(path, str) and path[:1] == "/" else "/"
        while above != "/":
            if above in places:
                yield name, places[above]
            above = posixpath.dirname(above)


def refusal(found: Leaving, total: int, agreed: bool) -> str:
    """Return why the removals are not allowed, "" if they are.

    :param total: the number of managed resources on the host
    :param agreed: the user explicitly allowed the removal of more than half of them
    """
    formers = [former for layer in found.layers for former in layer]
    kept = [former.provides for former in formers if former.row["protect"]]
    if kept:
        return "%s %s protected: define %s with `protect: false` and apply that first" % (
            ", ".join(kept), "is" if len(kept) == 1 else "are", "it" if len(kept) == 1 else "them",
        )  # fmt: skip
    counted = [former for former in formers if former.heir is None and not former.row["replaced"]]
    going = sum(former.row["state"] != State.IN_DELETION for former in counted)
    if going * 2 > total and not agreed:
        return "%d of the %d resources under management on this host would be removed: say --yes if that is meant" % (
            going, total,
        )  # fmt: skip
    return ""


def stored(memory: Any, folder: str) -> Any:
    """Return a snapshot with each digest replaced by the content.

    :param memory: the snapshot as the ledger stores it
    :param folder: the host's directory of former content
    """
    if isinstance(memory, list):
        return [stored(item, folder) for item in memory]
    if not isinstance(memory, dict):
        return memory
    if "$blob" in memory:
        sha256, size = memory["$blob"]
        return Blob(sha256, size, path="%s/%s" % (folder, sha256))
    return {key[1:] if key[:1] == "$" else key: stored(item, folder) for key, item in memory.items()}


def kept(value: Any) -> Any:
    """Return attributes as the ledger stores them: content as a digest, everything else unchanged."""
    if isinstance(value, Blob):
        return content(value)
    if isinstance(value, dict):
        return {str(key): kept(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [kept(item) for item in value]
    return value


def contents(value: Any) -> Iterable[Blob]:
    """Yield every `Blob` inside a value."""
    if isinstance(value, Blob):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from contents(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from contents(item)
