"""The JSON Schemas of a project, and the files that editors read them from."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from statecfg import dialects
from statecfg.editors import inventories, names, node_types, playbooks, settings, stubs
from statecfg.graph.json_schema import JsonSchema
from statecfg.playbook.inventory import ALL, LOCAL
from statecfg.playbook.project import SETTINGS_FILE, Project
from statecfg.remote.machine import durable

DRAFT = "http://json-schema.org/draft-07/schema#"
DIRECTORY = ".statecfg"
STUB = "statecfg_project.pyi"  # `statecfg.resources` imports its names for type checkers
STUB_LINE = "# Made by `statecfg schema --write` from the node types in resources/. Type checkers read it."
MAX_HOSTS = 2000

SCHEMAS: dict[str, Callable[[Project], JsonSchema]] = {
    "playbook": lambda project: playbooks.playbook(
        node_types.of_project(project.root), names.of_project(project.root), _hosts(project)
    ),
    "include": lambda project: playbooks.included(node_types.of_project(project.root), names.of_project(project.root)),
    "role": lambda project: playbooks.role(node_types.of_project(project.root), names.of_project(project.root)),
    "inventory": lambda project: inventories.inventory(),
    "settings": lambda project: settings.settings(),
}


def text(name: str, project: Project) -> str:
    """Return a JSON Schema of a project as JSON.

    :param name: one of `SCHEMAS`
    :raises InvalidInput: a node type or the inventory is wrong
    """
    document = {"$schema": DRAFT, **SCHEMAS[name](project)}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def write(project: Project) -> Iterator[Path]:
    """Write the JSON Schemas of a project into its `.statecfg/`, and the stub of its node types beside it.

    :returns: the paths of the files that changed
    :raises InvalidInput: a node type or the inventory is wrong; then nothing is written
    :raises OSError: a file can't be written
    """
    texts = {f"{DIRECTORY}/{name}.json": text(name, project) for name in SCHEMAS}
    own = node_types.own(project.root)
    if own or (project.root / STUB).exists():
        texts[STUB] = stubs.module(own, STUB_LINE)
    (project.root / DIRECTORY).mkdir(exist_ok=True)
    for name, content in texts.items():
        path = project.root / name
        if not path.is_file() or path.read_bytes() != content.encode():
            durable.replace(str(path), [content.encode()], 0o666)
            yield path


def line(name: str, path: str) -> str:
    """Return the comment that tells an editor the schema of a file. It is the first line of the file.

    :param name: one of `SCHEMAS`
    :param path: the file, relative to the project
    """
    schema = os.path.relpath(f"{DIRECTORY}/{name}.json", os.path.dirname(path) or ".")
    return f"#:schema {schema}\n" if path == SETTINGS_FILE else f"# yaml-language-server: $schema={schema}\n"


def _hosts(project: Project) -> list[str]:
    """Return the names that `hosts:` can use, without those of a large inventory."""
    inventory = dialects.inventory(project)
    found = dict.fromkeys([ALL, LOCAL, *inventory.groups, *inventory.hosts])
    return list(found)[:MAX_HOSTS]
