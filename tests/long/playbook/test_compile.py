"""Values may be nested up to the limit."""

from __future__ import annotations

from statecfg.graph.types import MAX_DEPTH
from tests.unit.graph.node_types import refused, t_rich
from tests.unit.playbook.test_compile import attrs_of, nested


def test_values_nested_up_to_the_limit_are_sent() -> None:
    assert attrs_of(t_rich("/x", owner="web", free=nested(MAX_DEPTH)))["free"] == nested(MAX_DEPTH)
    with refused("SC0202") as found:
        t_rich("/x", owner="web", free=nested(100_000))
    assert "more than 100 levels deep" in found[0].detail
