"""Nodes that a host repeats for each item of a list (`for_each_host`): check that the host can complete them."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any

from statecfg.graph import host_item_rules, opaque
from statecfg.graph.attributes import Attributes
from statecfg.graph.host_item_rules import TRIED
from statecfg.graph.host_items import CODE, FIELDS, OPTION, PATHS, list_name_of, replaced, sample, sampled, samples
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
    list_name = list_name_of(node.options[OPTION])
    attrs = sampled(attrs, list_name)
    wrong = [f"{field} of its items, but an item of `{list_name}` has no such field"
             for field in dict.fromkeys(samples(attrs)) if field not in FIELDS[list_name]]  # fmt: skip
    code = [item for group in (node.attrs, attrs) for item in host_item_rules.problems_of(node, group)]
    problems.extend(dict.fromkeys(code))
    if not wrong:
        # What depends on more than the text of the item differs with other samples.
        others = {field: sample(field, True) for field in FIELDS[list_name]}
        names = _differing(node, attrs, prepare, others)(others) or []
        wrong += [f"an item of the host for `{name}`, which statecfg computes before the run" for name in names]
    if "from_wire" in REGISTRY[node.type].methods:
        wrong.append(f"items of the host, but the type {node.type} completes its nodes on the host")
    for what in wrong:
        help_text = "insert items as they are into attributes, or declare a node for each object"
        problems.append(problem(CODE, f"{node.provides} uses {what}", help_text, *node.positions))
    if wrong or code or not REGISTRY[node.type].methods.get("to_wire"):
        return attrs, node.options
    known = len(problems)
    limits = {text: _limits(node, attrs, prepare, *one) for text, one in node.options[OPTION]["samples"].items()}
    del problems[known:]  # of characters that are refused
    return attrs, {**node.options, OPTION: {**node.options[OPTION], "samples": limits}}


def _differing(
    node: Node, attrs: Any, prepare: Prepare, fields: Container[str]
) -> Callable[[Mapping[str, str]], list[str] | None]:
    """Return a function that compares nodes which have texts before they are prepared with those which get them later.

    It takes field → text for each of these fields, and returns the names of the attributes that differ; None if the
    node can't be prepared, which is reported.

    :param attrs: the attributes that were prepared with samples
    :param fields: the other fields of the item keep their samples
    """
    list_name = list_name_of(node.options[OPTION])
    every = {field: sample(field) for field in FIELDS[list_name]}

    def with_fields(values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in values.items() if any(field in fields for field in samples(value))}

    values, expected = dict(node.attrs), replaced(dict(attrs), every)
    inserted, appearing = with_fields(values), with_fields(attrs)
    sent = prepare(node)
    before = {} if sent is None else sent["attrs"]

    def differing(texts: Mapping[str, str]) -> list[str] | None:
        texts = {**every, **texts}
        again = prepare(node.replace(attrs=Attributes({**values, **replaced(inserted, texts)})))
        if again is None:
            return None
        names = []
        for name in {*attrs, *again["attrs"]}:
            value, earlier = again["attrs"].get(name), before.get(name)
            if value is earlier or (type(value) is type(earlier) is str and value == earlier):
                continue  # the texts do not change it
            other = replaced(sampled(opaque.resolve_tokens(value), list_name), texts)
            if other != (replaced(appearing[name], texts) if name in appearing else expected.get(name)):
                names.append(name)
        return sorted(names)

    return differing


def _limits(node: Node, attrs: Any, prepare: Prepare, field: str, inside: str, first: str, longest: int) -> list[Any]:
    """Return what an item must not contain, also because the type of its node would quote it before the run.

    See `host_item_rules`.
    """
    if field not in samples(attrs) or field not in samples(node.attrs):
        return [field, inside, first, longest]
    differing = _differing(node, attrs, prepare, (field,))
    start = "/a" if field in PATHS else "a"

    def stays(*texts: str) -> bool:
        return all(differing({field: text}) == [] for text in texts)

    letters = [letter for letter in TRIED if letter not in inside and (letter != "/" or start == "a")]
    inside += "".join(letter for letter in letters if not stays(f"{start}{letter}a", f"{start}{letter}"))
    if start == "a":
        letters = [letter for letter in TRIED if letter not in inside and letter not in first]
        first += "".join(letter for letter in letters if not stays(f"{letter}a"))
    return [field, inside, first, longest]
