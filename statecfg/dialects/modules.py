"""Lets playbooks import what lies beside them and in their project, one project at a time."""

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
from statecfg.playbook.plays import HostContext, Play
from statecfg.playbook.services import Playbook
from statecfg.playbook.user_code import LIBRARIES
from statecfg.problems import positions
from statecfg.remote.graph.nodetype import REGISTRY, NodeType, register

_OURS = list(resources.__path__)
_root = ""
_imported: set[str] = set()  # modules that the present project's playbooks brought


def module_name(path: str) -> str:
    """Return the name under which a playbook is loaded: no other file's, and the same every time."""
    stem = os.path.splitext(os.path.basename(path))[0]
    safe = "".join(letter if letter.isalnum() else "_" for letter in stem)
    return f"statecfg_playbook_{safe}_{hashlib.sha256(path.encode()).hexdigest()[:8]}"


@contextlib.contextmanager
def importing(root: str, directory: str) -> Iterator[None]:
    """Let `import` find the modules of the project at `root` and those beside a playbook in `directory`."""
    enter(root)
    path, known = list(sys.path), set(sys.modules)
    sys.path[:0] = dict.fromkeys((os.path.abspath(directory), os.path.abspath(root)))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = path
        below = (os.path.abspath(root) + os.sep, os.path.abspath(directory) + os.sep)
        _imported.update(name for name in set(sys.modules) - known if _file(sys.modules[name]).startswith(below))


def built_within(playbook: Playbook, root: str, directory: str) -> Playbook:
    """Return the playbook with plays whose functions may import what their playbook may."""

    def wrapped(each: Play) -> Play:
        def build(host: HostContext) -> Any:
            with importing(root, directory):
                return each.build(host)

        return dataclasses.replace(each, build=build)

    return dataclasses.replace(playbook, plays=[wrapped(each) for each in playbook.plays])


def enter(root: str) -> None:
    """Make `root` the present project: its `resources/` join ours, and another project's modules are forgotten."""
    global _root
    if _root != root:
        for name in _imported:
            sys.modules.pop(name, None)
            for kind in [kind for kind in REGISTRY.values() if kind.module == name]:
                _forget(kind.name)
        _imported.clear()
        resources.__path__[:] = _OURS
        _root = root
    resources.add_directory(os.path.join(root, "resources"))


def _forget(name: str) -> None:
    """Forget a node type; one of ours that it stood in front of is back."""
    del REGISTRY[name]
    vars(resources).pop(name, None)
    ours = getattr(sys.modules.get(f"{resources.__name__}.{name}"), name, None)
    if isinstance(ours, NodeType):
        register(ours)


def files() -> list[str]:
    """Return the source files of the modules that the present project's playbooks imported, sorted.

    Installed libraries are left out, and so are our own modules, also where they lie inside the project.
    """
    found = {path for name in _imported if name in sys.modules and (path := _file(sys.modules[name]))}
    foreign = (*LIBRARIES, positions.PACKAGE)
    return sorted(path for path in found if os.path.isfile(path) and not path.startswith(foreign))


def _file(module: Any) -> str:
    return getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", None) or ()), "")
