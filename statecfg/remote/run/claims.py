"""Who owns what on a host: the nodes of other playbooks, and those of this playbook that are not in this run.

A node that would change or remove what another playbook owns fails in the plan, unless it has `take_over`. Runs on
hosts with one playbook, and without a selection of nodes, don't need this module.
"""

from __future__ import annotations

import json

from statecfg.remote.graph.names import Outcome
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.ledger.claims import OWNED, located, paths
from statecfg.remote.ledger.records import Orphan
from statecfg.remote.machine.paths import within
from statecfg.remote.run.definitions import StoredDefinitions
from statecfg.remote.run.shared_files import Owner, SharedFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Container, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

    from statecfg.remote.graph.model import HostNode
    from statecfg.remote.ledger.records import Resource, StoredDefinition
    from statecfg.remote.run.order import Order
    from statecfg.remote.run.plan import Step

    Look = Callable[[str, str], StoredDefinition]
    # Owner → what it does, and the claims that it loses if it is taken over; none if it loses its whole record.
    Conflicts = Dict["Owner", Tuple[str, List[str]]]

LISTS = ("part", "adds", "whole", "inside")  # kinds of claims that are not about one whole object
FILE = "path:"  # begins the name of a file in `part:` and `whole:`
HELP = "Remove it from one of the two playbooks, or set `take_over: true` here"
SHOWN = 3  # owners in a message
# Beginnings of the types whose users are those of a server or of an image, not of the host.
OTHER_USERS = ("container", "mariadb_", "postgresql_", "redis_")


