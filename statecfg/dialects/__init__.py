"""Load playbooks in Hy, Python and YAML, which all have the same meaning. Imports `playbook` and below.

A dialect is imported only if a file needs it.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from statecfg.problems import InvalidInput, SourceLocation, inputs, problem, report, reporting, suggest_file

if TYPE_CHECKING:
    from statecfg.playbook.inventory import Inventory
    from statecfg.playbook.plays import Play
    from statecfg.playbook.project import Project
    from statecfg.playbook.services import Playbook

# The ending of a playbook's name → the module in this room that loads it.
LOADERS = {".py": "python", ".hy": "hy_playbook", ".yml": "yaml", ".yaml": "yaml"}
# The ending of an inventory's name → the module that loads it. `inventories` loads all others, and directories.
INVENTORIES = {".yml": "inventories", ".yaml": "inventories"}


def load(path: str | Path, project: Any = None) -> list[Play]:
    """Return the plays of a playbook; see `read`."""
    return list(read(path, project).plays)


def read(path: str | Path, project: Any = None) -> Playbook:
    """Return the definitions of a playbook: its plays, including services, and the relations between services.

    :param path: a `.hy`, `.py`, `.yml` or `.yaml` file
    :param project: directory of the project, or an object whose `root` it is; default: the playbook's directory, or
        its parent if the directory is named `playbooks`
    :raises InvalidInput: the file, or a playbook that a service uses, is missing or wrong
    """
    playbook = _read(path, project)
    return replace(playbook, plays=[_with_others(play, project, os.path.abspath(path)) for play in playbook.plays])


def _read(path: str | Path, project: Any) -> Playbook:
    file = os.path.abspath(path)
    suffix = os.path.splitext(file)[1].lower()
    if suffix not in LOADERS:
        hint = f"use a file that ends in {', '.join(LOADERS)}"
        raise InvalidInput([problem("SC0515", f"{path} does not have the suffix of a playbook", hint)])
    if not os.path.isfile(file):
        raise missing_playbook(path)
    inputs.note("playbook", file)
    root = _root(file, project)
    import_module("statecfg.dialects.modules").enter(root)
    import_module("statecfg.dialects.roles").forget()
    playbook: Playbook = import_module(f"statecfg.dialects.{LOADERS[suffix]}").load(file, root)
    return playbook


def missing_playbook(path: str | Path, what: str = "playbook") -> InvalidInput:
    """Return the error for a playbook that does not exist. It suggests a similar name.

    :param what: what the path may name
    """
    help_text = suggest_file(path) or f"searched for {os.path.abspath(path)}"
    return InvalidInput([problem("SC0118", f"{what} {path} does not exist", help_text, SourceLocation(str(path), 0))])


def _with_others(play: Play, project: Any, file: str) -> Play:
    """Return a play with the plays of the playbook that its service refers to. Report if that playbook is unusable."""
    service = play.service
    if service is None or service.playbook is None:
        return play
    location, other = service.location_of("playbook"), os.fspath(service.playbook)
    if other == file:
        report(problem("SC0317", f"{os.path.basename(file)} → itself", "use another playbook", location))
        return play
    if not os.path.isfile(other):
        report(problem("SC0118", f"playbook {other} does not exist", suggest_file(other), location))
        return play
    playbook_ = None
    with reporting():
        playbook_ = _read(other, project)
    if playbook_ is None:
        return play
    more = [item.position for item in playbook_.plays if item.service]
    more += [relation.position for relation in playbook_.relations]
    if more:
        name = os.path.basename(other)
        detail = f"service {service.name} uses the plays of {name}, which also declares services or relations"
        hint = "declare all services and relations in one playbook"
        report(problem("SC0716", detail, hint, location, *more))
    return replace(play, others=tuple(playbook_.plays))


def inventory(project: Project, path: Path | None = None, secrets: bool = False) -> Inventory:
    """Return the inventory of a project.

    :param path: the file or directory; default: the project's own inventory, or one that contains only `@local`
    :param secrets: whether missing secrets of the inventory are an error
    :raises InvalidInput: with all problems in the file
    """
    from statecfg.playbook.inventory import Inventory
    from statecfg.playbook.secrets import placeholders

    file = path or project.inventory_file
    if file is None:
        return Inventory()
    inputs.note("inventory", file)
    with contextlib.nullcontext() if secrets else placeholders():
        module = INVENTORIES.get(os.path.splitext(file)[1].lower(), "inventories")
        loaded: Inventory = import_module(f"statecfg.dialects.{module}").load(file)
        return loaded


def load_module(name: str, path: str | Path) -> ModuleType:
    """Import a Hy file, such as a node type, as a module.

    :param name: the name of the module
    :param path: the file
    """
    module: ModuleType = import_module("statecfg.dialects.hy_source").load_module(name, os.path.abspath(path))
    return module


def _root(file: str, project: Any) -> str:
    if project is not None:
        root = project if isinstance(project, str | os.PathLike) else project.root
        return str(os.path.abspath(root))
    directory = os.path.dirname(file)
    return os.path.dirname(directory) if os.path.basename(directory) == "playbooks" else directory
