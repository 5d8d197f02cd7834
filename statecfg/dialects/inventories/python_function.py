"""Read inventories that are a function in Python: `def inventory():` returns `{"hosts": …, "groups": …}`."""

from __future__ import annotations

import os
import sys
import types
from pathlib import Path
from typing import Any

from statecfg.dialects import yaml_inventory
from statecfg.dialects.modules import importing, module_name
from statecfg.dialects.yaml_inventory import WrittenInventory
from statecfg.dialects.yaml_tree import Mapping, Scalar, Sequence, YamlNode
from statecfg.graph.value import Value
from statecfg.playbook import project
from statecfg.playbook.user_code import guarded
from statecfg.problems import InvalidInput, SourceLocation, problem
from statecfg.remote.graph.wrong_values import type_words

NAME = "inventory"
MAX_DEPTH = 100


def read(path: str) -> WrittenInventory:
    """Return what the function `inventory` in a file returns. Report problems in it, at the line of the function.

    :raises InvalidInput: the file or the function fails, or there is no such function
    """
    file = os.path.abspath(path)
    module = types.ModuleType(module_name(file))
    module.__file__ = file
    root = str(project.find(Path(file)).root)
    with importing(root, os.path.dirname(file)), guarded(f"loading {path}", file=path):
        with open(file, "rb") as stream:
            code = compile(stream.read(), path, "exec", dont_inherit=True)
        sys.modules[module.__name__] = module
        exec(code, module.__dict__)  # noqa: S102  # an inventory in Python is a program
        function = getattr(module, NAME, None)
        if not isinstance(function, types.FunctionType):
            help_text = f'write def {NAME}(): return {{"hosts": {{"web1": {{}}}}}}'
            detail = f"{path} defines no function `{NAME}`"
            raise InvalidInput([problem("SC0417", detail, help_text, SourceLocation(path, 1))])
        found = function()
    return yaml_inventory.read(_tree(found, (path, function.__code__.co_firstlineno, 1), 0))


def _tree(found: Any, at: tuple[str, int, int], depth: int) -> YamlNode:
    """Return a value as the tree that the same inventory in YAML has."""
    if depth > MAX_DEPTH:
        raise InvalidInput([problem("SC0417", "the inventory is nested too deeply", "flatten it", SourceLocation(*at))])
    if isinstance(found, dict):
        tree = Mapping(at, None)
        for key, item in found.items():
            tree.items[str(key)], tree.keys[str(key)] = _tree(item, at, depth + 1), Scalar(at, None, str(key))
        return tree
    if isinstance(found, list | tuple | set | frozenset):
        listed = Sequence(at, None)
        items = sorted(found) if isinstance(found, set | frozenset) else found
        listed.items.extend(_tree(item, at, depth + 1) for item in items)
        return listed
    if found is None or isinstance(found, str | bool | int | float | Value):
        return Scalar(at, None, found)
    detail = f"`{NAME}` returned {type_words(found)} in its inventory"
    help_text = "use dict, list, str, int, float, bool, None and secret(…)"
    raise InvalidInput([problem("SC0417", detail, help_text, SourceLocation(*at))])