class Claims:
    """The index of all that other nodes own, for one run.

    :param owners: these nodes
    :param definitions: converts the nodes of this run
    :param look: returns the definition of a resource in the ledger: `f(playbook, name)`; None if unknown
    :ivar shared: the owners that edit the same files as nodes of this run; None if `look` is
    :ivar taken: node → the owners from which it takes over, and the claims that each loses
    """

    def __init__(self, owners: Iterable[Owner], definitions: StoredDefinitions, look: Optional[Look] = None) -> None:
        self.owners, self.definitions, self.look = list(owners), definitions, look
        self.foreign = [owner for owner in self.owners if owner.playbook]
        self.taken: Dict[str, List[Tuple[Owner, List[str]]]] = {}
        self._by_claim: Dict[str, List[Owner]] = {}
        for owner in self.foreign:
            for claim in owner.claims:
                self._by_claim.setdefault(claim, []).append(owner)
        self._places: Optional[Dict[str, List[Owner]]] = None
        self.shared = SharedFiles(self.foreign, look) if look is not None else None
        # Those of `shared` beside the node of this turn that were as defined before it acted, each with the file.
        self._sound: Dict[Owner, str] = {}

    def types(self, nodes: Iterable[HostNode]) -> Dict[str, str]:
        """Return type → module, for the owners that edit the same files as these nodes."""
        return self.shared.types(self._claims(node) for node in nodes) if self.shared is not None else {}

    def _claims(self, node: HostNode) -> List[str]:
        """Return all that a node owns, without the marks of the ledger."""
        if isinstance(node, Orphan):
            return [*node.resource.definition.identities, *node.resource.definition.owned]
        return [claim[1:] if claim[:1] == OWNED else claim for claim in self.definitions.claims(node)]

    def places(self, machine: Any) -> Dict[str, List[Owner]]:
        """Return path without links → its owners."""
        if self._places is None:
            self._places = {}
            for owner in self.owners:
                for path in dict.fromkeys(paths(owner.claims)):
                    self._places.setdefault(real(machine, path), []).append(owner)
        return self._places

    def inside(self, root: str, node: HostNode, machine: Any) -> Dict[str, Owner]:
        """Return the paths in a directory that others own; the directory itself if they own all that is in it.

        With `take_over`, other playbooks don't count.
        """
        taking = node.options.get("take_over")
        found = {}
        for path, owners in self.places(machine).items():
            staying = [owner for owner in owners if not (owner.playbook and taking)]
            if path == root:
                staying = [owner for owner in staying if f"inside:{path}" in owner.claims]
            if staying and within(path, root):
                found[path] = staying[0]
        return found

    # A planned node

    def watch(self, node: HostNode, machine: Any) -> None:
        """Note which parts of files are as defined. Call this before the node's actions on the simulated machine."""
        if self.shared is not None:
            self._sound = self.shared.sound(self.shared.beside(self._claims(node)), machine)

    def settle(self, step: Step, machine: Any) -> None:
        """Let a node fail if it changes what another playbook owns, or note that it takes this over.

        Call this after its actions on the simulated machine.
        """
        node, acts = step.node, step.outcome == Outcome.CHANGED
        self.taken.pop(node.provides, None)
        taking = bool(node.options.get("take_over")) and not isinstance(node, Orphan)
        if not acts and not (taking and step.outcome == Outcome.UNCHANGED):
            return
        found = self._conflicts(step, machine) if acts else {}
        if taking:
            found.update((owner, ("", [])) for owner in self._same(node) if owner not in found)
        stuck = any(not owner.playbook for owner in found)
        if taking and found and not stuck:
            self.taken[node.provides] = [(owner, lost) for owner, (_, lost) in found.items()]
            step.spec.left += [
                f"takes over {'a part of ' if lost else ''}{owner}" for owner, (_, lost) in found.items()
            ]
        elif found:
            texts = list(dict.fromkeys(text for text, _ in found.values()))
            reason = "; ".join(texts[:SHOWN]) + (f"; and {len(texts) - SHOWN} more" * (len(texts) > SHOWN))
            if isinstance(node, Orphan):
                step.outcome, step.cannot_undo, step.reason = Outcome.SKIPPED, True, f"it stays: {reason}"
            else:
                step.outcome, step.conflict = Outcome.FAILED, True
                step.reason = reason if stuck else f"{reason}. {HELP}"

    def _same(self, node: HostNode) -> List[Owner]:
        """Return the owners of the same object."""
        owners = (owner for claim in self.definitions.identities(node) for owner in self._by_claim.get(claim, ()))
        return list(dict.fromkeys(owners))

    def _conflicts(self, step: Step, machine: Any) -> Conflicts:
        """Return the owners of what a node changes."""
        node = step.node
        claims = self._claims(node)
        digest = node.resource.digest if isinstance(node, Orphan) else self.definitions.digest(node)
        found: Conflicts = {}
        if step.changes or not step.triggered_by:  # a restart changes nothing that is owned
            # What happens to files shows in their own changes, unless a program does it.
            others = [change for change in step.changes if change["object"][:1] != "/"]
            apart = LISTS if others or not step.changes else ("path", *LISTS)
            for claim in claims:
                kind = claim.partition(":")[0]
                for owner in self._by_claim.get(claim, ()) if kind not in apart else ():
                    if not self._agree(node, digest, owner):
                        found[owner] = f"{owner} manages the same {kind}", []
            found.update(self._in_lists([*claims, *_without_accounts(machine)]))
        for owner, conflict in [*self._of_accounts(machine), *self._in_mounts(machine)]:
            found.setdefault(owner, conflict)
        found.update(self._in_files(node, claims, digest, machine))
        return found

    def _agree(self, node: HostNode, digest: str, owner: Owner) -> bool:
        """Tell whether a node and the owner of the same object want nothing different of it.

        Both may define different attributes of it, and items of one list. Attributes that only say how statecfg works
        don't count, see `NodeType.manners`.
        """
        if digest and owner.digest == digest:
            return True
        if isinstance(node, Orphan) or not owner.playbook:
            return False
        definition = self.look(owner.playbook, owner.name) if self.look is not None else None
        if definition is None or definition.type != node.type:
            return False
        theirs = definition.attrs
        mine = json.loads(json.dumps(self.definitions.attrs(node)))
        listed, _ = _lists(claim.lstrip(OWNED) for claim in self.definitions.claims(node))
        items = set().union(*listed.values())
        both = (set(mine).intersection(theirs)).difference(REGISTRY[node.type].manners)
        return all(
            mine[name] == theirs[name] or (isinstance(mine[name], list) and items.issuperset(mine[name]))
            for name in both
        )  # fmt: skip

    def _in_lists(self, claims: Sequence[str]) -> Conflicts:
        """Return the owners that disagree about the items of a list, such as the members of a group."""
        items, whole = _lists(claims)
        found: Conflicts = {}
        if not items and not whole:
            return found
        for owner in self.foreign:
            theirs, complete = _lists(owner.claims)
            for name in whole.intersection(theirs):
                others = sorted(theirs[name] - items.get(name, set()))
                if others:
                    lost = [f"adds:{name}: {item}" for item in others]
                    lost = [] if set(lost).difference(owner.claims) else lost
                    found[owner] = f"{owner} has {', '.join(others)} in {name}, and this node removes it", lost
            for name in complete.intersection(items):
                others = sorted(items[name] - theirs.get(name, set()))
                if others:
                    text = f"{owner} manages {name} as a complete list, without {', '.join(others)}"
                    found[owner] = text, [f"whole:{name}"]
        return found

    def _in_files(self, node: HostNode, claims: Sequence[str], digest: str, machine: Any) -> Conflicts:
        """Return the owners of the files and directories that the node changes."""
        places = self.places(machine)
        found: Conflicts = {}
        if not places:
            return found
        own = {real(machine, claim[5:]) for claim in claims if claim[:5] == FILE}
        parts = {real(machine, claim[10:]) for claim in claims if claim[:10] == "part:path:"}
        beside = {real(machine, path) for path in paths(claims)} - own - parts  # such as an access list
        still = self.shared.sound(self._sound, machine) if self.shared is not None else {}
        for owner, path in self._sound.items():
            if owner not in still:
                found[owner] = f"{owner} manages a part of {path}, and this node changes it", []
        for path, fields in _changed(machine).items():
            gone = fields.get("kind", "") is None
            for owner in places.get(path, ()):
                exact, part = self._manages(owner, path, machine)
                touched = exact or gone or (part and ("content" in fields or "target" in fields))
                if path in own:
                    clash = touched and not _contains(claims, owner.claims) and not self._agree(node, digest, owner)
                elif path in parts:
                    clash = exact and not part and ("content" in fields or gone)
                else:
                    clash = touched and path not in beside and fields.get("kind") != "directory"
                # In one playbook, nodes may share a file; only a removal by another node counts.
                if clash and (owner.playbook or (gone and path not in own and path not in parts)):
                    found[owner] = f"{owner} manages {'a part of ' * (not exact)}{path}", []
            for inner, owners in places.items() if gone else ():
                if inner != path and within(inner, path):
                    for owner in owners:
                        found[owner] = f"{owner} manages {inner}, and this node removes it", []
        return found

    def _of_accounts(self, machine: Any) -> Iterator[Tuple[Owner, Tuple[str, List[str]]]]:
        """Yield the owners that name a user or group which the node removes, such as the owner of a file."""
        look = self.look
        for thing, field in _gone(machine):
            kind, _, name = thing.partition(" ")
            if look is None or (kind, field) not in (("user", "uid"), ("group", "gid")):
                continue
            for owner in self.foreign:
                definition = look(owner.playbook, owner.name)
                if definition.attrs.get("absent") or definition.type.startswith(OTHER_USERS):
                    continue
                attrs = definition.attrs
                if name in ((attrs.get("owner"), attrs.get("user")) if kind == "user" else (attrs.get("group"),)):
                    yield owner, (f"{owner} needs the {kind} {name}, and this node removes it", [thing])

    def _in_mounts(self, machine: Any) -> Iterator[Tuple[Owner, Tuple[str, List[str]]]]:
        """Yield the owners of files below a mount point that the node mounts or unmounts: both hide them."""
        for (thing, field), (before, after) in machine.changes.values.items():
            kind, _, point = thing.partition(" ")
            if kind != "mount" or field != "fstype" or (before is None) == (after is None):
                continue
            for path, owners in self.places(machine).items():
                if path != point and within(path, point) and machine.apparent(path) is not None:
                    verb = "unmounts" if after is None else "mounts over"
                    for owner in owners:
                        if owner.playbook:
                            yield owner, (f"{owner} manages {path}, and this node {verb} {point}", [thing])

    @staticmethod
    def _manages(owner: Owner, path: str, machine: Any) -> Tuple[bool, bool]:
        """Tell whether an owner manages what is at a path, and whether it manages only a part of the file."""
        exact = any(claim[:5] == FILE and real(machine, claim[5:]) == path for claim in owner.claims)
        part = f"part:{FILE}"
        return exact, any(claim[:10] == part and real(machine, claim[10:]) == path for claim in owner.claims)

    # The ledger

    def moves(self, names: Iterable[str]) -> List[Tuple[str, str, str, List[str]]]:
        """Return what the ledger has to move: node, its owner's playbook and name, and the claims that the owner loses.

        :param names: the nodes that are as defined
        """
        pairs = ((name, pair) for name in names for pair in self.taken.get(name, ()))
        return [(name, owner.playbook, owner.name, lost) for name, (owner, lost) in pairs]


