"""Find and read the files with variables of hosts and groups: `host_vars/`, `group_vars/` and `vars_files`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from statecfg.dialects import yaml_inventory, yaml_text, yaml_tree
from statecfg.dialects.inventories import foreign_yaml
from statecfg.playbook.inventory import Vars
from statecfg.problems import SourceLocation, inputs, problem, report, reporting, suggest_file

ENDINGS = ("", ".yml", ".yaml", ".json")
MAX_NESTING = 20  # directories; stops at links to parent directories, which would never end

Check = Callable[[Iterable[tuple[str, Any, SourceLocation]]], Vars]


def found(directory: str, name: str) -> list[str]:
    """Return the files with the variables of a host or group, in the order in which Ansible reads them.

    A directory comes before a file, and a file without an ending before the others; only the first is used.

    :param directory: a `host_vars/` or `group_vars/`
    :param name: the name of the host or group
    """
    for ending in ENDINGS if os.path.isdir(directory) else ():
        path = os.path.join(directory, name + ending)
        if os.path.isdir(path):
            return list(_below(path, MAX_NESTING))
        if os.path.exists(path):
            return [path]
    return []


def _below(directory: str, depth: int) -> Iterator[str]:
    for name in sorted(os.listdir(directory)) if depth else ():
        path, ending = os.path.join(directory, name), os.path.splitext(name)[1]
        if name.startswith(".") or name.endswith("~") or ending not in ENDINGS:
            continue
        if os.path.isdir(path):
            yield from _below(path, depth - 1) if not ending else ()
        else:
            yield path


class Foreign:
    """The variable files of Ansible-format sources. Each file is read once.

    :param directories: the directories that contain `host_vars/` and `group_vars/`
    :param check: returns variables whose names and values were checked
    """

    def __init__(self, directories: Iterable[str], check: Check) -> None:
        self.check = check
        self._read: dict[tuple[str, str, str], Vars] = {}

    def of_group(self, directory: str, name: str) -> Vars:
        """Return the variables in the files of a group."""
        return self._of(directory, "group_vars", name)

    def of_host(self, directory: str, name: str) -> Vars:
        """Return the variables in the files of a host."""
        return self._of(directory, "host_vars", name)

    def _of(self, directory: str, folder: str, name: str) -> Vars:
        key = directory, folder, name
        if key not in self._read:
            values: dict[str, tuple[Any, SourceLocation]] = {}
            for path in found(os.path.join(directory, folder), name):
                with reporting():
                    values.update(self.check(_entries(path)))
            self._read[key] = values
        return self._read[key]


def _entries(path: str) -> Iterator[tuple[str, Any, SourceLocation]]:
    inputs.note("variables", path)
    if foreign_yaml.vaulted_file(path):
        return
    root = foreign_yaml.read(path)
    written = yaml_tree.mapping(root, "a file of variables", "port: 8080") if root is not None else None
    for name, node in written.items.items() if written is not None else ():
        yield name, foreign_yaml.value(node, name), node.location


def beside(directory: str, folder: str, name: str, what: str) -> Vars:
    """Return the variables in `host_vars/NAME.yml` or `group_vars/NAME.yml` beside one of statecfg's inventories.

    If there is a directory NAME, its files count together. Report a variable that two of them set differently.

    :param directory: the directory of the inventory
    :param folder: "host_vars" or "group_vars"
    :param what: what the variables belong to, for messages
    """
    from statecfg.dialects.inventories.parts import merged

    values: Vars = {}
    for path in found(os.path.join(directory, folder), name):
        values = merged(values, own(path), what)
    return values


def own(path: str) -> Vars:
    """Return the variables in a file, which follows the same rules as `vars:` of an inventory."""
    inputs.note("variables", path)
    with reporting():
        if foreign_yaml.vaulted_file(path):
            return {}
        return yaml_inventory.variables(yaml_text.load(path, "variables: NAME: VALUE"), "file")
    return {}


def listed(inventory: str, names: Iterable[tuple[str, SourceLocation]]) -> Vars:
    """Return the variables in the files of a `vars_files:`. A later file overrides an earlier one.

    :param inventory: the inventory's file; relative paths start at its directory
    :param names: each path with its source location
    """
    values: dict[str, tuple[Any, SourceLocation]] = {}
    for name, location in names:
        path = os.path.join(os.path.dirname(inventory), os.path.expanduser(name))
        if os.path.isfile(path):
            values.update(own(path))
        else:
            report(problem("SC0301", f"`vars_files:` names {name}, which does not exist", suggest_file(path), location))
    return values
