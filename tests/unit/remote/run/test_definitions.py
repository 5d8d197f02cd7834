"""A node counts as defined as its record says, also if an earlier version of statecfg had fewer attributes."""

from __future__ import annotations

from typing import Any

import pytest

from statecfg.remote.graph.model import HostNode
from statecfg.remote.ledger.records import Resource
from statecfg.remote.run.definitions import StoredDefinitions
from statecfg.remote.run.order import Order


def node(**attrs: Any) -> HostNode:
    return HostNode("file:/f", "file", (), {"path": "/f", **attrs})


@pytest.mark.parametrize(
    ("now", "same"),
    [
        ({"absent": False}, True),
        ({"absent": False, "new": False}, True),
        ({"absent": False, "new": None}, True),
        ({"absent": False, "new": True}, False),
        ({"absent": True}, False),
        ({}, False),
    ],
)
def test_new_attributes_without_a_value_change_no_definition(now: dict[str, Any], same: bool) -> None:
    order = Order.from_json({"run": "r", "mode": "plan", "who": "", "playbook": "p/site.yml", "types": {}})
    definitions = StoredDefinitions(order, "lineage")
    before = node(absent=False)
    digest = StoredDefinitions(order, "lineage").digest(before)
    resource = Resource("file:/f", definitions.of(before), digest=digest)
    assert StoredDefinitions(order, "lineage").recorded(node(**now), resource) is same
