"""Where the modules of node types are: a built-in one is in the package of its family, others are in this package."""

from __future__ import annotations

import os
from importlib import import_module

from statecfg.resources.index.types import PACKAGES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Dict

PACKAGE = "statecfg.resources"
# The packages in this one. A project may have node types of these names.
FOLDERS = frozenset(("index", "shared", *(package.partition(".")[0] for package in PACKAGES.values() if package)))


def module_of(name: str) -> str:
    """Return the name of the module that defines a node type, or would define it."""
    package = PACKAGES.get(name)
    return f"{PACKAGE}.{package}.{name}" if package else f"{PACKAGE}.{name}{'_' * (name in FOLDERS)}"


def file_stem(name: str) -> str:
    """Return the file name, without suffix, of a module in this package: that of a node type (see `module_of`)."""
    return name[:-1] if name[:-1] in FOLDERS and name[-1] == "_" else name


def moved(module: str) -> str:
    """Return the present name of the module of a built-in node type that is given by its name until 0.4.

    :returns: "" for any other name
    """
    package, _, name = module.rpartition(".")
    return module_of(name) if package == PACKAGE and PACKAGES.get(name) else ""


class ResourceFinder:
    """Finds modules by names that their files don't have: former names, and those of projects (see `FOLDERS`)."""

    @classmethod
    def find_spec(cls, module: str, path: Any = None, target: Any = None) -> Any:
        """Return the import specification of such a module, None for others."""
        if moved(module):
            return type(__spec__)(module, cls)  # type: ignore[arg-type]  # its methods need no instance
        package, _, name = module.rpartition(".")
        stem = file_stem(name)
        if package != PACKAGE or stem == name:
            return None
        from importlib.util import spec_from_file_location

        files = (os.path.join(folder, f"{stem}.py") for folder in path)
        return next((spec_from_file_location(module, file) for file in files if os.path.isfile(file)), None)

    @staticmethod
    def create_module(spec: Any) -> None:
        """Return None, so that Python creates the module."""

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Give a module the names of the one at its present place."""
        vars(module).update(_names(import_module(moved(module.__name__))))


def _names(module: ModuleType) -> Dict[str, Any]:
    return {name: value for name, value in vars(module).items() if not name.startswith("__")}
