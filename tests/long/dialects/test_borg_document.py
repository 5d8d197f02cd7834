"""The examples of the Borg state configuration document work with our loader and with plain Hy."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from statecfg.dialects import load
from statecfg.dialects.modules import module_name
from statecfg.graph.graph import Graph
from statecfg.graph.layers import layers
from statecfg.playbook.plays import HostContext, evaluate
from statecfg.problems import InvalidInput
from statecfg.remote.graph.model import Action
from statecfg.remote.machine.memory import MemoryMachine

HEADER = """
(require statecfg.dialects.hy [def node-type validator-maker make-validators defop defnodefn defmethod defplay])
(import statecfg.dialects.hy [merge-graphs map? some-fn true? false? nil? string? keyword? name spit zipmap])
"""

NODE_TYPES = """
(node-type process :arguments [pathname] :required-attrs [user group env args] :optional-attrs [block?]
           :produce-ops [service-down ensure-running])
(validator-maker (env map?))
(make-validators (block? (some-fn true? false? nil?))
                 (user (some-fn string? keyword?) name))
(setv good {:provides :p :user :bob :group "g" :env {"A" "1"} :args ["-x"]})
"""

DEPENDENCIES = """
(node-type file :arguments [pathname])
(node-type directory :arguments [pathname])
(def d (directory "/d" {:provides :some-directory}))
(def f (file "/d/f" {:provides :some-file :requires [d]}))
(def g (file "/d/f" {:provides :some-file :requires [:some-directory]}))
(def complete-graph (merge-graphs g d))
(def other-way (merge-graphs d g))
"""

OPS = """
(defop write [pathname contents] (spit pathname contents))
(setv action (write "/motd" "hello"))
"""


@pytest.fixture
def typed(tmp_path: Path):
    """Return a function that runs Hy text as a playbook and returns the names in the module."""

    def run(text: str) -> dict:
        path = tmp_path / "typed.hy"
        path.write_text(HEADER + text + '(defplay nothing [host] {:hosts "all"} None)\n')
        load(path, tmp_path)
        return vars(sys.modules[module_name(str(path))])

    return run


def test_node_type_makes_a_graph_of_one_node(typed) -> None:
    graph = typed(NODE_TYPES + '(def p (process "/bin/x" good))')["p"]
    assert isinstance(graph, Graph)
    assert set(graph.keys()) == {"node", "nodemap"}
    node = graph["node"]
    assert graph["nodemap"] == {"p": node}
    assert (node["provides"], list(node["requires"])) == ("p", [])
    assert list(node["produces_ops"]) == ["service-down", "ensure-running"]
    assert dict(node["attrs"]) == {
        "type": "process",
        "pathname": "/bin/x",
        "user": "bob",
        "group": "g",
        "env": {"A": "1"},
        "args": ["-x"],
    }


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ('(del (get good "user"))', "SC0102"),
        ('(setv (get good "colour") 1)', "SC0101"),
        ('(setv (get good "env") [1])', "SC0202"),
        ('(setv (get good "block?") 1)', "SC0202"),
        ('(setv (get good "block?") "x")', "SC0202"),
        ('(setv (get good "user") 7)', "SC0202"),
    ],
)
def test_node_type_refuses_wrong_attributes(typed, change: str, code: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        typed(NODE_TYPES + change + '(process "/bin/x" good)')
    assert [each.code for each in caught.value.problems] == [code]
    assert caught.value.problems[0].locations[0].file.endswith("typed.hy")


@pytest.mark.parametrize("value", ["True", "False", "None"])
def test_some_fn_accepts_what_any_predicate_accepts(typed, value: str) -> None:
    typed(NODE_TYPES + f'(setv (get good "block?") {value}) (process "/bin/x" good)')


def test_message_names_predicates_as_they_are_written(typed) -> None:
    with pytest.raises(InvalidInput, match=r"\(some-fn true\? false\? nil\?\)"):
        typed(NODE_TYPES + '(process "/bin/x" {#** good :block? 1})')


def test_required_graph_adds_its_node(typed) -> None:
    names = typed(DEPENDENCIES)
    assert set(names["f"].nodemap) == {"some-file", "some-directory"}
    assert list(names["f"].node.requires) == ["some-directory"]
    assert names["f"].node.provides == "some-file"


def test_required_name_adds_no_node(typed) -> None:
    assert set(typed(DEPENDENCIES)["g"].nodemap) == {"some-file"}


@pytest.mark.parametrize("graph", ["complete_graph", "other_way"])
def test_merged_graph_takes_the_node_that_requires_the_other(typed, graph: str) -> None:
    merged = typed(DEPENDENCIES)[graph]
    assert merged.node.provides == "some-file"
    assert [[node.provides for node in layer] for layer in layers(merged)] == [["some-directory"], ["some-file"]]


def test_defop_defines_a_function_that_returns_an_action(typed) -> None:
    names = typed(OPS)
    action = names["action"]
    assert isinstance(action, Action)
    assert action["args"] == {"pathname": "/motd", "contents": "hello"}
    assert action["op"] == "write"
    assert action["body"] == ["fn", [], ["spit", "pathname", "contents"]]
    assert callable(action["fn"])


def test_action_is_performed_on_the_given_machine(typed) -> None:
    machine = MemoryMachine()
    assert typed(OPS)["action"].perform(machine) == {"status": "ok"}
    assert machine.read("/motd") == b"hello"


def test_fn_of_an_action_runs_on_this_machine(typed, tmp_path: Path) -> None:
    motd = tmp_path / "motd"
    assert typed(OPS)["write"](str(motd), "hello")["fn"]() == {"status": "ok"}
    assert motd.read_text() == "hello"


def test_node_function_of_an_op_takes_arguments_from_a_node(typed) -> None:
    text = OPS + '(node-type motd :arguments [pathname] :required-attrs [contents])(def m (motd "/m" {:contents "c"}))'
    names = typed(text)
    assert names["node_write"](names["m"].node).args == {"pathname": "/m", "contents": "c"}


def test_expansion_shown_in_the_document_works_too(typed) -> None:
    names = typed(
        """
(defnodefn write [pathname contents]
    {:args (zipmap [:pathname :contents] [pathname contents])
     :body '(fn [] (spit pathname contents))
     :fn (fn [] (spit pathname contents))
     :op 'write})
(node-type motd :arguments [pathname] :required-attrs [contents])
(def m (motd "/m" {:contents "c"}))
"""
    )
    action = names["node_write"](names["m"].node)
    assert action["args"] == {"pathname": "/m", "contents": "c"}
    assert str(action["op"]) == "write"
    assert callable(action["fn"])


def test_play_with_the_document_examples_can_be_evaluated(tmp_path: Path) -> None:
    path = tmp_path / "play.hy"
    path.write_text(HEADER + DEPENDENCIES + '(defplay p [host] {:hosts "all"} [complete-graph])')
    (play,) = load(path, tmp_path)
    assert set(evaluate(play, HostContext("h")).nodemap) == {"some-file", "some-directory"}
