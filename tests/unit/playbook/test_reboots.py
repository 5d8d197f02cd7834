"""Reboots of a definition: each has a layer of its own, and what can't work is refused."""

from __future__ import annotations

import pytest

from statecfg.graph.graph import Graph, merge_graphs
from statecfg.playbook.compile import Definition, WireContext, compile_graph
from statecfg.problems import InvalidInput
from statecfg.resources import file, reboot


def compiled(*graphs: Graph) -> Definition:
    return compile_graph(merge_graphs(*graphs), WireContext("web1"))


def names(definition: Definition) -> list[list[str]]:
    return [[node["provides"] for node in layer] for layer in definition.layers]


def test_a_reboot_runs_alone_after_the_other_nodes_of_its_layer() -> None:
    graphs = (
        file("/a", content="a"),
        reboot("kernel", always=True),
        file("/z", content="z"),
        file("/later", content="b", requires=["reboot:kernel"]),
    )
    assert names(compiled(*graphs)) == [["file:/a", "file:/z"], ["reboot:kernel"], ["file:/later"]]


def test_the_only_node_of_a_layer_stays_there() -> None:
    graphs = file("/a", content="a"), reboot("kernel", restart_on=["file:/a"])
    assert names(compiled(*graphs)) == [["file:/a"], ["reboot:kernel"]]


@pytest.mark.parametrize("requires", [["reboot:one"], ["file:/a"]])
def test_two_reboots_may_be_ordered_directly_or_indirectly(requires: list[str]) -> None:
    graphs = (
        reboot("one", always=True),
        file("/a", content="a", requires=["reboot:one"]),
        reboot("two", always=True, requires=requires),
    )
    assert ["reboot:one"] in names(compiled(*graphs)) and ["reboot:two"] in names(compiled(*graphs))


def test_two_reboots_without_an_order_are_refused() -> None:
    graphs = (
        reboot("one", always=True),
        file("/a", content="a"),
        reboot("two", always=True, requires=["file:/a"]),
    )
    with pytest.raises(InvalidInput) as caught:
        compiled(*graphs)
    (found,) = caught.value.problems
    assert found.code == "SC0121"
    assert found.detail == "reboot:one and reboot:two both reboot the host, and neither requires the other"
    assert len(found.locations) == 2


def test_a_reboot_that_is_never_due_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        compiled(reboot("kernel", boot_timeout=60))
    (found,) = caught.value.problems
    assert found.detail == "reboot:kernel never reboots the host: it has no `when_exists`, `always` or `restart_on`"
