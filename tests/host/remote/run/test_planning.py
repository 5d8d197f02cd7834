"""Planning: what each node would do, simulated on a planned machine, and what can't be known yet."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from statecfg.remote.graph.model import Action, ActionSpec, Blob, CheckError, HostNode, Keyword
from statecfg.remote.graph.ops import Op, op
from statecfg.remote.graph.results import error, ok
from statecfg.remote.machine.memory import MemoryMachine
from statecfg.remote.machine.world import ANYTHING, Machine, Probe
from statecfg.remote.run.report import WHOLE, fingerprints, portions
from tests.host.remote.run.scenes import Layers, kind, node, plan, types


@op
def write(machine: Machine, path: str, content: str = "new\n", mode: Any = None) -> Any:
    return machine.write(path, content, mode)


@op
def install(machine: Machine, name: str) -> Any:
    return machine.run(["install", name], effect={"packages": {name: {"version": "2"}}, "unknown": ["files", "units"]})


@op
def anything(machine: Machine) -> Any:
    return machine.run(["do"], effect=ANYTHING)


@op
def touching(machine: Machine, path: str) -> Any:
    return machine.run(["touch"], effect={"files": [path]})


@op
def half_done(machine: Machine) -> Any:
    return machine.run(["finish"], effect={"unknown": ["packages"]})


def files(node: HostNode, world: Any) -> Any:
    stat = world.stat(node.attrs["path"])
    wanted = node.attrs.get("content", "new\n")
    return [] if stat and world.read(node.attrs["path"]) == wanted.encode() else [write(node.attrs["path"], wanted)]


KINDS = types(
    kind("file", files),
    kind("pkg", lambda node, world: [] if world.entry("packages", node.provides) else [install(node.provides)]),
    kind("unit", lambda node, world: [] if world.entry("units", "x") else [anything()]),
    kind("pkg-seen", lambda node, world: [] if world.entry("packages", node.attrs["package"]) else [anything()]),
    kind("anything", lambda node: [anything()]),
    kind("touching", lambda node: [touching(node.attrs["path"])]),
    kind("probing", lambda node, world: [] if world.probe(["ask"]).status == 0 else [anything()]),
    kind("service", lambda node, world: [touching("/none")] if world.triggered_by else []),
    kind("listing", lambda node, world: [write("/seen", ",".join(world.listdir(node.attrs["path"])))]),
    kind("broken", lambda node: 1 / 0),
    kind("refusing", lambda node: refuse()),
    kind("quiet", lambda node: []),
)


def refuse() -> Any:
    raise CheckError("it can't be")


def planned(*layers: list[HostNode], **options: Any) -> Any:
    machine = options.pop("machine", None) or MemoryMachine(
        {"/etc/conf": "old\n", "/etc/same": "old\n", "/srv": None},
        {"packages": {}, "units": {}},
        {"ask": Probe(0, b"")},
    )
    return plan(KINDS, list(layers), machine, **options)[0]


def outcomes(found: Any) -> dict[str, str]:
    return {name: step.outcome for name, step in found.steps.items()}


def test_a_file_that_requires_a_new_package_is_unknown() -> None:
    found = planned([node("nginx", "pkg")], [node("conf", "file", ["nginx"], path="/etc/nginx.conf")])
    assert outcomes(found) == {"nginx": "changed", "conf": "unknown"}
    assert found.steps["conf"].known_after == "nginx"
    assert found.steps["nginx"].changes == [
        {"object": "package nginx", "field": "version", "before": None, "after": "2"}
    ]


def test_nodes_unrelated_to_a_new_package_stay_known() -> None:
    found = planned([node("nginx", "pkg"), node("other", "file", path="/srv/f")], [node("late", "file", path="/srv/g")])
    assert outcomes(found) == {"nginx": "changed", "other": "changed", "late": "changed"}


def test_indirect_requirements_also_make_a_node_unknown() -> None:
    found = planned(
        [node("nginx", "pkg")], [node("between", "quiet", ["nginx"])], [node("f", "file", ["between"], path="/srv/f")]
    )
    assert outcomes(found) == {"nginx": "changed", "between": "unchanged", "f": "unknown"}
    assert found.steps["f"].known_after == "nginx"


def test_a_file_written_after_an_unknown_step_is_known_again() -> None:
    kinds = dict(KINDS, **types(kind("bold", lambda node: [write("/srv/f")])))
    layers: Layers = [
        [node("nginx", "pkg")],
        [node("bold", requires=["nginx"])],
        [node("f", "file", ["bold"], path="/srv/f"), node("g", "file", ["bold"], path="/srv/g")],
    ]
    found, _ = plan(kinds, layers, MemoryMachine({"/srv": None}, {"packages": {}}))
    assert outcomes(found) == {"nginx": "changed", "bold": "changed", "f": "unchanged", "g": "unknown"}


def test_a_new_package_makes_units_unknown_but_not_itself() -> None:
    """The plan knows that the package will be installed. It does not know which units there will be."""
    found = planned(
        [node("nginx", "pkg")],
        [node("seen", "pkg-seen", ["nginx"], package="nginx"), node("unit", "unit", ["nginx"])],
    )
    assert outcomes(found) == {"nginx": "changed", "seen": "unchanged", "unit": "unknown"}


def test_a_command_without_declared_effects_makes_its_dependents_unknown() -> None:
    found = planned(
        [node("cmd", "anything")],
        [
            node("f", "file", ["cmd"], path="/etc/conf"),
            node("u", "unit", ["cmd"]),
            node("p", "probing", ["cmd"]),
            node("q", "quiet", ["cmd"]),
        ],
    )
    assert outcomes(found) == {"cmd": "changed", "f": "unknown", "u": "unknown", "p": "unknown", "q": "unchanged"}
    assert {found.steps[name].known_after for name in "fup"} == {"cmd"}


def test_declared_effects_make_only_the_declared_files_unknown() -> None:
    found = planned(
        [node("cmd", "touching", path="/srv/made")],
        [
            node("it", "file", ["cmd"], path="/srv/made"),
            node("below", "file", ["cmd"], path="/srv/made/f"),
            node("beside", "file", ["cmd"], path="/srv/made2"),
            node("above", "listing", ["cmd"], path="/srv"),
            node("else", "listing", ["cmd"], path="/etc"),
        ],
    )
    assert outcomes(found) == {
        "cmd": "changed",
        "it": "unknown",
        "below": "unknown",
        "beside": "changed",
        "above": "unknown",
        "else": "changed",
    }


def test_a_probe_is_unknown_when_a_required_node_acts_first() -> None:
    found = planned(
        [node("f", "file", path="/srv/f")], [node("p", "probing", ["f"]), node("free", "probing", requires=[])]
    )
    assert outcomes(found) == {"f": "changed", "p": "unknown", "free": "unchanged"}
    assert found.steps["p"].known_after == "f"


def test_a_probe_with_declared_inputs_is_known_until_one_changes() -> None:
    """Changes outside the declared inputs leave the probe's answer known."""
    ask = ["ask"]
    kinds = dict(
        KINDS,
        **types(
            kind("asking", lambda node, world: world.probe(ask, inputs=("packages", ["/etc/apt"])) and []),
            kind("half", lambda node: [half_done()]),
        ),
    )
    layers: Layers = [
        [node("conf", "file", path="/etc/conf"), node("source", "file", path="/etc/apt/source"), node("nginx", "pkg")],
        [
            node("some", "touching", path="/srv/f"),
            node("list", "touching", path="/etc/apt/list"),
            node("cmd", "anything"),
        ],
        [node("half")],
        [
            node(f"after-{name}", "asking", [name])
            for name in ("conf", "source", "nginx", "some", "list", "cmd", "half")
        ],
    ]
    machine = MemoryMachine(
        {"/etc/conf": "old\n", "/etc/apt": None, "/srv": None}, {"packages": {}}, {"ask": Probe(0, b"")}
    )
    found, _ = plan(kinds, layers, machine)
    unknown = {name: step.known_after for name, step in found.steps.items() if step.outcome == "unknown"}
    assert unknown == {f"after-{name}": name for name in ("source", "list", "cmd", "half")}


