"""Load a node type by its name: `from statecfg.resources import NAME` calls this."""

from __future__ import annotations

import os
from importlib import import_module
from types import FrameType

from statecfg import resources
from statecfg.dialects import load_module
from statecfg.graph.registry import no_node_type_in, unknown_node_type
from statecfg.remote.graph.nodetype import REGISTRY, NodeType
from statecfg.resources.index.modules import module_of


def load_node_type(name: str, frame: FrameType | None) -> NodeType[...]:
    """Load a node type from the directories of resources, or from an installed package if none of them has it.

    :param frame: the frame that uses the name; its innermost user code is the source location of an unknown name
    :raises InvalidInput: there is no such node type, or its file does not define it
    """
    path = _file(name) or _file_in_package(name)
    if path is None:
        raise unknown_node_type(name, frame)
    if path.endswith(".hy"):
        load_module(module_of(name), path)
    else:
        import_module(module_of(name))
    if name not in REGISTRY:
        raise no_node_type_in(name, path)
    return REGISTRY[name]


def _file(name: str) -> str | None:
    inside = module_of(name).removeprefix(f"{resources.__name__}.").split(".")[:-1]
    for directory in resources.__path__:
        for suffix in resources.SUFFIXES:
            path = os.path.join(directory, *inside, name + suffix)
            if os.path.isfile(path):
                return path
    return None


def _file_in_package(name: str) -> str | None:
    from statecfg.playbook.role_path import add_installed_node_types  # most scripts don't need it

    return _file(name) if add_installed_node_types() else None
