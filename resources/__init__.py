"""The node types, one per file and found by name: `from statecfg.resources import file` imports the node type.

`index` finds it. Imports `resources.shared` and the rooms of `remote`, because node types run on hosts.
"""

from __future__ import annotations

# A project's node type may have any name that does not start with an underscore. It becomes a name of this module.
import os as _os
import sys as _sys
from importlib import import_module as _import_module

from statecfg.remote.graph.above import above as _above
from statecfg.resources.index.modules import FOLDERS as _FOLDERS
from statecfg.resources.index.modules import ResourceFinder as _ResourceFinder
from statecfg.resources.index.types import PACKAGES as _PACKAGES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List

    from statecfg.resources.index.types import *  # noqa: F403  # the names are those of the built-in node types

    __path__: List[str]  # type: ignore[no-redef]  # the star import may define it

    # The node types of a project. `statecfg schema --write` makes this module, in projects that have some.
    from statecfg_project import *  # noqa: F403  # the names are the project's

    from statecfg.remote.graph.nodetype import NodeType
    from statecfg.resources._hy import *  # noqa: F403  # the names are those of the node types in Hy

SUFFIXES = (".py", ".hy")


class _Resources(type(_sys)):  # type: ignore[misc]  # naming the class of modules takes an import of `types`
    """This package. The name of a submodule refers to the node type of the same name, if the submodule defines one."""

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, type(_sys)):
            if name in _FOLDERS:  # a project may have a node type of this name, see `__getattr__`
                return
            value = getattr(value, name, value)
        type(_sys).__setattr__(self, name, value)


_sys.modules[__name__].__class__ = _Resources
globals().pop("index", None)  # the imports above made this name; a project may have a node type of this name
_sys.meta_path.append(_ResourceFinder)


def __getattr__(name: str) -> NodeType[...]:
    if name.startswith("_"):
        raise AttributeError(name)
    if name in _FOLDERS and name not in available():
        package: NodeType[...] = _import_module(f"{__name__}.{name}")  # type: ignore[assignment]  # it is a module
        return package
    node_type: NodeType[...] = _above.load_node_type(name, _sys._getframe(1))
    setattr(_sys.modules[__name__], name, node_type)
    return node_type


def __dir__() -> List[str]:
    return available()


def available() -> List[str]:
    """Return the names of the node types in all directories of resources, sorted, without importing any."""
    own = (name for directory in __path__[1:] if _os.path.isdir(directory) for name in available_in(directory))
    return sorted({*_PACKAGES, *own})


def add_directory(directory: str) -> None:
    """Add the node types of a project's `resources/` to the built-in ones.

    :raises InvalidInput: if one has the name of a built-in node type
    """
    directory = _os.path.abspath(directory)
    if not _os.path.isdir(directory) or _os.path.realpath(directory) in map(_os.path.realpath, __path__):
        return
    # In a checkout of statecfg itself, these are the built-in node types, even if another statecfg is installed.
    link = _os.path.join(_os.path.dirname(directory), "statecfg", "resources")
    if _os.path.realpath(link) == _os.path.realpath(directory):
        return
    twice = sorted(set(available()).intersection(available_in(directory)))
    if twice:
        _above.report_twice(twice, directory)
    __path__.append(directory)


def available_in(directory: str) -> List[str]:
    """Return the names of the node types in a directory of a project, sorted."""
    parts = [_os.path.splitext(entry) for entry in _os.listdir(directory)]
    return sorted(stem for stem, suffix in parts if suffix in SUFFIXES and not stem.startswith("_"))
