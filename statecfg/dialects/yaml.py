"""Read playbooks in YAML: a play, or a list of plays, services and relations."""

from __future__ import annotations

import os
from collections import abc
from typing import Any

from statecfg import resources, templates
from statecfg.dialects import yaml_services, yaml_text, yaml_tree
from statecfg.dialects.yaml_entries import Entries, EntryContext, Values
from statecfg.dialects.yaml_entry import play_variables
from statecfg.dialects.yaml_tree import Mapping, Scalar, Sequence, YamlNode
from statecfg.graph.graph import Graph
from statecfg.playbook import services
from statecfg.playbook.plays import HostContext, Play
from statecfg.playbook.services import Playbook
from statecfg.problems import collecting, problem, report, reporting

Vars = abc.Mapping[str, Any]
SHAPE = "a play: `hosts:` and `resources:`"
KEYS = ("name", "hosts", "vars", "prune", "resources", "include")
SERVICE_KEYS = ("service", *yaml_services.PARTS, *KEYS[1:])


def load(path: str, root: str) -> Playbook:
    """Read a playbook and return its definitions. Report all problems that do not depend on a host's variables.

    :param path: absolute path of the file
    :param root: directory of the project
    """
    resources.add_directory(os.path.join(root, "resources"))
    tree = yaml_text.read(path, SHAPE)
    entries = Entries(root)
    with collecting() as problems:
        nodes = tree.items if isinstance(tree, Sequence) and tree.tag is None else [tree]
        definitions: list[Any] = []
        for index, node in enumerate(nodes, 1):
            if isinstance(node, Mapping) and "relations" in node.items:
                definitions += yaml_services.relations(node)
            else:
                definitions.append(_play(node, path, entries, index if len(nodes) > 1 else 0))
    report(*problems)
    if None in definitions:  # a service may be missing, so the relations can't be checked
        definitions = [item for item in definitions if isinstance(item, Play)]
    has_plays = any(isinstance(item, Play) for item in definitions)
    return services.of_file(path, definitions) if has_plays or not problems else Playbook([])


def _play(node: YamlNode, path: str, entries: Entries, number: int) -> Play | None:
    top = yaml_tree.mapping(node, "a play", "hosts: web")
    if top is None:
        return None
    is_service = "service" in top.items
    if is_service:
        yaml_tree.check_keys(top, "a service", SERVICE_KEYS)
    else:
        yaml_tree.check_keys(top, "a play", KEYS, ("service", "relations"))
    stem = os.path.splitext(os.path.basename(path))[0]
    name = _name(top, "service" if is_service else "name") or (f"{stem}-{number}" if number else stem)
    variables = play_variables(top.items.get("vars"))
    steps = entries.included_first(top.items.get("include")) + entries.read(top.items.get("resources"), path)
    written = top.items.get("hosts")
    if written is None:
        what = "service" if is_service else "play"
        report(problem("SC0310", f"a {what} needs `hosts:`", "write hosts: NAME, a group or a pattern", top.location))
        return None

    def build(host: HostContext) -> list[Graph]:
        scope = Values({**host.in_templates, **host.vars.unrecorded})
        return list(entries.graphs(steps, scope, EntryContext(((path, top.location),), scope)))

    def complete(merged: Vars, host: HostContext) -> dict[str, Any]:
        return resolved(merged, variables, host.in_templates)

    prune, hosts = _prune(top.items.get("prune")), _hosts(written)
    service = yaml_services.service(top, name, hosts, path) if is_service else None
    return Play(name, hosts, build, variables, written.location, path, complete=complete, prune=prune, service=service)


def resolved(merged: Vars, order: Vars, others: Vars) -> dict[str, Any]:
    """Return variables with their templates evaluated.

    :param merged: all variables
    :param order: the play's own variables, which may be templates; each can use the variables before it
    :param others: other names that templates can use
    """
    scope = {key: value for key, value in merged.items() if key not in order or value is not order[key]}
    for name, value in order.items():
        if merged.get(name) is value:
            result: Any = templates.UNREADABLE
            with reporting():
                result = templates.resolve(value, {**others, **scope})
            scope[name] = result
    return scope


def _name(top: Mapping, key: str) -> str | None:
    node = top.items.get(key)
    if node is None:
        return None
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.value:
        return node.value
    report(
        problem("SC0310", f"`{key}:` must be a string; this is {yaml_tree.describe(node)}", "quote it", node.location)
    )
    return None


def _prune(node: YamlNode | None) -> bool:
    if node is not None and not (isinstance(node, Scalar) and isinstance(node.value, bool)):
        detail = f"`prune:` must be true or false; this is {yaml_tree.describe(node)}"
        report(problem("SC0310", detail, "write prune: true", node.location))
    return isinstance(node, Scalar) and node.value is True


def _hosts(node: YamlNode) -> str:
    items = node.items if isinstance(node, Sequence) else [node]
    names = []
    for item in items:
        if isinstance(item, Scalar) and isinstance(item.value, str) and item.value:
            names.append(item.value)
        else:
            detail = f"`hosts:` must be a pattern or a list of them; this is {yaml_tree.describe(item)}"
            report(problem("SC0310", detail, "write hosts: NAME, a group or a pattern", item.location))
    # An invalid pattern was already reported, so use one that causes no other problem.
    return ",".join(names) if names or not items else "all"
