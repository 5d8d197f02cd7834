"""The cases of all node types that can be planned and applied in memory, for tests that every node type must pass.

A test takes `TYPES`, prepares an example of each type, and declares with a reason which types it can't test::

    @pytest.mark.parametrize("name", TYPES)
    def test_something(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        example = prepared(examples(name)[0], tmp_path / name)
        plan = example.plan()
        example.apply(plan)
        assert actions(example.plan()) == []
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statecfg import resources
from statecfg.graph.graph import Graph
from statecfg.remote.graph.model import HostNode
from statecfg.remote.machine.memory import MemoryMachine
from statecfg.remote.run.plan import Plan, Step
from tests.unit.resources import test_cases as cases
from tests.unit.resources.test_cases import FILES, ROOT, Case

actions = cases.actions

# These node types have no case that changes a memory machine, so no example.
WITHOUT = {
    "assertion": "its nodes never have actions",
    "process": "it is written in Hy, and has no cases",
}


@functools.cache
def examples(name: str) -> tuple[Case, ...]:
    """Return the cases in which nodes of this type change a memory machine; each type has at least one.

    First come the cases that settle, then those whose node is not absent.
    """
    found = [case for file in FILES for case in cases.cases_of(file) if type_of(case) == name and _changes(case)]
    return tuple(sorted(found, key=lambda case: (not settles(case), bool(case.data["node"].get("absent")))))


def settles(case: Case) -> bool:
    """Tell whether nothing is left to do after an apply. Otherwise, a recorded answer of a program stays as it was."""
    return "again" not in case.data


def _changes(case: Case) -> bool:
    refused = {"bad", "error", "known_after"} & set(case.data)
    return bool(case.data.get("ops")) and not refused and case.meant_for("memory")


def type_of(case: Case) -> str:
    """Return the name of the type of a case's node."""
    return str(next(iter(case.data["node"])))


TYPES = sorted(name for name in resources.available() if name in FILES and name not in WITHOUT)


@dataclass
class Example:
    """A case on its memory machine, which is as the case describes it.

    :ivar base: the directory of the project, with the local files of the case
    :ivar graphs: the node of the case, then those beside it; a test may replace or extend them
    """

    case: Case
    base: Path
    machine: MemoryMachine
    graphs: list[Graph]

    @property
    def name(self) -> str:
        """The name of the case's node."""
        return cases.name_of(self.case.data["node"])

    def layers(self, graphs: Iterable[Graph] | None = None) -> list[list[HostNode]]:
        """Return nodes in the form in which a host receives them; by default those of the case."""
        return cases.layers(list(self.graphs if graphs is None else graphs), self.base)

    def node(self) -> HostNode:
        """Return the case's node in the form in which a host receives it."""
        return next(node for layer in self.layers() for node in layer if node.provides == self.name)

    def plan(self, layers: Sequence[Sequence[HostNode]] | None = None) -> Plan:
        """Return a plan for nodes, by default those of the case. The machine stays unchanged."""
        return cases.planned(self.machine, [list(layer) for layer in (self.layers() if layers is None else layers)])

    def step(self, plan: Plan) -> Step:
        """Return the step of the case's node in a plan."""
        return plan.steps[self.name]

    def apply(self, plan: Plan) -> None:
        """Perform the actions of a plan on the machine; each must succeed."""
        self.machine.turn("test")
        cases.taken(self.machine, plan)


def prepared(case: Case, directory: Path, more: dict[str, Any] | None = None) -> Example:
    """Return an example of a case on a new memory machine.

    Set `STATECFG_STATE_DIR` to `STATE_DIR` before this call (`monkeypatch.setenv`).

    :param directory: becomes the project's directory; it must not exist yet
    :param more: additional files of the machine: path → content, None for a directory
    """
    data = dict(case.data, files={**case.data.get("files", {}), **(more or {})})
    probes = dict(cases.answer(*item) for item in data.get("probes", {}).items())
    base = cases.project(data, directory)
    machine = MemoryMachine({ROOT: None}, cases.facets(data), probes)
    machine.turn("test")
    cases.arrange(machine, data, base)
    graphs = [cases.declared(node) for node in [data["node"], *data.get("with", [])]]
    return Example(case, base, machine, graphs)


STATE_DIR = f"{ROOT}/state"