def of_run(
    order: Order,
    foreign: Iterable[Tuple[str, str, str, Sequence[str]]],
    resources: Mapping[str, Resource],
    nodes: Container[str],
    definitions: Optional[StoredDefinitions],
    look: Optional[Look] = None,
) -> Claims:
    """Return the index for one run.

    :param foreign: playbook, name, digest and claims of the resources of other playbooks
    :param resources: the managed resources of this playbook by name
    :param nodes: the names of the nodes of this run
    :param definitions: converts the nodes of this run; None without a ledger
    :param look: see `Claims`
    """
    own: Dict[str, Sequence[str]] = dict(order.claims)
    for name, resource in resources.items() if order.partial else ():
        # What the playbook no longer defines is still managed: only a run of the whole playbook removes it.
        if name not in nodes and name not in own:
            own[name] = resource.definition.claims
    owners = [Owner(*row) for row in foreign] + [Owner("", name, "", claims) for name, claims in own.items()]
    return Claims(owners, definitions or StoredDefinitions(order, ""), look)


def real(machine: Any, path: str) -> str:
    """Return a path without links in its directories, or unchanged if they form a loop."""
    try:
        return located(machine, path)
    except OSError:
        return path


def _lists(claims: Iterable[str]) -> Tuple[Dict[str, Set[str]], Set[str]]:
    """Return list → the items of it that claims name, and the lists that they name as a whole."""
    items: Dict[str, Set[str]] = {}
    whole = set()
    for claim in claims:
        kind, _, rest = claim.partition(":")
        if kind == "whole":
            whole.add(rest)
        elif kind in ("part", "adds") and rest[:5] != FILE:
            name, _, item = rest.partition(": ")
            items.setdefault(name, set()).add(item)
    return items, whole


