"""The node types' cases on real files: apply does exactly what was planned, and a second plan has nothing to do."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.machine.real import Facets, RealMachine
from statecfg.remote.run.execution import Execution
from statecfg.remote.run.plan import Plan
from tests.each import check_each
from tests.unit.resources.test_cases import (
    FILES,
    ROOT,
    Case,
    actions,
    arrange,
    by_place,
    cases_of,
    compare,
    declared,
    layers,
    look,
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
    def all_started(self, actions: Any) -> None: ...
    def all_took(self, ended: Any) -> None: ...
    def took(self, node: str, op: str, result: Any) -> None: ...
    def finished(self, node: str, outcome: str) -> None: ...
    def all_finished(self, outcomes: Any) -> None: ...


def executed(plan: Plan, facets: Facets, count: int | None = None) -> list[dict[str, Any]]:
    """Execute a plan on this machine, and return the report of its nodes.

    :param count: how many layers to execute; None for all
    """
    plan.layers = plan.layers[:count]
    execution = Execution(plan, REGISTRY, facets, lambda event: None, Unrecorded(), lambda: "")
    return [node for layer in execution.run() for node in layer]


def on_this_machine(case: Case) -> bool:
    """Return whether a case can be applied in a directory of this machine."""
    return not {"bad", "facets", "probes"} & set(case.data) and case.meant_for("real")


@pytest.mark.parametrize("file", [file for file in FILES if any(map(on_this_machine, cases_of(file)))])
def test_apply_does_exactly_what_was_planned(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Apply does what was planned, the files are as expected, and a second plan has nothing to do."""
    directories = (tmp_path / str(number) for number in itertools.count())

    def check(case: dict[str, Any]) -> None:
        directory = next(directories)
        monkeypatch.setenv("STATECFG_STATE_DIR", f"{directory}/host/state")
        applied(case, directory)

    check_each(by_place(filter(on_this_machine, cases_of(file))), check)


def applied(case: dict[str, Any], directory: Path) -> None:
    root = directory / "host"
    root.mkdir(parents=True)
    case = placed(case, str(root))
    base = project(case, directory / "project")
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
