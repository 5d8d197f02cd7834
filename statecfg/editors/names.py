"""Find the names that a project's YAML playbooks give to nodes, so that editors can suggest them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from statecfg.dialects import yaml_text
from statecfg.dialects.yaml_tree import Mapping, Scalar, Sequence, YamlNode
from statecfg.graph import registry
from statecfg.graph.references import INCLUDE, LOOP, TAG
from statecfg.problems import InvalidInput, collecting

MAX_NAMES = 5000
MAX_FILES = 2000


def of_project(root: Path) -> list[str]:
    """Return the names of the nodes, tags, loops and includes in the playbooks of a project, sorted.

    A name that contains a template is returned as it is written, because requirements write it in the same way.
    Playbooks that can't be read are skipped: `statecfg validate` reports what is wrong with them.

    :param root: directory of the project
    """
    node_types = frozenset(registry.names())
    found: dict[str, None] = {}
    for path in sorted(_files(root / "playbooks"))[:MAX_FILES]:
        found.update(dict.fromkeys(_in_file(path, node_types)))
        if len(found) >= MAX_NAMES:
            break
    return sorted(found)[:MAX_NAMES]


def _files(folder: Path) -> Iterator[Path]:
    for directory, _, names in os.walk(folder):
        yield from (Path(directory, name) for name in names if name.endswith((".yml", ".yaml")))


def _in_file(path: Path, node_types: frozenset[str]) -> Iterator[str]:
    try:
        with collecting():
            tree = yaml_text.read(path, "a playbook")
    except InvalidInput:
        return
    top = tree.items if isinstance(tree, Sequence) else [tree]
    for item in top:
        yield from _in_entry(item, node_types)
        yield from _in_list(item.items.get("resources") if isinstance(item, Mapping) else None, node_types)


def _in_list(node: YamlNode | None, node_types: frozenset[str]) -> Iterator[str]:
    for item in node.items if isinstance(node, Sequence) else ():
        yield from _in_entry(item, node_types)
        if isinstance(item, Mapping) and not node_types.intersection(item.items):
            yield from _in_list(item.items.get("resources"), node_types)


def _in_entry(entry: YamlNode, node_types: frozenset[str]) -> Iterator[str]:
    """Yield the names of an entry: its own, and those that references can use."""
    if not isinstance(entry, Mapping):
        return
    yield from (f"{TAG}{name}" for name in _texts(entry.items.get("tags")))
    yield from (f"{LOOP}{name}" for name in _texts(entry.items.get("label")) if "for_each" in entry.items)
    yield from (f"{INCLUDE}{name}" for name in _texts(entry.items.get("include")))
    named = list(_texts(entry.items.get("provides")))
    first = next((key for key in entry.items if key in node_types), None)
    if not named and first is not None:
        value = entry.items[first]
        arguments = value.items[:1] if isinstance(value, Sequence) else [value]
        named = [f"{first}:{text}" for argument in arguments for text in _texts(argument)]
    yield from named


def _texts(node: YamlNode | None) -> Iterator[str]:
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.value and node.tag is None:
        yield node.value
    for item in node.items if isinstance(node, Sequence) else ():
        yield from _texts(item)
