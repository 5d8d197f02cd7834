"""The ways to write a playbook: Hy, Python and YAML, one meaning. Only the one that a file needs is imported."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from statecfg.problems import InvalidInput, Place, problem

if TYPE_CHECKING:
    from statecfg.plays import Play

LOADERS = {".py": "python", ".hy": "hy_playbook", ".yml": "yaml", ".yaml": "yaml"}


def load(path: str | Path, project: Any = None) -> list[Play]:
    """Return the plays of a playbook.

    :param path: a `.hy`, `.py`, `.yml` or `.yaml` file
    :param project: directory of the project, or something whose `root` it is; the playbook's directory (or, where
        that is called `playbooks`, the one above) where not given
    Raises InvalidInput where the file is missing or wrong.
    """
    file = os.path.abspath(path)
    suffix = os.path.splitext(file)[1].lower()
    if suffix not in LOADERS:
        hint = f"a playbook ends in {', '.join(LOADERS)}"
        raise InvalidInput([problem("SC0515", f"{path} is in no language that playbooks are written in", hint)])
    if not os.path.isfile(file):
        raise InvalidInput([problem("SC0118", f"there is no playbook {path}", "", Place(str(path), 0))])
    root = _root(file, project)
    import_module("statecfg.dialects.modules").enter(root)
    plays: list[Play] = import_module(f"statecfg.dialects.{LOADERS[suffix]}").load(file, root)
    return plays


def load_module(name: str, path: str | Path) -> ModuleType:
    """Import the Hy file `path`, such as a node type's, as the module `name`."""
    module: ModuleType = import_module("statecfg.dialects.hy_source").load_module(name, os.path.abspath(path))
    return module


def _root(file: str, project: Any) -> str:
    if project is not None:
        root = project if isinstance(project, str | os.PathLike) else project.root
        return str(os.path.abspath(root))
    directory = os.path.dirname(file)
    return os.path.dirname(directory) if os.path.basename(directory) == "playbooks" else directory