def test_unknown_nodes_make_their_dependents_unknown() -> None:
    found = planned(
        [node("cmd", "anything")],
        [node("one", "file", ["cmd"], path="/srv/one")],
        [node("two", "file", ["one"], path="/srv/two")],
    )
    assert outcomes(found) == {"cmd": "changed", "one": "unknown", "two": "unknown"}
    assert found.steps["two"].known_after in ("cmd", "one")


def test_a_node_is_triggered_only_by_nodes_that_change() -> None:
    found = planned(
        [node("conf", "file", path="/etc/conf"), node("same", "file", path="/etc/same", content="old\n")],
        [node("restarted", "service", triggers=["conf"]), node("left", "service", triggers=["same"])],
        [node("chained", "service", triggers=["restarted"])],
    )
    assert outcomes(found) == {
        "conf": "changed",
        "same": "unchanged",
        "restarted": "changed",
        "left": "unchanged",
        "chained": "changed",
    }
    assert found.steps["restarted"].triggered_by == ["conf"]


def test_an_unknown_trigger_makes_its_node_unknown() -> None:
    layers = ([node("cmd", "anything")], [node("conf", "file", ["cmd"], path="/etc/conf")])
    found = planned(*layers, [node("service", triggers=["conf"])])
    assert found.steps["service"].outcome == "unknown"
    assert found.steps["service"].known_after == "conf"


