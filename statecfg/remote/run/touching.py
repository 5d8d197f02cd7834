"""Which nodes touch the same object: which must run one after another, and which gave another node work to do."""

from __future__ import annotations

from typing import AbstractSet, Dict, Hashable, Iterable, List, Mapping, Sequence

from statecfg.remote.graph.model import HostNode, required
from statecfg.remote.machine.overlay import ALL, Overlay
from statecfg.remote.run.node_run import NodeRun


def chains(nodes: Sequence[NodeRun]) -> List[List[NodeRun]]:
    """Group the nodes of a layer: nodes that touch the same object form one group, in the planned order.

    An object is a path, or an entry of a facet such as a unit: starting ssh.socket also stops and starts ssh.service.
    """
    group = list(range(len(nodes)))

    def leader(at: int) -> int:
        while group[at] != at:
            group[at] = group[group[at]]
            at = group[at]
        return at

    first: Dict[Hashable, int] = {}
    for at, node in enumerate(nodes):
        entries = (entry for entry in node.step.touches.effects if entry[1] != ALL)
        for touched in (*node.step.touches.paths, *entries):
            one, other = sorted((leader(first.setdefault(touched, at)), leader(at)))
            group[other] = one
    for at, node in enumerate(nodes):
        for touched in node.step.touches.shared:
            one, other = sorted((leader(first.get(touched, at)), leader(at)))
            group[other] = one
    groups: Dict[int, List[NodeRun]] = {}
    for at, node in enumerate(nodes):
        groups.setdefault(leader(at), []).append(node)
    return list(groups.values())


def overtaken(node: HostNode, machine: Overlay, nodes: Mapping[str, HostNode], acted: Iterable[NodeRun]) -> str:
    """Describe which nodes gave work to a node that was planned as unchanged, and the fix.

    :param node: the node, which was just checked again on `machine`
    :param nodes: all nodes by name
    :param acted: the nodes that have acted in this run
    :returns: a sentence; "" if no node of this run can be the cause
    """
    needed = required(node, nodes)
    others = [run for run in acted if run.step.node.provides not in needed and run.step.node is not node]
    certain = [run for run in others if _changed(machine.trace.looked, machine.trace.facet_entries, run)]
    causes = certain or [run for run in others if (ALL, ALL) in run.step.touches.effects]
    names = sorted(run.step.node.provides for run in causes)
    if not names:
        return ""
    if len(names) == 1:
        which, add = f"{names[0]}, which it does not require,", names[0]
    else:
        listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        which, add = f"one of {listed}, none of which it requires,", "that node"
    return "it was planned as unchanged, but %s changed what it manages in this run: add %s to its `requires`" % (
        which, add,
    )  # fmt: skip


def _changed(looked: AbstractSet[Hashable], entries: AbstractSet[Sequence[str]], other: NodeRun) -> bool:
    """Tell whether another node certainly changed what a check looked at."""
    touches = other.step.touches
    if not looked.isdisjoint(touches.paths):
        return True
    above = {directory for path in looked if isinstance(path, str) for directory in _above(path)}
    if not above.isdisjoint(touches.paths):
        return True
    return any(entry in touches.effects or (entry[0], ALL) in touches.effects for entry in entries)


def _above(path: str) -> Iterable[str]:
    """Yield the directories above a path, but not the root."""
    while path.count("/") > 1:
        path = path[: path.rindex("/")]
        yield path
