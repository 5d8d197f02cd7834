"""Values in the YAML of a registration: maps, strings, lists of strings, choices. Invalid ones are reported."""

from __future__ import annotations

from typing import Any

from statecfg.dialects import yaml_tree
from statecfg.dialects.yaml_tree import Mapping, Scalar, YamlNode, describe
from statecfg.problems import problem, report, suggest


def map_of(parent: Mapping, key: str, example: str, needed: bool = False) -> Mapping | None:
    """Return a map, None if it is missing. Report a value that is not a map, or a missing one that is `needed`."""
    node = parent.items.get(key)
    if node is None:
        if needed:
            report(problem("SC0602", f"`{key}:` is missing", f"write {example}", parent.location))
        return None
    if isinstance(node, Scalar) and node.value is None and not needed:
        return None
    return yaml_tree.mapping(node, f"`{key}:`", example)


def text_of(parent: Mapping, key: str, needed: bool = False) -> str:
    """Return a string, "" if it is missing. Report a value that is not a string, or a missing one that is `needed`."""
    node = parent.items.get(key)
    if node is None or (isinstance(node, Scalar) and node.value is None and not needed):
        if needed:
            report(problem("SC0602", f"`{key}:` is missing", f"write {key}: TEXT", parent.location))
        return ""
    if isinstance(node, Scalar) and node.tag is None and isinstance(node.value, str) and (node.value or not needed):
        return node.value
    report(problem("SC0603", f"`{key}` is {describe(node)}", "it must be a string", node.location))
    return ""


def texts_of(parent: Mapping, key: str, valid: tuple[str, ...] = (), code: str = "SC0603") -> tuple[str, ...]:
    """Return a list of strings; a single string counts as a list. Report values that are not strings or not valid.

    :param valid: allowed values; () for any
    :param code: error code for a value that is not allowed
    """
    node = parent.items.get(key)
    if node is None or (isinstance(node, Scalar) and node.value is None):
        return ()
    items: list[YamlNode] | None = [node] if isinstance(node, Scalar) else None
    if items is None:
        sequence = yaml_tree.sequence(node, f"`{key}:`", f"{key}: [NAME, NAME]")
        items = sequence.items if sequence is not None else []
    names = []
    for item in items:
        value: Any = item.value if isinstance(item, Scalar) and item.tag is None else None
        if not isinstance(value, str) or not value:
            report(
                problem("SC0603", f"`{key}` contains {describe(item)}", "it must contain only strings", item.location)
            )
        elif valid and value not in valid:
            report(problem(code, f"`{value}` in `{key}:`", suggest(value, valid, "available"), item.location))
        else:
            names.append(value)
    return tuple(dict.fromkeys(names))


def choice_of(parent: Mapping, key: str, valid: tuple[str, ...]) -> str:
    """Return one of the valid strings, "" if it is missing. Report any other value."""
    value = text_of(parent, key)
    if value and value not in valid:
        help = suggest(value, valid, "one of")
        report(problem("SC0603", f"`{key}` is `{value[:60]}`", help, parent.items[key].location))
        return ""
    return value
