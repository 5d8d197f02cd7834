"""Nodes that a host repeats for each item of a list (`for_each_host`): check that the host can complete them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyrsistent import pmap

from statecfg.graph import host_item_rules, opaque
from statecfg.graph.host_item_rules import TRIED
from statecfg.graph.host_items import CODE, FIELDS, OPTION, PATHS, kind_of, replaced, sample, sampled, samples
from statecfg.graph.nodes import Node
from statecfg.problems import Problem, problem
from statecfg.remote.graph.nodetype import REGISTRY

Prepare = Callable[[Node], Any]


def attributes(node: Node, attrs: Any, prepare: Prepare, problems: list[Problem]) -> tuple[Any, Mapping[str, Any]]:
    """Return the attributes of a node with samples in place of references, also in templates; and its options.

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
        names = _differing(node, attrs, prepare, others) or []
        wrong += [f"an item of the host for `{name}`, which statecfg computes before the run" for name in names]
    if "from_wire" in REGISTRY[node.type].methods:
        wrong.append(f"items of the host, but the type {node.type} completes its nodes on the host")
    for what in wrong:
        help_text = "insert items as they are into attributes, or declare a node for each object"
        problems.append(problem(CODE, f"{node.provides} uses {what}", help_text, *node.positions))
    if wrong or not REGISTRY[node.type].methods.get("to_wire"):
        return attrs, node.options
    known = len(problems)
    limits = {text: _limits(node, attrs, prepare, *one) for text, one in node.options[OPTION]["samples"].items()}
    del problems[known:]  # of characters that are refused
    return attrs, {**node.options, OPTION: {**node.options[OPTION], "samples": limits}}


def _differing(node: Node, attrs: Any, prepare: Prepare, texts: Mapping[str, str]) -> list[str] | None:
    """Return the names of the attributes that differ if a node has texts before it is prepared, and not afterwards.

    Return None if it can't be prepared, which is reported.

    :param attrs: the attributes that were prepared with samples
    :param texts: field → text
    """
    kind = kind_of(node.options[OPTION])
    again = prepare(node.replace(attrs=pmap(replaced(dict(node.attrs), texts))))
    if again is None:
        return None
    other = replaced(sampled(opaque.resolve_tokens(again["attrs"]), kind), texts)
    expected = replaced(dict(attrs), texts)
    return [name for name in sorted({*expected, *other}) if expected.get(name) != other.get(name)]


def _limits(node: Node, attrs: Any, prepare: Prepare, field: str, inside: str, first: str, longest: int) -> list[Any]:
    """Return what an item must not contain, also because the type of its node would quote it before the run.

    See `host_item_rules`.
    """
    if field not in samples(attrs):
        return [field, inside, first, longest]
    every = {name: sample(name) for name in FIELDS[kind_of(node.options[OPTION])]}
    start = "/a" if field in PATHS else "a"

    def stays(*texts: str) -> bool:
        return all(_differing(node, attrs, prepare, {**every, field: text}) == [] for text in texts)

    letters = [letter for letter in TRIED if letter not in inside and (letter != "/" or start == "a")]
    inside += "".join(letter for letter in letters if not stays(f"{start}{letter}a", f"{start}{letter}"))
    if start == "a":
        letters = [letter for letter in TRIED if letter not in inside and letter not in first]
        first += "".join(letter for letter in letters if not stays(f"{letter}a"))
    return [field, inside, first, longest]
