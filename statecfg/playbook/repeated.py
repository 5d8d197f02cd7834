"""Nodes that a host repeats for each item of a list (`for_each_host`): check that the host can complete them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyrsistent import pmap

from statecfg.graph import host_item_rules, opaque
from statecfg.graph.host_items import CODE, FIELDS, OPTION, kind_of, replaced, sample, sampled, samples
from statecfg.graph.nodes import Node
from statecfg.problems import Problem, problem
from statecfg.remote.graph.nodetype import REGISTRY


def attributes(node: Node, attrs: Any, prepare: Callable[[Node], Any], problems: list[Problem]) -> Any:
    """Return the attributes of a node with samples in place of references, also in templates.

    :param attrs: the attributes as they are sent
    :param prepare: calls the `to_wire` of the node's type; returns None if it fails, which is reported
    :param problems: receives the problems
    """
    kind = kind_of(node.options[OPTION])
    attrs = sampled(attrs, kind)
    wrong = [f"{field} of its items, but an item of `{kind}` has no such field"
             for field in dict.fromkeys(samples(attrs)) if field not in FIELDS[kind]]  # fmt: skip
    code = [item for group in (node.attrs, attrs) for item in host_item_rules.problems_of(node, group)]
    problems.extend(dict.fromkeys(code))
    if not wrong:
        # What depends on more than the text of the item differs with other samples.
        others = {field: sample(field, True) for field in FIELDS[kind]}
        again = prepare(node.replace(attrs=pmap(replaced(dict(node.attrs), others)))) or {"attrs": attrs}
        other = replaced(sampled(opaque.resolve_tokens(again["attrs"]), kind), others)
        expected = replaced(dict(attrs), others)
        names = [name for name in sorted({*expected, *other}) if expected.get(name) != other.get(name)]
        wrong += [f"an item of the host for `{name}`, which statecfg computes before the run" for name in names]
    if "from_wire" in REGISTRY[node.type].methods:
        wrong.append(f"items of the host, but the type {node.type} completes its nodes on the host")
    for what in wrong:
        help_text = "insert items as they are into attributes, or declare a node for each object"
        problems.append(problem(CODE, f"{node.provides} uses {what}", help_text, *node.positions))
    return attrs
