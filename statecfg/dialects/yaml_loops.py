"""Loops over entries in YAML: `for_each`, the name of its items (`as`) and the label of its nodes (`label`)."""

from __future__ import annotations

import keyword
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from statecfg.dialects import yaml_tree
from statecfg.dialects import yaml_tree as tree
from statecfg.problems import problem, report
from statecfg.problems.frozen import dataclass

KEYS = ("for_each", "as", "label")
RESERVED = ("host", "loop", "true", "false", "none")


@dataclass(frozen=True, slots=True)
class Loop:
    """The loop of an entry.

    :param elements: the value of `for_each:`
    :param name: the variable that contains the element of a round; "" for `item`, or `key` and `value`
    :param label: the value of `label:`
    """

    elements: tree.YamlNode
    name: str = ""
    label: tree.YamlNode | None = None


class Round(dict[str, Any]):
    """The variable `loop` of a round, as in Jinja2. `outer` is that of the loop around it, if there is one."""


def read(entry: tree.Mapping, attributes: Collection[str] = ()) -> Loop | None:
    """Return the loop of an entry, and report invalid parts.

    :param attributes: the attributes of the entry's node type; one called `as` or `label` is not part of the loop
    :returns: None if there is no `for_each:`
    """
    elements = entry.items.get("for_each")
    as_, label = (entry.items.get(key) if key not in attributes else None for key in ("as", "label"))
    if elements is None:
        for key, node in (("as", as_), ("label", label)):
            if node is not None:
                detail = f"the entry has `{key}:`, but no `for_each:`"
                report(problem("SC0319", detail, f"add `for_each:`, or remove `{key}:`", entry.keys[key].location))
        return None
    return Loop(elements, _name(as_), label)


def _name(node: tree.YamlNode | None) -> str:
    if node is None:
        return ""
    name = node.value if isinstance(node, tree.Scalar) and node.tag is None else None
    if isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name) and name not in RESERVED:
        return name
    if not node.wrong:
        shown = f"`{name}`" if isinstance(name, str) else yaml_tree.describe(node)
        detail = f"`as:` is {shown}, which can't name a variable"
        help_text = "use letters, digits and _; don't start with a digit, and don't use a keyword of Python"
        if name in RESERVED:
            help_text = f"choose another name; these have a meaning already: {', '.join(RESERVED)}"
        report(problem("SC0308", detail, help_text, node.location))
    return ""


def rounds(loop: Loop, elements: Any, scope: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the variables that each round adds.

    :param elements: the evaluated list or map
    :param scope: the variables outside the loop
    """
    pairs = [{"key": key, "value": value} for key, value in elements.items()] if isinstance(elements, Mapping) else None
    items: Sequence[Any] = elements if pairs is None else pairs
    outer = scope.get("loop")
    around = {"outer": outer} if isinstance(outer, Round) else {}
    for index, item in enumerate(items):
        last = index == len(items) - 1
        current_round = Round(index0=index, index=index + 1, first=index == 0, last=last, length=len(items), **around)
        named = {loop.name: item} if loop.name else {"item": item} if pairs is None else item
        yield {**named, "loop": current_round}
