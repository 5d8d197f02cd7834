"""Execution: a run performs the planned actions in the documented order and reports each of them."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import networkx
import pytest

from statecfg.remote.graph.model import ActionSpec, HostNode, Unknown
from statecfg.remote.graph.ops import Op, op
from statecfg.remote.graph.results import error, ok
from tests.host.remote.run.scenes import Run, kind, node, types

DONE: dict[str, bool] = {}


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    DONE.clear()


@op
def step(machine: Any, name: str, result: Any = None) -> Any:
    """Return the result that the test wants, and record that the action was performed."""
    answer = machine.run(["/bin/true"], effect={})
    if result is not None and not hasattr(machine, "entries"):
        return result
    if not hasattr(machine, "entries"):
        DONE[name] = True
    return answer


def stepping(node: HostNode) -> Any:
    """Plan those actions in the node's attributes that were not performed yet."""
    results = node.attrs.get("results", {})
    actions = [step(name, results.get(name)) for name in node.attrs["actions"] if name not in DONE]
    if node.attrs.get("first") and actions:
        name = node.attrs["first"]
        return {"actions": actions, "shutdown-first": step(name, results.get(name))}
    return actions


STEPPING = types(kind("stepping", stepping))


def steps(name: str, *actions: str, requires: Any = (), **more: Any) -> HostNode:
    return node(name, "stepping", requires, actions=actions, **more)


def started(run: Run) -> list[str]:
    """Return the nodes whose actions started, in the order of their start."""
    return [line[1] for line in run.journal.lines if line[0] == "started"]


# The worked example of the document: [[node1 node2] [node3 node4]] with action1 … action7.


def example(results: dict[str, Any]) -> Run:
    return Run(
        STEPPING,
        [
            [
                steps("node1", "action1", "action2", results=results),
                steps("node2", "action3", "action4", results=results),
            ],
            [
                steps("node3", "action5", requires=["node1"], results=results),
                steps("node4", "action6", "action7", requires=["node2"], results=results),
            ],
            [steps("node5", "action8", requires=["node3", "node4"], results=results)],
        ],
    )


def test_the_documented_example_changes_every_node() -> None:
    run = example({})
    assert set(run.outcomes.values()) == {"changed"}
    assert {status for name in run.nodes for status in run.statuses(name)} == {"ok"}


def test_the_documented_example_stops_after_a_failed_action() -> None:
    """Layer 1 succeeds. In layer 2 action5 succeeds, action6 fails with a reason, and action7 is not attempted."""
    run = example({"action6": error("the disk is full")})
    assert [[found["name"] for found in layer] for layer in run.layers] == [
        ["node1", "node2"],
        ["node3", "node4"],
        ["node5"],
    ]
    assert run.outcomes == {
        "node1": "changed",
        "node2": "changed",
        "node3": "changed",
        "node4": "failed",
        "node5": "skipped",
    }
    assert run.statuses("node1") == run.statuses("node2") == ["ok", "ok"]
    assert run.statuses("node3") == ["ok"]
    assert run.statuses("node4") == ["error", "not-attempted"]
    assert run.nodes["node4"]["actions"][0]["reason"] == "the disk is full"
    assert run.nodes["node4"]["reason"] == "step: the disk is full"
    assert run.statuses("node5") == ["not-attempted"]
    assert run.nodes["node5"]["reason"] == "node4, which it requires, failed"
    assert "action7" not in DONE and "action8" not in DONE and "action5" in DONE


def test_two_failures_in_a_layer_are_both_reported() -> None:
    """action1 and action4 fail in parallel. The report has both, and the second layer does not begin."""
    run = example({"action1": error("one"), "action4": error("four")})
    assert run.statuses("node1") == ["error", "not-attempted"]
    assert run.statuses("node2") == ["ok", "error"]
    assert (run.nodes["node1"]["reason"], run.nodes["node2"]["reason"]) == ("step: one", "step: four")
    assert [run.outcomes[name] for name in ("node3", "node4", "node5")] == ["skipped"] * 3
    assert set(started(run)) == {"node1", "node2"}
    assert "node1, node2 failed" in run.execution.halted


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (error("why"), "why"),
        ({"status": "error"}, "no reason was given"),
        ({"status": "fine"}, "instead of a result with a status"),
        ({}, "instead of a result"),
        ("ok", "returned 'ok' instead of a result"),
        (7, "returned 7 instead of a result"),
    ],
)
def test_an_invalid_or_failed_action_result_fails_the_node(result: Any, reason: str) -> None:
    run = Run(STEPPING, [[steps("a", "x", results={"x": result})]])
    assert run.outcomes == {"a": "failed"}
    assert reason in run.nodes["a"]["actions"][0]["reason"]


