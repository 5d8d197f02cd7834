"""Services and relations in YAML: what stands in a playbook's list beside plays."""

from __future__ import annotations

import os
from typing import Any

from statecfg.dialects import yaml_text
from statecfg.dialects.yaml_entries import author
from statecfg.dialects.yaml_text import Mapping, Node, Scalar, Sequence, describe
from statecfg.playbook import services
from statecfg.playbook.services import Relation, Service
from statecfg.problems import problem, report
from statecfg.problems.positions import SourceLocation

PARTS = ("charm", "schema", "settings", "timeout", "playbook")
EXAMPLE = "- relations: [[web:db, db:db]]"


def service(top: Mapping, name: str, hosts: str, path: str) -> Service:
    """Return the service that a map of the playbook at `path` declares; report what is wrong with it."""
    places: dict[str, SourceLocation] = {}
    given = {}
    for part in PARTS:
        node = top.items.get(part)
        if node is None or node.wrong or (isinstance(node, Scalar) and node.value is None and node.tag is None):
            continue
        places[part] = node.place
        if isinstance(node, Mapping):
            places.update((f"{part}.{key}", written.place) for key, written in node.keys.items())
        given[part] = _right(node)
    return services.declared(name, hosts, given, os.path.dirname(path), top.keys["service"].place, places)


def _right(node: Node) -> Any:
    """Return the value of a node without what could not be read, which was reported."""
    if isinstance(node, Mapping) and node.tag is None:
        return {key: _right(item) for key, item in node.items.items() if not item.wrong}
    return author(node)


def relations(top: Mapping) -> list[Relation]:
    """Return the relations that a map `relations: [[web:db, db:db]]` lists; report what is none."""
    yaml_text.known_keys(top, "what has `relations:`", ("relations",))
    found = yaml_text.sequence(top.items["relations"], "`relations:`", EXAMPLE)
    made = [_relation(item) for item in (found.items if found is not None else ())]
    return [each for each in made if each is not None]


def _relation(node: Node) -> Relation | None:
    items = node.items if isinstance(node, Sequence) and node.tag is None else None
    if items is None:
        detail = f"a relation is a list of its ends; this is {describe(node)}"
        report(problem("SC0711", detail, f"write {EXAMPLE}", node.place))
        return None
    ends = [item.value if isinstance(item, Scalar) and item.tag is None else describe(item) for item in items]
    return services.related(ends, node.place)
