"""The examples of the conformance tests: each node type has one, and it can be planned and applied."""

from __future__ import annotations

from pathlib import Path

import pytest

from statecfg import resources
from tests.unit.resources.conformance.types import STATE_DIR, TYPES, WITHOUT, actions, examples, prepared, settles


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATECFG_STATE_DIR", STATE_DIR)


def test_every_node_type_has_an_example() -> None:
    assert set(resources.available()) == {*TYPES, *WITHOUT}
    assert [name for name in TYPES if not examples(name)] == []


def test_an_example_is_applied_once(tmp_path: Path) -> None:
    for name in TYPES:
        example = prepared(examples(name)[0], tmp_path / name)
        plan = example.plan()
        assert example.step(plan).acts, example.case.place
        example.apply(plan)
        assert not (settles(example.case) and actions(example.plan())), example.case.place
