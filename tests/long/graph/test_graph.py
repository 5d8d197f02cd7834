"""Merges of many graphs, in any order and nesting."""

from __future__ import annotations

import functools

from hypothesis import given
from hypothesis import strategies as st

from statecfg.graph.graph import EMPTY, Graph, merge_graphs
from tests.unit.graph.node_types import t_plain


def test_merging_in_a_loop_does_not_overflow_the_stack() -> None:
    graphs = [t_plain(str(index), requires=[f"t_plain:{index + 1}"]) for index in range(3000)]
    merged = functools.reduce(merge_graphs, graphs)
    assert len(list(merged.nodes())) == 3000
    assert merged.node.provides == "t_plain:0"


edges = st.dictionaries(st.sampled_from("abcdefg"), st.lists(st.sampled_from("abcdefg"), max_size=3), min_size=1)


@given(st.lists(edges, min_size=1, max_size=4), st.randoms())
def test_merged_nodemap_does_not_depend_on_order_or_nesting(parts: list[dict[str, list[str]]], rng: object) -> None:
    kept: dict[str, Graph] = {}
    for part in parts:
        for name, wanted in part.items():
            kept.setdefault(name, t_plain(name, provides=name, requires=wanted))
    graphs = list(kept.values())
    whole = merge_graphs(*graphs).nodemap
    rng.shuffle(graphs)
    nested = functools.reduce(merge_graphs, graphs)
    assert nested.nodemap == whole
    assert merge_graphs(nested, *graphs).nodemap == whole
    assert merge_graphs(EMPTY, nested, EMPTY).nodemap == whole
