"""Playbooks in YAML: a play, or a list of plays, whose `resources:` name node types."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from statecfg import plays, problems, resources, templates
from statecfg.dialects import yaml_entries, yaml_text
from statecfg.dialects.yaml_entries import Entries, Values
from statecfg.dialects.yaml_text import Node, Scalar, Sequence
from statecfg.graph import Graph
from statecfg.plays import HostContext, Play
from statecfg.problems import going_on, problem, report

SHAPE = "a play: `hosts:` and `resources:`"
KEYS = ("name", "hosts", "vars", "prune", "resources", "include")


def load(path: str, root: str) -> list[Play]:
    """Read a playbook and return its plays.

    :param path: absolute path of the file
    :param root: directory of the project
    Reports every mistake that shows without a host's variables.
    """
    resources.add_directory(os.path.join(root, "resources"))
    tree = yaml_text.read(path, SHAPE)
    entries = Entries()
    with problems.collecting() as found:
        nodes = tree.items if isinstance(tree, Sequence) and tree.tag is None else [tree]
        made = [_play(node, path, entries, index if len(nodes) > 1 else 0) for index, node in enumerate(nodes, 1)]
    report(*found)
    right = [each for each in made if each is not None]
    return plays.of_file(path, right) if right or not found else []


def _play(node: Node, path: str, entries: Entries, number: int) -> Play | None:
    top = yaml_text.mapping(node, "a play", "hosts: web")
    if top is None:
        return None
    yaml_text.known_keys(top, "a play", KEYS)
    stem = os.path.splitext(os.path.basename(path))[0]
    name = _name(top.items.get("name")) or (f"{stem}-{number}" if number else stem)
    variables = yaml_entries.play_variables(top.items.get("vars"))
    steps = entries.included_first(top.items.get("include")) + entries.read(top.items.get("resources"), path)
    written = top.items.get("hosts")
    if written is None:
        report(problem("SC0310", "a play needs `hosts:`", "write hosts: NAME, a group or a pattern", top.place))
        return None

    def build(host: HostContext) -> list[Graph]:
        scope = Values({"host": {"name": host.name, "groups": list(host.groups)}, **host.vars})
        return list(entries.graphs(steps, scope, ((path, top.place),)))

    def complete(merged: Mapping[str, Any], host: str, groups: tuple[str, ...]) -> dict[str, Any]:
        return resolved(merged, variables, {"host": {"name": host, "groups": list(groups)}})

    prune = _prune(top.items.get("prune"))
    return Play(name, _hosts(written), build, variables, written.place, path, complete=complete, prune=prune)


def resolved(merged: Mapping[str, Any], order: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return variables with the author's templates in them evaluated, each from those before it in `order`."""
    scope = {key: value for key, value in merged.items() if key not in order or value is not order[key]}
    for name, value in order.items():
        if merged.get(name) is value:
            made: Any = templates.UNREADABLE
            with going_on():
                made = templates.resolve(value, {**given, **scope})
            scope[name] = made
    return scope


def _name(node: Node | None) -> str | None:
    if node is None:
        return None
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.value:
        return node.value
    report(problem("SC0310", f"`name:` must be a text; this is {yaml_text.describe(node)}", "quote it", node.place))
    return None


def _prune(node: Node | None) -> bool:
    if node is not None and not (isinstance(node, Scalar) and isinstance(node.value, bool)):
        detail = f"`prune:` must be true or false; this is {yaml_text.describe(node)}"
        report(problem("SC0310", detail, "write prune: true", node.place))
    return isinstance(node, Scalar) and node.value is True


def _hosts(node: Node) -> str:
    items = node.items if isinstance(node, Sequence) else [node]
    names = []
    for item in items:
        if isinstance(item, Scalar) and isinstance(item.value, str) and item.value:
            names.append(item.value)
        else:
            detail = f"`hosts:` must be a pattern or a list of them; this is {yaml_text.describe(item)}"
            report(problem("SC0310", detail, "write hosts: NAME, a group or a pattern", item.place))
    return ",".join(names)
