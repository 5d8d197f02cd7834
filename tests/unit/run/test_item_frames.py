"""Nodes of items in the frames of a host: the controller accepts only those that the definition allows."""

from __future__ import annotations

from typing import Any

import pytest

from statecfg.playbook.compile import Definition
from statecfg.run.host import frames
from statecfg.run.host.broken import Broken
from statecfg.run.host.plan import MOST_ITEMS, HostNodes
from statecfg.run.host.progress import HostProgress
from tests.each import each

LAYERS: list[list[Any]] = [
    [
        {"provides": "keys", "type": "file", "position": "a.yml:1", "options": {"for_each_host": {"glob": "/a/*"}}},
        {"provides": "file:/b", "type": "file", "position": "a.yml:2"},
    ],
    [{"provides": "file:/c", "type": "file", "position": "a.yml:3"}],
]


def node(name: str, outcome: str = "unchanged", **more: Any) -> dict[str, Any]:
    plain = {"name": name, "type": "x", "outcome": outcome, "changes": [], "actions": [], "position": "z:9"}
    return {**plain, **more}


def planned(layer: int, *nodes: dict[str, Any], part: str = "layers") -> frames.PlannedFrame:
    return frames.PlannedFrame.from_json({"layer": layer, "nodes": list(nodes), "part": part})


def plan(*items: dict[str, Any], outcome: str = "unchanged") -> HostNodes:
    made = HostNodes(Definition(LAYERS), "apply")
    made.take(planned(0, node("keys", outcome), *items, node("file:/b")))
    made.take(planned(1, node("file:/c")))
    return made


def item(name: str, of: str = "keys") -> dict[str, Any]:
    return node(name, item_of=of)


def test_items_get_type_and_place_of_their_declared_node() -> None:
    made = plan(item("keys[/a/x]"), item("keys[/a/y]"))
    made.complete()
    names = [(one["name"], one["type"], one["position"], one.get("item_of")) for one in made.layers[0]]
    assert names[1] == ("keys[/a/x]", "file", "a.yml:1", "keys") and names[3] == ("file:/b", "file", "a.yml:2", None)


@each(
    ("layer", "wrong"),
    [
        (0, item("x", "file:/b")),
        (0, item("x", "nosuch")),
        (1, item("x")),
        (0, item("file:/b")),
        (0, item("keys")),
        (0, item("file:/c")),
        (0, node("x")),
    ],
)
def test_other_items_are_refused(layer: int, wrong: dict[str, Any]) -> None:
    made = HostNodes(Definition(LAYERS), "apply")
    with pytest.raises(Broken):  # the name may be a duplicate only in the second frame, or missing
        made.take(planned(0, node("keys"), node("file:/b"), *([wrong] if layer == 0 else [])))
        made.take(planned(1, node("file:/c"), *([wrong] if layer == 1 else [])))
        made.complete()


def test_number_of_items_is_limited() -> None:
    plan(*(item(f"keys[{number}]") for number in range(MOST_ITEMS)))
    with pytest.raises(Broken, match="more than"):
        plan(*(item(f"keys[{number}]") for number in range(MOST_ITEMS + 1)))


def test_removals_have_no_items() -> None:
    made = HostNodes(Definition(LAYERS), "apply")
    with pytest.raises(Broken):
        made.take(planned(0, item("x"), part="removals"))


def test_an_apply_adds_items_only_of_an_unknown_list_in_its_layer() -> None:
    frame = frames.ItemsFrame.from_json({"layer": 0, "nodes": [item("keys[/a/x]")]})
    made = plan(outcome="unknown")
    progress = HostProgress(made)
    progress.check_layer(0)
    made.add(frame)
    assert made.layers[0][-1]["name"] == "keys[/a/x]" and made.positions["keys[/a/x]"] == ("layers", 0)
    with pytest.raises(Broken):
        progress.check_layer(1)
    for other in (plan(outcome="unchanged"), made):  # the list was known; the item is there already
        with pytest.raises(Broken):
            other.add(frame)
    with pytest.raises(Broken):
        plan(outcome="unknown").add(frames.ItemsFrame.from_json({"layer": 7, "nodes": [item("x")]}))
    with pytest.raises(Broken):
        plan(outcome="unknown").add(frames.ItemsFrame.from_json({"layer": 0, "nodes": [node("x")]}))