def test_an_owed_change_triggers_its_node() -> None:
    found = planned([node("service", triggers=[])], owed={"service": ["conf"]})
    assert outcomes(found) == {"service": "changed"}
    assert found.steps["service"].triggered_by == ["conf"]


@pytest.mark.parametrize("bad", ["broken", "refusing", "no such type"])
def test_a_check_that_fails_skips_its_dependents_only(bad: str) -> None:
    found = planned(
        [node("bad", bad), node("good", "file", path="/srv/f")],
        [node("on", "quiet", ["bad"])],
        [node("further", "quiet", ["on"])],
    )
    assert outcomes(found) == {"bad": "failed", "good": "changed", "on": "skipped", "further": "skipped"}
    assert found.steps["on"].reason == "bad, which it requires, failed"
    assert found.steps["further"].reason == "on, which it requires, is skipped"
    if bad == "broken":
        assert "ZeroDivisionError" in found.steps["bad"].reason
        assert "test_planning.py:" in found.steps["bad"].reason


# Changes


def test_several_changes_of_a_field_are_shown_as_one() -> None:
    """The change shows the first old value and the last new value. A file that was made and removed is not shown."""

    def check(node: HostNode) -> Any:
        return [
            write("/etc/conf", "one\n"),
            write("/etc/conf", "two\n", 0o600),
            write("/etc/conf", "new\n"),
            write("/srv/tmp", "x"),
            Op(lambda machine: machine.remove("/srv/tmp"), "remove")(),
        ]

    found, _ = plan(types(kind("a", check)), [[node("a")]], MemoryMachine({"/etc/conf": "old\n", "/srv": None}))
    by_field = {change["field"]: change for change in found.steps["a"].changes}
    assert sorted(by_field) == ["content", "mode"] and len(found.steps["a"].changes) == 2
    assert (by_field["mode"]["before"], by_field["mode"]["after"]) == ("0644", "0600")
    assert by_field["content"]["diff"] == "--- /etc/conf\n+++ /etc/conf\n@@ -1 +1 @@\n-old\n+new\n"


def test_binary_content_has_no_diff() -> None:
    def check(node: HostNode) -> Any:
        return [Op(lambda machine: machine.write("/etc/conf", b"\xff\x00"), "write")()]

    found, _ = plan(types(kind("a", check)), [[node("a")]], MemoryMachine({"/etc/conf": "old\n"}))
    (change,) = found.steps["a"].changes
    assert "diff" not in change and change["after"].startswith("sha256:")


def test_equal_plans_have_equal_fingerprints() -> None:
    layers = ([node("a", "file", path="/srv/f")], [node("b", "quiet")])
    assert fingerprints(planned(*layers)) == fingerprints(planned(*layers))
    assert set(fingerprints(planned(*layers))) == {"a"}
    other = planned([node("a", "file", path="/srv/f", content="x")], [node("b", "quiet")])
    assert fingerprints(other) != fingerprints(planned(*layers))


# Checks that write, and ops that bypass the machine

ATTEMPTS = {
    "open": lambda p: open(p / "made", "w"),
    "remove": lambda p: os.remove(p / "kept"),
    "subprocess": lambda p: subprocess.run(["touch", str(p / "made")], check=True),
    "swallowed": lambda p: swallowed(p),
}


def swallowed(place: Path) -> Any:
    try:
        (place / "made").write_text("x")
    except Exception:
        return []
    return []


