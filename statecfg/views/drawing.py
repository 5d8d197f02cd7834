"""Graphs to draw. Hosts with the same graph share a drawing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from statecfg.views.tally import names

Wire = Mapping[str, Any]


@dataclass(frozen=True)
class Drawing:
    """A graph to draw.

    :param hosts: names of the hosts that have this graph
    :param layers: the nodes by layer, in their wire form
    """

    hosts: list[str]
    layers: Sequence[Sequence[Wire]]

    @property
    def title(self) -> str:
        """Return the hosts' names."""
        return names(self.hosts)

    def edges(self) -> Iterator[tuple[str, str, bool]]:
        """Yield each requirement as (required node, requiring node, whether it triggers)."""
        for layer in self.layers:
            for node in layer:
                triggers = frozenset(node.get("triggers") or ())
                for name in node.get("requires") or ():
                    yield name, node["provides"], name in triggers


def fold(graphs: Iterable[tuple[str, Sequence[Sequence[Wire]]]]) -> list[Drawing]:
    """Return a drawing for each different graph, with the hosts that share it."""
    drawings: dict[str, Drawing] = {}
    for host, layers in graphs:
        shape = [[(n["provides"], n.get("requires"), n.get("triggers")) for n in layer] for layer in layers]
        drawings.setdefault(json.dumps(shape, default=list), Drawing([], layers)).hosts.append(host)
    return list(drawings.values())
