"""The cost grows in proportion to the size of the graph. The tests count calls or compare times."""

from __future__ import annotations

import gc
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from statecfg.dialects import load
from statecfg.graph import recording
from statecfg.graph.graph import merge_graphs
from statecfg.playbook.compile import WireContext, compile_graph
from statecfg.playbook.plays import HostContext, evaluate
from statecfg.problems import InvalidInput
from statecfg.run import prepare
from tests.unit.graph.node_types import t_path

HEADER = "from statecfg import play\nfrom statecfg.resources import file\n\n@play(hosts='@local')\ndef p(host):\n"


def calls(size: int) -> int:
    """Return the number of Python calls that declare and compile `size` nodes in 20 layers."""
    count = 0

    def counted(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(counted)
    try:
        above: list[Any] = []
        made: list[Any] = []
        for layer in range(20):
            row = [
                t_path(f"/{layer}/{i}", body="x", requires=[above[i], made[0].node.provides] if layer else ())
                for i in range(size // 20)
            ]
            made.extend(row)
            above = row
        definition = compile_graph(merge_graphs(*made), WireContext())
    finally:
        sys.setprofile(None)
    assert [len(layer) for layer in definition.layers] == [size // 20] * 20
    return count


def test_cost_per_node_does_not_grow_with_the_graph() -> None:
    calls(20)  # the first run imports modules and makes schemas
    small, large = calls(200), calls(4000)
    assert large / 4000 < 1.1 * small / 200
    # 190 without secrets; 290 with secrets and 350 with items of hosts, because statecfg searches all texts for them
    assert large / 4000 < 400


def test_long_playbook_is_read_in_linear_time(tmp_path: Path) -> None:
    def seconds(count: int) -> float:
        path = tmp_path / f"lines{count}.py"
        lines = "".join(f'        file("/tmp/x/{number}", content=""),\n' for number in range(count))
        path.write_text(f"{HEADER}    return [\n{lines}    ]\n")
        (play,) = load(path, tmp_path)
        spent = []
        for _ in range(3):
            gc.collect()
            gc.disable()  # the garbage collector would visit all objects of earlier tests
            started = time.process_time()
            graph = evaluate(play, HostContext("h"))
            spent.append(time.process_time() - started)
            gc.enable()
            assert len(graph.nodemap) == count
        return min(spent)

    seconds(10)
    # Linear time gives a factor of 8, quadratic time 64. The limit allows for noise.
    assert seconds(2000) < 16 * seconds(250) + 0.5


def test_too_many_nodes_are_refused_before_all_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MAX_NODES", 1000)
    path = tmp_path / "endless.py"
    path.write_text(
        f"{HEADER}    import itertools\n"
        "    return [file(f'/x/{number}', content='') for number in itertools.count()]\n"
    )
    with pytest.raises(InvalidInput) as caught:
        prepare.playbook(path, prepare.Choice())
    assert [item.code for item in caught.value.problems] == ["SC0115"]
