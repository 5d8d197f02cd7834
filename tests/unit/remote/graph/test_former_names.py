"""Former names of the API of node types: they do the same as the new ones, and warn once for each name and file."""

from __future__ import annotations

import warnings

import pytest

from statecfg.remote.graph.nodetype import NodeType
from statecfg.remote.graph.ops import Op, op

USES = """
first = op(turn="apt")(lambda machine: machine)
second = op(turn="apt")(lambda machine: machine)
made.claims(["path:{path}"])
"""


def run(file: str, made: NodeType[...]) -> dict[str, Op]:
    names: dict[str, Op] = {}
    exec(compile(USES, file, "exec"), {"op": op, "made": made}, names)
    return names


def test_former_names_do_the_same_as_the_new_ones() -> None:
    made: NodeType[...] = NodeType("made")
    with pytest.warns(FutureWarning):
        ops = run("same.py", made)
    assert [each.mutex for each in ops.values()] == ["apt", "apt"]
    assert made.methods["identity"]({"path": "/etc"}) == ["path:/etc"]


def test_a_file_warns_once_of_each_name_and_another_file_warns_again() -> None:
    found = []
    for file in ("one.py", "one.py", "other.py"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run(file, NodeType("made"))
        found.append([(each.filename, each.lineno, str(each.message).partition(".")[0]) for each in caught])
    turn, claims = "op(turn=…) is now op(mutex=…)", "NodeType"
    assert found[0] == [("one.py", 2, turn), ("one.py", 4, claims)]
    assert found[1] == []
    assert found[2] == [("other.py", 2, turn), ("other.py", 4, claims)]