@pytest.mark.parametrize("name", ATTEMPTS)
def test_a_check_that_writes_fails_and_writes_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / "kept").write_text("x")
    kinds = dict(KINDS, **types(kind("bad", lambda node: ATTEMPTS[name](tmp_path) or [])))
    found, _ = plan(kinds, [[node("bad"), node("good", "quiet")], [node("on", "quiet", ["bad"])]])
    assert outcomes(found) == {"bad": "failed", "good": "unchanged", "on": "skipped"}
    assert "tried" in found.steps["bad"].reason
    assert os.listdir(tmp_path) == ["kept"]


@pytest.mark.parametrize("name", [*ATTEMPTS, "nothing at all"])
def test_an_op_that_bypasses_the_machine_changes_nothing_in_a_plan(tmp_path: Path, name: str) -> None:
    (tmp_path / "kept").write_text("x")

    def body(machine: Machine) -> Any:
        if name in ATTEMPTS:
            ATTEMPTS[name](tmp_path)
        return ok()

    kinds = dict(KINDS, **types(kind("past", lambda node: [Op(body)()])))
    layers = [[node("past")], [node("on", "file", ["past"], path="/etc/conf"), node("free", "quiet")]]
    found, _ = plan(kinds, layers, MemoryMachine({"/etc/conf": "old\n"}))
    assert outcomes(found) == {"past": "changed", "on": "unknown", "free": "unchanged"}
    assert found.steps["on"].known_after == "past"
    assert os.listdir(tmp_path) == ["kept"]


def test_an_op_with_no_effect_leaves_later_nodes_known() -> None:
    kinds = dict(KINDS, **types(kind("idle", lambda node: [Op(lambda machine: machine.remove("/gone"), "remove")()])))
    found, _ = plan(
        kinds, [[node("idle")], [node("f", "file", ["idle"], path="/srv/f")]], MemoryMachine({"/srv": None})
    )
    assert outcomes(found) == {"idle": "changed", "f": "changed"}


def test_an_op_that_would_fail_is_planned_as_failed() -> None:
    found = planned([node("f", "file", path="/no/such/f")], [node("on", "quiet", ["f"])])
    assert outcomes(found) == {"f": "failed", "on": "skipped"}
    assert found.steps["f"].reason == "write: cannot write /no/such/f: No such file or directory (/no)"


# The forms that a check may return

CALLS: list[str] = []


def nullary() -> Any:
    CALLS.append("called")
    return ok()


