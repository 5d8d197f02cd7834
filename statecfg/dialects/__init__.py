"""The ways to write a playbook: Hy, Python and YAML, one meaning. Only the one that a file needs is imported."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from statecfg.problems import InvalidInput, SourceLocation, going_on, inputs, problem, report, suggest_file

if TYPE_CHECKING:
    from statecfg.playbook.inventory import Inventory
    from statecfg.playbook.plays import Play
    from statecfg.playbook.project import Project
    from statecfg.playbook.services import Playbook

# The ending of a playbook's name → the module in this room that loads it.
LOADERS = {".py": "python", ".hy": "hy_playbook", ".yml": "yaml", ".yaml": "yaml"}
# The same for inventories. An inventory with any other ending, or none, is YAML.
INVENTORIES = {".yml": "yaml_inventory", ".yaml": "yaml_inventory"}


def load(path: str | Path, project: Any = None) -> list[Play]:
    """Return the plays of a playbook; see `read`."""
    return list(read(path, project).plays)


def read(path: str | Path, project: Any = None) -> Playbook:
    """Return what a playbook defines: its plays, services among them, and relations of services.

    :param path: a `.hy`, `.py`, `.yml` or `.yaml` file
    :param project: directory of the project, or something whose `root` it is; the playbook's directory (or, where
        that is called `playbooks`, the one above) where not given
    Raises InvalidInput where the file, or another whose plays a service takes, is missing or wrong.
    """
    found = _read(path, project)
    return replace(found, plays=[_with_others(each, project, os.path.abspath(path)) for each in found.plays])


def _read(path: str | Path, project: Any) -> Playbook:
    file = os.path.abspath(path)
    suffix = os.path.splitext(file)[1].lower()
    if suffix not in LOADERS:
        hint = f"a playbook ends in {', '.join(LOADERS)}"
        raise InvalidInput([problem("SC0515", f"{path} is in no language that playbooks are written in", hint)])
    if not os.path.isfile(file):
        raise InvalidInput(
            [problem("SC0118", f"there is no playbook {path}", suggest_file(file), SourceLocation(str(path), 0))]
        )
    inputs.note("playbook", file)
    root = _root(file, project)
    import_module("statecfg.dialects.modules").enter(root)
    found: Playbook = import_module(f"statecfg.dialects.{LOADERS[suffix]}").load(file, root)
    return found


def _with_others(play: Play, project: Any, file: str) -> Play:
    """Return a play with those of the playbook that its service names; report where that one can't be used."""
    service = play.service
    if service is None or service.playbook is None:
        return play
    place, other = service.place("playbook"), os.fspath(service.playbook)
    if other == file:
        report(problem("SC0317", f"{os.path.basename(file)} → itself", "name another playbook", place))
        return play
    if not os.path.isfile(other):
        report(problem("SC0118", f"there is no playbook {other}", suggest_file(other), place))
        return play
    found = None
    with going_on():
        found = _read(other, project)
    if found is None:
        return play
    more = [*(each.position for each in found.plays if each.service), *(each.position for each in found.relations)]
    if more:
        detail = f"service {service.name} takes the plays of {os.path.basename(other)}, which declares more than plays"
        hint = "declare services and relations in one playbook, beside each other"
        report(problem("SC0716", detail, hint, place, *more))
    return replace(play, others=tuple(found.plays))


def inventory(project: Project, path: Path | None = None, secrets: bool = False) -> Inventory:
    """Return the inventory: the file at `path`, or the project's own, or one that knows only `@local`.

    :param secrets: whether missing secrets of the inventory are an error
    :raises InvalidInput: with everything that is wrong in the file
    """
    from statecfg.playbook.inventory import Inventory
    from statecfg.playbook.secrets import placeholders

    file = path or project.inventory_file
    if file is None:
        return Inventory()
    inputs.note("inventory", file)
    with contextlib.nullcontext() if secrets else placeholders():
        module = INVENTORIES.get(os.path.splitext(file)[1].lower(), "yaml_inventory")
        loaded: Inventory = import_module(f"statecfg.dialects.{module}").load(file)
        return loaded


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
