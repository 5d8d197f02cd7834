"""Check the names and requirements of nodes, and arrange the nodes in layers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from toposort import CircularDependencyError

from statecfg.graph import depths, references
from statecfg.graph.cycles import MAX_PROBLEMS, cycles
from statecfg.graph.graph import Graph
from statecfg.graph.merging import duplicates
from statecfg.graph.nodes import MAX_NODES, Node
from statecfg.problems import InvalidInput, Problem, nearest, problem, suggest
from statecfg.problems.positions import SourceLocation

MAX_LAYERS = 10_000  # the longest chain of nodes in which each node requires the previous one
MAX_NAMES_COMPARED = 20_000
NOTHING: Mapping[str, Iterable[str]] = {}


def layers(graph: Graph) -> list[list[Node]]:
    """Return the nodes in layers, each node in the earliest layer that its requirements allow, sorted by name.

    :raises InvalidInput: with all duplicate names, missing requirements and cycles
    """
    nodes, problems = references.expand(list(graph.nodes()), graph.known_labels)
    problems += check(nodes)
    if problems:
        raise InvalidInput(problems)
    return in_layers(nodes)


def in_layers(nodes: Iterable[Node], more: Mapping[str, Iterable[str]] = NOTHING) -> list[list[Node]]:
    """Return the layers of nodes that only require each other.

    :param more: name → names that the node requires in addition
    :raises InvalidInput: the nodes contain a cycle or need too many layers
    """
    names = {node.provides: node for node in nodes}
    required = {name: {*node.requires, *more.get(name, ())} for name, node in names.items()}
    for name, others in required.items():
        others.discard(name)
    found = _layers_of_names(names, required)
    if len(found) > MAX_LAYERS:
        detail = f"{sum(map(len, found[MAX_LAYERS:])):,} nodes remain after {MAX_LAYERS:,} layers"
        raise InvalidInput([_too_deep(f"{detail} (the maximum is {MAX_LAYERS:,} layers)")])
    return [[names[name] for name in sorted(layer) if name in names] for layer in found]


def _layers_of_names(names: Mapping[str, Node], required: dict[str, set[str]]) -> list[Collection[str]]:
    """Return the layers of names.

    :param required: name → the names that the node requires, without itself
    :raises InvalidInput: the nodes contain a cycle
    """
    try:
        return list(depths.layers(required))
    except CircularDependencyError as error:
        raise InvalidInput(cycles(names, error.data)) from None


def too_deep(node: Node) -> Problem:
    """Return the problem of a node in a chain of requirements that is too long."""
    detail = f"{node.provides} is in a chain of more than {MAX_LAYERS:,} nodes, each of which requires the next"
    return _too_deep(f"{detail} (the maximum is {MAX_LAYERS:,} layers)", node.position)


def _too_deep(detail: str, *locations: SourceLocation) -> Problem:
    help_text = "remove requirements that are not needed, so that more nodes fit in one layer"
    return problem("SC0115", detail, help_text, *locations)


def check(nodes: list[Node]) -> list[Problem]:
    """Return the problems with the names and requirements of nodes.

    Cycles are included only if there is another problem: otherwise `in_layers` finds them.
    """
    if len(nodes) > MAX_NODES:
        return [too_many(len(nodes))]
    problems = duplicates(nodes)
    names = {node.provides: node for node in nodes}
    may_be_broken = _name_of_broken(nodes)
    is_complete = not any(node.broken for node in nodes)
    for node in nodes:
        for name in node.requires:
            if name == node.provides:
                help_text = "remove it from requires"
                problems.append(problem("SC0112", f"{name} requires itself", help_text, *_written(node, name)))
            elif name in names:
                continue
            elif references.is_reference(name):
                if is_complete:
                    problems.append(references.unmatched(node, name, names, len(problems) < MAX_PROBLEMS))
            elif not may_be_broken(name):
                problems.append(_missing(node, name, names, suggestions=len(problems) < MAX_PROBLEMS))
    return problems + _find_cycles(nodes, names) if problems else problems


def too_many(count: int, *locations: SourceLocation) -> Problem:
    """Return the problem of a graph that has too many nodes."""
    return problem("SC0115", f"{count:,} nodes; the maximum is {MAX_NODES:,}", "split the playbook", *locations)


def _name_of_broken(nodes: Iterable[Node]) -> Callable[[str], bool]:
    """Return a function that tells whether a name may belong to a node that could not be read (`graph.gap`)."""
    parts = {tuple(node.provides.partition(":")[::2]) for node in nodes if node.broken and ":" in node.provides}
    starts = tuple({f"{node_type}:" for node_type, argument in parts if node_type and not argument})
    ends = tuple({f":{argument}" for node_type, argument in parts if argument and not node_type})
    anything = ("", "") in parts
    return lambda name: anything or name.startswith(starts) or name.endswith(ends)


def _find_cycles(nodes: list[Node], names: Mapping[str, Node]) -> list[Problem]:
    required = {node.provides: {*node.requires} & names.keys() - {node.provides} for node in nodes}
    try:
        _layers_of_names(names, required)
    except InvalidInput as error:
        return error.problems
    return []


def _missing(node: Node, name: str, names: Mapping[str, Node], suggestions: bool) -> Problem:
    hint = ""
    if suggestions:
        prefix = name.partition(":")[0] + ":"
        written = [other for other, item in names.items() if not (item.broken and ":" in (other[0], other[-1]))]
        written = [other for other in written if other != node.provides]
        same_type = [other for other in written if other.startswith(prefix)] or written
        close = nearest(name, written) if len(same_type) <= MAX_NAMES_COMPARED else []
        hint = suggest(name, close + sorted(set(same_type) - set(close)), "available")
    return problem(
        "SC0111",
        f"{node.provides} requires {name}, and no node of the graph has that name",
        hint,
        *_written(node, name),
    )


def _written(node: Node, name: str) -> tuple[SourceLocation, ...]:
    """Return the source location of a requirement if the dialect provides it; otherwise that of its node."""
    location = references.location_of(name)
    return (location,) if location is not None else node.positions
