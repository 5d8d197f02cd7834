"""Find cycles among nodes, and describe each as a path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from statecfg.graph.nodes import Node
from statecfg.graph.references import Matched, location_of
from statecfg.problems import Problem, problem

MAX_PROBLEMS = 20
MAX_STEPS_SHOWN = 12


def cycles(names: Mapping[str, Node], waiting: Mapping[str, Iterable[str]]) -> list[Problem]:
    """Return a problem for each cycle among nodes that wait for each other.

    :param names: the nodes by name
    :param waiting: name → the names that it still waits for; each of these is also a key
    """
    remaining = {name: set(required) for name, required in waiting.items()}
    problems: list[Problem] = []
    while remaining and len(problems) < MAX_PROBLEMS:
        path = _cycle(remaining)
        problems.append(_problem(path, names))
        remaining = _without(remaining, path)
    return problems


def _problem(path: list[str], names: Mapping[str, Node]) -> Problem:
    edges = [_Edge(names[name], path[(i + 1) % len(path)]) for i, name in enumerate(path)]
    steps = [str(edge) for edge in edges]
    summary = " → ".join([*path, path[0]])
    if len(path) > MAX_STEPS_SHOWN:
        summary = f"a cycle of {len(path)} nodes"
        steps = [*steps[: MAX_STEPS_SHOWN - 1], f"… {len(steps) - MAX_STEPS_SHOWN} more …", steps[-1]]
    matched = [edge for edge in edges if edge.reference]
    help_text = "remove one of these requirements"
    if matched:
        help_text += f", or write a reference that matches fewer nodes instead of `{matched[0].reference}`"
    return problem(
        "SC0113",
        summary + "".join(f"\n{step}" for step in steps),
        help_text,
        *(edge.location for edge in matched[:MAX_STEPS_SHOWN]),
        *(names[name].position for name in path[:MAX_STEPS_SHOWN]),
    )


class _Edge:
    """A requirement of a cycle.

    :ivar reference: the reference that matched the required node; "" if the node was required by name
    :ivar location: the source location of the reference, or of the requiring node if that is unknown
    """

    def __init__(self, node: Node, required: str) -> None:
        written = next((name for name in node.requires if name == required), required)
        self.node, self.required = node, required
        self.reference = written.reference if isinstance(written, Matched) else ""
        self.location = (location_of(written) if self.reference else None) or node.position

    def __str__(self) -> str:
        through = f" through {self.reference}" if self.reference else ""
        return f"{self.node.provides} requires {self.required}{through} ({self.location})"


def _without(waiting: dict[str, set[str]], path: Iterable[str]) -> dict[str, set[str]]:
    """Return what still waits after the nodes of a cycle, and the nodes that only waited for those, are removed."""
    dependents: dict[str, list[str]] = {}
    for name, required in waiting.items():
        for other in required:
            dependents.setdefault(other, []).append(name)
    left, removed = dict(waiting), list(path)
    for name in removed:  # the loop appends to the list
        left.pop(name, None)
        for other in dependents.get(name, ()):
            if other in left:
                left[other].discard(name)
                if not left[other]:
                    del left[other]
                    removed.append(other)
    return left


def _cycle(waiting: Mapping[str, set[str]]) -> list[str]:
    order: dict[str, int] = {}
    name = min(waiting)
    while name not in order:
        order[name] = len(order)
        name = min(waiting[name])
    path = list(order)[order[name] :]
    start = path.index(min(path))
    return path[start:] + path[:start]
