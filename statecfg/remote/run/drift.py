"""Why a node needs changes: the host has changed since the last apply, or the definition has."""

from __future__ import annotations

from typing import Dict, FrozenSet, Iterable, List

from statecfg.remote.graph.model import HostNode
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.ledger.recorded import RecordedResources
from statecfg.remote.ledger.records import Orphan, Resource
from statecfg.remote.machine.changes import secretive
from statecfg.remote.machine.hidden import restored
from statecfg.remote.run.definitions import StoredDefinitions
from statecfg.remote.run.plan import Step
from statecfg.remote.run.recording import present


def still(recorded: RecordedResources, definitions: StoredDefinitions, nodes: Iterable[HostNode]) -> FrozenSet[str]:
    """Return the names of the nodes from which the host can't drift, and that were applied as they are defined now.

    :param definitions: converts nodes
    """
    found = []
    for node in nodes:
        node_type, resource = REGISTRY.get(node.type), recorded.resources.get(node.provides)
        function = node_type.methods.get("drifts") if node_type is not None else None
        if function is None or resource is None or not resource.digest or function(node.attrs):
            continue
        if definitions.recorded(node, resource):
            found.append(node.provides)
    return frozenset(found)


class Drift:
    """Finds the causes for the nodes of one plan.

    :param recorded: the playbook's records in the ledger
    :param definitions: converts nodes
    :param playbook: the owning playbook
    """

    def __init__(self, recorded: RecordedResources, definitions: StoredDefinitions, playbook: str) -> None:
        self.recorded, self.definitions, self.playbook = recorded, definitions, playbook
        self.causes_by_node: Dict[str, List[str]] = {}

    def causes(self, step: Step) -> List[str]:
        """Return why a node needs changes.

        A node that is only triggered takes over the causes of the nodes that trigger it, so call this in the plan's
        order.

        :returns: "host", "definition" or both; or only "pending" if no apply has completed the node yet
        """
        causes = ["definition"] if step.removal else self._of_defined(step)
        self.causes_by_node[step.node.provides] = causes
        return causes

    def _orphan(self, resource: Resource, name: str) -> Orphan:
        """Return the node as it was defined, with stand-ins for its secrets."""
        orphan = Orphan(resource, name)
        if secretive(orphan.attrs):
            orphan.attrs = restored(orphan.attrs, self.definitions.secret_digests)
        return orphan

    def _of_defined(self, step: Step) -> List[str]:
        name, ledger = step.node.provides, self.recorded.ledger
        resource = self.recorded.resources.get(name)
        source = step.node.options.get("item_of")
        if (
            resource is None
            and source
            and any(source in one.definition.requires for one in self.recorded.resources.values())
        ):
            return ["host"]  # a new item of a list that had items before
        if resource is None and ledger is not None and ledger.completed(self.playbook):
            return ["definition"]
        if resource is None or not resource.digest:
            return ["pending"]
        causes = {cause for trigger in step.triggered_by for cause in self.causes_by_node.get(trigger, ())}
        if not self.definitions.recorded(step.node, resource):
            causes.add("definition")
        lineage = self.definitions.lineage
        if not causes or (resource.after and resource.after != present(self._orphan(resource, name), lineage)):
            causes.add("host")
        return sorted(causes, reverse=True)
