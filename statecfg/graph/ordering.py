"""Arrange nodes in layers by the requirements in the playbook and by automatic ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from statecfg.graph import automatic
from statecfg.graph.automatic import Automatic
from statecfg.graph.layers import in_layers
from statecfg.graph.nodes import Node
from statecfg.problems import InvalidInput

if TYPE_CHECKING:
    from statecfg.graph.automatic_cycles import LeftOut


class NodeOrder(NamedTuple):
    """Nodes in layers.

    :param automatic: node name → name of a node that it requires automatically → reason
    :param left_out: automatic requirements that would have closed a cycle
    """

    layers: list[list[Node]]
    automatic: Automatic
    left_out: Sequence[LeftOut]


def ordered(nodes: list[Node], owners: Mapping[str, list[Node]]) -> NodeOrder:
    """Return nodes in layers, with their automatic requirements.

    :param owners: identity → the nodes that have it
    :raises InvalidInput: the nodes contain a cycle, or there are too many layers or requirements
    """
    required, problems = automatic.find(nodes, owners)
    if problems:
        raise InvalidInput(problems)
    try:
        return NodeOrder(in_layers(nodes, required), required, ())
    except InvalidInput:
        if not required:
            raise
    from statecfg.graph import automatic_cycles  # few graphs have such cycles

    kept, left_out = automatic_cycles.without_cycles(nodes, required)
    return NodeOrder(in_layers(nodes, kept), kept, left_out)
