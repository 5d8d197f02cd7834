"""Applies and undoes nodes on a test host; the host's own Python runs this file, isolated.

`come` applies nodes layer by layer and stores the former state. `go` undoes them in the opposite order: first on a
planned machine, then on the real one. It compares both, and asks again whether anything is left to undo.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module

sys.path.insert(0, sys.argv[1])
from statecfg.remote.graph.model import HostNode
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.ledger.records import Orphan, Resource, StoredDefinition
from statecfg.remote.machine.planned import Planned
from statecfg.remote.machine.real import Facets, RealMachine
from statecfg.remote.run.execution import Execution
from statecfg.remote.run.planning import Planner, normalised
from statecfg.remote.run.report import as_json
from statecfg.remote.wire.frames import decode_node, decode_value, encode_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from statecfg.remote.graph.model import Action, ActionSpec

    Layers = list[list[HostNode]]

KEPT = "/var/tmp/remembered.json"


class Unrecorded:
    """A journal that records nothing."""

    def intend(self, nodes: Any) -> None:
        """Ignore the call."""

    def started(self, node: str, op: str) -> None:
        """Ignore the call."""

    def all_started(self, actions: Any) -> None:
        """Ignore the call."""

    def all_took(self, ended: Any) -> None:
        """Ignore the call."""

    def finished(self, node: str, outcome: str) -> None:
        """Ignore the call."""

    def all_finished(self, outcomes: Any) -> None:
        """Ignore the call."""

    def took(self, node: str, op: str, result: Any) -> None:
        """Ignore the call."""


def come(layers: Layers, kept: dict[str, Any]) -> list[list[Any]]:
    """Apply nodes layer by layer; return name, outcome and reason of each node."""
    report: list[list[Any]] = []
    for number, layer in enumerate(layers):
        facets = Facets()
        for node in layer:
            memory = REGISTRY[node.type].run_remember(node, RealMachine(facets))
            kept.setdefault(node.provides, encode_value(memory, 1 << 30))
        plan = Planner(REGISTRY, Planned(RealMachine(facets))).plan(layers[: number + 1])
        run = Execution(plan, REGISTRY, facets, lambda event: None, Unrecorded(), lambda: "").run()
        report = [[node["name"], node["outcome"], node.get("reason")] for found in run for node in found]
    with open(KEPT, "w") as stream:
        json.dump(kept, stream)
    return report


def undone(to_remove: dict[str, Orphan], machine: Any) -> dict[str, ActionSpec]:
    """Return the actions that undo these nodes together, by node name."""
    machine.beside = list(to_remove.values())
    found = {}
    for name, node in to_remove.items():
        memory = node.snapshot
        found[name] = normalised(REGISTRY[node.type].run_undo(node, memory, machine, to_remove), node)
    return found


def perform(machine: Any, steps: list[Action]) -> None:
    """Perform the actions on a machine, and join those that a run would join."""
    batches: dict[int, list[Action]] = {}
    for step in steps:
        batches.setdefault(id(step.maker if step.maker and step.maker.batch else step), []).append(step)
    for batch in batches.values():
        step = batch[0].maker.joined(batch) if len(batch) > 1 and batch[0].maker else batch[0]
        result = step.perform(machine)
        assert result["status"] == "ok", (step.op, result)


def different(imagined: Planned, real: RealMachine) -> list[list[Any]]:
    """Return the differences between the real machine and the planned machine."""
    wrong = []
    for facet, keys in imagined.facets.items():
        if facet == "asked":  # this facet has requests, not the host's state
            continue
        for key, (fields, _) in keys.items():
            found = real.entry(facet, key)
            known = {field: value for field, value in (fields or {}).items() if value is not None}
            if (found is None) != (fields is None) or any((found or {}).get(field) != known[field] for field in known):
                wrong.append([facet, key, fields, found])
    for path in imagined.entries:
        stands, wanted = real.stat(path), imagined.apparent(path)
        shape = ("file_type", "mode", "owner", "group", "target")
        if [getattr(stands, each, None) for each in shape] != [getattr(wanted, each, None) for each in shape]:
            wrong.append([path, repr(wanted), repr(stands)])
    return wrong


def go(layers: Layers, kept: dict[str, Any]) -> dict[str, Any]:
    """Undo nodes layer by layer; return ops by node, what stays, deviations from the plan, and what is still to do."""
    ops: dict[str, list[str]] = {}
    rest: dict[str, list[str]] = {}
    left: list[str] = []
    wrong: list[list[Any]] = []
    for layer in reversed(layers):
        to_remove = {}
        for node in layer:
            attrs = {name: as_json(value) for name, value in node.attrs.items() if value is not None}
            definition = StoredDefinition(node.type, "", attrs, requires=node.requires)
            memory = decode_value(kept[node.provides], {})
            to_remove[node.provides] = Orphan(Resource(node.provides, definition, memory=memory), node.provides)
        imagined = Planned(RealMachine(Facets()))
        imagined.turn("undo")
        found = undone(to_remove, imagined)
        steps = [step for spec in found.values() for step in spec.steps]
        perform(imagined, steps)
        real = RealMachine(Facets())
        perform(real, steps)
        wrong += different(imagined, real)
        real.acted = True
        for name, spec in undone(to_remove, real).items():
            if spec.steps:
                rest[name] = [step.op for step in spec.steps]
        for name, spec in found.items():
            left += spec.left
            if spec.steps:
                ops[name] = [step.op for step in spec.steps]
    os.unlink(KEPT)
    return {"ops": ops, "left": left, "wrong": wrong, "rest": rest}


def main() -> None:
    """Read a request from standard input, and print the result."""
    given = json.load(sys.stdin)
    blobs: dict[str, Any] = {}
    for value in given["blobs"]:
        decode_value(value, blobs)
    layers = [[decode_node(wire, blobs) for wire in layer] for layer in given["layers"]]
    for module in given["modules"]:
        import_module(module)
    kept: dict[str, Any] = {}
    if given["do"] == "go":
        with open(KEPT) as stream:
            kept = json.load(stream)
    json.dump((come if given["do"] == "come" else go)(layers, kept), sys.stdout)


if __name__ == "__main__":
    main()
