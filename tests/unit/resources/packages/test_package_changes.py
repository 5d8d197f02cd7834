"""What an upgrade of all packages remembers, and which packages its undo keeps."""

from __future__ import annotations

from typing import Any

from statecfg import HostNode
from statecfg.remote.graph.model import Blob
from statecfg.remote.machine.memory import MemoryMachine
from statecfg.resources.packages import package_changes, package_upgrades
from tests.each import each

OLD = {"a": "1", "b": "1", "c": "1"}
NO_RECORD = "the ledger has no record that this node upgraded"


def host(**versions: str) -> MemoryMachine:
    """Return a host with these packages, whose apt has no former versions."""
    return MemoryMachine({}, facets={"packages": {name: {"version": version} for name, version in versions.items()}})


@each(
    ("own", "said", "merged"),
    [
        ({}, {"a": "1 2"}, {"a": ["1", "2"]}),
        ({"a": ["1", "2"]}, {"a": "2 3"}, {"a": ["1", "3"]}),
        ({"a": ["1", "3"]}, {"a": "2 3"}, {"a": ["1", "3"]}),  # the same again
        ({"a": ["1", "2"]}, {"a": "3 4"}, {"a": ["3", "4"]}),  # others installed 3
        ({"a": ["1", "2"]}, {"a": "2 ", "b": " 1"}, {"a": ["1", ""], "b": ["", "1"]}),
    ],
)
def test_only_changes_of_the_node_are_added(
    own: dict[str, list[str]], said: dict[str, str], merged: dict[str, list[str]]
) -> None:
    assert package_changes.merged(own, said) == merged


@each(
    ("memory", "now", "left"),
    [
        (
            {"own": {"a": ["1", "2"]}},
            {**OLD, "a": "3"},
            ["a stays at 3: others installed it after this node installed 2"],
        ),
        (
            {"own": {"a": ["1", ""]}},
            {**OLD, "a": "3"},
            ["a stays at 3: others installed it after this node removed it"],
        ),
        ({"own": {"a": ["1", "2"]}}, {"b": "1", "c": "1"}, ["a is not installed again: others removed it"]),
        ({"own": {}}, {**OLD, "b": "2"}, [f"b (2) stays: {NO_RECORD} it"]),
        ({"own": {}}, {"a": "2", "b": "2", "c": "2"}, [f"a (2), b (2) and c (2) stay: {NO_RECORD} them"]),
        # A ledger of an earlier version doesn't tell who changed the packages.
        ({"changed": {"a": ["1", "2"]}}, {**OLD, "a": "2"}, [f"a (2) stays: {NO_RECORD} it"]),
        ({"own": {"a": ["1", "2"]}}, OLD, []),
    ],
)
def test_undo_keeps_what_others_changed(memory: dict[str, Any], now: dict[str, str], left: list[str]) -> None:
    node = HostNode("package_upgrade:all", "package_upgrade", attrs={"name": "all"})
    before = Blob.of("\n".join(f"{name} {version}" for name, version in OLD.items()))
    spec = package_upgrades.undo(node, {**memory, "before": before}, host(**now))
    assert (spec.actions, spec.left) == ([], left)
