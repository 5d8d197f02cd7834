"""Applies nodes to this machine and undoes them, and compares the undo with its plan."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.ledger.records import contents, with_content
from statecfg.remote.machine.planned import Planned
from statecfg.remote.machine.real import Facets, RealMachine
from statecfg.remote.run.planning import normalised
from statecfg.remote.run.report import as_json
from statecfg.remote.wire.frames import encode_value
from tests.host.resources.test_cases import executed
from tests.unit.resources.test_cases import planned

Snapshot = dict[str, tuple[Any, ...]]


def snapshot(root: Path) -> Snapshot:
    """Return all files below a directory, each with its kind, mode, owner, group, and content or target.

    Everything has its extended attributes, among them access lists. A file also has its number of hard links.
    """
    found: Snapshot = {}
    for path in (root, *_below(root)):
        info = path.lstat()
        names = sorted(os.listxattr(path, follow_symlinks=False))
        extended = tuple((name, os.getxattr(path, name, follow_symlinks=False)) for name in names)
        known: tuple[Any, ...] = (stat.filemode(info.st_mode), info.st_uid, info.st_gid, extended)
        if path.is_symlink():
            known += (os.readlink(path),)
        elif path.is_file():
            known += (path.read_bytes(), info.st_nlink)
        found[str(path)] = known
    return found


def _below(directory: Path) -> Iterator[Path]:
    for path in sorted(directory.iterdir()):
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _below(path)


class Ledger:
    """A stand-in for the host's ledger: the last attributes of nodes, and the state from before each node."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir(exist_ok=True)
        self.memory: dict[str, Any] = {}
        self.nodes: dict[str, HostNode] = {}

    def remember(self, node: HostNode) -> None:
        """Record the state from before the node's first action, and the node's current attributes."""
        if node.provides not in self.memory:
            found = REGISTRY[node.type].run_remember(node, RealMachine())
            for blob in contents(found):
                (self.folder / blob.sha256).write_bytes(blob.read())
            self.memory[node.provides] = encode_value(found, -1)
        attrs = {name: as_json(value) for name, value in node.attrs.items() if value is not None}
        self.nodes[node.provides] = HostNode(node.provides, node.type, node.requires, attrs)

    def apply(self, layers: Sequence[Sequence[HostNode]]) -> list[dict[str, Any]]:
        """Record and apply the nodes layer by layer, as a run does; return the report."""
        report: list[dict[str, Any]] = []
        for number in range(len(layers)):
            try:
                for node in layers[number]:
                    self.remember(node)
            except (OSError, CheckError):  # then the run ends before this layer
                break
            facets = Facets()
            plan = planned(RealMachine(facets), [list(layer) for layer in layers])
            report = executed(plan, facets, number + 1)
            if any(node["outcome"] == "failed" for node in report):
                break
        return report

    def undone(self, names: Sequence[str], machine: Any) -> dict[str, ActionSpec]:
        """Return the actions that undo these nodes together, by node name."""
        to_remove = {name: self.nodes[name] for name in names if name in self.nodes}
        found = {}
        for name, node in to_remove.items():
            memory = with_content(self.memory[name], str(self.folder))
            found[name] = normalised(REGISTRY[node.type].run_undo(node, memory, machine, to_remove), node)
        return found

    def undo(self, *names: str) -> list[str]:
        """Undo nodes, and check that this follows the plan and is complete. Return the messages about what stays."""
        imagined = Planned(RealMachine())
        imagined.turn("undo")
        specs = self.undone(names, imagined)
        steps = [step for spec in specs.values() for step in spec.steps]
        perform(imagined, steps)
        perform(RealMachine(), steps)
        compare(imagined, steps)
        again = RealMachine()
        again.acted = True
        rest = {name: [step.op for step in spec.steps] for name, spec in self.undone(names, again).items()}
        assert rest == {name: [] for name in specs}, rest
        for name in specs:
            del self.nodes[name], self.memory[name]
        return [text for spec in specs.values() for text in spec.left]


def perform(machine: Any, steps: Sequence[Action]) -> None:
    """Perform the actions on a machine."""
    for step in steps:
        result = step.perform(machine)
        assert result["status"] == "ok", f"{step.op} {step.args}: {result}"


def compare(imagined: Planned, steps: Sequence[Action]) -> None:
    """Check that each path of the plan now has the planned state."""
    real = RealMachine()
    for path in imagined.entries:
        found, wanted = real.stat(path), imagined.apparent(path)
        assert (found is None) == (wanted is None), f"{path} after {[step.op for step in steps]}"
        if found is None or wanted is None:
            continue
        fields = ("file_type", "mode", "owner", "group", "target")
        assert [getattr(found, each) for each in fields] == [getattr(wanted, each) for each in fields], path
        if found.file_type == "file":
            assert real.digest(path) == imagined.digest(path), path


def different(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state before and the state after of each path that differs between two snapshots."""
    paths = sorted({*before, *after})
    return {path: (before.get(path), after.get(path)) for path in paths if before.get(path) != after.get(path)}
