"""The report of a host whose connection was lost says only what is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecfg.playbook.compile import Definition
from statecfg.run.host.report import HostReport
from statecfg.run.host.state import SessionState
from tests.each import each

Layers = list[list[dict[str, Any]]]


def planned(name: str, *ops: str, outcome: str = "changed", **more: Any) -> dict[str, Any]:
    ops = () if outcome == "unchanged" else ops or ("run",)
    actions = [{"op": op, "args": {}, "status": "planned"} for op in ops]
    fixed = {"name": name, "type": "command", "position": "", "outcome": outcome, "changes": []}
    return {**fixed, "actions": actions, **more}


def report(layers: Layers, heard: list[dict[str, Any]], heard_all: bool = False, **more: Any) -> Mapping[str, Any]:
    """Return the report of a host that planned these layers and sent these frames before the connection was lost."""
    sent = [[{"provides": node["name"], "type": node["type"]} for node in nodes] for nodes in layers]
    told = HostReport(Definition(sent), "apply", lambda event, data: None, **more)  # type: ignore[arg-type]  # only what a report reads
    for number, nodes in enumerate(layers):
        told.take(told.read({"type": "planned", "part": "layers", "layer": number, "nodes": nodes, "fingerprints": {}}))
    told.take(told.read({"type": "plan", "owed": [], "seconds": 0.1, "waits": True}))
    told.state = SessionState.ACTING
    for frame in heard:
        told.take(told.read(frame))
    told.lost("the connection was lost", "", "", heard_all)
    told.conclude()
    return told.data


def outcomes(data: Mapping[str, Any]) -> dict[str, tuple[str, list[str]]]:
    """Return node → its outcome and the statuses of its actions."""
    nodes = [node for layer in data["layers"] for node in layer]
    return {node["name"]: (node["outcome"], [action["status"] for action in node["actions"]]) for node in nodes}


def started(name: str, op: str = "run", index: int = 0) -> dict[str, Any]:
    return {"type": "action", "node": name, "op": op, "index": index, "event": "started"}


def ended(name: str, op: str = "run", index: int = 0) -> dict[str, Any]:
    return {**started(name, op, index), "event": "finished", "status": "ok"}


def closed(number: int, *nodes: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the frames that report a layer."""
    finished = [{"type": "finished", "node": node["name"], "outcome": node["outcome"]} for node in nodes]
    return [*finished, {"type": "layer", "part": "layers", "layer": number, "nodes": list(nodes)}]


CHAIN: Layers = [[planned("a")], [planned("b")], [planned("c"), planned("same", outcome="unchanged")], [planned("d")]]
UNSEEN = ("unknown", ["unknown"])
NOT_STARTED = ("skipped", ["not-attempted"])


def test_what_the_controller_did_not_see_is_unknown() -> None:
    """The host goes on until it notices the loss, so each later node may have started."""
    data = report(CHAIN, [started("a")])
    assert outcomes(data) == {"a": UNSEEN, "b": UNSEEN, "c": UNSEEN, "same": ("unchanged", []), "d": UNSEEN}
    assert data["status"] == "unknown"
    assert data["summary"] == {"unknown": 4, "unchanged": 1}


def test_nothing_starts_after_the_executor_has_ended() -> None:
    data = report(CHAIN, [started("a")], heard_all=True)
    assert [outcomes(data)[name] for name in "abcd"] == [UNSEEN, NOT_STARTED, NOT_STARTED, NOT_STARTED]


@each(("keep_going", "after"), [(False, NOT_STARTED), (True, UNSEEN)])
def test_nothing_starts_in_the_layers_after_a_failure(keep_going: bool, after: Any) -> None:
    layers: Layers = [[planned("a"), planned("bad", outcome="failed")], [planned("b")]]
    seen = outcomes(report(layers, [started("a")], keep_going=keep_going))
    assert (seen["a"], seen["b"]) == (UNSEEN, after)


def test_the_layers_after_a_reported_failure_did_not_start() -> None:
    failed = planned("a", outcome="failed")
    failed["actions"][0]["status"] = "error"
    heard = [started("a"), {**ended("a"), "status": "error", "reason": "no"}, *closed(0, failed)]
    seen = outcomes(report([[planned("a")], [planned("b")], [planned("c")]], heard))
    assert (seen["b"], seen["c"]) == (NOT_STARTED, NOT_STARTED)


@each(("outcome", "after"), [("changed", NOT_STARTED), ("unknown", UNSEEN)])
def test_nothing_starts_after_a_reboot_that_needs_the_controller(outcome: str, after: Any) -> None:
    reboot = planned("reboot:r", "reboot", outcome=outcome)
    if outcome == "unknown":  # its turn decides whether one is due
        reboot["actions"] = []
    seen = outcomes(report([[planned("a")], [reboot], [planned("b")]], [started("a")]))
    assert seen["reboot:r"][0] == "unknown"
    assert seen["b"] == after


def test_later_actions_of_a_node_that_was_running_are_unknown() -> None:
    layers: Layers = [[planned("a", "stop", "start")]]
    heard = [started("a", "stop"), ended("a", "stop")]
    assert outcomes(report(layers, heard))["a"] == ("unknown", ["ok", "unknown"])
    assert outcomes(report(layers, heard, heard_all=True))["a"] == ("unknown", ["ok", "not-attempted"])


def test_a_first_stop_whose_start_was_not_seen_is_unknown() -> None:
    first = {"op": "service-down", "args": {}, "status": "planned"}
    data = report([[planned("a")], [planned("p", shutdown_first=first)]], [])
    assert data["layers"][1][0]["shutdown_first"]["status"] == "unknown"
    assert data["down"] == ["p"]