def test_an_action_result_includes_its_log() -> None:
    def logging(machine: Any) -> Any:
        DONE["x"] = not hasattr(machine, "entries")
        machine.run(["/bin/true"], effect={})
        return ok("what it said")

    run = Run(types(kind("a", lambda node: [] if DONE.get("x") else [Op(logging)()])), [[node("a")]])
    assert run.nodes["a"]["actions"] == [{"op": "logging", "args": {}, "status": "ok", "log": "what it said"}]


RAISED = [ValueError("bad luck"), SystemExit(3), OSError(28, "No space left", "/x"), Unknown("b")]


@pytest.mark.parametrize("problem", RAISED)
def test_an_exception_in_an_op_fails_only_its_node(problem: BaseException) -> None:
    def raising(machine: Any) -> Any:
        result = machine.run(["/bin/true"], effect={})
        if not hasattr(machine, "entries"):
            raise problem
        return result

    run = Run(
        dict(STEPPING, **types(kind("a", lambda node: [Op(raising)()]))),
        [[node("a"), steps("b", "x"), steps("c", "y")]],
    )
    if isinstance(problem, (ValueError, SystemExit)):
        assert type(problem).__name__ in run.nodes["a"]["reason"]
    assert run.outcomes == {"a": "failed", "b": "changed", "c": "changed"}


# Shutdown-first


def chain(results: dict[str, Any], **options: Any) -> Run:
    """A requires B, B requires C; all of them have a shutdown-first action."""
    return Run(
        STEPPING,
        [
            [steps("C", "c", first="stop-c", results=results)],
            [steps("B", "b", requires=["C"], first="stop-b", results=results)],
            [steps("A", "a", requires=["B"], first="stop-a", results=results)],
        ],
        **options,
    )


def test_shutdowns_run_in_the_reverse_order_of_actions() -> None:
    run = chain({})
    assert started(run) == ["A", "B", "C", "C", "B", "A"]
    assert [action["node"] for action in run.execution.shutdown] == ["A", "B", "C"]
    assert run.nodes["A"]["shutdown_first"]["status"] == "ok"
    assert set(run.outcomes.values()) == {"changed"}


def test_a_failed_shutdown_stops_the_whole_run() -> None:
    run = chain({"stop-b": error("it will not stop")})
    assert started(run) == ["A", "B"]
    assert run.outcomes == {"A": "skipped", "B": "failed", "C": "skipped"}
    assert [action["status"] for action in run.execution.shutdown] == ["ok", "error", "not-attempted"]
    assert run.nodes["C"]["shutdown_first"]["status"] == "not-attempted"
    assert "it will not stop" in run.nodes["B"]["reason"]


def test_a_node_that_will_be_skipped_is_not_shut_down() -> None:
    """A failed check ends the run before A's layer. So the run must not shut A down at its beginning either."""

    def failing(node: HostNode) -> Any:
        raise ValueError("no")

    kinds = dict(STEPPING, **types(kind("bad", failing)))
    run = Run(kinds, [[node("bad")], [steps("A", "a", first="stop-a")]])
    assert started(run) == []
    assert run.outcomes == {"bad": "failed", "A": "skipped"}


# Failure and dependents


