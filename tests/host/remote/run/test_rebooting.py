"""Runs whose plan does not know whether the host reboots, in this process: none of them reboots."""

from __future__ import annotations

from typing import Any

from statecfg.remote.graph.model import HostNode, Unknown
from statecfg.remote.machine.real import Facets, RealMachine
from statecfg.remote.run.rebooting import TYPE, RebootingExecution
from tests.host.remote.run.scenes import Journal, kind, plan, types
from tests.host.remote.run.test_execution import DONE, STEPPING, steps


class Session:
    """Stands for the managed resources and the session, which only a reboot uses."""

    session: Any = None


def decided_later(node: HostNode, nodes: Any, world: Any) -> list[Any]:
    """Plan nothing, or nothing that is known."""
    if not getattr(world, "due", False):
        raise Unknown("a", "whether it changes is")
    return []


def test_shutdowns_after_a_reboot_that_turns_out_not_to_be_due() -> None:
    DONE.clear()
    kinds = {**STEPPING, **types(kind(TYPE, decided_later))}
    layers = [
        [steps("a", "one", first="stop-a")],
        [HostNode("reboot:x", TYPE, ["a"], {}, ["a"], position="play.yml:1")],
        [steps("b", "two", requires=["reboot:x"], first="stop-b")],
    ]
    facets = Facets()
    planned, _ = plan(kinds, layers, RealMachine(facets))
    assert planned.steps["reboot:x"].outcome == "unknown"
    managed: Any = Session()
    execution = RebootingExecution(managed, planned, kinds, facets, lambda event: None, Journal(), lambda: "")
    reports = {node["name"]: node for layer in execution.run() for node in layer}
    assert {name: node["outcome"] for name, node in reports.items()} == {
        "a": "changed", "reboot:x": "unchanged", "b": "changed",
    }  # fmt: skip
    assert [(action["node"], action["status"]) for action in execution.shutdown] == [("a", "ok"), ("b", "ok")]
