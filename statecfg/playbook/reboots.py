"""Check the reboots of a definition, and give each of them its own layer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from statecfg.graph.nodes import Node
from statecfg.playbook.wire_node import WireNode
from statecfg.problems import Problem, problem
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.resources.index.modules import module_of

TYPE = "reboot"


def arranged(layers: list[list[WireNode]], nodes: Iterable[Node], problems: list[Problem]) -> list[list[WireNode]]:
    """Return the layers, in which each reboot runs alone, after the other nodes of its layer.

    :param layers: the packed nodes, with automatic requirements
    :param nodes: the nodes as declared
    :param problems: receives the problems
    """
    own = {node.provides: node for node in nodes if node.type == TYPE and not node.broken}
    if not own or REGISTRY[TYPE].module != module_of(TYPE):  # the project may have a type of this name
        return layers
    for node in own.values():
        if not (node.attrs.get("when_exists") or node.attrs.get("always") or node.triggers):
            detail = f"{node.provides} never reboots the host: it has no `when_exists`, `always` or `restart_on`"
            problems.append(problem("SC0107", detail, "say when the reboot is due", *node.positions))
    repeated = next((node for node in nodes if node.options.get("for_each_host")), None)
    if repeated is not None:
        one = next(iter(own.values()))
        detail = f"{one.provides} reboots the host, so {repeated.provides} can't have `for_each_host` on the same host"
        help_text = "move one of them to a separate playbook, and apply the playbooks one after the other"
        problems.append(problem("SC0121", detail, help_text, *one.positions, *repeated.positions))
    requires = {node["provides"]: node.get("requires", ()) for layer in layers for node in layer}
    ordered = [own[node["provides"]] for layer in layers for node in layer if node["provides"] in own]
    for earlier, later in pairwise(ordered):
        if earlier.provides not in _before(later.provides, requires):
            detail = f"{earlier.provides} and {later.provides} both reboot the host, and neither requires the other"
            help_text = "let one of them require the other, so that it is certain which one comes first"
            problems.append(problem("SC0121", detail, help_text, *earlier.positions, *later.positions))
    parts = (part for layer in layers for part in _apart(layer, own))
    return [part for part in parts if part]


def _before(name: str, requires: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the names of the nodes that a node requires, directly or indirectly."""
    found: set[str] = set()
    left = [name]
    while left:
        more = [other for other in requires.get(left.pop(), ()) if other not in found]
        found.update(more)
        left += more
    return found


def _apart(layer: list[WireNode], own: Mapping[str, Node]) -> list[list[WireNode]]:
    alone = [[node] for node in layer if node["provides"] in own]
    return [[node for node in layer if node["provides"] not in own], *alone] if alone else [layer]


def refused(nodes: Iterable[Node]) -> list[Problem]:
    """Return the problems of reboots on a host that statecfg does not reach over a network."""
    detail = "%s would reboot the machine that statecfg runs on, so the run could not continue"
    help_text = "use it on hosts with SSH"
    own = (node for node in nodes if node.type == TYPE)
    return [problem("SC0121", detail % node.provides, help_text, *node.positions) for node in own]
