"""A hook's order, as the controller sends it to a host."""

from __future__ import annotations

from typing import Any

import pytest

from statecfg.remote.graph.model import HostNode
from statecfg.remote.graph.on_failure import RULES
from statecfg.remote.hooks.order import HookOrder
from tests.each import each

ORDER: dict[str, Any] = {
    "name": "guard", "type": "guard", "order": 5, "events": ["post-create"], "on_failure": "retry", "deadline": 30.0,
    "select": {"types": ["file"], "names": ["file:/etc/*"], "tags": ["web"]}, "where": "controller",
}  # fmt: skip


def test_an_order_has_the_rule_of_its_failures_and_can_not_be_changed() -> None:
    order = HookOrder.from_json(ORDER)
    assert (order.name, order.on_failure, order.configuration, order.id) == ("guard", RULES["retry"], {}, None)
    with pytest.raises(AttributeError, match="a hook's order can't be changed"):
        order.deadline = 60.0


def test_an_order_has_no_unknown_keys() -> None:
    with pytest.raises(TypeError):
        HookOrder.from_json({**ORDER, "colour": "red"})


@each(
    ("event", "name", "tags", "fires"),
    [
        ("post-create", "file:/etc/motd", ["web", "db"], True),
        ("pre-delete", "file:/etc/motd", ["web"], False),
        ("post-create", "file:/srv/x", ["web"], False),
        ("post-create", "file:/etc/motd", ["db"], False),
    ],
)
def test_a_hook_fires_for_the_selected_nodes(event: str, name: str, tags: list[str], fires: bool) -> None:
    node = HostNode(name, "file", (), {})
    node.options = {"tags": tags}
    assert HookOrder.from_json(ORDER).fires(event, node) is fires
