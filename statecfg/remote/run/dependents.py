"""The dependents of removed resources: a resource that stays is restarted if one that configured it is removed."""

from __future__ import annotations

from typing import Collection, Dict, Iterable, List, Mapping, Sequence, Tuple

from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.ledger.records import Debt, Orphan, Resource

SUFFIX = " (stays)"  # appended to the name of a resource that a removal triggers


class Dependent(Orphan):
    """A resource whose real object stays on the host and that a removal triggers.

    It runs after all removals. Its node type decides what it does then (`NodeType.on_removal`).

    :param resource: its record
    :param causes: the names of the nodes that trigger it
    :param near: name → removed node that it required; includes the causes
    """

    __slots__ = ("causes", "near")

    def __init__(self, resource: Resource, causes: Sequence[str], near: Mapping[str, Orphan]) -> None:
        Orphan.__init__(self, resource, resource.name + SUFFIX)
        self.causes, self.near = list(causes), dict(near)
        self.triggers = tuple(causes)

    @property
    def note(self) -> str:
        """Always "": this run does not change the record."""
        return ""


class Dependents:
    """The nodes that the removals of one run trigger.

    :param resources: the resources that were managed before this run
    :param removals: layers of removals
    :param coming: the names of the other nodes of this run
    :param renamed: earlier name → present name
    :ivar triggers: node of this run → removals that trigger it
    :ivar nodes: the dependents that no other node of this run manages
    :ivar later: (resource that stays, its trigger), for the next apply
    """

    def __init__(
        self,
        resources: Iterable[Resource],
        removals: Sequence[Sequence[Orphan]],
        coming: Collection[str],
        renamed: Mapping[str, str],
    ) -> None:
        removed = {node.resource.name: node for layer in removals for node in layer if node.successor is None}
        self.triggers: Dict[str, List[str]] = {}
        self.later: List[Tuple[str, str]] = []
        self.nodes: List[Dependent] = []
        for resource in resources if removed else ():
            required, triggers = resource.definition.requires, resource.definition.triggers
            # Records of 0.3.0 don't contain which requirements trigger. An extra restart is safer than a missing one.
            named = required if triggers is None else triggers
            near = {name: removed[name] for name in required if name in removed and name != resource.name}
            causes = [removed[name].provides for name in named if name in near]
            name = renamed.get(resource.name, resource.name)
            if name in coming and resource.name not in removed:
                if causes:
                    self.triggers[name] = causes
            elif near:
                self.nodes.append(Dependent(resource, causes, {node.provides: node for node in near.values()}))

    def add_debts(self, debts: Iterable[Debt]) -> None:
        """Add what earlier runs owe to resources that no longer have a node."""
        names = {node.provides for node in self.nodes}
        for debt in debts:
            if debt.how and debt.node not in names:
                names.add(debt.node)
                self.nodes.append(Dependent(Resource.from_debt(debt.how), [], {}))

    def drop_unable(self, removed: Collection[str]) -> None:
        """Drop the nodes whose type has no `on_removal`; those that stay are left to the next apply.

        Call this after all types are loaded.

        :param removed: the names of the removed resources
        """
        able = []
        for node in self.nodes:
            node_type = REGISTRY.get(node.type)
            if node_type is not None and "on_removal" in node_type.methods:
                able.append(node)
            elif node.resource.name not in removed:
                self.later += [(node.resource.name, cause) for cause in node.causes]
        self.nodes = able
