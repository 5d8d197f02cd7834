"""Graphs to draw. Hosts with the same graph share a drawing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any, NamedTuple

from statecfg.problems.frozen import dataclass
from statecfg.views.tally import names

Wire = Mapping[str, Any]
Graph = tuple[str, Sequence[Sequence[Wire]]]
Requirements = Mapping[str, Mapping[str, str]]
NONE: Mapping[str, Any] = MappingProxyType({})


class Requirement(NamedTuple):
    """An edge of a graph.

    :param required: the name of the required node
    :param node: the name of the requiring node
    :param triggers: whether it is a trigger
    :param reason: the reason of an automatic requirement; "" for one in the playbook
    """

    required: str
    node: str
    triggers: bool
    reason: str


@dataclass(frozen=True)
class Drawing:
    """A graph to draw.

    :param hosts: names of the hosts that have this graph
    :param layers: the nodes by layer, in their wire form
    :param automatic: node name → name of a node that it requires automatically → reason
    """

    hosts: list[str]
    layers: Sequence[Sequence[Wire]]
    automatic: Requirements = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Return the hosts' names."""
        return names(self.hosts)

    def edges(self) -> Iterator[Requirement]:
        """Yield each requirement."""
        for layer in self.layers:
            for node in layer:
                triggers = frozenset(node.get("triggers") or ())
                automatic = self.automatic.get(node["provides"], {})
                for name in node.get("requires") or ():
                    yield Requirement(name, node["provides"], name in triggers, automatic.get(name, ""))


def fold(graphs: Iterable[Graph], automatic: Mapping[str, Requirements] = NONE) -> list[Drawing]:
    """Return a drawing for each different graph, with the hosts that share it.

    :param graphs: the name and the layers of each host
    :param automatic: host → `automatic` of its drawing
    """
    drawings: dict[str, Drawing] = {}
    for host, layers in graphs:
        required = automatic.get(host, {})
        shape = [[(n["provides"], n.get("requires"), n.get("triggers")) for n in layer] for layer in layers]
        key = json.dumps([shape, required], default=list, sort_keys=True)
        drawings.setdefault(key, Drawing([], layers, required)).hosts.append(host)
    return list(drawings.values())
