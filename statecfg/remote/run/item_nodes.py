"""The nodes of the items for which a host repeats a node: make them, and keep them apart from other nodes."""

from __future__ import annotations

import fnmatch
import re
from typing import Any, Dict, List, Sequence, Set, Tuple

from statecfg.remote.graph.model import CheckError, Excluded, HostNode
from statecfg.remote.ledger.records import Resource, identities
from statecfg.remote.machine.guard import reading_only
from statecfg.remote.run.item_lists import Insertion, Item, items, names
from statecfg.remote.run.planning import Planner, describe

OPTION = "for_each_host"
LONGEST = 4160  # bytes of the name of a node


class Repeated:
    """The nodes with `for_each_host` of one host, and what is known about their items.

    :param layers: the definition
    :ivar declared: these nodes by name
    :ivar found: the items of those whose lists are known
    :ivar nodes: the nodes of these items, by name
    :ivar problems: why the lists of the others are not known
    :ivar unstable: the nodes whose items depend on what happens to the items themselves
    """

    def __init__(self, layers: Sequence[Sequence[HostNode]]) -> None:
        self.declared = {node.provides: node for layer in layers for node in layer if OPTION in node.options}
        self.found: Dict[str, List[Item]] = {}
        self.nodes: Dict[str, List[HostNode]] = {}
        self.problems: Dict[str, Exception] = {}
        self.unstable: Set[str] = set()
        self._written: Dict[str, Tuple[Sequence[str], Sequence[str]]] = {}

    def all(self) -> List[HostNode]:
        """Return the nodes of all known items."""
        return [node for nodes in self.nodes.values() for node in nodes]

    def find(self, planner: Planner, node: HostNode) -> None:
        """Find the items of a node at its turn, and make their nodes. Call `begin` of the planner first."""
        name = node.provides
        for known in (self.found, self.nodes, self.problems):
            known.pop(name, None)
        try:
            with reading_only():
                planner.decided(node)
                if name in self.unstable:
                    raise CheckError("its list depends on its own items, or on what happens to its earlier items")
                found = items(node.options[OPTION], planner.machine)
                nodes = [made(node, item) for item in found]
            nodes = self._distinguish(nodes, planner, node)
        except OSError as problem:
            self.problems[name] = CheckError(f"its items can't be listed: {describe(problem)}")
        except Exception as problem:  # the node's own turn reports it
            self.problems[name] = problem
        else:
            self.found[name], self.nodes[name] = found, nodes

    def _distinguish(self, nodes: Sequence[HostNode], planner: Planner, source: HostNode) -> List[HostNode]:
        """Refuse items that are the same object as another node, and leave out those that their conditions exclude.

        :returns: the nodes without excluded ones whose object another node manages
        :raises CheckError: names both
        """
        taken: Dict[str, HostNode] = {}
        every = [node for node in planner.nodes.values() if OPTION not in node.options]
        every = [node for node in every if node.options.get("item_of") != source.provides]
        every += [node for node in self.all() if node.options.get("item_of") != source.provides]
        for node in every:
            taken[node.provides] = node
            if not _excluded(node, planner):
                taken.update((identity, node) for identity in identities(node))
        found = sorted(nodes, key=lambda node: _excluded(node, planner))  # stable: these come last
        kept = []
        for node in found:
            claims = (node.provides, *identities(node))
            if _excluded(node, planner):
                if taken.keys().isdisjoint(claims):
                    kept.append(node)
                    taken[node.provides] = node
                continue
            kept.append(node)
            for identity in claims:
                other = taken.setdefault(identity, node)
                if other is not node:
                    text = "its item %s (%s) and %s (%s) manage the same object: %s; keep one of them"
                    raise CheckError(text % (node.provides, node.position, other.provides, other.position, identity))
        return kept

    def require(self, node: HostNode) -> None:
        """Let a node that requires declared nodes require their items as well."""
        requires, triggers = self._written.get(node.provides, (node.requires, node.triggers))
        if self.declared.keys().isdisjoint(requires):
            return
        self._written[node.provides] = requires, triggers
        more = [item.provides for name in requires for item in self.nodes.get(name, ())]
        due = [item.provides for name in triggers for item in self.nodes.get(name, ())]
        node.requires, node.triggers = (*requires, *more), (*triggers, *due)

    def exclusion(self, name: str) -> Exception:
        """Return why a declared node does nothing itself: what its turn raises."""
        if name in self.problems:
            return self.problems[name]
        count = len(self.nodes.get(name, ()))
        listed = names(node.provides for node in self.nodes.get(name, ()))
        return Excluded(f"its items: {count}{': ' + listed if listed else ''}")

    def may_be_item(self, resource: Resource, node: HostNode) -> bool:
        """Tell whether a managed resource may be an earlier item of a declared node."""
        definition = resource.definition
        if definition.type != node.type:
            return False
        return node.provides in definition.requires or pattern(node).match(resource.name) is not None


def _excluded(node: HostNode, planner: Planner) -> bool:
    """Tell whether a condition of a node is false now."""
    conditions = node.options.get("when_host")
    if not conditions:
        return False
    from statecfg.remote.run.decisions import require

    try:
        require(conditions, planner.machine)
    except Excluded:
        return True
    except Exception:  # the node's own turn reports it
        return False
    return False


def made(node: HostNode, item: Item) -> HostNode:
    """Return the node of an item.

    :raises CheckError: if the node can't take the item
    """
    spec = node.options[OPTION]
    insertion = Insertion(spec["samples"], item)
    label = next(iter(item.values()))
    name = insertion.into(spec["name"]) if "name" in spec else f"{node.provides}[{label}]"
    if len(name.encode()) > LONGEST:
        raise CheckError(f"the name of its item {label} is longer than {LONGEST} bytes")
    attrs = {key: insertion.into(value, key in node.hides, key) for key, value in node.attrs.items()}
    options = {key: value for key, value in node.options.items() if key not in (OPTION, "when_host", "written")}
    options["item_of"] = node.provides
    if "when" in spec:
        options["when_host"] = insertion.into(spec["when"])
    requires = (*node.requires, node.provides)
    return HostNode(
        name, node.type, requires, attrs, node.triggers, node.produces_ops, node.position, options, node.hides
    )


def pattern(node: HostNode) -> Any:
    """Return a pattern for the names of a node's items."""
    spec = node.options[OPTION]
    if "name" not in spec:
        return re.compile(rf"{re.escape(node.provides)}\[.*\]\Z")
    parts = re.split(f"({'|'.join(map(re.escape, spec['samples']))})", spec["name"])
    wild = fnmatch.translate(spec["glob"])[:-2] if "glob" in spec else ".+"
    return re.compile("".join(wild if part in spec["samples"] else re.escape(part) for part in parts) + r"\Z", re.S)
