"""Evaluates the plays of a host to its graph, and compiles the graph to what the host gets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from statecfg.problems.frozen import dataclass
from statecfg.problems.positions import NOWHERE

if TYPE_CHECKING:
    from statecfg.facts.reading import Reading
    from statecfg.graph.graph import Graph
    from statecfg.graph.nodes import Node
    from statecfg.playbook.compile import Definition
    from statecfg.playbook.inventory import Host
    from statecfg.playbook.plays import HostContext, Play, Vars
    from statecfg.playbook.project import Project
    from statecfg.playbook.secrets import Secret
    from statecfg.problems import SourceLocation

    Variables = Mapping[str, Mapping[str, Any]]  # by the name of the node
    Again = Mapping[str, Sequence[tuple[SourceLocation, Mapping[str, Any]]]]


MOST_CLAIMS = 20_000  # of nodes that are not selected
REMOVING = ("purge", "recursive")  # attributes of nodes that remove what they don't name


@dataclass(frozen=True)
class Evaluated:
    """The result of evaluating the plays of a host.

    :param variables: node name → variables of the play that declares the node
    :param again: node name → source locations of its declarations in other plays, with the variables of these plays
    :param secrets: the secrets in the graph and the variables
    :param tags: the tags of all resources, if only some tags were requested
    :param restarts: node that the requested tags leave out → the nodes of the graph in its `restart_on`
    :param claims: node name → what it owns, for the nodes that were not requested; only if the others may remove it
    """

    graph: Graph
    variables: Variables
    secrets: Mapping[str, Secret]
    again: Again
    tags: frozenset[str] = frozenset()
    restarts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    claims: Mapping[str, Sequence[str]] = field(default_factory=dict)


def evaluate(
    host: Host, plays: Sequence[Play], extra: Mapping[str, Any], tags: Sequence[str], reading: Reading
) -> Evaluated:
    """Evaluate the plays of a host.

    :param extra: variables that override all others
    :param tags: tags of resources, none for all resources
    :param reading: gives the definition facts and variables; it records what the definition reads, and what is missing
    """
    from statecfg.graph import opaque

    # A secret inside a string, such as a rendered template, is known only because rendering revealed it.
    with opaque.recording() as used, reading.recording():
        graph, variables, again = _graph(host, plays, extra, reading)
        graph = _expanded(graph)
        existing: frozenset[str] = frozenset()
        restarts: Mapping[str, Sequence[str]] = {}
        claims: Mapping[str, Sequence[str]] = {}
        if tags:
            existing = frozenset(tag for node in graph.nodes() for tag in node.options.get("tags") or ())
            whole, graph = graph, tagged(graph, tags)  # calls functions of node types, which may read facts as well
            restarts, claims = _restarts(whole, graph), _left_out(whole, graph)
    return Evaluated(graph, variables, dict(used), again, existing, restarts, claims)


def _restarts(whole: Graph, chosen: Graph) -> Mapping[str, Sequence[str]]:
    """Return each node that was not chosen and that reacts to chosen nodes → these nodes."""
    names = {node.provides for node in chosen.nodes()}
    others = (node for node in whole.nodes() if node.provides not in names and node.triggers)
    found = {node.provides: sorted(names.intersection(node.triggers)) for node in others}
    return {name: causes for name, causes in found.items() if causes}


def definition(host: Host, graph: Graph, evaluated: Evaluated, project: Project, reading: Reading) -> Definition:
    """Return the definition of a host.

    :param graph: the evaluated graph, or the graph that hooks made of it
    :param reading: gives the definition facts and variables; see `evaluate`
    """
    from statecfg.graph import opaque
    from statecfg.playbook import reboots
    from statecfg.playbook.compile import WireContext, compile_graph
    from statecfg.problems import report
    from statecfg.transport import LOCAL

    recorded = {id(values): reading.vars(values) for values in evaluated.variables.values()}
    for other in evaluated.again.values():
        recorded |= {id(values): reading.vars(values) for _, values in other if id(values) not in recorded}
    context = WireContext(
        _context(host, reading, reading.vars(host.vars)),
        project.root,
        {name: recorded[id(values)] for name, values in evaluated.variables.items()},
        {name: [(at, recorded[id(values)]) for at, values in others] for name, others in evaluated.again.items()},
    )
    with opaque.recording() as used, reading.recording():
        compiled = compile_graph(graph, context)
    if reboots.TYPE in compiled.types:
        reading.attributes.add("local")
        if host.transport == "local" or host.name == LOCAL:
            report(*reboots.refused(graph.nodes()))
    secrets = opaque.by_name((name, value.reveal()) for name, value in (*evaluated.secrets.items(), *used.items()))
    every = opaque.by_name([*secrets.items(), *compiled.secrets.items()])
    return replace(compiled, secrets=every, restarts=evaluated.restarts, claims=evaluated.claims)


def _context(host: Host, reading: Reading, variables: Vars) -> HostContext:
    """Return the host as its definition sees it."""
    from statecfg.playbook.plays import HostContext

    local = host.transport == "local"
    return HostContext(host.name, variables, tuple(host.groups), local, reading.own.view, reading.attributes.add)


def _graph(
    host: Host, plays: Sequence[Play], extra: Mapping[str, Any], reading: Reading
) -> tuple[Graph, Variables, Again]:
    """Return the graph of a host, and `variables` and `again` of `Evaluated`."""
    from statecfg.graph.graph import merge_graphs
    from statecfg.playbook.plays import Vars, evaluate

    graphs: list[Graph] = []
    own: dict[str, Mapping[str, Any]] = {}
    again: dict[str, list[tuple[SourceLocation, Mapping[str, Any]]]] = {}
    plain = _context(host, reading, Vars())
    for play, others in _with_others(host, plays, extra, plain):
        reading.names |= {*host.vars, *play.vars, *others}
        merged = play.variables(host.vars, others, plain)
        graphs.append(evaluate(play, plain.with_vars(reading.vars(merged))))
        for node in graphs[-1].nodes():
            if own.setdefault(node.provides, merged) is not merged:
                again.setdefault(node.provides, []).extend((position, merged) for position in node.positions)
    return merge_graphs(*graphs), own, again


def _expanded(graph: Graph) -> Graph:
    """Return the graph with names instead of references to many nodes, because tags and hooks may remove nodes."""
    from statecfg.graph import references
    from statecfg.graph.graph import Graph as Graphs
    from statecfg.problems import report

    nodes = list(graph.nodes())
    expanded, problems = references.expand(nodes, graph.known_labels)
    report(*problems)
    return graph if expanded is nodes else Graphs(None, [Graphs(node) for node in expanded], graph.known_labels())


def _with_others(
    host: Host, plays: Sequence[Play], extra: Mapping[str, Any], context: HostContext
) -> Iterator[tuple[Play, Mapping[str, Any]]]:
    """Yield each play and the plays that its service includes from another playbook, with the overriding variables.

    A service's variables override those of the plays that it includes.
    """
    for play in plays:
        yield play, extra
        if play.others:
            merged = play.variables(host.vars, extra, context)
            own = {name: merged[name] for name in play.vars}
            yield from ((other, {**own, **extra}) for other in play.others)


def tagged(graph: Graph, tags: Iterable[str]) -> Graph:
    """Return the nodes that have one of the tags, and all nodes that they require, directly or indirectly.

    Automatic requirements count as well.
    """
    from statecfg.graph import automatic, identity, outputs
    from statecfg.graph.graph import Graph as Graphs
    from statecfg.playbook.user_code import explained

    wanted = frozenset(tags)
    nodes = {node.provides: node for node in graph.nodes()}
    listed = list(nodes.values())
    with explained("finding what nodes need", listed[0].position if listed else NOWHERE):
        more, _ = automatic.find(listed, identity.owners(listed))
    left = [node for node in listed if node.broken or wanted.intersection(node.options.get("tags") or ())]
    kept: dict[str, Node] = {}
    while left:
        node = left.pop()
        if node.provides not in kept:
            kept[node.provides] = node
            required = (*node.requires, *more.get(node.provides, ()), *outputs.sources(node))
            left.extend(nodes[name] for name in required if name in nodes)
    return Graphs(None, [Graphs(node) for node in listed if node.provides in kept])


def _left_out(whole: Graph, selected: Graph) -> Mapping[str, Sequence[str]]:
    """Return what the nodes own that are not selected, if a selected node may remove what it does not know."""
    names = {node.provides for node in selected.nodes()}
    if not any(node.attrs.get(option) for node in selected.nodes() for option in REMOVING):
        return {}
    from statecfg.graph import identity, opaque
    from statecfg.playbook.user_code import explained

    rest = [node for node in whole.nodes() if node.provides not in names and not node.broken]
    with explained("finding what nodes own", rest[0].position if rest else NOWHERE):
        found = {node.provides: list(map(opaque.mask_secrets, identity.claims(node))) for node in rest}
    found = {name: claims for name, claims in found.items() if claims}
    if sum(map(len, found.values())) <= MOST_CLAIMS:
        return found
    # One frame can't hold them all: send only those in the directories that these nodes empty.
    paths = [node.attrs.get("path") for node in selected.nodes() if any(map(node.attrs.get, REMOVING))]
    roots = tuple(f":{identity.normal(path)}/" for path in paths if isinstance(path, str))
    near = {name: [claim for claim in claims if any(root in claim for root in roots)] for name, claims in found.items()}
    return {name: claims for name, claims in near.items() if claims}