def test_keep_going_skips_only_descendants_of_failed_nodes() -> None:
    """On random graphs, with random failures."""
    rng = random.Random(7)
    for _ in range(100):
        DONE.clear()
        size = rng.randrange(2, 14)
        graph = networkx.DiGraph()
        graph.add_nodes_from(range(size))
        graph.add_edges_from((a, b) for a in range(size) for b in range(a + 1, size) if rng.random() < 0.2)
        bad = {n for n in range(size) if rng.random() < 0.2}
        # Some nodes do nothing. A failure before them still skips the nodes after them.
        idle = {n for n in range(size) if rng.random() < 0.2} - bad
        made = {
            n: node(
                str(n),
                "quick",
                [str(p) for p in graph.predecessors(n)],
                result="bad" if n in bad else "idle" if n in idle else "ok",
            )
            for n in graph
        }
        layers = [[made[n] for n in sorted(layer)] for layer in networkx.topological_generations(graph)]
        run = Run(types(kind("quick", quick)), layers, keep_going=True)
        below = set().union(*(networkx.descendants(graph, n) for n in bad)) if bad else set()
        for n in graph:
            expected = "skipped" if n in below else "failed" if n in bad else "unchanged" if n in idle else "changed"
            assert run.outcomes[str(n)] == expected


@op
def quick_op(machine: Any, name: str, result: str) -> Any:
    machine.affect({}) if hasattr(machine, "affect") else DONE.setdefault(name, True)
    machine.calls += 1
    return error("bad") if result == "bad" and not hasattr(machine, "affect") else ok()


def quick(node: HostNode) -> Any:
    if node.attrs["result"] == "idle" or node.provides in DONE:
        return []
    return [quick_op(node.provides, node.attrs["result"])]


def test_without_keep_going_later_layers_are_not_begun() -> None:
    run = Run(
        STEPPING,
        [[steps("bad", "x", results={"x": error("no")}), steps("beside", "y")], [steps("unrelated", "z")]],
    )
    assert run.outcomes == {"bad": "failed", "beside": "changed", "unrelated": "skipped"}
    assert run.nodes["unrelated"]["reason"] == "not started: bad failed"


# Parallel actions


@op
def meet(machine: Any, name: str, folder: str) -> Any:
    """Wait until four actions run at the same time, for at most 30 seconds."""
    if hasattr(machine, "entries"):
        return machine.run(["meet"], effect={})
    script = 'touch "$1"; for n in $(seq 600); do [ $(ls | wc -l) = 4 ] && exit; sleep 0.05; done; exit 1'
    result = machine.run(["/bin/sh", "-c", script, "sh", name], cwd=folder, effect={})
    DONE[name] = True
    return result


@op(mutex="apt")
def in_turn(machine: Any, name: str) -> Any:
    return napping(machine, name)


SPANS: list[tuple[float, float]] = []


def napping(machine: Any, name: str) -> Any:
    if hasattr(machine, "entries"):
        return machine.run(["sleep"], effect={})
    begun = time.monotonic()
    result = machine.run(["sleep", "0.3"], effect={})
    SPANS.append((begun, time.monotonic()))
    DONE[name] = True
    return result


def sleeping(made: Op) -> Any:
    return types(kind("nap", lambda node: [] if node.provides in DONE else [made(node.provides)]))


def test_nodes_of_one_layer_run_in_parallel(tmp_path: Path) -> None:
    meeting = types(kind("meet", lambda node: [] if node.provides in DONE else [meet(node.provides, str(tmp_path))]))
    run = Run(meeting, [[node(name, "meet") for name in "abcd"]])
    assert set(run.outcomes.values()) == {"changed"}


def test_ops_of_one_turn_never_overlap() -> None:
    SPANS.clear()
    Run(sleeping(in_turn), [[node(name, "nap") for name in "abc"]])
    spans = sorted(SPANS)
    assert len(spans) == 3
    assert all(one[1] <= two[0] for one, two in itertools.pairwise(spans))


INSTALLS: list[list[str]] = []


@op(batch="packages")
def install(machine: Any, packages: list[str], flag: str = "") -> Any:
    if hasattr(machine, "entries"):
        return machine.run(["install"], effect={})
    machine.run(["/bin/true"], effect={})
    INSTALLS.append(packages)
    if "bad" in packages:
        return error("no package bad")
    DONE.update(dict.fromkeys(packages, True))
    return ok("installed")


PACKAGES = types(
    kind("pkg", lambda node: [] if node.provides in DONE else [install([node.provides], node.attrs.get("flag", ""))])
)


def test_actions_of_one_batch_run_as_one_call() -> None:
    INSTALLS.clear()
    run = Run(PACKAGES, [[node("a", "pkg"), node("b", "pkg"), node("c", "pkg", flag="other"), node("d", "pkg")]])
    assert sorted(INSTALLS) == [["a", "b", "d"], ["c"]]
    assert set(run.outcomes.values()) == {"changed"}
    assert run.nodes["b"]["actions"] == [
        {"op": "install", "args": {"packages": ["b"], "flag": ""}, "status": "ok", "log": "installed"}
    ]


