"""Helpers of the tests of planning and execution: temporary node types, and runs in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from statecfg.remote.graph.model import HostNode
from statecfg.remote.graph.nodetype import NodeType
from statecfg.remote.machine.planned import Planned
from statecfg.remote.machine.real import Facets, RealMachine
from statecfg.remote.machine.world import Machine
from statecfg.remote.run.execution import Execution
from statecfg.remote.run.plan import Plan
from statecfg.remote.run.planning import Planner

Layers = Sequence[Sequence[HostNode]]


def kind(name: str, check: Callable[..., Any]) -> NodeType[...]:
    """Return a node type that is not registered."""
    made: NodeType[...] = NodeType(name)
    made.check(check)
    return made


def types(*kinds: NodeType[...]) -> dict[str, NodeType[...]]:
    return {each.name: each for each in kinds}


def node(
    name: str, type: str = "", requires: Iterable[str] = (), triggers: Iterable[str] = (), **attrs: Any
) -> HostNode:
    return HostNode(name, type or name, [*requires, *triggers], attrs, list(triggers), position="play.yml:1")


def plan(
    kinds: Mapping[str, NodeType[...]], layers: Layers, machine: Machine | None = None, owed: Any = None
) -> tuple[Plan, Planned]:
    """Plan on a machine; the default is this host."""
    imagined = machine if isinstance(machine, Planned) else Planned(machine or RealMachine())
    return Planner(kinds, imagined, owed).plan(layers), imagined


class Journal:
    """A journal in memory; its lines are in the order of the calls."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, ...]] = []

    def intend(self, nodes: Sequence[str]) -> None:
        self.lines.append(("intend", *nodes))

    def started(self, node: str, op: str) -> None:
        self.lines.append(("started", node, op))

    def took(self, node: str, op: str, result: Mapping[str, Any]) -> None:
        self.lines.append(("took", node, op, result["status"]))

    def all_started(self, actions: Sequence[tuple[str, str]]) -> None:
        for node, op in actions:
            self.started(node, op)

    def all_took(self, ended: Sequence[tuple[str, str, Mapping[str, Any]]]) -> None:
        for node, op, result in ended:
            self.took(node, op, result)

    def finished(self, node: str, outcome: str) -> None:
        self.lines.append(("finished", node, outcome))

    def all_finished(self, outcomes: Sequence[tuple[str, str]]) -> None:
        for node, outcome in outcomes:
            self.finished(node, outcome)


class Run:
    """A plan and its execution, with all events and journal lines."""

    def __init__(
        self,
        kinds: Mapping[str, NodeType[...]],
        layers: Layers,
        keep_going: bool = False,
        stopped: Callable[[], str] = lambda: "",
        owed: Any = None,
    ) -> None:
        facets = Facets()
        self.plan, _ = plan(kinds, layers, RealMachine(facets), owed)
        self.events: list[Mapping[str, Any]] = []
        self.journal = Journal()
        self.lock = threading.Lock()
        self.execution = Execution(
            self.plan, kinds, facets, self.hear, self.journal, stopped, keep_going=keep_going, owed=owed
        )
        self.layers = self.execution.run()
        self.nodes = {found["name"]: found for layer in self.layers for found in layer}

    def hear(self, event: Mapping[str, Any]) -> None:
        with self.lock:
            self.events.append(event)

    @property
    def outcomes(self) -> dict[str, str]:
        return {name: found["outcome"] for name, found in self.nodes.items()}

    def statuses(self, name: str) -> list[str]:
        return [action["status"] for action in self.nodes[name]["actions"]]
