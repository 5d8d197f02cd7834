"""The order that a host receives, as a frozen class."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from statecfg.remote.graph.names import Mode
from statecfg.remote.ledger.state import DIGESTS
from statecfg.remote.run.order import Order
from statecfg.remote.wire.frames import ProtocolError
from tests.each import each

ORDER: dict[str, Any] = {"run": "r1", "mode": "apply", "who": "me@here", "playbook": "web.yml", "types": {}}


def test_order_has_defaults_for_missing_keys() -> None:
    order = Order.from_json(ORDER)
    assert (order.mode, order.acting, order.prune, order.lock_timeout) == (Mode.APPLY, True, False, 0.0)
    assert not order.has_units


def test_later_frame_completes_a_copy_of_the_order() -> None:
    order = Order.from_json(ORDER)
    complete = order.with_json({"prune": True, "units": {"units": {"web/0": {}}}})
    assert complete.prune and complete.has_units
    assert not order.prune and not order.has_units


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({**ORDER, "prunes": True}, "unknown or missing keys: prunes"),
        ({key: ORDER[key] for key in ORDER if key != "run"}, "unknown or missing keys: run"),
    ],
)
def test_order_refuses_unknown_and_missing_keys(given: dict[str, Any], why: str) -> None:
    with pytest.raises(ProtocolError, match=why):
        Order.from_json(given)


def test_order_refuses_assignment_to_its_fields() -> None:
    with pytest.raises(AttributeError, match="an order can't be changed"):
        Order.from_json(ORDER).prune = True


@each(
    ("mode", "verify_content", "uses"),
    [
        (Mode.PLAN, False, "recorded digests"),
        (Mode.PLAN, True, "no digests"),
        (Mode.APPLY, False, "recorded digests"),
        (Mode.APPLY, True, "new digests"),
        (Mode.PRUNE, False, "recorded digests"),
        (Mode.DESTROY, False, "recorded digests"),
        (Mode.VERIFY, False, "no digests"),
        (Mode.VERIFY, True, "no digests"),
    ],
)
def test_verify_and_verify_content_use_no_recorded_digests(
    tmp_path: Path, mode: str, verify_content: bool, uses: str
) -> None:
    (tmp_path / DIGESTS).mkdir(exist_ok=True)
    found = Order.from_json({**ORDER, "mode": mode, "verify_content": verify_content}).digests(str(tmp_path))
    assert uses == ("no digests" if found is None else "recorded digests" if found.trusting else "new digests")


def test_plan_of_a_host_without_recorded_digests_uses_none(tmp_path: Path) -> None:
    assert Order.from_json({**ORDER, "mode": Mode.PLAN}).digests(str(tmp_path)) is None