def test_a_failed_batch_is_retried_one_action_at_a_time() -> None:
    INSTALLS.clear()
    run = Run(PACKAGES, [[node("a", "pkg"), node("bad", "pkg"), node("c", "pkg")]])
    assert INSTALLS[0] == ["a", "bad", "c"]
    assert sorted(INSTALLS[1:]) == [["a"], ["bad"], ["c"]]
    assert run.outcomes == {"a": "changed", "bad": "failed", "c": "changed"}


# Checks after the actions


def test_a_node_fails_when_its_change_does_not_last(tmp_path: Path) -> None:
    """The op succeeds, and then another program restores the old content."""
    place = tmp_path / "f"

    @op
    def write(machine: Any) -> Any:
        result = machine.write(str(place), "new\n")
        if not hasattr(machine, "entries"):
            place.write_text("old\n")
        return result

    def check(node: HostNode, world: Any) -> Any:
        stat = world.stat(str(place))
        return [] if stat is not None and world.read(str(place)) == b"new\n" else [write()]

    run = Run(types(kind("f", check)), [[node("f")]])
    assert run.outcomes == {"f": "failed"}
    assert run.statuses("f") == ["ok"]
    assert run.nodes["f"]["reason"].startswith(f"did not converge: {place} content: 'sha256:")


def test_a_node_fails_when_another_node_undoes_its_state(tmp_path: Path) -> None:
    """A node with nothing to do is checked again after other nodes of its layer have acted."""
    place = tmp_path / "f"
    place.write_text("wanted")

    def undo(machine: Any) -> Any:
        return machine.run(["rm", str(place)], effect={})

    def wants(node: HostNode, world: Any) -> Any:
        return [] if world.stat(str(place)) else [Op(lambda machine: machine.write(str(place), "wanted"), "write")()]

    def undoes(node: HostNode) -> Any:
        return [Op(undo)()] if place.exists() else []

    run = Run(types(kind("wants", wants), kind("undoes", undoes)), [[node("wants"), node("undoes")]])
    assert run.outcomes == {"wants": "failed", "undoes": "changed"}
    assert "did not converge" in run.nodes["wants"]["reason"]


def test_a_check_without_world_is_not_repeated_after_its_actions() -> None:
    def check(node: HostNode, nodes: Any, actions: Any) -> Any:
        return [step("x")]

    assert Run(types(kind("a", check)), [[node("a")]]).outcomes == {"a": "changed"}


def test_a_check_that_raises_after_the_actions_fails_the_node() -> None:
    def check(node: HostNode) -> Any:
        if "x" in DONE:
            raise KeyError("gone")
        return [step("x")]

    run = Run(types(kind("a", check)), [[node("a")]])
    assert "can't be checked after its actions" in run.nodes["a"]["reason"]


# Nodes that the plan could not decide


def test_an_unknown_node_is_planned_when_its_turn_comes(tmp_path: Path) -> None:
    place = tmp_path / "conf"

    def make(machine: Any) -> Any:
        return machine.run(["touch", str(place)], effect={"files": [str(place)]})

    def edit(machine: Any) -> Any:
        return machine.write(str(place), "edited")

    def makes(node: HostNode) -> Any:
        return [] if place.exists() else [Op(make)()]

    def edits(node: HostNode, world: Any) -> Any:
        return [Op(edit)()] if world.read(str(place)) != b"edited" else []

    kinds = types(kind("makes", makes), kind("edits", edits))
    layers = [[node("makes")], [node("edits", requires=["makes"])]]
    run = Run(kinds, layers)
    assert run.plan.steps["edits"].known_after == "makes"
    assert run.outcomes == {"makes": "changed", "edits": "changed"}
    assert run.nodes["edits"]["known_after"] == "makes"
    assert place.read_text() == "edited"
    assert Run(kinds, layers).outcomes == {"makes": "unchanged", "edits": "unchanged"}


