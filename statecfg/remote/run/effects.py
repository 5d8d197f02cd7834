"""Effect: whether the system uses what the nodes define, or whether another source wins.

A node type that writes one source among several, such as one file of a directory, declares it with `NodeType.effect`.
The plan asks about the host as the whole plan will leave it, so a node may also remove the source that wins. An apply
asks again at its end, on the real host.
"""

from __future__ import annotations

from statecfg.remote.graph.model import CheckError, Unknown
from statecfg.remote.graph.names import Outcome
from statecfg.remote.machine.guard import reading_only

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import AbstractSet, Callable, Mapping

    from statecfg.remote.graph.model import HostNode
    from statecfg.remote.graph.nodetype import NodeType
    from statecfg.remote.machine.planned import Planned
    from statecfg.remote.run.plan import Plan, Step

    Ancestors = Mapping[str, AbstractSet[str]]
    Missing = Callable[[HostNode, Mapping[str, Step]], str]

ACCEPT = "; allow_override: true accepts that"


def concerned(types: Mapping[str, NodeType[...]]) -> AbstractSet[str]:
    """Return the names of the node types that ask this question."""
    return {name for name, node_type in types.items() if "effect" in node_type.methods}


def overridden(
    types: Mapping[str, NodeType[...]], node: HostNode, world: Planned, nodes: Mapping[str, HostNode]
) -> str:
    """Return the reason why the system does not use what a node defines; "" if it does, or if that is not known.

    :param world: the host, in the node's turn
    :param nodes: all nodes by name
    """
    if node.attrs.get("allow_override"):
        return ""
    try:
        with reading_only():
            function = types[node.type].methods["effect"]
            why = str(function(*(node, world, nodes)[: function.__code__.co_argcount]))
    except (Unknown, PermissionError):  # a user who is not root may not read the files that decide
        return ""
    except (Exception, SystemExit) as problem:
        # Other exceptions than these are bugs in a node type.
        what = str(problem) if isinstance(problem, (CheckError, OSError)) else f"{type(problem).__name__}: {problem}"
        return f"whether the system uses it can't be found out: {what}{ACCEPT}"
    return why + ACCEPT if why else ""


def confirm(
    types: Mapping[str, NodeType[...]], machine: Planned, plan: Plan, above: Ancestors, missing: Missing
) -> None:
    """Fail the nodes of a plan that would have no effect, and skip the nodes that require them.

    :param machine: the simulated machine after all actions
    :param above: node → the acting nodes that it requires
    :param missing: tells why a node must be skipped
    """
    names, failed = concerned(types), False
    nodes = {name: step.node for name, step in plan.steps.items()}
    machine.memo, machine.complete = {}, True
    for name, step in plan.steps.items():
        if step.outcome not in Outcome.SOUND or step.excluded:
            continue
        why = missing(step.node, plan.steps) if failed else ""
        if why:
            step.outcome, step.reason = Outcome.SKIPPED, why
        elif step.node.type in names:
            machine.turn(name, above.get(name, frozenset()))
            why = overridden(types, step.node, machine, nodes)
            if why:
                step.outcome, step.reason, failed = Outcome.FAILED, why, True
    machine.complete = False
