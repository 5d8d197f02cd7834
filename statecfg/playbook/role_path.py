"""Find roles and node types: in the project, in `roles_path` and in installed Python packages."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from statecfg import resources
from statecfg.playbook.project import SETTINGS_FILE, read_settings
from statecfg.playbook.role import CODE, FILE
from statecfg.playbook.user_code import guarded
from statecfg.problems import InvalidInput, problem, reporting

if TYPE_CHECKING:
    from importlib import metadata

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*\Z")
ROLES, RESOURCES = "statecfg.roles", "statecfg.resources"  # groups of entry points


class Found(NamedTuple):
    """The directory of a role, and where statecfg found it, for people."""

    name: str
    directory: str
    origin: str


def is_name(text: str) -> bool:
    """Return whether `include:` can mean a role by a string; otherwise it is the path of a file."""
    return bool(NAME.match(text)) and not text.endswith((".yml", ".yaml"))


def in_directories(root: str) -> Iterator[Found]:
    """Yield the roles of a project and of its `roles_path`. The first role with a name counts."""
    seen: set[str] = set()
    for folder, origin in _folders(root):
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            directory = os.path.join(folder, name)
            if NAME.match(name) and name not in seen and is_role(directory):
                seen.add(name)
                yield Found(name, directory, origin)


def is_role(directory: str) -> bool:
    """Return whether a directory contains a role."""
    return any(os.path.isfile(os.path.join(directory, name)) for name in (FILE, *CODE.values()))


def _folders(root: str) -> Iterator[tuple[str, str]]:
    yield os.path.join(root, "roles"), "roles/"
    settings = None
    file = Path(root, SETTINGS_FILE)
    if file.exists():
        with reporting():
            settings = read_settings(file)
    for text in (settings.paths.roles_path or "").split(":") if settings is not None else ():
        if text:
            yield os.path.join(root, os.path.expanduser(text)), text


def installed() -> Iterator[Found]:
    """Yield the roles of installed Python packages, sorted by name.

    :raises InvalidInput: an entry point does not name a directory with a role
    """
    for point in _points(ROLES):
        directory = _directory(point)
        if not is_role(directory):
            raise _wrong(point, f"{directory} contains neither {FILE} nor {' nor '.join(CODE.values())}")
        yield Found(point.name, directory, _package(point))


def find(root: str, name: str) -> Found | None:
    """Return the role with a name; None if there is none. The project comes first, installed packages last.

    :param root: directory of the project
    :raises InvalidInput: an installed package is wrong
    """
    for found in in_directories(root):
        if found.name == name:
            return found
    return next((found for found in installed() if found.name == name), None)


def names(root: str) -> list[str]:
    """Return the names of all roles, sorted."""
    return sorted({found.name for found in in_directories(root)} | {point.name for point in _points(ROLES)})


def add_node_types(root: str) -> None:
    """Add the node types of a project's roles, also of roles that no playbook includes.

    So statecfg can remove what a role left on hosts after a playbook no longer includes it.
    """
    for found in in_directories(root):
        resources.add_directory(os.path.join(found.directory, "resources"))


def add_installed_node_types() -> bool:
    """Add the node types of installed packages; return whether there are new ones.

    :raises InvalidInput: an entry point does not name a directory, or a node type's name is already taken
    """
    before = len(resources.__path__)
    for point in _points(RESOURCES):
        resources.add_directory(_directory(point))
    for point in _points(ROLES):
        resources.add_directory(os.path.join(_directory(point), "resources"))
    return len(resources.__path__) > before


@lru_cache(maxsize=2)
def _points(group: str) -> tuple[metadata.EntryPoint, ...]:
    from importlib import metadata  # takes 10 ms, and few projects need it

    return tuple(sorted(metadata.entry_points(group=group), key=lambda point: point.name))


def _directory(point: metadata.EntryPoint) -> str:
    """Return the directory of the package that an entry point names. It is not imported, nor are those around it."""
    first, *rest = point.value.split(".")
    with guarded(f"finding {point.value} of the {_package(point)}"):
        try:
            spec = importlib.util.find_spec(first)
        except (ImportError, ValueError) as error:
            raise _wrong(point, str(error)) from None
    for directory in (spec and spec.submodule_search_locations) or ():
        if os.path.isdir(os.path.join(directory, *rest)):
            return os.path.abspath(os.path.join(directory, *rest))
    raise _wrong(point, f"{point.value} is not a package")


def _package(point: metadata.EntryPoint) -> str:
    return f"package {point.dist.name} {point.dist.version}" if point.dist is not None else "an installed package"


def _wrong(point: metadata.EntryPoint, detail: str) -> InvalidInput:
    help_text = f"uninstall or repair the {_package(point)}: its entry point must name a package"
    detail = f"{point.group}: {point.name} = {point.value}: {detail}"
    return InvalidInput([problem("SC0325", detail, help_text)])
