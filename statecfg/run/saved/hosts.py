"""The hosts of a saved plan: their fingerprints and host keys, and how a host that refused differs from the plan."""

from __future__ import annotations

from collections.abc import Sequence

from statecfg.remote.graph.names import HostStatus
from statecfg.run.host.host_key import HOST_KEY
from statecfg.run.options import Expected
from statecfg.run.report_model import HostData, HostError, Node
from statecfg.run.saved.model import SavedPlan

STALE: HostError = {
    "summary": "its plan has changed; nothing was applied",
    "detail": "",
    "hint": "Plan again, review the plan, and apply it: statecfg plan PLAYBOOK --out FILE",
}


def compared(planned: HostData, now: HostData) -> list[str]:
    """Return how a host that refused differs from its plan, node by node.

    :param planned: the host's report in the plan
    :param now: the host's current report, with the names of the nodes in `differs`
    """
    before, after = _by_name(planned), _by_name(now)
    removed_before, removed_now = _to_remove(planned), _to_remove(now)
    return [
        "units: other hooks are due now, or their charms or settings have changed"
        if name == "units"
        else name
        if name.startswith((f"{HOST_KEY}: ", "fact ")) or (": " in name and name not in before and name not in after)
        else f"{name}: {_moved(before.get(name), after.get(name), (name in removed_before, name in removed_now))}"
        for name in sorted(now.get("differs") or [], key=lambda name: not name.startswith("fact "))
    ]


def _by_name(report: HostData) -> dict[str, Node]:
    layers = (*(report.get("removals") or ()), *(report.get("layers") or ()))
    return {node["name"]: node for layer in layers for node in layer}


def _to_remove(report: HostData) -> set[str]:
    return {node["name"] for layer in report.get("removals") or () for node in layer}


def _moved(before: Node | None, after: Node | None, is_removal: tuple[bool, bool]) -> str:
    was, now = _deed(before, is_removal[0]), _deed(after, is_removal[1])
    if was != now:
        return f"planned: {was}; now: {now}"
    return f"planned and now: {was}, but the state before or after it differs"


def _deed(node: Node | None, is_removal: bool) -> str:
    """Return in a few words what would happen to a node.

    :param is_removal: whether the node is a removal
    """
    if node is None:
        return "not there"
    if is_removal:
        ops = ", ".join(str(action["op"]) for action in node.get("actions") or ())
        return f"removed ({ops})" if ops else "forgotten"
    fields: dict[str, None] = dict.fromkeys(str(change.get("field")) for change in node.get("changes") or ())
    ops = ", ".join(str(action["op"]) for action in node.get("actions") or ())
    if not ops:
        return "nothing to do"
    absent = all(change.get("before") is None for change in node.get("changes") or ())
    return f"{ops} ({'it does not exist' if absent else ', '.join(fields)})" if fields else ops


def expected(plan: SavedPlan) -> Expected:
    """Return what a plan expects of its hosts when it is applied."""
    reports = {name: host["report"] for name, host in plan["hosts"].items()}
    return Expected(
        {name: report.get("fingerprints") or {} for name, report in reports.items()},
        {name: str(report.get("peer") or "") for name, report in reports.items()},
        {name: report.get("units") or [] for name, report in reports.items()},
    )


def without_plan(why: str) -> HostData:
    """Return the report of a host that has no usable plan in a saved plan.

    :param why: why the plan has none
    """
    error: HostError = {**STALE, "summary": "the saved plan has no usable plan for this host; nothing was applied"}
    return {"status": HostStatus.REFUSED, "layers": [], "summary": {}, "error": {**error, "detail": why}}


def refusal(differs: Sequence[str]) -> HostData:
    """Return the report of a host that statecfg refused without connecting to it."""
    return {"status": HostStatus.REFUSED, "layers": [], "summary": {}, "error": STALE.copy(), "differs": list(differs)}
