"""Load all node types of a project."""

from __future__ import annotations

import os
from pathlib import Path

from statecfg import resources
from statecfg.dialects import modules
from statecfg.graph import registry, schema
from statecfg.playbook.user_code import guarded
from statecfg.problems import InvalidInput, collecting, reporting
from statecfg.problems.positions import NOWHERE
from statecfg.remote.graph.nodetype import NodeType


def of_project(root: Path) -> dict[str, NodeType[...]]:
    """Return the built-in node types and those of a project, by name.

    :param root: directory of the project
    :raises InvalidInput: with the problems of all node types that can't be loaded
    """
    modules.enter(os.path.abspath(root))
    types: dict[str, NodeType[...]] = {}
    with collecting() as problems:
        for name in registry.names():
            with reporting(), guarded(f"loading the node type {name}"):
                node_type = registry.find(name, NOWHERE)
                if node_type is not None:
                    schema.of(node_type)
                    types[name] = node_type
    if problems:
        raise InvalidInput(problems)
    return types


def own(root: Path) -> list[NodeType[...]]:
    """Return the node types that a project defines in its `resources/`.

    The parameter and the errors are those of `of_project`.
    """
    types = of_project(root)
    directory = os.path.join(os.path.abspath(root), "resources")
    names = resources.available_in(directory) if directory in resources.__path__ else []
    return [types[name] for name in names]
