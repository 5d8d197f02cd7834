"""Leave out automatic requirements that would close a cycle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from statecfg.graph.automatic import ATTRIBUTES, MOUNT, REASONS, Automatic
from statecfg.graph.nodes import Node

# The steps of all searches for cycles in a graph. Each search starts at one required node.
MAX_STEPS = 5_000_000
LAST = (REASONS["inside"], ATTRIBUTES["cwd"][1], MOUNT)  # reasons of the requirements that are added last


class LeftOut(NamedTuple):
    """An automatic requirement that would close a cycle.

    :param node: the name of the node
    :param required: the name of the node that it does not require
    :param reason: the reason of the requirement
    :param path: the names from `required` to `node`, each of which requires the next; empty if the search had to end
    """

    node: str
    required: str
    reason: str
    path: tuple[str, ...]


def without_cycles(nodes: Iterable[Node], automatic: Automatic) -> tuple[Automatic, list[LeftOut]]:
    """Return the automatic requirements that don't close a cycle, and the others.

    Requirements in the playbook stay. The automatic ones are added in a fixed order: those of directories last, then
    first those whose required node most nodes need, then by the names of the required and the other node. One that
    closes a cycle at that moment is left out, so the result is always the same. One search decides all requirements of
    the same node, and only nodes in and between cycles are searched.
    """
    written = {node.provides: node.requires for node in nodes}
    core = _core(written, automatic)
    edges = {name: [other for other in written[name] if other in core] for name in core}
    candidates: dict[str, list[str]] = {}
    for name in core:
        for other in automatic.get(name, ()):
            if other in core:
                candidates.setdefault(other, []).append(name)
    left_out: list[LeftOut] = []
    steps = 0
    is_last = {name: all(automatic[other][name] in LAST for other in others) for name, others in candidates.items()}
    for required in sorted(candidates, key=lambda name: (is_last[name], -len(candidates[name]), name)):
        came_from, taken = _reached(required, edges) if steps < MAX_STEPS else ({}, 0)
        exhausted, steps = steps >= MAX_STEPS, steps + taken
        for name in sorted(candidates[required]):
            if exhausted or name in came_from:
                path = () if exhausted else _path(name, came_from)
                left_out.append(LeftOut(name, required, automatic[name][required], path))
            else:
                edges[name].append(required)
    omitted = {(item.node, item.required) for item in left_out}
    kept = {
        name: {other: reason for other, reason in others.items() if (name, other) not in omitted}
        for name, others in automatic.items()
    }
    return {name: others for name, others in kept.items() if others}, left_out


def _core(written: Mapping[str, Iterable[str]], automatic: Automatic) -> set[str]:
    """Return the nodes of all cycles, and the nodes between cycles."""
    required = {name: {*names, *automatic.get(name, ())} & written.keys() for name, names in written.items()}
    dependents: dict[str, list[str]] = {name: [] for name in required}
    for name, others in required.items():
        for other in others:
            dependents[other].append(name)
    left = set(required)
    for ahead, behind in ((required, dependents), (dependents, required)):
        count = {name: sum(other in left for other in ahead[name]) for name in left}
        free = [name for name in left if not count[name]]
        while free:
            name = free.pop()
            left.discard(name)
            for other in behind[name]:
                if other in count:
                    count[other] -= 1
                    if not count[other]:
                        free.append(other)
    return left


def _reached(start: str, edges: Mapping[str, Iterable[str]]) -> tuple[dict[str, str], int]:
    """Return the nodes that a node requires, directly or indirectly, with the node before each, and the steps taken."""
    came_from = {start: ""}
    waiting, steps = [start], 0
    while waiting:
        name = waiting.pop()
        for other in edges[name]:
            steps += 1
            if other not in came_from:
                came_from[other] = name
                waiting.append(other)
    return came_from, steps


def _path(name: str, came_from: Mapping[str, str]) -> tuple[str, ...]:
    path = [name]
    while came_from[path[-1]]:
        path.append(came_from[path[-1]])
    return tuple(reversed(path))
