"""Reactions that a run leaves to later runs, and what a plan warns of."""

from __future__ import annotations

from statecfg.remote.graph.names import Mode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Mapping, Sequence, Tuple

    from statecfg.remote.graph.model import HostNode
    from statecfg.remote.ledger.recorded import RecordedResources
    from statecfg.remote.ledger.records import Debt
    from statecfg.remote.run.order import Order
    from statecfg.remote.run.plan import Plan

OWED = "%s reacts to the change of %s, but this run leaves it out: the next run that includes it does that"


def left_out(plan: Plan, restarts: Mapping[str, Sequence[str]]) -> List[Tuple[str, str]]:
    """Return the nodes of the playbook that a run leaves out and that react to its changes, each with the cause.

    :param restarts: node that the run leaves out → nodes of the run in its `restart_on`
    """
    return [
        (name, step.node.provides)
        for name, causes in restarts.items()
        for step in plan.steps.values()
        if step.acts and not {step.node.provides, step.node.options.get("item_of")}.isdisjoint(causes)
    ]


def causes(debts: List[Debt]) -> Dict[str, List[str]]:
    """Return node → the nodes whose changes it still has to react to."""
    by_node: Dict[str, List[str]] = {}
    for debt in debts:
        by_node.setdefault(debt.node, []).append(debt.cause)
    return by_node


def standing(
    recorded: RecordedResources, names: Mapping[str, str], order: Order, defined: Mapping[str, HostNode]
) -> List[Debt]:
    """Return the debts of earlier runs, with the present names of their nodes.

    Leave out the debts of nodes that were never applied and that the playbook no longer defines.

    :param names: former name → present name
    :param defined: the nodes of the playbook that the controller sent, by name
    """
    for debt in recorded.debts:
        debt.node, debt.cause = names.get(debt.node, debt.node), names.get(debt.cause, debt.cause)
    if (
        order.partial
        or order.mode in Mode.REMOVING
        or any("for_each_host" in node.options for node in defined.values())
    ):
        return recorded.debts
    return [debt for debt in recorded.debts if debt.how or debt.node in defined or debt.node in recorded.resources]


def foreseen(plan: Plan, order: Order) -> List[str]:
    """Return the warnings of a plan."""
    found = [step.reason for step in plan.removal_steps() if step.cannot_undo]
    if order.mode in (Mode.PLAN, Mode.APPLY):
        found += [OWED % debt for debt in left_out(plan, order.restarts)]
    return found