class HyKeyword:
    """A class with the name and the attributes of Hy's own keyword."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __hash__(self) -> int:
        return hash(self.name)


PLAIN = {"fn": nullary, "op": "plain", "args": {"a": 1}}
FORMS = {
    "a list": lambda: [write("/srv/f")],
    "a tuple": lambda: (write("/srv/f"),),
    "a generator": lambda: (write("/srv/f") for _ in range(1)),
    "a map": lambda: {"actions": [write("/srv/f")]},
    "a map with keyword keys": lambda: {Keyword("actions"): [write("/srv/f")]},
    "a map with keys that are Hy's own keywords": lambda: {HyKeyword("actions"): [write("/srv/f")]},
    "a map with text keys that begin with a colon": lambda: {":actions": [write("/srv/f")]},
    "a spec": lambda: ActionSpec([write("/srv/f")]),
}
FIRSTS = ["shutdown-first", "shutdown_first", ":shutdown-first", Keyword("shutdown-first"), HyKeyword("shutdown-first")]


@pytest.mark.parametrize("form", FORMS)
def test_a_check_may_return_its_actions_in_any_supported_form(form: str) -> None:
    found, _ = plan(types(kind("a", lambda node: FORMS[form]())), [[node("a")]], MemoryMachine({"/srv": None}))
    step = found.steps["a"]
    assert (step.outcome, step.reason) == ("changed", "")
    assert [(action.op, action.args["path"]) for action in step.spec.actions] == [("write", "/srv/f")]


@pytest.mark.parametrize("key", FIRSTS)
def test_shutdown_first_is_accepted_in_every_spelling(key: Any) -> None:
    found, _ = plan(
        types(kind("a", lambda node: {"actions": [], key: write("/srv/f")})),
        [[node("a")]],
        MemoryMachine({"/srv": None}),
    )
    first = found.steps["a"].spec.shutdown_first
    assert isinstance(first, Action) and first.op == "write"
    assert found.steps["a"].outcome == "changed"


@pytest.mark.parametrize(
    "item", [PLAIN, {":fn": nullary, ":op": "plain"}, {HyKeyword("fn"): nullary, HyKeyword("op"): HyKeyword("plain")}]
)
def test_a_plan_never_calls_an_action_given_as_a_plain_map(item: Any) -> None:
    CALLS.clear()
    kinds = dict(KINDS, **types(kind("a", lambda node: [item])))
    found, _ = plan(
        kinds, [[node("a")], [node("f", "file", ["a"], path="/etc/conf")]], MemoryMachine({"/etc/conf": "x"})
    )
    assert outcomes(found) == {"a": "changed", "f": "unknown"}
    assert found.steps["a"].spec.actions[0].op == "plain"
    assert CALLS == []


BAD_FORMS = [
    None,
    7,
    "text",
    write("/srv/f"),
    [7],
    [{}],
    [{"fn": nullary}],
    [{"op": "x"}],
    [{"fn": 1, "op": "x"}],
    {"actoins": []},
    {"actions": 7},
]


@pytest.mark.parametrize("form", BAD_FORMS, ids=lambda form: f"{form!r:.30}")
def test_an_invalid_check_result_fails_the_node(form: Any) -> None:
    found, _ = plan(types(kind("a", lambda node: form)), [[node("a")]], MemoryMachine())
    assert found.steps["a"].outcome == "failed"
    assert "the check of a returned" in found.steps["a"].reason


@pytest.mark.parametrize("result", [None, 7, "ok", {}, {"status": None}, error("why"), {"status": Keyword("error")}])
def test_an_op_with_a_bad_result_fails_in_the_plan(result: Any) -> None:
    def body(machine: Machine) -> Any:
        machine.run(["x"], effect={})
        return result

    found, _ = plan(types(kind("a", lambda node: [Op(body)()])), [[node("a")]], MemoryMachine())
    assert found.steps["a"].outcome == "failed"
    assert found.steps["a"].reason.startswith("body: ")


def test_a_check_receives_its_node_all_nodes_and_earlier_actions() -> None:
    """A check receives the node, all nodes by name, and the actions of earlier layers."""
    seen: list[Any] = []

    def check(one: Any, two: Any, three: Any) -> Any:
        seen.append((one.provides, sorted(two), [sorted(layer) for layer in three]))
        return []

    plan(dict(KINDS, **types(kind("b", check))), [[node("a", "quiet")], [node("b", requires=["a"])]], MemoryMachine())
    assert seen == [("b", ["a", "b"], [["a"]])]


def test_a_change_with_a_secret_shows_no_old_value_or_digest() -> None:
    machine = MemoryMachine({"/etc/app.conf": "user = app\npassword = older\n"})
    new = Blob.of("user = app\npassword = newer\n")
    new.secret = new.holds([b"newer"])
    machine.turn("file:/etc/app.conf")
    machine.write("/etc/app.conf", new)
    (change,) = machine.changes.report()
    assert change["before"] == "holds a secret (28 bytes)" == change["after"]
    assert " user = app\n" in change["diff"]
    assert "older" not in change["diff"]
    assert not Blob.of("x" * 600_000 + "newer").holds([b"older"])
    assert Blob.of("x" * ((1 << 18) - 2) + "newer").holds([b"newer"])


def test_large_reports_omit_diffs_beyond_the_size_limit() -> None:
    """The controller keeps a limited amount per host. Nodes beyond the limit have no differences and logs."""
    change = {"object": "/f", "field": "content", "before": "a", "after": "b", "diff": "+x\n" * 20_000}
    action = {"op": "write", "args": {}, "status": "ok", "log": "y" * 20_000}
    nodes = [{"name": f"n{number}", "changes": [change], "actions": [action]} for number in range(400)]
    spent = [0]
    sent = [node for part in portions(iter(nodes), spent) for node in part]
    whole = [node for node in sent if "diff" in node["changes"][0]]
    assert sent[: len(whole)] == whole == nodes[: len(whole)]
    assert 100 < len(whole) < 300
    assert len(sent) == 400 and sent[-1]["changes"] == [{key: change[key] for key in change if key != "diff"}]
    assert spent[0] < WHOLE + 400 * 8192
