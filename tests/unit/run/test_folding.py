"""Hosts with equal results share them in memory."""

from __future__ import annotations

import copy
from typing import Any

from statecfg.run.folding import Folding


def _report(outcome: str = "unchanged", version: str = "1") -> dict[str, Any]:
    nodes = [{"name": f"file:/f{n}", "outcome": "unchanged", "actions": []} for n in range(3)]
    nodes[1]["outcome"] = outcome
    return {"status": "ok", "layers": [nodes, []], "removals": [], "facts": {"os": version}, "fingerprints": {"a": "b"}}


def test_equal_results_are_shared() -> None:
    folding, reports = Folding(), [_report(), _report()]
    wanted = copy.deepcopy(reports)
    for report in reports:
        folding.fold(report)
    assert reports == wanted
    assert reports[0]["layers"] is reports[1]["layers"]
    assert reports[0]["facts"] is reports[1]["facts"]
    assert reports[0] is not reports[1]


def test_hosts_that_differ_in_one_node_share_the_others() -> None:
    folding, same, other = Folding(), _report(), _report("failed", "2")
    folding.fold(same)
    folding.fold(other)
    assert other == _report("failed", "2")
    assert [one is two for one, two in zip(same["layers"][0], other["layers"][0], strict=True)] == [True, False, True]
    assert same["facts"] is not other["facts"]


def test_values_of_other_types_are_not_equal() -> None:
    folding = Folding()
    reports: list[dict[str, Any]] = [{"facts": {"a": value}} for value in (1, 1.0, True, "1", None, [1])]
    for report in reports:
        folding.fold(report)
    assert [repr(report["facts"]["a"]) for report in reports] == ["1", "1.0", "True", "'1'", "None", "[1]"]
