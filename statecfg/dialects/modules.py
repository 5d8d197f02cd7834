"""Let playbooks import modules from their directory and project, for one project at a time."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from statecfg import resources
from statecfg.playbook import role_path
from statecfg.playbook.plays import HostContext, Play
from statecfg.playbook.services import Playbook
from statecfg.playbook.user_code import LIBRARIES
from statecfg.problems import positions
from statecfg.remote.graph.nodetype import REGISTRY, NodeType, register
from statecfg.resources.index.modules import module_of

_BUILT_IN = list(resources.__path__)
_root = ""
_imported: set[str] = set()  # modules that the playbooks of the current project imported


def module_name(path: str) -> str:
    """Return the module name of a playbook. It is unique for each path, and always the same for a path."""
    stem = os.path.splitext(os.path.basename(path))[0]
    safe = "".join(letter if letter.isalnum() else "_" for letter in stem)
    return f"statecfg_playbook_{safe}_{hashlib.sha256(path.encode()).hexdigest()[:8]}"


@contextlib.contextmanager
def importing(root: str, directory: str) -> Iterator[None]:
    """Let `import` find modules in a playbook's directory and in its project during the block.

    :param root: directory of the project
    :param directory: directory of the playbook
    """
    enter(root)
    path, before = list(sys.path), set(sys.modules)
    sys.path[:0] = dict.fromkeys((os.path.abspath(directory), os.path.abspath(root)))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = path
        below = (os.path.abspath(root) + os.sep, os.path.abspath(directory) + os.sep)
        _imported.update(name for name in set(sys.modules) - before if _file(sys.modules[name]).startswith(below))


def built_within(playbook: Playbook, root: str, directory: str) -> Playbook:
    """Return a playbook whose plays can import the same modules as the playbook when they are evaluated."""

    def wrapped(play: Play) -> Play:
        def build(host: HostContext) -> Any:
            with importing(root, directory):
                return play.build(host)

        return dataclasses.replace(play, build=build)

    return dataclasses.replace(playbook, plays=[wrapped(play) for play in playbook.plays])


def enter(root: str) -> None:
    """Make `root` the current project: add its `resources/`, and unload the modules of the previous project."""
    global _root
    if _root != root:
        _imported.update(name for name in {one.module for one in REGISTRY.values()} if _is_of_project(name))
        for name in _imported:
            sys.modules.pop(name, None)
            for node_type in [node_type for node_type in REGISTRY.values() if node_type.module == name]:
                _forget(node_type.name)
        _imported.clear()
        resources.__path__[:] = _BUILT_IN
        _root = root
    resources.add_directory(os.path.join(root, "resources"))
    role_path.add_node_types(root)


def _is_of_project(module: str) -> bool:
    """Return whether a module is a file of the current project. In a checkout of statecfg, built-in ones are not."""
    path = _file(sys.modules.get(module))
    built_in = tuple(directory + os.sep for directory in _BUILT_IN)
    return bool(_root) and path.startswith(_root + os.sep) and not path.startswith(built_in)


def current_root() -> str:
    """Return the directory of the current project."""
    return _root


def _forget(name: str) -> None:
    """Remove a node type. A built-in node type with the same name becomes available again."""
    del REGISTRY[name]
    vars(resources).pop(name, None)
    built_in = getattr(sys.modules.get(module_of(name)), name, None)
    if isinstance(built_in, NodeType):
        register(built_in)


def files() -> list[str]:
    """Return the source files of the modules that the current project's playbooks imported, sorted.

    Installed libraries and modules of statecfg are excluded, also if they are inside the project.
    """
    paths = {path for name in _imported if name in sys.modules and (path := _file(sys.modules[name]))}
    foreign = (*LIBRARIES, positions.PACKAGE)
    return sorted(path for path in paths if os.path.isfile(path) and not path.startswith(foreign))


def _file(module: Any) -> str:
    return getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", None) or ()), "")
