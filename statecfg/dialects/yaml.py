"""Playbooks in YAML: a play, or a list of plays, services and relations, whose `resources:` name node types."""

from __future__ import annotations

import os
from collections import abc
from typing import Any

from statecfg import problems, resources, templates
from statecfg.dialects import yaml_entries, yaml_services, yaml_text
from statecfg.dialects.yaml_entries import Entries, Values
from statecfg.dialects.yaml_text import Mapping, Node, Scalar, Sequence
from statecfg.graph.graph import Graph
from statecfg.playbook import services
from statecfg.playbook.plays import HostContext, Play
from statecfg.playbook.services import Playbook
from statecfg.problems import going_on, problem, report

Vars = abc.Mapping[str, Any]
SHAPE = "a play: `hosts:` and `resources:`"
KEYS = ("name", "hosts", "vars", "prune", "resources", "include")
SERVICE_KEYS = ("service", *yaml_services.PARTS, *KEYS[1:])


def load(path: str, root: str) -> Playbook:
    """Read a playbook and return what it defines.

    :param path: absolute path of the file
    :param root: directory of the project
    Reports every mistake that shows without a host's variables.
    """
    resources.add_directory(os.path.join(root, "resources"))
    tree = yaml_text.read(path, SHAPE)
    entries = Entries()
    with problems.collecting() as found:
        nodes = tree.items if isinstance(tree, Sequence) and tree.tag is None else [tree]
        made: list[Any] = []
        for index, node in enumerate(nodes, 1):
            if isinstance(node, Mapping) and "relations" in node.items:
                made += yaml_services.relations(node)
            else:
                made.append(_play(node, path, entries, index if len(nodes) > 1 else 0))
    report(*found)
    if None in made:  # a service may be missing, so that relations can't be looked at
        made = [each for each in made if isinstance(each, Play)]
    return services.of_file(path, made) if any(isinstance(each, Play) for each in made) or not found else Playbook([])


def _play(node: Node, path: str, entries: Entries, number: int) -> Play | None:
    top = yaml_text.mapping(node, "a play", "hosts: web")
    if top is None:
        return None
    is_service = "service" in top.items
    if is_service:
        yaml_text.known_keys(top, "a service", SERVICE_KEYS)
    else:
        yaml_text.known_keys(top, "a play", KEYS, ("service", "relations"))
    stem = os.path.splitext(os.path.basename(path))[0]
    name = _name(top, "service" if is_service else "name") or (f"{stem}-{number}" if number else stem)
    variables = yaml_entries.play_variables(top.items.get("vars"))
    steps = entries.included_first(top.items.get("include")) + entries.read(top.items.get("resources"), path)
    written = top.items.get("hosts")
    if written is None:
        what = "service" if is_service else "play"
        report(problem("SC0310", f"a {what} needs `hosts:`", "write hosts: NAME, a group or a pattern", top.place))
        return None

    def build(host: HostContext) -> list[Graph]:
        scope = Values({"host": {"name": host.name, "groups": list(host.groups)}, **host.vars})
        return list(entries.graphs(steps, scope, ((path, top.place),)))

    def complete(merged: Vars, host: str, groups: tuple[str, ...]) -> dict[str, Any]:
        return resolved(merged, variables, {"host": {"name": host, "groups": list(groups)}})

    prune, hosts = _prune(top.items.get("prune")), _hosts(written)
    service = yaml_services.service(top, name, hosts, path) if is_service else None
    return Play(name, hosts, build, variables, written.place, path, complete=complete, prune=prune, service=service)


def resolved(merged: Vars, order: Vars, given: Vars) -> dict[str, Any]:
    """Return variables with the author's templates in them evaluated, each from those before it in `order`."""
    scope = {key: value for key, value in merged.items() if key not in order or value is not order[key]}
    for name, value in order.items():
        if merged.get(name) is value:
            made: Any = templates.UNREADABLE
            with going_on():
                made = templates.resolve(value, {**given, **scope})
            scope[name] = made
    return scope


def _name(top: Mapping, key: str) -> str | None:
    node = top.items.get(key)
    if node is None:
        return None
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.value:
        return node.value
    report(problem("SC0310", f"`{key}:` must be a text; this is {yaml_text.describe(node)}", "quote it", node.place))
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
    # What was reported has no pattern: there is nothing more to say of it.
    return ",".join(names) if names or not items else "all"
