"""Read services and relations from playbooks in YAML."""

from __future__ import annotations

import os
from typing import Any

from statecfg.dialects import yaml_tree
from statecfg.dialects.yaml_entry import author
from statecfg.dialects.yaml_tree import Mapping, Scalar, Sequence, YamlNode, describe
from statecfg.playbook import services
from statecfg.playbook.services import Relation, Service
from statecfg.problems import problem, report
from statecfg.problems.positions import SourceLocation

PARTS = ("charm", "schema", "settings", "timeout", "playbook")
EXAMPLE = "- relations: [[web:db, db:db]]"


def service(top: Mapping, name: str, hosts: str, path: str) -> Service:
    """Return the service that a map of a playbook declares, and report its problems.

    :param top: the map
    :param path: the playbook
    """
    locations: dict[str, SourceLocation] = {}
    parts = {}
    for part in PARTS:
        node = top.items.get(part)
        if node is None or node.wrong or (isinstance(node, Scalar) and node.value is None and node.tag is None):
            continue
        locations[part] = node.location
        if isinstance(node, Mapping):
            locations.update((f"{part}.{key}", written.location) for key, written in node.keys.items())
        parts[part] = _right(node)
    return services.declared(name, hosts, parts, os.path.dirname(path), top.keys["service"].location, locations)


def _right(node: YamlNode) -> Any:
    """Return the value of a node without unreadable parts, which were already reported."""
    if isinstance(node, Mapping) and node.tag is None:
        return {key: _right(item) for key, item in node.items.items() if not item.wrong}
    return author(node)


def relations(top: Mapping) -> list[Relation]:
    """Return the relations in a map `relations: [[web:db, db:db]]`, and report invalid ones."""
    yaml_tree.check_keys(top, "a map with `relations:`", ("relations",))
    listed = yaml_tree.sequence(top.items["relations"], "`relations:`", EXAMPLE)
    items = [_relation(item) for item in (listed.items if listed is not None else ())]
    return [item for item in items if item is not None]


def _relation(node: YamlNode) -> Relation | None:
    items = node.items if isinstance(node, Sequence) and node.tag is None else None
    if items is None:
        detail = f"a relation must be a list of its ends; this is {describe(node)}"
        report(problem("SC0711", detail, f"write {EXAMPLE}", node.location))
        return None
    ends = [item.value if isinstance(item, Scalar) and item.tag is None else describe(item) for item in items]
    return services.related(ends, node.location)
