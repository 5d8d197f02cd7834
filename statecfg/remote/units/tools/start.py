"""The start of a tool: import its modules from the code that the tool's file has read, and run the tool."""

from __future__ import annotations

import os
import sys

# The same as `importlib.machinery.ModuleSpec`, but from a module that every Python has already loaded.
from _frozen_importlib import ModuleSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, ModuleType
    from typing import Any, Dict, NoReturn, Optional, Tuple

    Modules = Dict[str, Tuple[bool, CodeType]]


class ToolFinder:
    """Imports the tools' modules from the code that the tool's file has read."""

    modules: Modules = {}

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> Optional[ModuleSpec]:
        """Return the spec of a tools' module; None for other modules."""
        loader: Any = cls
        return ModuleSpec(name, loader, is_package=cls.modules[name][0]) if name in cls.modules else None

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        """Let Python create the module."""

    @classmethod
    def exec_module(cls, module: ModuleType) -> None:
        """Run a module's code."""
        exec(cls.modules[module.__name__][1], module.__dict__)  # noqa: S102  # ours, from where only we can write


def run(modules: Modules) -> NoReturn:
    """Run the tool with the name of this program, and exit with its status."""
    ToolFinder.modules = modules
    finder: Any = ToolFinder
    sys.meta_path.insert(0, finder)
    from statecfg.remote.units.tools.catalogue import main

    try:
        status = main(os.path.basename(sys.argv[0]), sys.argv[1:])
    except KeyboardInterrupt:
        status = 130
    # Everything is written. Skip Python's cleanup.
    os._exit(status)