def test_program_output_is_reported_live_and_in_order(tmp_path: Path) -> None:
    """The program writes the next line only after the test has received the line before."""
    script = "for n in 0 1 2; do echo $n; for m in $(seq 600); do [ -e $n ] && break; sleep 0.05; done; done"

    class Answering(Run):
        def hear(self, event: Mapping[str, Any]) -> None:
            super().hear(event)
            if event["type"] == "output":
                (tmp_path / event["text"].strip()).touch()

    def talk(machine: Any) -> Any:
        DONE["talk"] = not hasattr(machine, "entries")
        return machine.run(["/bin/sh", "-c", script], cwd=str(tmp_path), effect={})

    run = Answering(types(kind("a", lambda node: [] if DONE.get("talk") else [Op(talk)()])), [[node("a")]])
    said = [event["text"] for event in run.events if event["type"] == "output"]
    assert "".join(said) == "0\n1\n2\n" and len(said) == 3
    kinds = [event["type"] for event in run.events]
    assert kinds[0] == "action" and kinds[-2:] == ["finished", "layer"]


def test_the_journal_records_each_step_in_order() -> None:
    run = Run(STEPPING, [[steps("a", "x")], [steps("b", "y", requires=["a"])]])
    assert run.journal.lines == [
        ("intend", "a"),
        ("started", "a", "step"),
        ("took", "a", "step", "ok"),
        ("finished", "a", "changed"),
        ("intend", "b"),
        ("started", "b", "step"),
        ("took", "b", "step", "ok"),
        ("finished", "b", "changed"),
    ]


def test_cancelling_between_actions_skips_the_remaining_ones() -> None:
    run = Run(
        STEPPING,
        [[steps("a", "x", "y")], [steps("b", "z", requires=["a"]), steps("c", "w")]],
        stopped=lambda: "cancelled" if "x" in DONE else "",
    )
    assert run.statuses("a") == ["ok", "not-attempted"]
    assert run.nodes["a"]["reason"] == "stopped before step: cancelled"
    assert (run.outcomes["b"], run.outcomes["c"]) == ("skipped", "skipped")
    assert run.nodes["c"]["reason"] == "not started: a failed"


def test_cancelling_before_the_first_action_skips_everything() -> None:
    run = Run(STEPPING, [[steps("a", "x")]], stopped=lambda: "cancelled")
    assert run.outcomes == {"a": "skipped"}
    assert run.nodes["a"]["reason"] == "not started: cancelled"
    assert run.journal.lines == []


def test_a_node_is_triggered_only_by_a_real_change() -> None:
    def restarting(node: HostNode, world: Any) -> Any:
        return [step("restart")] if world.triggered_by and not world.acted else []

    kinds = dict(STEPPING, **types(kind("service", restarting)))
    layers = [[steps("conf", "write")], [node("service", triggers=["conf"])]]
    run = Run(kinds, layers)
    assert run.outcomes == {"conf": "changed", "service": "changed"}
    assert run.nodes["service"]["triggered_by"] == ["conf"]
    assert Run(kinds, layers).outcomes == {"conf": "unchanged", "service": "unchanged"}
    assert Run(kinds, layers, owed={"service": ["conf"]}).outcomes == {"conf": "unchanged", "service": "changed"}


def test_an_op_that_bypasses_the_machine_makes_cached_facets_stale() -> None:
    def past(machine: Any) -> Any:
        Path("/dev/null").write_text("")
        DONE["past"] = True
        return ok()

    run = Run(types(kind("a", lambda node: [] if DONE.get("past") else [Op(past)()])), [[node("a")]])
    assert run.outcomes == {"a": "changed"}
    assert run.execution.performer.facets.changed == 1


def test_a_run_of_many_nodes_leaves_no_threads() -> None:
    before = threading.active_count()
    layers = [
        [node(f"{n}-{m}", "quick", [f"{n - 1}-{m}"] if n else [], result="ok") for m in range(30)] for n in range(10)
    ]
    run = Run(types(kind("quick", quick)), layers)
    assert set(run.outcomes.values()) == {"changed"}
    assert threading.active_count() == before


def test_a_check_may_return_an_action_spec() -> None:
    run = Run(types(kind("a", lambda node: ActionSpec([] if "x" in DONE else [step("x")]))), [[node("a")]])
    assert run.outcomes == {"a": "changed"}
