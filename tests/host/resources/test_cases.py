"""The node types' cases on real files: apply does exactly what was planned, and a second plan has nothing to do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.machine.real import Facets, RealMachine
from statecfg.remote.run.execution import Execution
from statecfg.remote.run.plan import Plan
from tests.unit.resources.test_cases import (
    ROOT,
    actions,
    arrange,
    cases,
    compare,
    declared,
    layers,
    look,
    meant,
    planned,
    project,
)


def placed(value: Any, root: str) -> Any:
    """Return the case with `root` instead of /host in its paths."""
    if isinstance(value, str):
        return value.replace(ROOT, root)
    if isinstance(value, list):
        return [placed(item, root) for item in value]
    if isinstance(value, dict):
        return {placed(key, root): placed(item, root) for key, item in value.items()}
    return value


class Unrecorded:
    """A journal that records nothing."""

    def intend(self, nodes: Sequence[str]) -> None: ...
    def started(self, node: str, op: str) -> None: ...
    def took(self, node: str, op: str, result: Any) -> None: ...
    def finished(self, node: str, outcome: str) -> None: ...


def executed(plan: Plan, facets: Facets, count: int | None = None) -> list[dict[str, Any]]:
    """Execute a plan on this machine, and return the report of its nodes.

    :param count: how many layers to execute; None for all
    """
    plan.layers = plan.layers[:count]
    execution = Execution(plan, REGISTRY, facets, lambda event: None, Unrecorded(), lambda: "")
    return [node for layer in execution.run() for node in layer]


@pytest.mark.parametrize(
    "case", [case for case in cases() if not {"bad", "tables", "probes"} & set(case.values[0]) and meant(case, "real")]
)
def test_a_node_type_case_does_exactly_what_was_planned(
    case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apply does what was planned, the files are as expected, and a second plan has nothing to do."""
    root = tmp_path / "host"
    root.mkdir()
    monkeypatch.setenv("STATECFG_STATE_DIR", f"{root}/state")
    case = placed(case, str(root))
    base = project(case, tmp_path / "project")
    arrange(RealMachine(), case, base)
    nodes = layers([declared(node) for node in [case["node"], *case.get("with", [])]], base)
    facets = Facets()
    plan = planned(RealMachine(facets), nodes)
    compare(case, plan)
    if "error" in case or "known_after" in case:
        return
    wanted = [action.op for action in actions(plan)]
    report = executed(plan, facets)
    assert [node["outcome"] for node in report if node["outcome"] not in ("changed", "unchanged")] == [], report
    assert [action["op"] for node in report for action in node["actions"]] == wanted
    for path, expected in case.get("after", {}).items():
        look(RealMachine(), path, expected)
    assert [action.op for action in actions(planned(RealMachine(), nodes))] == case.get("again", [])
