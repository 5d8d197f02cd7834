"""Records of managed resources: make them when nodes become managed, and update them at the end of a run."""

from __future__ import annotations

import os
from typing import AbstractSet, Any, Dict, Iterable, List, Mapping, Optional, Tuple

from statecfg.remote.graph.model import Attrs, HostNode, JsonMap
from statecfg.remote.graph.names import State
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.ledger import state
from statecfg.remote.ledger.recorded import RecordedResources
from statecfg.remote.ledger.records import Resource, contents, with_content
from statecfg.remote.machine import accounts, durable
from statecfg.remote.machine.changes import secretive
from statecfg.remote.machine.guard import reading_only
from statecfg.remote.machine.hidden import unknown
from statecfg.remote.machine.real import Facets, RealMachine
from statecfg.remote.run.definitions import StoredDefinitions, digest_of
from statecfg.remote.wire.frames import encode_value


class Recording:
    """Makes the records of one run.

    :param recorded: the playbook's records in the ledger
    :param definitions: converts nodes
    :param nodes: the defined nodes by name
    :param renamed: new name → record of the same object under its earlier name
    :param facets: shared by the machines of the run
    """

    def __init__(
        self,
        recorded: RecordedResources,
        definitions: StoredDefinitions,
        nodes: Dict[str, HostNode],
        renamed: Mapping[str, Resource],
        facets: Facets,
    ) -> None:
        self.recorded, self.definitions, self.nodes, self.renamed = recorded, definitions, nodes, renamed
        self.facets = facets
        self.before = os.path.join(recorded.state_dir, state.BEFORE)
        self._new_snapshots: Dict[str, JsonMap] = {}  # node → snapshot, for those that became managed in this run
        self._older: Dict[str, List[Tuple[Attrs, Any]]] = {}  # node type → the same as `_others`, from the ledger

    def new_resource(self, node: HostNode, state: str = State.PRE_CREATED) -> Resource:
        """Return the record of a node that becomes managed, with its snapshot.

        :param state: one of `State`
        """
        definition, earlier = self.definitions.of(node), self.renamed.get(node.provides)
        if earlier is not None:
            replaces = {"name": earlier.name, "claims": earlier.definition.claims}
            return Resource(
                node.provides, definition, state, earlier.memory, earlier.digest, earlier.after, earlier.owing,
                earlier.first_run, earlier.since, replaces,
            )  # fmt: skip
        node_type = REGISTRY[node.type]
        others = self._others(node.type) if node_type.compares() else ()
        with reading_only():
            memory = node_type.run_remember(node, RealMachine(self.facets), others)
        for blob in contents(memory):
            durable.keep(self.before, blob)
        snapshot = self._new_snapshots[node.provides] = encode_value(memory, -1)
        return Resource(node.provides, definition, state, snapshot)

    def _others(self, node_type: str) -> List[Tuple[Attrs, Any]]:
        """Return the attributes and snapshots of all managed nodes of a type, including those of this run."""
        if node_type not in self._older:
            rows = self.recorded.opened().memories(node_type)
            self._older[node_type] = [(attrs, with_content(memory, self.before)) for attrs, memory in rows]
        fresh = (name for name in self._new_snapshots if self.nodes[name].type == node_type)
        recent = ((self.nodes[name].attrs, with_content(self._new_snapshots[name], self.before)) for name in fresh)
        return [*self._older[node_type], *recent]

    def updates(
        self, names: Iterable[str], fresh: AbstractSet[str], said: Mapping[str, Mapping[str, str]]
    ) -> Dict[str, Optional[Resource]]:
        """Return the records that the ledger needs for nodes that are as defined.

        :param names: the nodes that are as defined
        :param fresh: the nodes whose real object this run changed or saw for the first time
        :param said: node → what its actions said
        :returns: name → record, with `memory` if it has changed; None if the ledger has this record already
        """
        records: Dict[str, Optional[Resource]] = {}
        with accounts.Remembering():
            for name in names:
                node, before = self.nodes.get(name), self.recorded.resources.get(name)
                if node is None:
                    continue
                if name in fresh or before is None:
                    after = present(node, self.definitions.lineage, self.facets)
                elif self.recorded.complete and self._is_recorded(node, before):
                    records[name] = None
                    continue
                else:
                    after = before.after
                memory = self._learned(node, said.get(name, {})) if name in fresh else None
                digest = self.definitions.digest(node)
                records[name] = Resource(name, self.definitions.of(node), memory=memory, digest=digest, after=after)
        return records

    def _is_recorded(self, node: HostNode, before: Resource) -> bool:
        """Tell whether the ledger has a node's definition already."""
        definition = before.definition
        if secretive(definition.attrs) and unknown(definition.attrs):
            return False
        return (
            before.digest,
            definition.position,
            definition.requires,
            definition.triggers,
            definition.protect,
            definition.tags,
        ) == (
            self.definitions.digest(node),
            node.position,
            list(node.requires),
            list(node.triggers),
            int(bool(node.options.get("protect"))),
            list(node.options.get("tags") or ()),
        )

    def _learned(self, node: HostNode, said: Mapping[str, str]) -> Optional[JsonMap]:
        """Return a node's snapshot with what its type learned from the changes, None if it learned nothing."""
        before = self.recorded.resources.get(node.provides)
        memory = self._new_snapshots.get(node.provides, before.memory if before is not None else None)
        node_type = REGISTRY.get(node.type)
        if memory is None or node_type is None:
            return None
        more: Dict[str, Any] = {}
        try:
            if memory.get("backup") and node.attrs.get("backup"):
                copy = RealMachine(self.facets).stat(memory["path"] + node.attrs["backup"])
                more["copy"] = [*copy.identity[1:], copy.size] if copy is not None else None
            if "learn" in node_type.methods:
                known = with_content(memory, self.before)
                more.update(node_type.run_learn(node, known, RealMachine(self.facets), said))
        except Exception:  # the undo then reads what it still can
            return None
        return dict(memory, **encode_value(more, -1)) if more else None


def present(node: HostNode, lineage: str, facets: Optional[Facets] = None) -> str:
    """Return a digest of the present state of a node's real object, "" if its type has no `remember`."""
    node_type = REGISTRY.get(node.type)
    if node_type is None or "remember" not in node_type.methods:
        return ""
    try:
        snapshot = encode_value(node_type.run_remember(node, RealMachine(facets)), -1)
        snapshot.pop("context", None)
    except Exception:  # it can't be read, so it has changed
        return "unreadable"
    return digest_of(lineage, snapshot)