def _contains(claims: Sequence[str], others: Sequence[str]) -> bool:
    """Tell whether the lists of a node contain all items of another node, such as its key of a user."""
    items, whole = _lists(claims)
    theirs, _ = _lists(others)
    return bool(theirs) and all(name in whole and names <= items.get(name, set()) for name, names in theirs.items())


def _without_accounts(machine: Any) -> List[str]:
    """Return the lists of which the node leaves nothing, because it removes a user or a group."""
    found = []
    for thing, field in _gone(machine):
        kind, _, name = thing.partition(" ")
        if (kind, field) in (("user", "uid"), ("group", "gid")):
            found += [f"whole:the keys of {name}", f"whole:the groups of {name}"] if kind == "user" else []
            found += [f"whole:the members of {name}"] if kind == "group" else []
    return found


def _gone(machine: Any) -> List[Tuple[str, str]]:
    """Return object and field of all that the node removes."""
    return [key for key, (before, after) in machine.changes.values.items() if before is not None and after is None]


def _changed(machine: Any) -> Dict[str, Dict[str, Any]]:
    """Return path → the fields that the node changes, with their new values."""
    changed: Dict[str, Dict[str, Any]] = {}
    for (thing, field), (before, after) in machine.changes.values.items():
        if thing[:1] == "/" and before != after:
            changed.setdefault(thing, {})[field] = after
    return changed
