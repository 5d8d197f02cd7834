"""That work grows in proportion to the graph, by counting calls rather than seconds."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from statecfg.compile import WireContext, compile_graph
from statecfg.graph import merge_graphs
from tests.kinds import t_path


def calls(size: int) -> int:
    """Return how many Python functions run to declare and compile `size` nodes in 20 layers."""
    count = 0

    def counted(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(counted)
    try:
        above: list[Any] = []
        made: list[Any] = []
        for layer in range(20):
            row = [
                t_path(f"/{layer}/{i}", body="x", requires=[above[i], made[0].node.provides] if layer else ())
                for i in range(size // 20)
            ]
            made.extend(row)
            above = row
        definition = compile_graph(merge_graphs(*made), WireContext())
    finally:
        sys.setprofile(None)
    assert [len(layer) for layer in definition.layers] == [size // 20] * 20
    return count


def test_cost_per_node_does_not_grow() -> None:
    calls(20)  # imports and schemas
    small, large = calls(200), calls(4000)
    assert large / 4000 < 1.1 * small / 200
    assert large / 4000 < 250
